"""What a Prometheus server reads: numbers of requests and memories, and never anyone's text.

In a registry of its own, so that a program which serves other things too keeps them apart. Where
several processes serve one port, whichever is asked answers for all of them, through the files
of ``PROMETHEUS_MULTIPROC_DIR``.
"""

from __future__ import annotations

import functools
import os

from ..indexing import indexes

__all__ = ["Metrics"]

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"})


class Metrics:
    """The figures of this process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        counter = functools.partial(Counter, registry=self._registry)
        gauge = functools.partial(Gauge, registry=self._registry, multiprocess_mode="livesum")
        self._requests = counter(
            "retain_requests", "Requests answered.", ("route", "method", "status")
        )
        self._seconds = Histogram(
            "retain_request_seconds",
            "Seconds a request took.",
            ("route",),
            buckets=_QUICK,
            registry=self._registry,
        )
        self._refused = counter(
            "retain_refused", "Requests refused before they were read.", ("reason",)
        )
        self.under_way = gauge("retain_requests_under_way", "Requests under way.")
        self.written = counter("retain_memories_written", "Memories written or changed.")
        self.forgotten = counter("retain_memories_forgotten", "Memories deleted.")
        self.returned = counter("retain_memories_returned", "Memories that recalls found.")
        self._indexes = gauge("retain_indexes", "Indexes of scopes in memory.")
        self._bytes = gauge("retain_index_bytes", "Bytes that they take.")

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is its template, never its path."""
        method = method if method in _METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def refused(self, reason: str) -> None:
        """Count a request that was refused before it was read."""
        self._refused.labels(reason).inc()

    def note_indexes(self) -> None:
        """Note how large the indexes are now."""
        self._indexes.set(len(indexes))
        self._bytes.set(indexes.nbytes)

    def text(self) -> tuple[bytes, str]:
        """All of it in Prometheus' format, and the content type of that."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        self.note_indexes()
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            from prometheus_client.multiprocess import MultiProcessCollector

            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
