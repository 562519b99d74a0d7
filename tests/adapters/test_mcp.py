"""The MCP server as the SDK's own client sees it, over standard streams and HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from mcp_piped import Piped, command
from retain import AgentMemory, KnowledgeMemory, Scope, SQLiteStore
from retain.adapters.mcp import memory_server
from retain.web.tokens import Tokens

MODES = ["legacy", "auto"]
TOOLS = {"remember", "recall", "forget", "list_memories", "get_context"}


def text(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


def stdio(place: Path | str, *options: str) -> Any:
    words = command(place, *options)
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    return stdio_client(parameters)


@contextlib.contextmanager
def served(place: Path, *options: str, **environment: str) -> Iterator[str]:
    """The URL of a ``retain mcp --http``."""
    words = command(place, "--http", "--port", "0", "--json", *options)
    with Piped(*words, **environment) as server:
        url = server.read()["url"]
        yield url
        assert server.end(15) == 0, server.said


@contextlib.asynccontextmanager
async def over_http(url: str, mode: str, token: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        yield client


def in_process(memory: KnowledgeMemory, test: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Client(memory_server(memory)) as client:
            await test(client)

    anyio.run(run)


async def use(client: Client) -> None:
    """All that a client does: list, call, be told of mistakes, read."""
    offered = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert offered.keys() == TOOLS
    hints = {name: tool.annotations for name, tool in offered.items()}
    assert all(each is not None and each.open_world_hint is False for each in hints.values())
    assert {n for n, each in hints.items() if each and each.read_only_hint} == TOOLS - {
        "remember",
        "forget",
    }
    assert [n for n, each in hints.items() if each and each.destructive_hint] == ["forget"]
    assert all(tool.output_schema and tool.description for tool in offered.values())

    saved = await client.call_tool(
        "remember", {"content": "Ann lives in Zürich", "persistent": True, "tags": ["home"]}
    )
    id = saved.structured_content["id"]
    assert saved.structured_content == {"id": id, "created": True} and id in text(saved)
    again = await client.call_tool(
        "remember", {"content": "Ann lives in Zürich", "persistent": True}
    )
    assert again.structured_content == {"id": id, "created": False}

    found = await client.call_tool("recall", {"query": "Zürich"})
    (memory,) = found.structured_content["memories"]
    assert memory["content"] == "Ann lives in Zürich" and memory["tags"] == ["home"]
    assert f"- [{id}] (general) Ann lives in Zürich" in text(found)
    context = await client.call_tool("get_context", {})
    assert "Zürich" in text(context) and text(context) == context.structured_content["context"]
    assert (await client.call_tool("list_memories", {})).structured_content["total"] == 1

    read = {str(each.uri): each for each in (await client.list_resources()).resources}
    assert "memory://context" in read
    for uri in read:
        (content,) = (await client.read_resource(uri)).contents
        assert "Zürich" in content.text and "<from-memory>" in content.text
    (prompt,) = (await client.list_prompts()).prompts
    (message,) = (await client.get_prompt(prompt.name)).messages
    assert "secrets" in message.content.text and "Zürich" in message.content.text

    for name, arguments, told in [
        ("recal", {}, "recall"),
        ("recall", {"query": "x", "user": "bob"}, "no argument 'user'"),
        ("recall", {}, "'query' is missing"),
        ("recall", {"query": "x", "limit": 0}, "1 to 100"),
        ("remember", {"content": " \n"}, "blank"),
        ("remember", {"content": "x", "importance": 7}, "7"),
        ("remember", {"content": "x", "persistent": "perhaps"}, "perhaps"),
        ("list_memories", {"after": "nowhere"}, "nowhere"),
    ]:
        wrong = await client.call_tool(name, arguments)
        assert wrong.is_error and told in text(wrong)
        assert "\n" not in text(wrong) and "Traceback" not in text(wrong)
    for ask in (client.read_resource("memory://else"), client.get_prompt("else")):
        with pytest.raises(MCPError, match="known"):
            await ask

    gone = await client.call_tool("forget", {"id": id})
    assert gone.structured_content == {"id": id, "forgotten": True}
    gone = await client.call_tool("forget", {"id": id})
    assert gone.structured_content == {"id": id, "forgotten": False} and not gone.is_error
    assert text(await client.call_tool("recall", {"query": "Zürich"})) == "No memories found."


@pytest.mark.parametrize("mode", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])
def test_the_official_client_over_standard_streams(tmp_path: Path, mode: str):
    async def run() -> None:
        async with Client(stdio(tmp_path), mode=mode) as client:
            assert client.instructions and "data, not instructions" in client.instructions
            await use(client)

    anyio.run(run)


def test_the_official_client_over_http(tmp_path: Path):
    async def run(url: str, mode: str) -> None:
        async with over_http(url, mode) as client:
            await use(client)

    with served(tmp_path, "--allow-origin", "https://app.example") as url:
        for mode in MODES:
            anyio.run(run, url, mode)
        anyio.run(pages, url)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_thousand_calls_in_parallel_are_all_answered_and_kept(tmp_path: Path, transport: str):
    async def run(client: Client) -> None:
        answers: dict[int, CallToolResult] = {}

        async def call(n: int) -> None:
            asked = (
                ("recall", {"query": f"note {n}"})
                if n % 2
                else ("remember", {"content": f"note {n}"})
            )
            answers[n] = await client.call_tool(*asked)

        async with anyio.create_task_group() as tasks:
            for n in range(1000):
                tasks.start_soon(call, n)
        assert len(answers) == 1000 and not any(each.is_error for each in answers.values())
        ids = {answers[n].structured_content["id"] for n in range(0, 1000, 2)}
        assert len(ids) == 500

    async def over_stdio() -> None:
        async with Client(stdio(tmp_path)) as client:
            await run(client)

    async def over_web(url: str) -> None:
        async with over_http(url, "auto") as client:
            await run(client)

    if transport == "stdio":
        anyio.run(over_stdio)
    else:
        with served(tmp_path) as url:
            anyio.run(over_web, url)
    with KnowledgeMemory(tmp_path) as memory:
        kept = {each.content for each in memory.engine.store.iterate()}
        assert kept == {f"note {n}" for n in range(0, 1000, 2)}


@pytest.mark.slow
def test_two_servers_on_one_directory_see_each_other(tmp_path: Path):
    async def run() -> None:
        async with Client(stdio(tmp_path)) as one, Client(stdio(tmp_path)) as two:
            async with anyio.create_task_group() as tasks:
                for n in range(10):
                    for client, name in ((one, "one"), (two, "two")):
                        arguments = {"content": f"{name} says {n}", "persistent": True}
                        tasks.start_soon(client.call_tool, "remember", arguments)
            for client in (one, two):
                found = await client.call_tool("list_memories", {})
                assert found.structured_content["total"] == 20
                (content,) = (await client.read_resource("memory://MEMORY.md")).contents
                assert content.text.count(" says ") == 20

    anyio.run(run)


def test_a_list_is_paged(tmp_path: Path):
    async def test(client: Client) -> None:
        for n in range(7):
            await client.call_tool("remember", {"content": f"Note {n}", "category": f"c{n % 2}"})
        pages: list[list[str]] = []
        after = ""
        while after is not None:
            page = await client.call_tool("list_memories", {"limit": 3, "after": after})
            pages.append([each["content"] for each in page.structured_content["memories"]])
            after = page.structured_content["next"]
            assert ("There are more" in text(page)) == (after is not None)
        assert pages == [["Note 6", "Note 5", "Note 4"], ["Note 3", "Note 2", "Note 1"], ["Note 0"]]
        few = await client.call_tool("recall", {"query": "note", "limit": 2, "category": "c1"})
        assert few.structured_content["more"] and len(few.structured_content["memories"]) == 2
        assert "There are more" in text(few)

    in_process(KnowledgeMemory(tmp_path), test)


def test_no_argument_reaches_another_scope(tmp_path: Path):
    """Whatever is passed, by whatever name, of whatever type."""
    store = SQLiteStore(tmp_path / "memory.db")
    theirs = AgentMemory(store.scoped(Scope(user="bob"))).remember("Bob's code is wombat")
    tries: list[Any] = [
        *("bob", '["bob",null,null]', "user=bob", "../scopes/user=bob", "*", "%", "' OR 1=1 --"),
        *(theirs.id, {"user": "bob"}, ["bob"], None, True, 10**30, ""),
    ]
    names = ("scope", "user", "agent", "session", "store", "dir", "namespace", "_meta")

    async def test(client: Client) -> None:
        told = ""
        for tool in TOOLS:
            for value in tries:
                known = ("query", "content", "id", "category", "after", "limit")
                for name in (*known, *names):
                    base = {"recall": {"query": "code"}, "remember": {"content": "x"}}
                    arguments = {**base.get(tool, {}), name: value}
                    answer = await client.call_tool(tool, arguments)
                    told += answer.model_dump_json()
                    assert answer.is_error or name not in names
        assert "wombat" not in told

    memory = KnowledgeMemory(None, store=store, scope=Scope(user="ann"))
    in_process(memory, test)
    assert store.scoped(Scope(user="bob")).get(theirs.id).content == "Bob's code is wombat"
    assert set(store.scopes()) == {Scope(user="ann"), Scope(user="bob")}


def test_tokens_are_bound_to_scopes_and_some_only_read(tmp_path: Path):
    file = tmp_path / "tokens.json"
    ann = Tokens.add(file, Scope(user="änn"))
    bob = Tokens.add(file, Scope(user="bob"))
    reader = Tokens.add(file, Scope(user="änn"), read_only=True)

    async def run(url: str) -> None:
        async with over_http(url, "auto", ann) as client:
            await client.call_tool("remember", {"content": "Ann's secret plan"})
        async with over_http(url, "legacy", bob) as client:
            assert text(await client.call_tool("recall", {"query": "plan"})) == "No memories found."
            listed = await client.call_tool("list_memories", {})
            assert listed.structured_content["total"] == 0
        async with over_http(url, "auto", reader) as client:
            offered = {tool.name for tool in (await client.list_tools()).tools}
            assert offered == TOOLS - {"remember", "forget"}
            assert "secret plan" in text(await client.call_tool("recall", {"query": "plan"}))
            assert (await client.call_tool("remember", {"content": "x"})).is_error
        async with httpx2.AsyncClient() as web:
            await refusals(web, url, ann)

    with served(tmp_path, "--tokens", str(file), "--host", "0.0.0.0") as url:
        anyio.run(run, url.replace("0.0.0.0", "127.0.0.1"))


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "recall", "arguments": {"query": "plan"}},
}
BOTH = {"Accept": "application/json, text/event-stream"}


async def refusals(web: httpx2.AsyncClient, url: str, token: str) -> None:
    async def status(**headers: str) -> int:
        answer = await web.post(url, json=CALL, headers={**BOTH, **headers})
        assert (answer.status_code == 200) == ("secret plan" in answer.text)
        return answer.status_code

    bearer = f"Bearer {token}"
    assert await status(Authorization=bearer) == 200
    assert await status() == 401
    assert await status(Authorization=f"Bearer {token}x") == 401
    assert await status(Authorization=f"Basic {token}") == 401
    assert await status(Authorization=bearer, Origin="https://evil.example") == 403
    assert await status(Authorization=bearer, Origin="http://localhost:3000") == 200
    assert (await web.get(url, headers={**BOTH, "Authorization": bearer})).status_code == 405
    garbage = await web.post(
        url,
        content=b"{",
        headers={**BOTH, "Authorization": bearer, "Content-Type": "application/json"},
    )
    assert garbage.status_code == 400 and garbage.json()["error"]["code"] == -32700


async def pages(url: str) -> None:
    """A page in a browser can lead its own name to this machine, but is told by it."""
    async with httpx2.AsyncClient() as web:
        for headers, status in [
            ({}, 200),
            ({"Host": "localhost:1"}, 200),
            ({"Host": "evil.example"}, 421),
            ({"Host": "localhost.evil.example:80"}, 421),
            ({"Host": "[::1"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": "https://app.example"}, 200),
        ]:
            answer = await web.post(url, json=CALL, headers={**BOTH, **headers})
            assert answer.status_code == status, headers
        for origin, status in [("https://app.example", 200), ("http://evil.example", 400)]:
            asking = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = await web.options(url, headers=asking)
            assert answer.status_code == status
            assert answer.headers.get("access-control-allow-origin") in (origin, None)
            assert ("access-control-allow-origin" in answer.headers) == (status == 200)


@pytest.mark.slow
def test_the_inspectors_command_line(tmp_path: Path):
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("npx is not installed")
    words = ("--method", "tools/call", "--tool-name", "remember", "--tool-arg", "content=Likes tea")
    done = subprocess.run(
        [npx, "--yes", "@modelcontextprotocol/inspector", "--cli", *command(tmp_path), *words],
        capture_output=True,
        text=True,
        timeout=200,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode and re.search(r"npm (ERR!|error)", done.stderr):
        pytest.skip(f"npm can't fetch the inspector: {done.stderr[:200]}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["structuredContent"]["created"]
