"""The answer that is given before the SDK is there is the SDK's own."""

from __future__ import annotations

import json
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_piped import META, discover, initialize
from retain import KnowledgeMemory
from retain.adapters.mcp import memory_server
from retain.adapters.mcp_greeting import greeting
from retain.adapters.mcp_session import introduction


def told(message: Any) -> Any:
    found = greeting(json.dumps(message).encode())
    return None if found is None else json.loads(found.line)


def the_sdks_own(message: Any) -> Any:
    """What the SDK's server answers to a first message."""

    async def ask() -> Any:
        server = memory_server(KnowledgeMemory(None))
        incoming, requests = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        answers, outgoing = anyio.create_memory_object_stream[SessionMessage](1)
        async with anyio.create_task_group() as tasks, incoming, outgoing:
            tasks.start_soon(server.run, requests, answers, introduction(server))
            await incoming.send(
                SessionMessage(types.jsonrpc_message_adapter.validate_python(message))
            )
            answer = await outgoing.receive()
            tasks.cancel_scope.cancel()
        return json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True))

    return anyio.run(ask)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
@pytest.mark.parametrize("id", [0, "ä"])
def test_a_handshake_of_every_version_is_answered_as_the_sdk_does(version: str, id: int | str):
    message = initialize(version, id)
    assert told(message) == the_sdks_own(message)


def test_who_asks_without_a_handshake_is_answered_as_the_sdk_does():
    assert MODERN_PROTOCOL_VERSIONS == ("2026-07-28",)  # else teach greeting the new ones
    assert told(discover("x")) == the_sdks_own(discover("x"))


def changed(message: Any, path: str, value: Any) -> Any:
    """A copy of ``message`` with another value at a path; ``...`` takes it away."""
    copy = json.loads(json.dumps(message))
    *way, last = path.split(".")
    place = copy
    for name in way:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


ODD = [
    changed(initialize(), path, value)
    for path, value in [
        ("jsonrpc", "1.0"),
        ("id", None),
        ("id", True),
        ("id", 1.5),
        ("id", ...),
        ("method", "ping"),
        ("method", 3),
        ("params", ...),
        ("params", []),
        ("result", {}),
        ("params.protocolVersion", "1999-01-01"),
        ("params.protocolVersion", "2026-07-28"),
        ("params.capabilities", None),
        ("params.capabilities", {"roots": 1}),
        ("params.clientInfo", ...),
        ("params.clientInfo", {"name": "a"}),
        # what JSON can say, and the SDK does not read
        ("id", "\ud800"),
        ("params.clientInfo.name", "\udfff"),
        ("params.capabilities", {"roots": json.loads('{"a":' * 200 + "1" + "}" * 200)}),
    ]
] + [
    [initialize()],
    "initialize",
    changed(discover(), "params.more", 1),
    changed(discover(), "params._meta", {}),
    {**discover(), "params": {"_meta": {f"{META}protocolVersion": "2027-01-01"}}},
]


@pytest.mark.parametrize("message", ODD, ids=lambda each: json.dumps(each)[:60])
def test_what_is_not_surely_right_is_left_to_the_sdk(message: Any):
    assert told(message) is None


def test_what_is_no_json_is_left_to_the_sdk():
    assert greeting(b"{") is greeting(b"\xff") is greeting(b"[" * 100_000) is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_what_is_no_plain_utf_8_is_left_to_the_sdk(encoding: str):
    assert greeting(json.dumps(initialize()).encode(encoding)) is None
