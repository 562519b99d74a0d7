"""MEMORY.md: the persistent facts as a file, kept in step with the store both ways."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from .. import files
from ..directory.memory_md import Changed, Document, Fact, Recorded, align
from ..engine import Engine
from ..errors import NotFound, Rejected
from ..models import Filter, Memory, MemoryType, one_line
from ..text import plain

__all__ = ["FactsFile"]

log = logging.getLogger("retain")


class FactsFile:
    """MEMORY.md, and which of its lines is which memory.

    ``text`` is the file as it was when last in step with the store, ``None`` before that;
    ``lines`` the memories' lines in it. A line may be a fact and no memory: one that a hook
    rejected, or that says the same as another. ``added`` are the lines that the store added
    since ``settle``; ``None`` if anything else changed as well.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self._engine = engine
        self._seen: tuple[int, ...] | None = None  # the file's signature when last read or written
        self._encoded: tuple[str | None, bytes] = None, b""  # a text, and the same in UTF-8
        self.load(None, [])

    def load(self, text: str | None, ids: Sequence[str | None]) -> None:
        """Begin from a text that was in step, whose facts have these ids (``None``: no memory)."""
        self.text = text
        self._document = Document.parse(text or "")
        facts = self._document.facts()
        if len(facts) != len(ids):  # not what was kept: as good as never in step
            self.text, self._document, facts, ids = None, Document(), [], []
        self._adopt({fact.position: id for fact, id in zip(facts, ids, strict=True)}, facts)
        self.settle()

    def add(self, lines: Iterable[Recorded]) -> None:
        """Begin with these as well, which were added to that text in this order."""
        for line in lines:
            self._show_line(line)
        if self.added:
            self.text = self._document.render()
        self.settle()

    def settle(self) -> None:
        """Count what is added from now on."""
        self.added: list[Recorded] | None = []

    def _adopt(self, id_at: dict[int, str | None], facts: Iterable[Fact]) -> None:
        self.lines: dict[str, Recorded] = {}
        self._position: dict[str, int] = {}
        self._spare: dict[tuple[str, str], list[int]] = {}  # the facts that are no memory
        for fact in facts:
            id = id_at.get(fact.position)
            if id is not None and id not in self.lines:
                self.lines[id] = Recorded(id, fact.category, fact.text)
                self._position[id] = fact.position
            else:
                said = (fact.category, plain(fact.text))
                self._spare.setdefault(said, []).append(fact.position)

    def _echoes(self, line: Recorded) -> list[int]:
        """The facts that say the same as a memory's line, and change or go with it."""
        return self._spare.pop((line.category, plain(line.text)), []) if self._spare else []

    def ids(self) -> list[str | None]:
        """The id of each fact of ``text``, in the order of the file."""
        id_at = {position: id for id, position in self._position.items()}
        return [id_at.get(fact.position) for fact in self._document.facts()]

    def facts(self) -> dict[str, list[str]]:
        """The memories' lines by category, in the order of the file."""
        found: dict[str, list[str]] = {}
        shown = set(self._position.values())
        for fact in self._document.facts():
            if fact.position in shown:
                found.setdefault(fact.category, []).append(fact.text)
        return found

    # -- from the person to the store ------------------------------------------------------

    def is_untouched(self) -> bool:
        """Whether the file is as it was when last in step."""
        if self.text is None:
            return False
        if self._encoded[0] is not self.text:
            self._encoded = self.text, self.text.encode()
        self._seen = files.signature(self.path)
        with files.store_errors(self.path):
            return self._seen is not None and self.path.read_bytes() == self._encoded[1]

    def recognise(self, saved: Iterable[Memory], deleted: Collection[str]) -> bool:
        """Whether these changes in the store make of ``text`` what the file is; then it is that.

        So it is where a process was killed after it wrote the file and before it noted that.
        Taken for a person's edits, its lines would cost what they don't show of a memory.
        """
        text, ids = self.text, self.ids()
        self.project(saved, deleted)
        self._document.add_title()
        self.text = self._document.render()
        if self._read() == self.text:
            return True
        self.load(text, ids)
        return False

    def take_over(self, keep: Callable[[Sequence[Memory]], None]) -> bool:
        """Bring into the store what a person did to the file; whether there was anything.

        ``keep`` is given the memories whose lines were deleted or rewritten, before they are.
        """
        text = self._read()
        if text is not None and text == self.text:
            return False
        recorded = [self.lines[id] for id in self.ids() if id is not None]
        document = Document.parse(text or "")
        facts = document.facts()
        edits = align(recorded, facts)
        torn = not document.has_title
        if not (text or "").strip() or (torn and recorded and not edits.kept):
            self._begin_anew(text)
            return True
        id_at: dict[int, str | None] = {position: id for id, position in edits.kept.items()}
        if torn and recorded:  # a copy cut short: what is missing was not deleted
            for id in edits.gone:
                id_at[document.add(self.lines[id].category, self.lines[id].text)] = id
        elif edits.gone:
            gone = [m for m in self._engine.store.peek(edits.gone) if m.persistent]
            keep(gone)
            self._engine.forget_many([memory.id for memory in gone])
        # Of a changed line too: an editor that saves an old copy over a newer one puts one line
        # in the place of another, and nobody can tell.
        rewritten = [c.id for c in edits.changed if c.text != self.lines[c.id].text]
        keep(self._engine.store.peek(rewritten))
        for change in edits.changed:
            self._change(document, id_at, change)
        known = {} if recorded else self._known()
        fact_at = {fact.position: fact for fact in facts}
        for position in edits.added:
            self._add(document, id_at, fact_at[position], known)
        document.add_title()
        self._document = document
        self._adopt(id_at, document.facts())
        self.text = text
        return True

    def _read(self) -> str | None:
        """The file, ``None`` where there is none; set aside where it is no text."""
        self._seen = files.signature(self.path)
        if self._seen is None:
            return None
        try:
            with files.store_errors(self.path):
                return self.path.read_bytes().decode()
        except UnicodeDecodeError:
            files.set_aside(self.path)
            return None

    def _begin_anew(self, text: str | None) -> None:
        """The file is gone, blank, or something else: it will be made from the store."""
        if text and text.strip():
            files.set_aside(self.path)
        self.load(None, [])
        self._document.add_title()
        self.project(self._persistent(), ())

    def _persistent(self) -> list[Memory]:
        return list(self._engine.store.iterate(narrow=Filter(persistent=True)))[::-1]

    def _known(self) -> dict[tuple[str, str], str]:
        """The ids of the store's facts by their lines: to be adopted, not added again."""
        return {(one_line(m.category), one_line(m.content)): m.id for m in self._persistent()}

    def _change(self, document: Document, id_at: dict[int, str | None], change: Changed) -> None:
        before = self.lines[change.id]
        changes = {"content": change.text} if change.text != before.text else {}
        if change.category != before.category:
            changes["category"] = change.category
        try:
            memory = self._engine.update(change.id, **changes)
        except NotFound:  # forgotten meanwhile; but the person wrote this anew
            fact = Fact(change.category, change.text, change.position)
            self._add(document, id_at, fact, {})
            return
        except Rejected as error:
            log.warning("%s: an edit was undone: %s", self.path, error)
            self._show(document, id_at, change, change.id, before.category, before.text)
            return
        self._show(document, id_at, change, memory.id, memory.category, memory.content)

    def _add(
        self,
        document: Document,
        id_at: dict[int, str | None],
        fact: Fact,
        known: dict[tuple[str, str], str],
    ) -> None:
        id = known.pop((fact.category, fact.text), None)
        if id is not None:
            id_at[fact.position] = id
            return
        draft = Memory(
            content=fact.text,
            memory_type=MemoryType.SEMANTIC,
            category=fact.category,
            persistent=True,
            source=self.path.name,
        )
        try:
            memory = self._engine.remember(draft)
        except Rejected as error:
            log.warning("%s: a line was not taken over: %s", self.path, error)
            return
        if memory.id == draft.id:
            self._show(document, id_at, fact, memory.id, memory.category, memory.content)
        elif memory.id not in id_at.values():  # the store has it, and no line shows it yet
            id_at[fact.position] = memory.id

    def _show(
        self,
        document: Document,
        id_at: dict[int, str | None],
        now: Fact | Changed,
        id: str,
        category: str,
        content: str,
    ) -> None:
        """Let the line read as what is stored, which a hook may have changed."""
        position = now.position
        if one_line(category) != now.category:
            document.remove(position)
            position = document.add(category, content)
        elif one_line(content) != now.text:
            document.replace(position, content)
        id_at[position] = id

    # -- from the store to the person ------------------------------------------------------

    def project(self, saved: Iterable[Memory], deleted: Collection[str]) -> None:
        """Let the document show what changed in the store."""
        self._drop([id for id in deleted if id in self.lines])
        for memory in saved:
            line = Recorded(memory.id, one_line(memory.category), one_line(memory.content))
            before = self.lines.get(memory.id, line)
            if not (memory.persistent and line.text) or before.category != line.category:
                self._drop([memory.id] if memory.id in self.lines else [])
            if memory.persistent and line.text:
                self._show_line(line)

    def _show_line(self, line: Recorded) -> None:
        before = self.lines.get(line.id)
        if before is None:
            self._position[line.id] = self._document.add(line.category, line.text)
            if self.added is not None:
                self.added.append(line)
        elif before.text != line.text:
            self._document.replace(self._position[line.id], line.text)
            self._document.remove(self._echoes(before))
            self.added = None
        self.lines[line.id] = line

    def _drop(self, ids: Sequence[str]) -> None:
        if ids:
            doomed = [self._position.pop(id) for id in ids]
            for id in ids:
                doomed += self._echoes(self.lines.pop(id))
            self._document.remove(doomed)
            self.added = None

    def save(self) -> bool | None:
        """Write the file if it is to read otherwise; ``None`` where nothing was to be done.

        ``False``: a person saved it in this very moment, and is to be heard first.
        """
        self._document.add_title()
        text = self._document.render()
        if text == self.text and self.path.exists():
            return None
        if files.signature(self.path) != self._seen:
            return False
        self._write(text)
        return True

    def clear(self) -> None:
        """Leave nothing but the title."""
        self.load(None, [])
        self._document.add_title()
        self._write(self._document.render())

    def _write(self, text: str) -> None:
        data = text.encode()
        files.write_atomically(self.path, data)
        self.text, self._encoded, self._seen = text, (text, data), files.signature(self.path)
