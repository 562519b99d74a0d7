"""The two specifications' own code, block by block and unedited, through the drop-in.

Their text is no part of this repository: the blocks are read from the folder beside it, and
are skipped where it is absent. ``tests/dropin/test_programs.py`` states the same behaviour in
the project's own words.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from supabase import create_client

import servers

SPEC = Path(__file__).resolve().parents[2] / "shared" / "spec"
FILES = ("knowledge-module.md", "agentic-memory-api.md")

# Where a block relies on an import of an earlier one.
IMPORTS = {
    "Agent": "selectools",
    "AgentConfig": "selectools",
    "Any": "typing",
    "ConversationMemory": "selectools",
    "Dict": "typing",
    "EntityMemory": "selectools",
    "KnowledgeGraphMemory": "selectools",
    "KnowledgeMemory": "selectools.knowledge",
    "List": "typing",
    "LocalProvider": "selectools",
    "OpenAIProvider": "selectools",
    "Optional": "typing",
    "Protocol": "typing",
    "SQLiteTripleStore": "selectools",
    "SupabaseKnowledgeBackend": "selectools.knowledge_backends",
    "tool": "selectools",
}


class Block(NamedTuple):
    """A fenced block: the file it stands in, the line of its first line, its text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def code(self) -> str:
        """The text; ``[...]`` stands for the reader's own tools, a URL for a server of ours."""
        return servers.with_servers(self.text.replace("tools=[...]", "tools=own_tools"))

    @property
    def shows(self) -> bool:
        """Whether the block only shows signatures: methods, or classes of nothing else."""
        nodes = ast.parse(self.code).body
        parts = [part for node in nodes for part in getattr(node, "body", []) if is_method(part)]
        return all(
            is_method(node) or (isinstance(node, ast.ClassDef) and set(node.body) <= set(parts))
            for node in nodes
        )


def is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and [arg.arg for arg in node.args.args[:1]] == ["self"]


def blocks(file: str) -> Iterator[Block]:
    if not (SPEC / file).is_file():
        return
    text = (SPEC / file).read_text("utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield Block(file, text.count("\n", 0, found.start()) + 2, found[1])


BLOCKS = [block for file in FILES for block in blocks(file)]
needs_spec = pytest.mark.skipif(not BLOCKS, reason="the specifications do not lie beside the clone")


def names_missing_from(code: str) -> set[str]:
    """The names that ``code`` uses and neither defines nor imports."""
    used, bound = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.split(".")[0])
    return used - bound


def prelude(code: str) -> dict[str, Any]:
    """What the blocks before ``code`` would have left behind for it."""
    from selectools import tool
    from selectools.knowledge import KnowledgeMemory

    @tool(description="The weather in a city")
    def weather(city: str) -> str:
        return f"Rain in {city}"

    namespace: dict[str, Any] = {}
    for name in names_missing_from(code):
        if name in IMPORTS:
            namespace[name] = getattr(importlib.import_module(IMPORTS[name]), name)
        elif name in ("knowledge", "knowledge_memory"):
            namespace[name] = KnowledgeMemory(storage_dir="./agent_memory")
        elif name == "own_tools":
            namespace[name] = [weather]
        elif name == "user_id":
            namespace[name] = "user-123"
        elif name in ("client", "SUPABASE_URL"):
            project = servers.new_supabase(tables())
            namespace["SUPABASE_URL"], namespace["SERVICE_ROLE_KEY"] = project, servers.SUPABASE_KEY
            namespace["client"] = create_client(project, servers.SUPABASE_KEY)
    return namespace


def tables() -> str:
    """What the specification has its readers run in their Supabase project."""
    text = (SPEC / FILES[0]).read_text("utf-8")
    return "".join(re.findall(r"^```sql\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


@contextmanager
def no_trace_of(block: Block, keep: Path) -> Iterator[None]:
    """Move away what the absolute paths in the block name, and put it back afterwards."""
    paths = [Path(path) for path in re.findall(r'"(/[^"]+)"', block.text)]
    for number, path in enumerate(paths):
        if path.exists():
            shutil.move(path, keep / str(number))
    before = {path: set(path.parent.glob(f"*{path.name}*")) for path in paths}
    try:
        yield
    finally:
        for number, path in enumerate(paths):
            for left in set(path.parent.glob(f"*{path.name}*")) - before[path]:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            if (keep / str(number)).exists():
                shutil.move(keep / str(number), path)


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory and a home for one block, and a provider that needs no network."""
    selectools = importlib.import_module("selectools")
    monkeypatch.setattr(selectools, "OpenAIProvider", selectools.LocalProvider, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    return tmp_path


def run(block: Block, keep: Path) -> dict[str, Any]:
    """Run a block as it stands; what it defined."""
    namespace = prelude(block.code)
    given = dict(namespace)
    code = compile(block.code, str(block), "exec", dont_inherit=True)
    with no_trace_of(block, keep):
        exec(code, namespace)
        for name, thing in list(namespace.items()):
            if name.startswith("test_"):
                thing()
            elif name == "agent":
                assert thing.run("Good morning").content == "You said: Good morning"
                if thing.config.session_store is not None:
                    goes_on(thing)
                if thing.config.entity_memory is not None:
                    knows_all(thing)
            elif name == "create_agent_for_user":
                assert thing("alice").run("Good morning").content
            elif name == "backend":
                carry(thing)
            elif name == "memory" and thing.backend is not None:
                thing.remember("Likes tea")
                assert b"Likes tea" in thing.backend.load_bytes()
                thing.close()
    return {name: thing for name, thing in namespace.items() if given.get(name) is not thing}


def goes_on(agent: Any) -> None:
    """The session that the agent stored is another one's from its beginning."""
    config, said = agent.config, ["Good morning", "You said: Good morning"]
    talk = config.session_store.load(config.session_id)
    assert [message.content for message in talk.get_history()] == said
    other = type(agent)(tools=[], memory=type(talk)(), config=config)
    assert [message.content for message in other.memory.get_history()] == said


def knows_all(agent: Any) -> None:
    """What its memories know stands in the prompt in four sections, once, in their order."""
    from retain import Entity

    config = agent.config
    config.entity_memory.update([Entity("Alice", "person", {"role": "engineer"})])
    config.knowledge_graph.add("Alice", "works_at", "Acme", 0.9)
    config.knowledge_memory.remember("Dark mode: enabled", persistent=True)
    config.knowledge_memory.remember("Reading about 東京 today")
    prompts: list[str] = []

    class Listening(type(agent.provider)):
        def complete(self, **prompt: Any) -> Any:
            prompts.append(prompt["system_prompt"])
            return super().complete(**prompt)

    agent.provider = Listening()
    agent.run("Good evening")
    lines = prompts[0].splitlines()
    expected = [
        "[Known Entities]",
        "- Alice [person] (role: engineer)",
        "[Known Relationships]",
        "- Alice --[works_at]--> Acme (confidence: 0.9)",
        "[Long-term Memory]",
        "- Dark mode: enabled",
        "[Recent Memory]",
    ]
    assert [line for line in lines if line in expected] == expected
    assert lines[-2].endswith("(general) Reading about 東京 today")


def carry(backend: Any) -> None:
    """Let one host save and another one load."""
    from selectools.knowledge import KnowledgeMemory

    with KnowledgeMemory("./one", backend=backend) as memory:
        memory.remember("Likes tea", persistent=True)
    with KnowledgeMemory("./other", backend=backend) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}


def shown(defined: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """(name, as the block shows it, as retain has it) of the functions that a block shows."""
    import retain

    for name, thing in defined.items():
        if inspect.isclass(thing):
            for method, function in vars(thing).items():
                if inspect.isfunction(function) and function.__module__ != "typing":
                    yield f"{name}.{method}", function, getattr(getattr(retain, name), method)
        elif inspect.isfunction(thing):
            yield name, thing, getattr(retain.KnowledgeMemory, name)


@needs_spec
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_of_the_specification_runs_as_it_stands(block: Block, somewhere: Path):
    defined = run(block, somewhere)
    if block.shows:
        compared = list(shown(defined))
        assert compared
        for name, theirs, ours in compared:
            assert_accepts(name, inspect.signature(ours), inspect.signature(theirs))


def assert_accepts(name: str, ours: inspect.Signature, theirs: inspect.Signature) -> None:
    """Every call that ``theirs`` allows means the same to ``ours``."""
    shown = list(theirs.parameters.values())
    assert list(ours.parameters)[: len(shown)] == [parameter.name for parameter in shown], name
    for parameter in shown:
        own = ours.parameters[parameter.name]
        assert (own.kind, own.default) == (parameter.kind, parameter.default), f"{name}({own})"
    for own in list(ours.parameters.values())[len(shown) :]:
        assert own.default is not own.empty or own.kind in (own.VAR_POSITIONAL, own.VAR_KEYWORD)


@needs_spec
def test_the_blocks_that_only_show_signatures_are_few():
    assert len([block for block in BLOCKS if block.shows]) == 3
