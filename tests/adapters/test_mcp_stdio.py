"""``retain mcp`` over standard input and output, line by line, in a process of its own."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_piped import INITIALIZED, META, Piped, calling, command, discover, initialize
from retain import KnowledgeMemory

LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def contents(place: Path) -> set[str]:
    with KnowledgeMemory(place) as memory:
        return {each.content for each in memory.engine.store.iterate()}


NOISY = """
import os, sys
from retain.cli import main
from retain.memories.knowledge import KnowledgeMemory
recall = KnowledgeMemory.recall
def noisy(self, query, **how):
    print("a stray print")
    os.write(1, b"and one past Python\\n")
    assert sys.stdin.read() == ""
    return recall(self, query, **how)
KnowledgeMemory.recall = noisy
main(sys.argv[1:])
"""


def test_a_session_from_the_first_line_to_the_last(tmp_path: Path):
    """What anyone prints on the way goes to standard error, and is no line of the protocol."""
    with Piped(sys.executable, "-c", NOISY, *command(tmp_path)[3:]) as server:
        welcome = server.ask(initialize())["result"]
        assert welcome["protocolVersion"] == "2025-06-18"
        assert welcome["serverInfo"]["name"] == "retain"
        server.send(INITIALIZED)
        assert len(server.ask(LIST)["result"]["tools"]) == 5
        told = server.ask(calling("ä", "remember", content="東京 is the capital of Japan"))[
            "result"
        ]
        assert told["structuredContent"]["created"] and not told["isError"]
        found = server.ask(calling(4, "recall", query="Japan"))["result"]
        assert "東京" in found["content"][0]["text"]
        assert server.end(signal.SIGINT) == 0
        assert sorted(server.said.splitlines()) == ["a stray print", "and one past Python"]
    assert contents(tmp_path) == {"東京 is the capital of Japan"}


def test_what_is_no_message_is_answered_and_the_next_one_served(tmp_path: Path):
    """Also where it comes first, and where lines come in pieces or several at once."""
    hello = json.dumps(initialize(id=7)).encode()
    with Piped(*command(tmp_path)) as server:
        server.write(b"\r\n{nonsense\n")
        assert server.read() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "this is no JSON"},
        }
        server.send([initialize()], {"jsonrpc": "2.0", "id": 5}, "hello")
        refused = [server.read() for _ in range(3)]
        assert {each["error"]["code"] for each in refused} == {-32600}
        assert [each["id"] for each in refused] == [None, 5, None]
        server.write(b"\xff\xfe\n" + b"[" * 100_000 + b"\n")
        assert [server.read()["error"]["code"] for _ in range(2)] == [-32700, -32700]
        server.write(hello[:20])
        time.sleep(0.05)
        server.write(hello[20:] + b"\n" + json.dumps(INITIALIZED).encode() + b"\n")
        assert server.read()["result"]["serverInfo"]["name"] == "retain"
        unknown = server.ask({"jsonrpc": "2.0", "id": 8, "method": "memories/steal"})
        assert unknown["error"]["code"] == -32601
        wrong = server.ask({**calling(9, "recall"), "params": {"name": 3}})
        assert wrong["error"]["code"] == -32602
        surrogate = server.write(
            b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"forget",'
            b'"arguments":{"id":"\\ud800"}}}\n'
        )
        assert surrogate is None and server.read()["id"] == 10
        for odd in ([], {}, "東京"):  # a call that there can't be
            cancel = {"method": "notifications/cancelled", "params": {"requestId": odd}}
            server.send({"jsonrpc": "2.0", **cancel})
        assert not server.ask(calling(11, "remember", content="Kept"))["result"]["isError"]
        assert server.end(signal.SIGTERM) == 0
        assert all("malformed params" in line for line in server.said.splitlines())  # the SDK's
    assert contents(tmp_path) == {"Kept"}


def test_a_first_message_in_pieces_or_of_no_handshake_is_answered_once(tmp_path: Path):
    hello = json.dumps(discover(1)).encode() + b"\n"
    meta = {"_meta": discover()["params"]["_meta"]}
    with Piped(*command(tmp_path)) as server:
        for piece in (hello[:1], hello[1:60], hello[60:-1], hello[-1:]):
            server.write(piece)
            time.sleep(0.02)
        assert server.read()["result"]["supportedVersions"] == ["2026-07-28"]
        assert len(server.ask({**LIST, "params": meta})["result"]["tools"]) == 5
        again = server.ask(discover(3))["result"]  # the SDK's, this time
        assert again["_meta"][f"{META}serverInfo"]["name"] == "retain"
        assert server.end() == 0 and server.said == ""


def test_all_that_came_before_the_end_is_answered_whatever_came_first(tmp_path: Path):
    calls = [calling(n, "remember", content=f"Note {n}") for n in range(3, 23)]
    with Piped(*command(tmp_path)) as server:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        server.send(ping, initialize("1999-01-01", 2), INITIALIZED, *calls)
        out, err = server.process.communicate(timeout=60)  # which closes its input at once
        answers = [json.loads(line) for line in out.splitlines()]
        assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert answers[1]["result"]["protocolVersion"] == "2025-11-25"  # what it offers
        assert {each["id"] for each in answers} == set(range(1, 23))
        assert not any(each["result"].get("isError") for each in answers)
        assert server.process.returncode == 0 and err == b""
    assert contents(tmp_path) == {f"Note {n}" for n in range(3, 23)}


def eventually(is_so: Callable[[], bool]) -> bool:
    patience = time.monotonic() + 30
    while not is_so() and time.monotonic() < patience:
        time.sleep(0.01)
    return is_so()


def has_ended(process: psutil.Process) -> bool:
    """Whether it ran to its end, buried or not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


CLIENT = """
import sys
from mcp_piped import *
server = Piped(*sys.argv[1:])
server.ask(initialize())
server.send(INITIALIZED)
server.ask(calling(2, "remember", content="Acknowledged"))
print(server.process.pid, flush=True)
server.send(*[calling(n, "remember", content=f"Note {n}") for n in range(3, 103)])
server.read()
print("now", flush=True)
while True:
    server.read()
"""


def test_a_client_that_is_killed_amid_its_calls_leaves_a_whole_memory(tmp_path: Path):
    place = tmp_path / "memory"
    tests = str(Path(__file__).parents[1])
    with Piped(sys.executable, "-c", CLIENT, *command(place), PYTHONPATH=tests) as client:
        assert client.process.stdout is not None
        server = psutil.Process(int(client.process.stdout.readline()))
        assert client.process.stdout.readline() == b"now\n"
        client.process.kill()
        assert eventually(lambda: has_ended(server))  # by itself
    kept = contents(place)
    assert "Acknowledged" in kept and len(kept) >= 2
    assert kept <= {"Acknowledged", *(f"Note {n}" for n in range(3, 103))}
    with KnowledgeMemory(place) as memory:
        assert memory.remember("And it goes on")
        assert len(memory.recall("Note", k=200)) == len(kept) - 1


@pytest.mark.slow
def test_a_memory_that_cannot_be_opened_is_told_in_a_line(tmp_path: Path):
    (tmp_path / "memory.db").write_bytes(b"this is no database, whatever its name" * 100)
    with Piped(*command(tmp_path)) as server:
        server.send(initialize())
        assert server.end() == 3
        assert server.said.startswith("retain: ") and server.said.count("\n") == 1


@pytest.mark.slow
def test_a_call_that_is_cancelled_is_done_or_not_and_the_next_is_served(tmp_path: Path):
    with Piped(*command(tmp_path)) as server:
        server.ask(initialize())
        server.send(INITIALIZED)
        cancel: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        server.send(
            *(calling(n, "remember", content=f"Note {n}") for n in range(2, 42)),
            *({**cancel, "params": {"requestId": n}} for n in range(2, 42)),
            calling(99, "list_memories", limit=100),
        )
        answers = []
        while not answers or answers[-1]["id"] != 99:
            answers.append(server.read())
        server.end()
    told = {each["id"] for each in answers} - {99}
    assert {f"Note {n}" for n in told} <= contents(tmp_path)
