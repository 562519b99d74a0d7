"""The server as a process: how it begins, is told things, and ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import servers
from retain import InvalidValue, Scope, SQLiteStore, StoreFailed
from retain.web.serving import Settings, serve
from retain.web.tokens import Tokens
from served import Served


def until(true: Callable[[], Any]) -> None:
    """Wait for something that takes a moment; a test that fails ends after a minute."""
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_without_tokens_a_server_does_not_begin_unless_told_and_only_for_this_machine():
    with pytest.raises(InvalidValue, match="--open"):
        Settings("memory:").checked()
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(InvalidValue, match="this machine"):
            Settings("memory:", host=host, open_to=Scope()).checked()
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        Settings("memory:", host=host, open_to=Scope()).checked()


def test_a_place_that_cannot_be_had_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StoreFailed, match=str(port)):
            serve(Settings("memory:", port=port, open_to=Scope()), print)


def test_new_tokens_are_known_at_sighup_and_gone_ones_refused(tmp_path: Path):
    with Served(tmp_path) as served:
        token = served.token(Scope(user="ann"))
        served.process.send_signal(signal.SIGHUP)
        until(lambda: served.ask("GET", "/v1/count", token=token).status == 200)
        served.tokens.write_text('{"tokens": []}')
        served.process.send_signal(signal.SIGHUP)
        until(lambda: served.ask("GET", "/v1/count", token=token).status == 401)


STORES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/notes.db",
    "file": lambda folder: f"file:{folder}/notes",
    "redis": lambda _: servers.new_redis(),
    "postgresql": lambda _: servers.new_database(),
}


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(url, id=name, marks=[] if name == "postgresql" else pytest.mark.slow)
        for name, url in STORES.items()
    ],
)
def test_any_store_is_served_and_keeps_scopes_apart(tmp_path: Path, url: Callable[[Path], str]):
    ann, bob = (Tokens.add(tmp_path / "tokens.json", Scope(user=name)) for name in ("ann", "a%"))
    store = url(tmp_path)
    with Served(tmp_path, store=store) as served:
        for token in (ann, bob):
            body = {"content": f"tea of {token}", "id": "a/../é%"}
            assert served.ask("POST", "/v1/memories", body, token).status == 201
        assert served.stop() == (0, "")
    with Served(tmp_path, store=store) as served:
        for token in (ann, bob):
            found = served.ask("POST", "/v1/recall", {"query": "tea"}, token).json["results"]
            assert [each["memory"]["content"] for each in found] == [f"tea of {token}"]
            assert served.ask("GET", "/v1/export", token=token).body.count(b"\n") == 1
        id = found[0]["memory"]["id"]
        assert served.ask("DELETE", f"/v1/memory?id={quote(id)}", token=bob).status == 204
        assert served.ask("GET", f"/v1/memory?id={quote(id)}", token=ann).status == 200
        assert served.ask("GET", f"/v1/memory?id={quote(id)}", token=bob).status == 404


def test_at_sigterm_what_is_under_way_is_finished_and_the_store_closed(tmp_path: Path):
    with Served(tmp_path, "--open", "--user", "ann", tokens=False) as served:
        body = json.dumps({"content": "the last one"}).encode()
        with socket.create_connection(("127.0.0.1", served.port)) as line:
            head = (
                "POST /v1/memories HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            line.sendall(head.encode() + body[:5])
            until(lambda: b"under_way 2.0" in served.ask("GET", "/metrics").body)
            served.hang_up()
            served.process.terminate()

            def refused() -> bool:
                with socket.socket() as other:
                    return other.connect_ex(("127.0.0.1", served.port)) != 0

            until(refused)
            line.sendall(body[5:])
            assert line.recv(4096).startswith(b"HTTP/1.1 201")
        code, said = served.stop()
    assert (code, said) == (0, "")
    with SQLiteStore(tmp_path / "memory.db", scope=Scope(user="ann")) as store:
        assert [memory.content for memory in store.list_all()] == ["the last one"]
    assert not (tmp_path / "memory.db-wal").exists()


def children(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True
    )
    lines = listed.stdout.decode().splitlines()
    return [int(line.split()[0]) for line in lines if "spawn_main" in line]


def test_several_workers_share_a_port_and_one_that_dies_is_replaced(tmp_path: Path):
    with Served(tmp_path, "--open", "--workers", "2", tokens=False) as served:
        workers = children(served.process.pid)
        assert len(workers) == 2
        served.ask("POST", "/v1/memories", {"content": "tea"})
        threads = [threading.Thread(target=_recalls, args=(served.port,)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        figures = served.ask("GET", "/metrics").body.decode()
        assert 'route="/v1/recall",status="200"} 40.0' in figures
        served.hang_up()
        os.kill(workers[0], signal.SIGKILL)
        until(lambda: len(set(children(served.process.pid)) - {workers[0]}) == 2)
        _recalls(served.port)
        code, said = served.stop()
    assert code == 0
    assert "died" in said and "Traceback" not in said


def _recalls(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(5):
        body = json.dumps({"query": "tea"})
        connection.request("POST", "/v1/recall", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200 and json.loads(response.read())["results"]
    connection.close()


@pytest.mark.slow
def test_workers_that_cannot_begin_end_the_server(tmp_path: Path):
    (tmp_path / "memory.db").write_text("this is no database, but a text of some length " * 50)
    with pytest.raises(RuntimeError, match=r"memory\.db"):
        Served(tmp_path, "--open", "--workers", "2", tokens=False)
