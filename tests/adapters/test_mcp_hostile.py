"""Hostile memories through everything by which the MCP server tells a model of them."""

from __future__ import annotations

from pathlib import Path

import anyio
from mcp import Client
from mcp_types import CallToolResult, TextContent

from hostile import BENIGN, HOSTILE, check_prompt
from retain import KnowledgeMemory
from retain.adapters.mcp import memory_server


def text(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


async def read(client: Client) -> None:
    for resource in (await client.list_resources()).resources:
        (content,) = (await client.read_resource(resource.uri)).contents
        check_prompt(content.text, least=50)
    (message,) = (await client.get_prompt("use_memory")).messages
    check_prompt(message.content.text, least=100)
    check_prompt(text(await client.call_tool("get_context", {"query": BENIGN})), least=100)
    check_prompt(text(await client.call_tool("recall", {"query": BENIGN, "limit": 100})))
    check_prompt(text(await client.call_tool("list_memories", {"limit": 100})), least=90)


def test_hostile_memories_stay_inside_the_fence(tmp_path: Path):
    memory = KnowledgeMemory(tmp_path, max_context_entries=1000)
    for n, content in enumerate([*HOSTILE, BENIGN]):
        memory.remember(content, persistent=bool(n % 2) or content == BENIGN)

    async def run() -> None:
        async with Client(memory_server(memory)) as client:
            await read(client)

    anyio.run(run)
