"""The drop-in: the other two packages' names, with retain behind each."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import codomyrmex
import codomyrmex.agentic_memory as agentic
import retain
import selectools

NAMES = {
    "selectools": "Agent AgentConfig AgentResult AnthropicProvider ConversationMemory Entity "
    "EntityMemory KnowledgeGraphMemory KnowledgeMemory LocalProvider Message OpenAIProvider Role "
    "SQLiteSessionStore SQLiteTripleStore Tool ToolCall Triple tool",
    "selectools.knowledge": "FileKnowledgeStore KnowledgeBackend KnowledgeEntry KnowledgeMemory "
    "KnowledgeStore SQLiteKnowledgeStore",
    "selectools.knowledge_backends": "KnowledgeBackend RedisKnowledgeBackend "
    "SupabaseKnowledgeBackend",
    "selectools.knowledge_sanitizers": "dedupe_against defang_delimiters strip_surrogates",
    "selectools.sessions": "SQLiteSessionStore SessionStore",
    "selectools.toolbox.memory_tools": "make_recall_tool make_remember_tool",
}
RECORDS = "Memory MemoryImportance MemoryType RetrievalResult"
MEMORIES = "AgentMemory ConversationMemory KnowledgeMemory VectorStoreMemory"
STORES = "InMemoryStore JSONFileStore"
AGENTIC = {
    "codomyrmex.agentic_memory": f"{RECORDS} {MEMORIES} {STORES}",
    "codomyrmex.agentic_memory.core": f"{RECORDS} {MEMORIES}",
    "codomyrmex.agentic_memory.core.memory": MEMORIES,
    "codomyrmex.agentic_memory.core.models": RECORDS,
    "codomyrmex.agentic_memory.memory": MEMORIES,
    "codomyrmex.agentic_memory.models": RECORDS,
    "codomyrmex.agentic_memory.stores": STORES,
}
OWN_CONSTRUCTOR = {"ConversationMemory", "KnowledgeMemory"}


def test_every_module_of_the_drop_in_is_named_here():
    modules = {
        found.name
        for package in (selectools, codomyrmex)
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    }
    without_names = {"selectools.toolbox"}
    assert modules | {"selectools"} == set(NAMES) | set(AGENTIC) | without_names


@pytest.mark.parametrize("module", [*NAMES, *AGENTIC])
def test_a_module_exports_its_names_and_no_others(module: str):
    names = {**NAMES, **AGENTIC}[module].split()
    exported = importlib.import_module(module)
    assert sorted(exported.__all__) == sorted(names)
    for name in names:
        own = getattr(retain, name)
        if module in AGENTIC and name in OWN_CONSTRUCTOR:
            assert issubclass(getattr(exported, name), own)
        else:
            assert getattr(exported, name) is own


def test_importing_selectools_imports_no_sdk_and_no_store():
    code = "import selectools, sys; print(*{name.split('.')[0] for name in sys.modules})"
    # coverage would load sqlite3 itself
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert not {"openai", "anthropic", "numpy", "sqlite3"}.intersection(run.stdout.split())
    assert "OpenAIProvider" in dir(selectools)
    with pytest.raises(AttributeError, match="no attribute 'OpenAiProvider'"):
        selectools.OpenAiProvider  # noqa: B018


@pytest.mark.parametrize("name", MEMORIES.split())
def test_the_memories_of_codomyrmex_are_made_of_a_store_or_of_nothing(name: str):
    memory_class = getattr(agentic, name)
    first = next(iter(inspect.signature(memory_class).parameters.values()))
    assert (first.name, first.default) == ("store", None)
    store = agentic.InMemoryStore()
    with memory_class(store) as memory:
        write = getattr(memory, "add_fact", None) or memory.remember
        written = write("The bridge closes at nine")
        assert [kept.content for kept in store.list_all()] == [written.content]


@pytest.mark.parametrize("name", MEMORIES.split())
def test_the_memories_of_codomyrmex_live_in_the_process_by_default(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with getattr(agentic, name)() as memory, getattr(agentic, name)() as other:
        write = getattr(memory, "add_fact", None) or memory.remember
        write("The bridge closes at nine")
        assert [found.memory.content for found in memory.search("bridge", 3)]
        assert other.search("bridge", 3) == []
    assert list(tmp_path.rglob("*")) == []


def test_a_conversation_of_codomyrmex_is_carried_on_as_one():
    with agentic.ConversationMemory(max_messages=2) as talk:
        for number, text in enumerate(["Salut", "Ça va ?", "Très bien"]):
            talk.add_turn("user", text, turn_number=number)
        again = agentic.ConversationMemory.from_dict(talk.to_dict())
    assert isinstance(again, agentic.ConversationMemory)
    assert [each.content for each in again.get_history()] == ["Ça va ?", "Très bien"]
