"""A model's files, ``/memories/…``, as memories of a store.

There are no files on the disk, and no path of a model's is ever one: a file is a memory whose id
is its path, and a directory is there as long as a file is in it. The one exception is fixed:
``/memories/MEMORY.md`` is the MEMORY.md of a memory directory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from .. import clock, files
from ..context import fence
from ..errors import Conflict, InvalidType, InvalidValue, Rejected
from ..memories.agent import VectorStoreMemory
from ..memories.base import Face
from ..memories.knowledge import KnowledgeMemory, scope_folder
from ..models import Memory, MemoryType, as_text
from ..stores.base import Store

__all__ = ["ROOT", "MemoryFiles"]

T = TypeVar("T")

ROOT = "/memories"
FACTS = f"{ROOT}/MEMORY.md"
_CATEGORY = "file"
_LONGEST_PATH = 1_000  # characters
_LONGEST_VIEW = 100_000  # characters
_LONGEST_LISTING = 1_000  # lines
_DEPTH = 2  # levels of a listing
_AROUND = 2  # lines shown before and after an edit
_ATTEMPTS = 100
_CHANGED = " A rule of this memory changed the text; view it."
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # invisible, but emoji and some languages are written with them


class MemoryFiles:
    """The files that belong to ``memory``; each method is a command, and answers the model.

    ``memory``: a face or a store. Raises ``InvalidType`` if it is neither. ``face`` has the files
    as memories. The commands raise ``InvalidValue`` or ``InvalidType`` in words for the model,
    ``Rejected`` where a hook refuses a text, and what the store raises. Each is atomic, and made
    anew where another process changed the same files meanwhile.
    """

    def __init__(self, memory: Face | Store) -> None:
        if not isinstance(memory, (Face, Store)):
            raise InvalidType(
                f"memory is a {type(memory).__name__}; give a KnowledgeMemory, another face, "
                "or a store"
            )
        store = memory if isinstance(memory, Store) else memory.engine.store
        self._hooks = None if isinstance(memory, Store) else memory.engine.pre_save
        scope = replace(store.scope, session=f"{store.scope.session or ''}{ROOT}")
        self.face = VectorStoreMemory(store, scope=scope)
        self._knowledge = memory if isinstance(memory, KnowledgeMemory) else None
        self._facts: Path | None = None  # MEMORY.md, where there is one
        if self._knowledge is not None and self._knowledge.directory is not None:
            self._facts = scope_folder(self._knowledge.directory, memory.scope) / "MEMORY.md"

    @property
    def _store(self) -> Store:
        return self.face.engine.store

    # -- the commands ----------------------------------------------------------------------

    def view(self, path: object, view_range: object = None) -> str:
        """A file's lines with their numbers, or the files of a directory, two levels deep."""
        at = _at(path)
        text = self._text(at)
        if text is None:
            if view_range is not None:
                raise InvalidValue(f"view_range is for files, and there is no file {at}")
            return self._listing(at)
        if not text:
            return f"{at} is an empty file."
        lines = _lines(text)
        first, last = _range(view_range, len(lines))
        return _view(at, lines, first, last)

    def create(self, path: object, file_text: object) -> str:
        """A new file."""
        at, given = _at(path), as_text(file_text, "file_text")

        def work() -> str:
            if self._text(at) is not None:
                raise InvalidValue(f"{at} is there already; edit it, or delete it first")
            self._refuse_as_place(at)
            text = given if self._hooks is None else self._hooks(given)
            self._refuse_as_name(at)
            expect = dict.fromkeys([at, *_above(at)], 0)
            self.face.engine.restore_many([_file(at, text)], unique=False, expect=expect)
            return text

        text = self._done(work)
        return f"Created {at}." + ("" if text == given else _CHANGED)

    def str_replace(self, path: object, old_str: object, new_str: object = "") -> str:
        """Replace a text that stands in a file once."""
        old, new = as_text(old_str, "old_str"), as_text(new_str, "new_str")
        if not old:
            raise InvalidValue("old_str is empty; give the text to replace, or use insert")
        return self._edit(_at(path), lambda text: _replaced(text, old, new))

    def insert(self, path: object, insert_line: object, insert_text: object) -> str:
        """Put lines into a file, after a line; 0 is before the first."""
        line, new = _number(insert_line, "insert_line"), as_text(insert_text, "insert_text")
        return self._edit(_at(path), lambda text: _inserted(text, line, new))

    def delete(self, path: object) -> str:
        """Delete a file, or a directory with all its files, for good."""
        at = _at(path)
        self._refuse_as_fixed(at, "deleted")

        def work() -> None:
            doomed = {memory.id: memory.revision for memory in self._tree(at)}
            self.face.engine.restore_many([], delete=doomed, expect=doomed)

        self._done(work)
        return f"Deleted {at}."

    def rename(self, old_path: object, new_path: object) -> str:
        """Move a file, or a directory with all its files."""
        old, new = _at(old_path), _at(new_path)
        self._refuse_as_fixed(old, "renamed")

        def work() -> None:
            moving = self._tree(old)
            if f"{new}/".startswith(f"{old}/"):
                raise InvalidValue(f"{old} can't be moved into itself; give another new_path")
            if new == ROOT or self._text(new) is not None or self._below(new):
                raise InvalidValue(f"{new} is there already; delete it first, or give another path")
            self._refuse_as_place(new)
            moved = [_moved(memory, new + memory.id[len(old) :]) for memory in moving]
            for memory in moved:
                self._refuse_as_name(memory.id)
            free = dict.fromkeys([*(memory.id for memory in moved), *_above(new)], 0)
            there = {memory.id: memory.revision for memory in moving}
            self.face.engine.restore_many(
                moved, unique=False, delete=there, expect={**free, **there}
            )

        self._done(work)
        return f"Renamed {old} to {new}."

    def clear(self) -> str:
        """Delete all files for good."""
        self.face.engine.forget_all()
        self._carry()
        return "All files are deleted."

    # -- reading and writing ---------------------------------------------------------------

    def _text(self, at: str) -> str | None:
        """What a file says, ``None`` where there is none."""
        if at == FACTS and self._facts is not None:
            return self._facts_text()
        found = self._store.peek([at])
        return found[0].content if found else None

    def _facts_text(self) -> str:
        assert self._facts is not None
        assert self._knowledge is not None
        self._knowledge.get_persistent_facts()  # brings the file and the store in step
        with files.store_errors(self._facts):
            return self._facts.read_bytes().decode()

    def _edit(self, at: str, edit: Callable[[str], tuple[str, int, int]]) -> str:
        """Change a file's text; ``edit`` gives it, and which lines of it are new."""
        if at == FACTS and self._facts is not None:
            return self._edit_facts(edit)

        def work() -> tuple[str, str, int, int]:
            memory = self._file_to_edit(at)
            given, first, last = edit(memory.content)
            text = given if self._hooks is None else self._hooks(given)
            new = memory.copy(content=text, updated_at=clock.now())
            expect = {at: memory.revision}
            self.face.engine.restore_many([new], unique=False, expect=expect)
            return given, text, first, last

        given, text, first, last = self._done(work)
        return _edited(at, text, first, last) + ("" if text == given else _CHANGED)

    def _edit_facts(self, edit: Callable[[str], tuple[str, int, int]]) -> str:
        """Edit MEMORY.md as a person does, while nobody else writes."""
        assert self._facts is not None
        assert self._knowledge is not None
        with self._knowledge._writing():
            with files.store_errors(self._facts):
                before = self._facts.read_bytes().decode()
            given, first, last = edit(before)
            files.write_atomically(self._facts, given.encode())
        self._knowledge.flush()  # which hears the edit
        text = self._facts_text()
        return _edited(FACTS, text, first, last) + ("" if text == given else _CHANGED)

    def _file_to_edit(self, at: str) -> Memory:
        found = self._store.peek([at])
        if found:
            return found[0]
        if at == ROOT or self._below(at):
            raise InvalidValue(f"{at} is a directory; name a file")
        raise InvalidValue(f"there is no {at}; create it, or view {ROOT} to see what there is")

    def _done(self, work: Callable[[], T]) -> T:
        """What ``work`` gives; made anew where others changed what it read."""
        for _ in range(_ATTEMPTS):
            try:
                done = work()
            except Conflict:
                continue
            self._carry()
            return done
        raise Conflict(f"others changed the same files {_ATTEMPTS} times; call again later")

    def _carry(self) -> None:
        """Save a directory that has a back end."""
        if self._knowledge is not None and self._knowledge.backend is not None:
            self._knowledge.flush()

    def _below(self, at: str) -> list[Memory]:
        """All files in a directory and in those in it."""
        return [memory for memory in self._store.iterate() if memory.id.startswith(f"{at}/")]

    def _tree(self, at: str) -> list[Memory]:
        """The file of that path, or those of the directory."""
        found = self._store.peek([at]) or self._below(at)
        if not found:
            raise InvalidValue(f"there is no {at}; view {ROOT} to see what there is")
        return found

    # -- what is refused -------------------------------------------------------------------

    def _refuse_as_fixed(self, at: str, verb: str) -> None:
        if at == ROOT:
            raise InvalidValue(f"{ROOT} itself can't be {verb}; name what is in it")
        if at == FACTS and self._facts is not None:
            raise InvalidValue(
                f"{at} is the list of facts and can't be {verb}; take out lines with str_replace"
            )

    def _refuse_as_place(self, at: str) -> None:
        """Refuse what is a directory, or lies in a file."""
        if at == ROOT or self._below(at):
            raise InvalidValue(f"{at} is a directory; name a file")
        above = _above(at)
        taken = [memory.id for memory in self._store.peek(above)]
        if FACTS in above and self._facts is not None:
            taken.append(FACTS)
        if taken:
            raise InvalidValue(f"{taken[0]} is a file, so nothing can be in it")

    def _refuse_as_name(self, at: str) -> None:
        """Refuse a path that the hooks refuse, or would change."""
        name = at[len(ROOT) + 1 :]
        if self._hooks is not None and self._hooks(name) != name:
            raise Rejected(f"{at} is refused as a name by a rule of this memory; give another")

    # -- listings --------------------------------------------------------------------------

    def _listing(self, at: str) -> str:
        sizes = {memory.id: len(memory.content.encode()) for memory in self._below(at)}
        if at == ROOT and self._facts is not None:
            sizes[FACTS] = len(self._facts_text().encode())
        if not sizes:
            if at == ROOT:
                return f"{ROOT} is empty."
            raise InvalidValue(f"there is no {at}; view {ROOT} to see what there is")
        shown: dict[str, int] = {}
        for file, size in sizes.items():
            parts = file[len(at) + 1 :].split("/")
            for depth in range(1, min(len(parts), _DEPTH) + 1):
                name = "/".join([at, *parts[:depth]]) + ("/" if depth < len(parts) else "")
                shown[name] = shown.get(name, 0) + size
        lines = [f"{_size(shown[name])}\t{name}" for name in sorted(shown)]
        block = fence("\n".join(lines[:_LONGEST_LISTING]))
        answer = f"What is in {at}, {_DEPTH} levels deep:\n{block}"
        if len(lines) > _LONGEST_LISTING:
            answer += f"\nThe first {_LONGEST_LISTING} of {len(lines)}; view a directory of them."
        return answer


# -- paths --------------------------------------------------------------------------------


def _at(path: object) -> str:
    """``path`` in its one spelling: in NFC, without slashes too many."""
    if not isinstance(path, str):
        raise InvalidType(f"a path is a {type(path).__name__}; give a text such as {ROOT}/notes.md")
    text = unicodedata.normalize("NFC", as_text(path, "a path"))
    if len(text) > _LONGEST_PATH:
        raise InvalidValue(f"a path has {len(text)} characters; give at most {_LONGEST_PATH}")
    if text != ROOT and not text.startswith(f"{ROOT}/"):
        raise InvalidValue(
            f"the path {ascii(text)[:200]} is not in {ROOT}; give one such as {ROOT}/notes.md"
        )
    parts = [part for part in text.split("/")[2:] if part]
    for part in parts:
        if not _is_name(part):
            raise InvalidValue(
                f"the path has a part {ascii(part)[:200]}, which is no name: write names out, "
                "without '..', backslashes, encodings, and characters that can't be seen"
            )
    return "/".join([ROOT, *parts])


def _is_name(part: str) -> bool:
    """Whether nobody could take it for anything but a name, however they decode it."""
    read = part
    while read != (decoded := unquote(unicodedata.normalize("NFKC", read))):
        read = decoded
    for name in (part, read):
        seen = name.translate(dict.fromkeys(map(ord, _JOINERS)))
        if any(unicodedata.category(letter) in _INVISIBLE for letter in seen):
            return False
        if name != name.strip() or not name.strip(".") or re.search(r"[/\\]", name):
            return False
    return True


def _above(at: str) -> list[str]:
    """The directories that a file is in, but the root."""
    parts = at.split("/")
    return ["/".join(parts[:end]) for end in range(3, len(parts))]


# -- files and lines ----------------------------------------------------------------------


def _file(at: str, text: str) -> Memory:
    """A file as a memory: found by its name too, and never pruned."""
    tags = [at[len(ROOT) + 1 :]]
    return Memory(
        at, text, MemoryType.SEMANTIC, tags=tags, category=_CATEGORY, persistent=True, source=at
    )


def _moved(memory: Memory, at: str) -> Memory:
    return memory.copy(id=at, tags=_file(at, "").tags, source=at, updated_at=clock.now())


def _lines(text: str) -> list[str]:
    """The lines of a text, without their ends; one at its end is no line more."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def _number(value: object, name: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value.strip()):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} is {repr(value)[:50]}; give a whole number")
    return value


def _range(given: object, count: int) -> tuple[int, int]:
    """The first and the last line to show, from 1."""
    if given is None:
        return 1, count
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InvalidType(f"view_range is {repr(given)[:50]}; give [first, last]; -1 is the end")
    first, last = (_number(each, "view_range") for each in given)
    last = count if last == -1 else min(last, count)
    if not 1 <= first <= last:
        raise InvalidValue(
            f"view_range is {repr(given)[:50]}; the file has lines 1 to {count}: give a first one "
            "of these, and a last one not before it, or -1 for the end"
        )
    return first, last


def _view(at: str, lines: list[str], first: int, last: int) -> str:
    """These lines as data; what is too long to show says how to go on."""
    end, length = first - 1, 0
    while end < last and (length := length + len(lines[end]) + 1) <= _LONGEST_VIEW:
        end += 1
    if end < first:  # one line that is too long itself
        line = lines[first - 1]
        shown = _numbered([line[:_LONGEST_VIEW]], first)
        more = ""
        if len(line) > _LONGEST_VIEW:
            more = (
                f"\nLine {first} has {len(line)} characters; the first {_LONGEST_VIEW} are shown."
            )
        if first < last:
            more += f" The file has more lines: go on with view_range [{first + 1}, {last}]."
        return f"{at}, lines {first} to {first} of {len(lines)}:\n{shown}{more}"
    shown = _numbered(lines[first - 1 : end], first)
    more = "" if end == last else f"\nToo long to show: go on with view_range [{end + 1}, {last}]."
    return f"{at}, lines {first} to {end} of {len(lines)}:\n{shown}{more}"


def _numbered(lines: Sequence[str], first: int) -> str:
    return fence("\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first)))


def _edited(at: str, text: str, first: int, last: int) -> str:
    """What an edit made: the new lines and some around them."""
    lines = _lines(text)
    if not lines:
        return f"Edited {at}. It is an empty file now."
    last = min(len(lines), last + _AROUND)
    first = min(max(1, first - _AROUND), last)
    return f"Edited {at}. {_view(at, lines, first, last)}"


def _replaced(text: str, old: str, new: str) -> tuple[str, int, int]:
    """The text with ``new`` for ``old``, and which lines are new."""
    if old not in text and "\n" in old and "\r\n" in text:  # as it is shown
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    places = [found.start() for found in re.finditer(f"(?={re.escape(old)})", text)]
    if not places:
        raise InvalidValue(
            "old_str stands nowhere in the file; give it as it stands there, spaces too"
        )
    if len(places) > 1:
        at_lines = [text.count("\n", 0, place) + 1 for place in places[:20]]
        raise InvalidValue(
            f"old_str stands in {len(places)} places (lines {', '.join(map(str, at_lines))}"
            f"{', …' if len(places) > 20 else ''}); give more of what is around it"
        )
    start = places[0]
    first = text.count("\n", 0, start) + 1
    return text[:start] + new + text[start + len(old) :], first, first + new.count("\n")


def _inserted(text: str, line: int, new: str) -> tuple[str, int, int]:
    """The text with ``new`` after a line, and which lines are new."""
    ends = "\r\n" if "\r\n" in text else "\n"
    lines = [f"{each}\n" for each in _lines(text)]
    if lines and not text.endswith("\n"):
        lines[-1] = lines[-1][:-1]
    if not 0 <= line <= len(lines):
        raise InvalidValue(
            f"insert_line is {line}; the file has {len(lines)} lines: give 0 to that"
        )
    new = new.replace("\r\n", "\n").replace("\n", ends)
    if not new.endswith("\n"):
        new += ends
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += ends
    after = "".join([*lines[:line], new, *lines[line:]])
    return after, line + 1, line + new.count("\n")


def _size(count: int) -> str:
    """A number of bytes, short and rounded down."""
    for unit in "BKM":
        if count < 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}G"
