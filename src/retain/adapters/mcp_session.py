"""What stands between the two streams of ``retain mcp`` and the SDK's server."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream as Receiving
from anyio.streams.memory import MemoryObjectSendStream as Sending
from mcp.server.lowlevel.server import Server
from mcp.server.models import InitializationOptions
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from .mcp_greeting import Greeting
from .mcp_stdio import Wire

__all__ = ["Session", "introduction"]

log = logging.getLogger("retain")

_GRACE = 5.0  # seconds in which what was asked before the end is still answered
_LOOKED = 0.01  # seconds between looks at what is not answered yet


def introduction(server: Server[Any]) -> InitializationOptions:
    """What ``server`` says of itself, in every version of the SDK."""
    options = server.create_initialization_options()
    options.capabilities.experimental = None  # which versions before 2.3 give as {}
    return options


class Session:
    """One client's messages, between the wire and the SDK's server."""

    def __init__(self, wire: Wire, server: Server[Any], greeted: Greeting | None) -> None:
        self._wire = wire
        self._server = server
        self._greeted = greeted
        self._asked: set[int | str] = set()  # what is not answered yet

    async def run(self, lines: list[bytes]) -> None:
        """Serve until the end; ``lines`` are the first ones."""
        incoming, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
        answers, outgoing = anyio.create_memory_object_stream[SessionMessage]()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, lines, incoming)
            tasks.start_soon(self._write, outgoing)
            try:
                await self._server.run(requests, answers, introduction(self._server))
            finally:
                self._wire.end()

    async def _read(self, lines: list[bytes], incoming: Sending[SessionMessage]) -> None:
        async with incoming:
            while lines:
                for line in lines:
                    try:
                        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValidationError:
                        await self._refuse(line)
                        continue
                    self._note(message)
                    await incoming.send(SessionMessage(message))
                lines = await anyio.to_thread.run_sync(self._wire.lines)
            with anyio.move_on_after(_GRACE):
                while self._asked and not self._wire.is_cut:
                    await anyio.sleep(_LOOKED)

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._asked.add(message.id)
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            id = (message.params or {}).get("requestId")
            if isinstance(id, (int, str)):  # a client may say anything
                self._asked.discard(id)  # gets no answer

    async def _refuse(self, line: bytes) -> None:
        """Answer what is no message; the SDK would leave whoever sent it waiting."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            id, code, text = None, types.PARSE_ERROR, "this is no JSON"
        else:
            id = found.get("id") if isinstance(found, dict) else None
            id = id if isinstance(id, (int, str)) and not isinstance(id, bool) else None
            code, text = types.INVALID_REQUEST, "this is no message of JSON-RPC 2.0"
        answer = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}
        await anyio.to_thread.run_sync(self._wire.write, json.dumps(answer).encode() + b"\n")

    async def _write(self, outgoing: Receiving[SessionMessage]) -> None:
        async with outgoing:
            async for each in outgoing:
                message = each.message
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                is_answer = isinstance(message, (types.JSONRPCResponse, types.JSONRPCError))
                id = getattr(message, "id", None) if is_answer else None
                if self._greeted is not None and id == self._greeted.id:
                    self._compare(line)
                else:
                    await anyio.to_thread.run_sync(self._wire.write, line + b"\n")
                if id is not None:
                    self._asked.discard(id)

    def _compare(self, line: bytes) -> None:
        """Drop the SDK's answer to a message that was answered before it was there."""
        assert self._greeted is not None
        if json.loads(line) != json.loads(self._greeted.line):
            log.warning(
                "the first answer was %s, and this version of mcp would have given %s",
                self._greeted.line.decode(),
                line.decode(),
            )
        self._greeted = None
