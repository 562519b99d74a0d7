"""How many recalls a server answers, and how soon: a load of connections over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from time import perf_counter

from retain import Scope, SQLiteStore, VectorStoreMemory
from retain.web.tokens import Tokens

from .measuring import Figure, ms
from .plan import Bench
from .texts import Corpus

__all__ = ["Load", "load", "serving"]

CLIENTS = 32
_RATE, _SLOWEST = 300, 200  # recalls a second, and the p99 in milliseconds
_QUERIES = 200


@dataclass(frozen=True, slots=True)
class Load:
    """What became of many requests: how many a second, the seconds of each, how many failed."""

    rate: float
    seconds: list[float]
    failed: int

    def at(self, share: float) -> float:
        """The seconds that ``share`` of the requests did not exceed."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


class _Connection(asyncio.Protocol):
    """One client: asks, waits for the whole answer, asks the next; as lean as Python allows."""

    def __init__(self, requests: Iterator[bytes], load: Load, done: asyncio.Future[None]) -> None:
        self._requests, self._load, self._done = requests, load, done
        self._answer = b""
        self._size = -1
        self.failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._begun = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._size < 0:
            head = self._answer.find(b"\r\n\r\n")
            if head < 0:
                return
            at = self._answer.index(b"content-length: ", 0, head) + 16
            self._size = head + 4 + int(self._answer[at : self._answer.index(b"\r", at)])
        if len(self._answer) < self._size:
            return
        self._load.seconds.append(perf_counter() - self._begun)
        self.failed += not self._answer.startswith(b"HTTP/1.1 2")
        self._answer, self._size = b"", -1
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        self.failed += self._size >= 0 or error is not None
        if not self._done.done():
            self._done.set_result(None)


async def _load(port: int, requests: Sequence[bytes], clients: int) -> Load:
    loop = asyncio.get_running_loop()
    load, waiting = Load(0, [], 0), iter(requests)
    ends = [loop.create_future() for _ in range(clients)]
    begun = perf_counter()
    made = [
        await loop.create_connection(partial(_Connection, waiting, load, end), "127.0.0.1", port)
        for end in ends
    ]
    await asyncio.gather(*ends)
    took = perf_counter() - begun
    lost = len(requests) - len(load.seconds)
    failed = sum(connection.failed for _, connection in made) + lost
    return Load(len(load.seconds) / took, load.seconds, failed)


def load(port: int, requests: Sequence[bytes], clients: int = CLIENTS) -> Load:
    """Send ``requests`` over ``clients`` connections that stay open; what became of them."""
    return asyncio.run(_load(port, requests, clients))


def recall_request(token: str, query: str, k: int = 10) -> bytes:
    """A request for the k best."""
    body = json.dumps({"query": query, "k": k}).encode()
    head = (
        "POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def running(*command: str) -> Iterator[tuple[int, int]]:
    """A server process that prints its URL as JSON: its port, and its number."""
    path = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
    )
    assert process.stdout is not None
    try:
        yield int(json.loads(process.stdout.readline())["url"].rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.communicate()


def resident(pid: int) -> int:
    """The bytes of memory that a process and its children take."""
    return sum(int(stat[21]) for stat in _stats(pid)) * os.sysconf("SC_PAGE_SIZE")


def spent(pid: int) -> float:
    """The seconds that a process and its children have computed."""
    return sum(int(stat[11]) + int(stat[12]) for stat in _stats(pid)) / os.sysconf("SC_CLK_TCK")


def _stats(pid: int) -> list[list[str]]:
    """What Linux tells of each, from the third field of ``proc(5)`` on."""
    found = []
    for number in Path("/proc").glob("[0-9]*"):
        try:
            stat = (number / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if pid in (int(number.name), int(stat[1])):
            found.append(stat)
    return found


@dataclass(frozen=True, slots=True)
class Filled:
    """A directory with memories in scopes, a file of tokens for them, and queries."""

    folder: Path
    tokens: list[str]
    queries: list[str]

    def serve(self, workers: int, *options: str) -> AbstractContextManager[tuple[int, int]]:
        """``retain serve`` over it."""
        place = ("--dir", str(self.folder), "--tokens", str(self.folder / "tokens.json"))
        count = ("--port", "0", "--workers", str(workers))
        return running("retain", "serve", "--json", *place, *count, *options)

    def requests(self, count: int) -> list[bytes]:
        """Recalls, in the scopes in turn."""
        return [
            recall_request(self.tokens[number % len(self.tokens)], query)
            for number, query in zip(range(count), cycle(self.queries), strict=False)
        ]


def filled(bench: Bench, scopes: int, each: int) -> Filled:
    """A new directory; its texts have words that the embedder knows."""
    folder, corpus = bench.place(), Corpus(known=True)
    folder.mkdir()
    tokens, texts = [], []
    with SQLiteStore(folder / "memory.db") as store:
        for number in range(scopes):
            scope = Scope(user=f"user {number}")
            tokens.append(Tokens.add(folder / "tokens.json", scope))
            memory = VectorStoreMemory(store, scope=scope)
            for batch in corpus.batches(each):
                memory.remember_many(batch)
                texts += batch
            memory.settle()
        memory.close()
    return Filled(folder, tokens, [corpus.query(texts) for _ in range(_QUERIES)])


def serving(bench: Bench) -> Iterator[Figure]:
    """What 32 clients get on the cores that they share with the server."""
    size = bench.plan.search
    scopes = max(1, size // 1_000)
    one, many = filled(bench, 1, size), filled(bench, scopes, size // scopes)
    count = max(CLIENTS, bench.plan.requests // 40)
    among, words = f"{scopes:,} scopes of {size // scopes:,}", ("--embedder", "none")
    with running("benchmarks.bare") as (bare, _):
        for name, place, options, workers, barred in (
            (among, many, (), 1, False),
            (among, many, (), 2, True),
            (f"one scope of {size:,}, words alone", one, words, 1, False),
            (f"one scope of {size:,}, words alone", one, words, 2, True),
            (f"one scope of {size:,}", one, (), 2, False),
        ):
            title = f"retain serve, {name}, {workers} worker{'s' if workers > 1 else ''}"
            with place.serve(workers, *options) as own:
                yield from _side_by_side(title, place.requests(count), bare, own, barred)
    yield _flat(many, bench.plan.requests)


def _side_by_side(
    title: str, requests: Sequence[bytes], bare: int, own: tuple[int, int], barred: bool
) -> Iterator[Figure]:
    """The same requests to the framework alone and to a server: ports, and the server's number."""
    port, pid = own
    for each in (bare, port):
        load(each, requests[: max(CLIENTS, len(requests) // 5)])
    least, begun = load(bare, requests), spent(pid)
    found = load(port, requests)
    computed = (spent(pid) - begun) / len(requests)
    why = (
        f"p50 {ms(found.at(0.5))}, {ms(computed)} of a core each, {found.failed} failed; the "
        f"framework alone: {least.rate:,.0f} /s, {least.rate / found.rate:.1f} times as many"
    )
    if not barred:
        yield Figure(title, f"{found.rate:,.0f} /s", why=f"p99 {ms(found.at(0.99))}, {why}")
        return
    yield Figure.at_least(title, found.rate, _RATE, "/s", why)
    yield Figure.at_most(f"{title}, p99", 1_000 * found.at(0.99), _SLOWEST, "ms")
    yield Figure.at_most(f"{title}, failed", found.failed, 0, "requests")


def _flat(place: Filled, count: int) -> Figure:
    """How much a server grows over many requests, once it has seen every scope and query."""
    with place.serve(1) as (port, pid):
        load(port, place.requests(max(CLIENTS, count // 10)))
        before = resident(pid)
        load(port, place.requests(count))
        after = resident(pid)
    why = f"{before / 2**20:,.0f} MB before, {after / 2**20:,.0f} MB after"
    return Figure.at_most(f"growth over {count:,} recalls", 100 * (after / before - 1), 5, "%", why)
