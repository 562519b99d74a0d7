"""Whatever is in a source, an import reports it or refuses it; nothing else is ever raised."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_exports import contents
from retain import AgentMemory
from retain.errors import RetainError
from retain.moving import FORMATS, import_path

NAMES = (
    *("mapping", "current_node", "parent", "message", "author", "role", "content", "parts", "id"),
    *("content_type", "text", "create_time", "title", "conversation_id", "metadata", "recipient"),
    *("chat_messages", "sender", "uuid", "type", "created_at", "attachments", "file_name", "name"),
    *("conversations_memory", "project_memories", "prompt_template", "description", "memory"),
    *("results", "memories", "relations", "categories", "expiration_date", "user_id", "source"),
    *("entities", "observations", "entityType", "from", "to", "relationType", "relationship"),
    *("target", "retain", "scope", "importance", "tags", "persistent", "ttl_days"),
)
WORDS = ("user", "assistant", "text", "entity", "relation", "a", "b", "2026-02-03", "\0", "\ud800")
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 1e308, float("inf"), float("nan"), 1e-320]),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
names = st.one_of(st.sampled_from(NAMES), st.sampled_from(WORDS))
anything = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=6)),
    max_leaves=30,
)


def node(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    message = st.fixed_dictionaries(
        {},
        optional={
            "id": inner,
            "author": st.one_of(inner, st.fixed_dictionaries({"role": inner})),
            "content": st.one_of(
                inner, st.fixed_dictionaries({"parts": st.lists(inner), "content_type": inner})
            ),
            "create_time": inner,
            "metadata": inner,
        },
    )
    parents = st.one_of(inner, st.sampled_from("abc"))
    return st.fixed_dictionaries({"parent": parents, "message": st.one_of(inner, message)})


chats = st.fixed_dictionaries(
    {"mapping": st.dictionaries(st.sampled_from("abc"), node(plain), max_size=3)},
    optional={"current_node": st.sampled_from("abcd"), "title": plain, "create_time": plain},
)
claude = st.fixed_dictionaries(
    {
        "chat_messages": st.lists(
            st.fixed_dictionaries(
                {},
                optional=dict.fromkeys(
                    ("sender", "text", "content", "created_at", "uuid", "attachments"), anything
                ),
            ),
            max_size=3,
        )
    },
    optional={"uuid": plain, "name": plain, "created_at": plain},
)
mem0 = st.fixed_dictionaries(
    {"memory": plain},
    optional=dict.fromkeys(
        ("id", "metadata", "categories", "user_id", "created_at", "expiration_date"), anything
    ),
)
graph = st.fixed_dictionaries(
    {"type": st.sampled_from(["entity", "relation"])},
    optional=dict.fromkeys(
        ("name", "entityType", "observations", "from", "to", "relationType"), anything
    ),
)
sources = st.one_of(
    anything,
    *(st.one_of(shape, st.lists(shape, max_size=3)) for shape in (chats, claude, mem0, graph)),
    st.fixed_dictionaries({"results": st.lists(mem0, max_size=2), "relations": anything}),
    st.fixed_dictionaries({"entities": st.lists(graph, max_size=2), "relations": anything}),
)


@settings(max_examples=150, deadline=None)
@given(sources, st.sampled_from([name for name in FORMATS if name not in ("selectools",)]))
def test_no_json_makes_an_import_raise_anything_but_its_own_errors(value: Any, format: str):
    data = json.dumps(value).encode()
    memory = AgentMemory(embedder=None)
    try:
        report = import_path(memory, io.BytesIO(data), format=format)
    except RetainError:
        assert memory.memory_count == 0
        return
    assert report.imported == memory.memory_count
    again = import_path(memory, io.BytesIO(data), format=format)
    assert (again.imported, again.replaced) == (0, 0)
    assert memory.memory_count == report.imported


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([b"", b"[", b"{", b"PK\x03\x04", b'[{"mapping":{']))
def test_no_bytes_do_either(data: bytes, start: bytes):
    memory = AgentMemory(embedder=None)
    with contextlib.suppress(RetainError):
        import_path(memory, io.BytesIO(start + data))
    assert memory.memory_count == 0


@pytest.mark.parametrize("format", ["mem0", "mcp-graph", "chatgpt", "claude"])
def test_a_nesting_without_end_and_a_number_without_end_are_told(format: str):
    for data in (b"[" * 200_000, b'{"a":' * 200_000, b"[" + b"9" * 10_000 + b"]"):
        memory = AgentMemory(embedder=None)
        report = import_path(memory, io.BytesIO(data), format=format)
        assert report.unreadable and not contents(memory)
