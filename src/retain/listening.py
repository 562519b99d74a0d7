"""A socket that listens, for what is served over HTTP: who may reach it, and how it is opened."""

from __future__ import annotations

import ipaddress
import socket

from .errors import StoreFailed

__all__ = ["BACKLOG", "is_loopback", "listening"]

BACKLOG = 2048
"""Connections that may wait to be taken."""


def is_loopback(host: str | None) -> bool:
    """Whether ``host`` is a name or an address of this machine alone.

    >>> is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("localhost.example.org")
    (True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at ``host``; ``port``: 0 for a free one. Raises ``StoreFailed``."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        # The protocol must be named, or asyncio leaves Nagle's algorithm on: 40 ms an answer.
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError, OverflowError) as error:
        raise StoreFailed(f"can't listen at {host}, port {port}: {error}") from error
    return listener
