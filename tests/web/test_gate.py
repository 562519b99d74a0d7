"""What stands before every request, by the protocol that it speaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from retain import (
    Conflict,
    InMemoryStore,
    MissingPackage,
    NotFound,
    Rejected,
    RetainError,
    Scope,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
)
from retain.web.api import make_app
from retain.web.gate import Gate, status_of
from retain.web.limits import Limits
from retain.web.tokens import Tokens


class Client:
    """Calls the application as a server would, in this thread."""

    def __init__(self, app: Gate, token: str = "") -> None:
        self.app, self.token = app, token
        self.body = b""

    async def ask(
        self, method: str, path: str, parts: list[bytes] | None = None, **headers: str
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        sent = {"host": "localhost", **headers}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        if parts is not None:
            sent |= {"content-type": "application/json", "transfer-encoding": "chunked"}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        left = list(parts or [])
        started: list[Any] = []
        self.body = b""

        async def receive() -> dict[str, Any]:
            if not left:
                await asyncio.Event().wait()  # a client that stays silent
            return {"type": "http.request", "body": left.pop(0), "more_body": True}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
            else:
                self.body += message["body"]

        await self.app(scope, receive, send)
        return started[0]["status"], dict(started[0]["headers"]), self.body


def error(answer: tuple[int, dict[bytes, bytes], bytes]) -> tuple[int, str]:
    return answer[0], json.loads(answer[2])["error"]


def test_a_body_that_does_not_come_is_not_waited_for():
    app = make_app(InMemoryStore(), open_to=Scope(), limits=Limits(patience=0.01))
    assert error(asyncio.run(Client(app).ask("POST", "/v1/recall", [b"{"]))) == (408, "TooSlow")


def test_beyond_what_may_be_under_way_requests_are_turned_away_but_health():
    app = make_app(InMemoryStore(), open_to=Scope(), limits=Limits(at_once=1, patience=60))
    client = Client(app)

    async def both() -> tuple[Any, Any]:
        slow = asyncio.create_task(client.ask("POST", "/v1/recall", [b"{"]))
        await asyncio.sleep(0)  # it waits for its body now
        second = await client.ask("GET", "/v1/count")
        health = await client.ask("GET", "/health")
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        return (second, health), await client.ask("GET", "/v1/count")

    (second, health), after = asyncio.run(both())
    assert error(second) == (503, "Overloaded") and second[1][b"retry-after"] == b"1"
    assert health[0] == 200
    assert after[0] == 200


def test_each_token_has_its_own_rate(tmp_path: Path):
    file = tmp_path / "tokens.json"
    ann, bob = (Tokens.add(file, Scope(user=name)) for name in ("ann", "bob"))
    app = make_app(InMemoryStore(), tokens=Tokens(file), limits=Limits(rate=1e-6))

    async def asked(token: str) -> Any:
        return await Client(app, token).ask("GET", "/v1/count")

    assert asyncio.run(asked(ann))[0] == 200
    refused = asyncio.run(asked(ann))
    assert error(refused) == (429, "TooManyRequests") and int(refused[1][b"retry-after"]) > 0
    assert asyncio.run(asked(bob))[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", ""], ids=ascii)
def test_without_tokens_a_page_of_another_site_is_not_answered(host: str):
    client = Client(make_app(InMemoryStore(), open_to=Scope()))
    assert error(asyncio.run(client.ask("GET", "/v1/count", host=host))) == (403, "Forbidden")
    for own in ("localhost:8077", "127.0.0.1", "[::1]:80"):
        assert asyncio.run(client.ask("GET", "/v1/count", host=own))[0] == 200


def test_a_store_that_does_not_answer_is_ill_and_says_nothing_of_itself():
    store = InMemoryStore()
    client = Client(make_app(store, open_to=Scope()))
    store.close()
    status, _, body = asyncio.run(client.ask("GET", "/health"))
    assert (status, json.loads(body)) == (503, {"status": "failing"})
    assert error(asyncio.run(client.ask("GET", "/v1/count"))) == (503, "StoreClosed")


def test_a_mistake_of_ours_is_told_without_a_trace(monkeypatch: pytest.MonkeyPatch):
    store = InMemoryStore()
    client = Client(make_app(store, open_to=Scope()))

    def broken(*_: Any, **__: Any) -> int:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(store.driver, "count", broken)
    with pytest.raises(ZeroDivisionError):  # which the server writes into its log
        asyncio.run(client.ask("GET", "/v1/count"))
    assert json.loads(client.body)["error"] == "Failed"
    assert b"secret" not in client.body and b"Traceback" not in client.body


@pytest.mark.parametrize(
    ("raised", "status", "again"),
    [
        (NotFound("x"), 404, False),
        (Conflict("x"), 409, False),
        (Rejected("x"), 422, False),
        (StoreBusy("x"), 503, True),
        (StoreFailed("x"), 503, False),
        (StoreCorrupt("x"), 503, False),
        (StoreClosed("x"), 503, False),
        (MissingPackage("x"), 500, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RetainError) else None,
)
def test_every_error_has_its_status(raised: RetainError, status: int, again: bool):
    found, name, headers = status_of(raised)
    assert (found, name, "Retry-After" in headers) == (status, type(raised).__name__, again)
