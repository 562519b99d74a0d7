"""The client of a server: the calls of a local memory, with what can go wrong on the way."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import (
    Filter,
    InvalidType,
    InvalidValue,
    Memory,
    MemoryImportance,
    MemoryType,
    NotFound,
    RetainError,
    Scope,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    VectorStoreMemory,
)
from retain.client import AsyncClient, Client
from retain.web.tokens import Tokens
from served import Served


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("served")
    token = Tokens.add(folder / "tokens.json", Scope(user="ann"))
    with Served(folder) as served:
        yield served, token


@pytest.fixture
def client(place: tuple[Served, str]) -> Iterator[Client]:
    served, token = place
    with Client(served.url, token=token) as client:
        for memory in client.list_all():
            client.forget(memory.id)
        yield client


CALLS: dict[str, Callable[[Any], Any]] = {
    "everything": lambda m: m.remember(
        "Ann likes 抹茶 tea",
        memory_type=MemoryType.SEMANTIC,
        importance=0.3,
        metadata={"page": [1, {"a": None}]},
        tags=("a", "b"),
        category="taste",
        source="ann",
        persistent=True,
        created_at=1_000.5,
    ),
    "a fact twice": lambda m: (*(m.remember("x", persistent=True) for _ in range(2)), len(m)),
    "many": lambda m: m.remember_many(
        ["a", {"content": "b", "importance": MemoryImportance.HIGH}, Memory("own", "c", tags=["t"])]
    ),
    "a blank": lambda m: m.remember(" "),
    "a number": lambda m: m.remember(5),
    "a surrogate": lambda m: m.remember("\ud800"),
    "an importance": lambda m: m.remember("x", importance=2),
    "a type": lambda m: m.remember("x", memory_type="semantic"),
    "a set": lambda m: m.remember("x", metadata={"a": {1}}),
    "a text of many": lambda m: m.remember_many("abc"),
    "an unknown member": lambda m: m.remember_many([{"content": "x", "scope": "bob"}]),
    "no item": lambda m: m.remember_many([5]),
    "one of many": lambda m: m.remember_many(["fine", {"content": "x", "ttl_days": -1}]),
    "update": lambda m: m.update(m.remember("x").id, content="y", importance=0.9, tags=["t"]),
    "update of none": lambda m: m.update("none", content="y"),
    "update of what can't": lambda m: m.update("none", scope="y"),
    "update to a blank": lambda m: m.update(m.remember("x").id, content=""),
    "update with a clash": lambda m: m.update(m.remember("x", persistent=True).id, ttl_days=1.0),
    "forget": lambda m: (m.forget(m.remember("x").id), m.forget("none"), len(m), bool(m)),
    "get": lambda m: (m.remember_many([Memory("a/../\x00", "x")]), m.get("a/../\x00"), m.get("b")),
    "get of a number": lambda m: m.get(5),
    "k": lambda m: m.recall("x", k=-1),
    "k as text": lambda m: m.recall("x", k="5"),
    "a query": lambda m: m.recall(None),
    "a filter": lambda m: m.recall("x", min_importance=3),
    "context": lambda m: (m.remember("tea\nnow"), m.get_context("tea"), m.get_context("cars")),
}


def told(call: Callable[[Any], Any], memory: Any) -> Any:
    """What a call gives, without what is new each time; or the class of its error."""
    try:
        return plain(call(memory))
    except RetainError as error:
        if type(error) is StoreFailed:
            raise
        return type(error)


def plain(value: Any) -> Any:
    if isinstance(value, Memory):
        found = value.to_dict()
        new = ("id", "created_at", "updated_at", "last_accessed", "revision", "scope")
        return {name: each for name, each in found.items() if name not in new}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_does_what_it_does_locally(client: Client, call: Callable[[Any], Any]):
    local = VectorStoreMemory(scope=Scope(user="ann"))
    assert told(call, client) == told(call, local)
    assert plain(client.list_all()) == plain(local.store.list_all())


def test_a_recall_gives_the_same_results_with_their_reasons(client: Client):
    local = VectorStoreMemory(scope=Scope(user="ann"))
    texts = ["We adopted a puppy from the shelter", "The deadline is 1 March", "Tea at five"]
    items = [Memory(f"m{number}", text) for number, text in enumerate(texts)]
    client.remember_many(items)
    local.remember_many(items)
    for query in ("Which dog do they have?", "deadline in March", ""):
        here, there = local.search(query), client.search(query)
        assert [each.memory.id for each in there] == [each.memory.id for each in here]
        assert [each.explain() for each in there] == [each.explain() for each in here]
        for mine, its in zip(here, there, strict=True):
            assert its.combined_score == pytest.approx(mine.combined_score, abs=1e-4)
    assert client.recall("tea", category="none") == []
    assert client.recall("tea", since=0, memory_type=MemoryType.EPISODIC, tags=[])
    assert client.get_context("deadline", k=1) == "- The deadline is 1 March"


def test_all_are_read_in_pages_and_exported(client: Client):
    client.remember_many([{"content": f"note {n}", "created_at": n} for n in range(25)])
    client.remember("a fact", persistent=True)
    assert client.memory_count == 26
    narrow = Filter(persistent=False)
    found = [memory.content for memory in client.iterate(narrow=narrow, size=10)]
    assert found == [f"note {number}" for number in range(24, -1, -1)]
    file = io.BytesIO()
    assert client.export(file) == 26
    assert json.loads(file.getvalue().splitlines()[0])["content"] == "a fact"


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_any_text_goes_there_and_back(place: tuple[Served, str], content: str, id: str):
    served, token = place
    with Client(served.url, token=token) as client:
        try:
            (saved,) = client.remember_many(
                [Memory(id, f"x{content}", metadata={content: [content]})]
            )
        except InvalidValue:
            assert not (content + id).isprintable()  # a lone surrogate
            return
        found = client.get(saved.id)
        assert found is not None
        assert (found.id, found.content, found.metadata) == (
            id,
            f"x{content}",
            {content: [content]},
        )
        assert client.forget(id)


def test_a_wrong_token_a_closed_client_and_no_server_are_told(place: tuple[Served, str]):
    served, token = place
    with Client(served.url, token="wrong") as client, pytest.raises(StoreFailed, match="token"):
        client.get("x")
    client = Client(served.url + "/", token=token)
    assert client.get("x") is None
    client.close()
    with pytest.raises(StoreClosed):
        client.get("x")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(StoreFailed, match="can't be reached"):
            Client(f"http://127.0.0.1:{free.getsockname()[1]}").get("x")


@pytest.mark.parametrize(
    "url",
    ["", "localhost:80", "ftp://x", "http://", "http://x:99999", "http://a:b@x", "http://x?a=b"],
)
def test_a_url_that_is_none_is_refused(url: str):
    with pytest.raises(InvalidValue):
        Client(url)


def test_a_token_or_a_timeout_that_is_none_is_refused():
    with pytest.raises(InvalidValue):
        Client("http://x", token="a\r\nX: y")
    with pytest.raises(InvalidValue):
        Client("http://x", timeout=0)
    with pytest.raises(InvalidType):
        Client(5)  # type: ignore[arg-type]


class Between:
    """Stands between a client and a server, and cuts the line after so many whole requests.

    ``deaf``: cuts before the server has seen the request; else after it, before its answer.
    """

    def __init__(self, port: int, cuts: int, *, deaf: bool) -> None:
        self._port, self.cuts, self._deaf = port, cuts, deaf
        self.seen = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with near, socket.create_connection(("127.0.0.1", self._port)) as far:
                while request := _message(near):
                    self.seen += 1
                    cut, self.cuts = self.cuts > 0, self.cuts - 1
                    if cut and self._deaf:
                        break
                    far.sendall(request)
                    answer = _message(far)
                    if cut:
                        break
                    near.sendall(answer)

    def __enter__(self) -> Between:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def _message(line: socket.socket) -> bytes:
    """A whole request or answer with a Content-Length; nothing at the end."""
    found = b""
    while b"\r\n\r\n" not in found:
        more = line.recv(65536)
        if not more:
            return b""
        found += more
    head, _, body = found.partition(b"\r\n\r\n")
    sizes = [row[15:] for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")]
    while len(body) < (int(sizes[0]) if sizes else 0):
        body += line.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.mark.parametrize("deaf", [True, False], ids=["request lost", "answer lost"])
def test_what_is_remembered_over_a_bad_line_is_remembered_once(
    place: tuple[Served, str], client: Client, deaf: bool
):
    served, token = place
    with (
        Between(served.port, 2, deaf=deaf) as between,
        Client(between.url, token=token) as far,
    ):
        saved = far.remember("only once")
        assert between.seen == 3
        assert [memory.id for memory in client.list_all()] == [saved.id]
        between.cuts = 3
        with pytest.raises(StoreFailed, match="went away"):
            far.remember("not at all, or once")
    assert client.memory_count == (1 if deaf else 2)


def test_a_forget_or_update_whose_answer_is_lost_is_not_tried_again(
    place: tuple[Served, str], client: Client
):
    served, token = place
    id = client.remember("tea").id
    for call in (lambda c: c.forget(id), lambda c: c.update("x", content="y")):
        with (
            Between(served.port, 1, deaf=True) as between,
            Client(between.url, token=token) as far,
        ):
            with pytest.raises(StoreFailed):
                call(far)
            assert between.seen == 1
    with pytest.raises(NotFound):
        client.update("x", content="y")


def test_a_connection_that_the_server_closed_is_not_used_again(tmp_path: Path):
    token = Tokens.add(tmp_path / "tokens.json", Scope())
    with Served(tmp_path) as first:
        client = Client(first.url, token=token)
        id = client.remember("tea").id
        first.stop()
        with Served(tmp_path, "--port", str(first.port)):
            assert client.forget(id)  # which is not tried again once it was sent
        client.close()


def test_a_server_that_is_slow_or_busy_is_told_as_busy():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout=0.05) as client, pytest.raises(StoreBusy, match="within"):
            client.get("x")
    busy = (
        b"HTTP/1.1 429 x\r\nRetry-After: 0\r\nContent-Length: 35\r\n\r\n"
        b'{"error": "Busy", "message": "abc"}'
    )
    seen, url, end = answering(busy)
    with Client(url) as client, pytest.raises(StoreBusy, match="abc"):
        client.forget("x")
    assert end() == 3 and seen


def test_what_is_no_retain_server_is_told():
    for answer in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml",
        b"HTTP/1.1 502 x\r\nContent-Length: 4\r\n\r\nhtml",
        b"SSH-2.0\r\n",
    ):
        _, url, end = answering(answer)
        with Client(url) as client, pytest.raises(StoreFailed):
            client.get("x")
        end()


def answering(answer: bytes) -> tuple[list[bytes], str, Callable[[], int]]:
    """A server that always gives ``answer``: what it saw, its URL, and how to end it."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []

    def run() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                while request := _message(line):
                    seen.append(request)
                    line.sendall(answer)
                    if not answer.startswith(b"HTTP"):
                        break

    thread = threading.Thread(target=run)
    thread.start()

    def end() -> int:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        return len(seen)

    return seen, f"http://127.0.0.1:{listener.getsockname()[1]}", end


def test_many_threads_may_use_one_client(client: Client):
    def work(number: int) -> None:
        for step in range(5):
            assert client.remember(f"note {number} {step}").content == f"note {number} {step}"
            client.recall("note")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.memory_count == 40


def test_the_same_calls_can_be_awaited(place: tuple[Served, str], client: Client):
    served, token = place

    async def work() -> None:
        async with AsyncClient(served.url, token=token) as memory:
            await asyncio.gather(*(memory.remember(f"note {number}") for number in range(10)))
            assert await memory.count() == 10
            assert len([each async for each in memory.iterate(size=3)]) == 10
            (found,) = await memory.recall("note", k=1)
            changed = await memory.update(found.memory.id, content="changed")
            assert changed.content == "changed" and await memory.forget(changed.id)
            assert "note" in await memory.get_context("note")

    asyncio.run(work())
    assert client.memory_count == 9
