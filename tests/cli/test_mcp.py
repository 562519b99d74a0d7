"""The command ``retain mcp``, as far as it does not serve (see tests/adapters/test_mcp.py)."""

from __future__ import annotations

import json
import re
import shlex
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import servers
from mcp_piped import INITIALIZED, Piped, calling, command, initialize
from retain import KnowledgeMemory, Scope

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None

Retain = Callable[..., Any]

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--port", "1"), "--port belongs to --http"),
        (("--host", "::1"), "--host belongs to --http"),
        (("--tokens", "x"), "--tokens belongs to --http"),
        (("--allow-origin", "https://a.example"), "--allow-origin belongs to --http"),
        (("--http", "--host", "0.0.0.0"), "RETAIN_MCP_TOKEN"),
        (("--http", "--tokens", "none.json"), "none.json"),
        (("--http", "--tokens", "x", "--user", "ann"), "own scope"),
        (("--http", "--port", "70000"), "70000"),
        (("--store", "memory:"), "gone when a command ends"),
        (("--store", "nowhere://x"), "nowhere"),
    ],
    ids=" ".join,
)
def test_what_would_not_serve_is_refused_before_anything_is_made(
    retain: Retain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, told: str
):
    monkeypatch.chdir(tmp_path)
    outcome = retain("mcp", *words, expect=2)
    assert told in outcome.err and not outcome.out
    assert not (tmp_path / "memory").exists()


def test_a_token_of_the_environment_is_long_and_the_only_kind(
    retain: Retain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RETAIN_MCP_TOKEN", "short")
    assert "5 characters" in retain("mcp", "--http", expect=2).err
    assert "--tokens and" in retain("mcp", "--http", "--tokens", "x", expect=2).err


def test_without_the_sdk_the_extra_is_named(
    retain: Retain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from importlib import util

    monkeypatch.setattr("retain.cli.mcp.find_spec", lambda name: util.find_spec("no_such_package"))
    outcome = retain("mcp", expect=None)
    assert outcome.code != 0 and "pip install 'mcp>=2.0'" in outcome.err


@pytest.mark.slow
def test_a_store_in_a_scope_is_served_for_reading():
    """A store has no MEMORY.md; who may only read is not offered what writes."""
    url = servers.new_redis()
    with Piped(*command(url, "--user", "änn", "--read-only")) as server:
        server.ask(initialize())
        server.send(INITIALIZED)
        read = server.ask({"jsonrpc": "2.0", "id": 2, "method": "resources/list"})
        assert [each["uri"] for each in read["result"]["resources"]] == ["memory://context"]
        refused = server.ask(calling(3, "remember", content="x"))["result"]
        assert refused["isError"] and "no tool 'remember'" in refused["content"][0]["text"]
        assert server.ask(calling(4, "list_memories"))["result"]["structuredContent"]["total"] == 0
        assert server.end() == 0


@pytest.mark.slow
def test_the_token_of_the_environment_opens_the_scope_of_the_command_line(tmp_path: Path):
    token = "a-long-random-text"
    words = (*command(tmp_path, "--http", "--port", "0", "--json"), "--user", "änn")
    with KnowledgeMemory(tmp_path, scope=Scope(user="änn")) as memory:
        memory.remember("Likes tea")
    with Piped(*words, RETAIN_MCP_TOKEN=token) as server:
        url = server.read()["url"]
        for given, status in [(token, 200), (token[:-1], 401), ("", 401), ("tökén", 401)]:
            request = urllib.request.Request(
                url,
                json.dumps(calling(1, "recall", query="tea")).encode(),
                {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    "Authorization": f"Bearer {given}",
                },
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    assert (answer.status, status) == (200, 200)
                    assert "Likes tea" in answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    assert error.code == status
        assert server.end(15) == 0


# -- the page ------------------------------------------------------------------------------


def snippets(language: str) -> Iterator[str]:
    text = PAGE.read_text("utf-8")
    for found in re.finditer(rf"^ *```{language}\n(.*?)^ *```$", text, re.M | re.S):
        yield found[1]


def configured() -> Iterator[dict[str, Any]]:
    """Every server of every configuration on the page."""
    for text in snippets("json"):
        found = json.loads(text)
        yield from (found.get("mcpServers") or found["servers"]).values()
    for text in snippets("toml"):
        if tomllib is not None:
            yield from tomllib.loads(text)["mcp_servers"].values()
    for text in snippets("console"):
        for words in map(shlex.split, re.findall(r"^\$ ((?:claude|codex|code) .*)$", text, re.M)):
            if "--" in words:
                program, *rest = words[words.index("--") + 1 :]
                yield {"command": program, "args": rest}


def test_every_configuration_of_the_page_starts_a_server(tmp_path: Path):
    found = list(configured())
    local = {
        (each["command"], *each["args"], *sorted(each.get("env", {}).items()))
        for each in found
        if "command" in each
    }
    assert len(found) >= 6 and local
    assert all(each["url"].endswith("/mcp") for each in found if "command" not in each)
    for program, *rest in local:
        words = [each for each in rest if isinstance(each, str)]
        env = dict(each for each in rest if not isinstance(each, str))
        assert program == "retain"
        env = {"HOME": str(tmp_path), **env, "RETAIN_DIR": str(tmp_path / "memory")}
        words = [str(tmp_path / "given") if "/" in word else word for word in words]
        if "--dir" in words:
            del env["RETAIN_DIR"]
        with Piped(sys.executable, "-m", "retain", *words, **env) as server:
            assert server.ask(initialize())["result"]["serverInfo"]["name"] == "retain"
