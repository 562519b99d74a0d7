"""The house as docs/architecture.md draws it: floors, rooms, errors, light imports."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import retain
from retain import errors

HOUSE = Path(retain.__file__).parent

# A module imports from the floors below and from its own room; the ground is one room.
FLOORS = [
    {
        "awaiting",
        "clock",
        "errors",
        "files",
        "locks",
        "messages",
        "models",
        "results",
        "scope",
        "stopwords",
        "text",
    },
    {
        "backends",
        "client",
        "context",
        "directory",
        "guard",
        "listening",
        "providers",
        "search",
        "stores",
    },
    {"extraction", "indexing", "native"},
    {"engine"},
    {"memories"},
    {"evaluation", "moving", "testing", "tools"},
    {"adapters", "agent", "web"},
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
VERSION = "retain.__version__"  # all that a module may have from the front door
LONGEST = 600  # lines
HEAVY = ("click", "filelock", "numpy", "platformdirs", "sqlite3", "Stemmer")


def module_name(path: Path) -> str:
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(HOUSE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    """The room of ``retain.room`` or ``retain.room.part``; "" for ``retain`` itself."""
    return [*module.split("."), ""][1]


def imported(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, retain module) of every import in ``module``, inside functions too."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(base, package) if node.level else base
            if base == "retain":  # x of "from retain import x" is a module, or retain's own
                names = [f"retain.{alias.name}" for alias in node.names]
                names = [name if name in MODULES else base for name in names if name != VERSION]
            else:
                names = [base]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "retain")


def test_every_module_has_its_room_in_the_house():
    homeless = {room_of(name) for name in MODULES} - set(FLOOR_OF) - {""}
    assert not homeless, f"give these a floor in FLOORS and docs/architecture.md: {homeless}"


def test_the_page_draws_the_floors_as_they_are():
    page = (HOUSE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    drawn = {
        room: int(floor)
        for floor, rooms in re.findall(r"^\| (\d) \| (.*?) \|", page, re.MULTILINE)
        for room in re.findall(r"`(\w+)(?:/|\.py)`", rooms)
    }
    here = {room_of(name) for name in MODULES} - {"", "__main__"}
    assert drawn == {room: FLOOR_OF[room] for room in here}


@pytest.mark.parametrize("module", [name for name in MODULES if name != "retain"])
def test_a_module_imports_only_from_floors_below_and_its_own_room(module: str):
    here = room_of(module)
    floor = FLOOR_OF.get(here, -1)
    wrong = []
    for line, other in imported(module, TREES[module]):
        there = room_of(other)
        if there == here or (floor == 0 and FLOOR_OF.get(there) == 0):
            continue
        if FLOOR_OF.get(there, len(FLOORS)) >= floor:
            wrong.append(f"line {line} imports {other}")
    assert not wrong


def test_the_front_door_names_everything_lazily():
    eager = [
        node for node in TREES["retain"].body if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    heavy = [name for line, name in imported("retain", ast.Module(eager, [])) if name != "retain"]
    assert not [name for name in heavy if FLOOR_OF[room_of(name)] > 0]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short_enough_to_be_read(module: str):
    lines = MODULES[module].read_text("utf-8").count("\n")
    assert lines <= LONGEST


def test_importing_retain_loads_nothing_heavy():
    code = f"import sys, retain; print([m for m in {HEAVY!r} if m in sys.modules])"
    # coverage would load sqlite3 itself
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_installing_retain_alone_brings_no_framework_and_no_sdk():
    needed = [each for each in importlib.metadata.requires("retain") or () if "extra" not in each]
    names = {re.split(r"[^\w-]", each)[0].lower() for each in needed}
    assert names == {"click", "filelock", "numpy", "platformdirs", "pystemmer", "simsimd"}


def undocumented(name: str) -> list[str]:
    """``name`` itself, and the public methods of its class, as far as they lack a docstring."""
    thing = getattr(retain, name)
    documented = vars(thing).get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
    bare = [] if documented else [name]
    methods = vars(thing) if inspect.isclass(thing) else {}
    return bare + [
        f"{name}.{method}"
        for method, function in methods.items()
        if inspect.isfunction(function)
        and not method.startswith("_")
        # an override may leave the words to what it overrides
        and not inspect.getdoc(getattr(thing, method))
    ]


def test_everything_public_is_documented():
    assert list(retain.__all__) == sorted(set(retain.__all__))
    public = [name for name in retain.__all__ if name != "__version__"]
    assert not [bare for name in public for bare in undocumented(name)]


def raised(tree: ast.AST, function: str = "") -> Iterator[tuple[int, str, str]]:
    """(line, what is raised, the function it stands in) of every ``raise`` with a name."""
    for node in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = node.name
        elif isinstance(node, ast.With) and "store_errors(" in ast.unparse(node.items[0]):
            inner = "store_errors"  # which makes a retain error of any OSError raised inside
        elif isinstance(node, ast.Raise) and node.exc is not None:
            what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            yield node.lineno, ast.unparse(what), function
        yield from raised(node, inner)


# Built-in exceptions that are Python's own protocol where they stand, not an error of retain.
PROTOCOL = {
    "AttributeError": {"__getattr__"},
    "StopIteration": {"__next__"},
    "StopAsyncIteration": {"__anext__"},
    "IndexError": {"__getitem__"},
    "KeyError": {"__getitem__", "__delitem__"},
    "NotADirectoryError": {"store_errors"},
}


FRAMEWORKS = {"click": "cli", "pytest": "testing"}  # whose errors are raised in that room
LOCKS = Path(__file__).parent / "adapters" / "environments"
# Modules that import a framework, which is not here; they may raise its errors.
ADAPTERS = tuple(f"retain.adapters.{lock.stem}" for lock in LOCKS.glob("*.txt"))


def own_error(name: str, module: str) -> bool:
    """Whether ``raise name`` in ``module`` raises an error of retain (or one just caught)."""
    if name == "AssertionError":  # says that retain has a bug; no caller is to catch it
        return True
    owner, _, rest = name.rpartition(".")
    if owner in FRAMEWORKS:
        return room_of(module) == FRAMEWORKS[owner]
    if owner == "errors":
        return rest in errors.__all__
    if module.startswith(ADAPTERS):
        return not hasattr(builtins, name)
    thing = getattr(builtins, name, None) or getattr(importlib.import_module(module), name, None)
    if inspect.isclass(thing):
        return issubclass(thing, errors.RetainError)
    return rest.lower() == rest  # a variable, or a function that makes an error


@pytest.mark.parametrize("module", MODULES)
def test_a_module_raises_only_errors_of_retain(module: str):
    foreign = [
        f"line {line}: {what}"
        for line, what, function in raised(TREES[module])
        if not own_error(what, module) and function not in PROTOCOL.get(what, ())
    ]
    assert not foreign


def test_every_error_is_also_the_built_in_one_that_callers_catch():
    for name in errors.__all__:
        error = getattr(errors, name)
        assert issubclass(error, errors.RetainError)


WRITES = {"save", "save_many", "delete", "delete_many", "write", "forget_scope"}


def writes(tree: ast.AST) -> Iterator[int]:
    """Lines that call a write on something called a store or a driver."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value).lower().split(".")[-1]
            if node.func.attr in WRITES and owner.strip("_") in {"store", "driver"}:
                yield node.lineno


@pytest.mark.parametrize(
    "module", [m for m in MODULES if room_of(m) not in {"engine", "stores", "testing"}]
)
def test_only_the_engine_writes_to_a_store(module: str):
    assert not list(writes(TREES[module]))
