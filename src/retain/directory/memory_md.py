"""``MEMORY.md``: the persistent facts, as a file that a person reads and edits.

Layout: a title ``# Agent Memory``, headings ``## category``, facts ``- text``. A fact before
the first ``##`` heading, or under a later ``#`` heading, is of the category ``general``. Every
other line is the person's own and comes out of :meth:`Document.render` as it went in:

- A fact is a line with a bullet ``-``, ``*`` or ``+`` that is indented by less than four
  spaces, unless it is a sub-bullet (indented at least as far as the text of the item above it)
  or a divider (``- - -``). Its text has its white space joined.
- Closed code fences, and comments ``<!-- … -->`` that begin a line, hide what is in them. One
  that is left open hides nothing: a forgotten ``-->`` must not cost every fact below it. No
  ``##`` heading and no line with the bullet ``+`` closes a comment: that is how retain writes
  a text that holds ``-->`` below an open one.
- A heading may be closed by number signs (``## a ##``), as in Markdown; a category that ends
  in some is written so.

Nothing here reads or writes files. Read the file with ``newline=""``, so that its line ends
arrive, and write it so too. How the edits of a person are told: :mod:`.alignment`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ..errors import InvalidType, InvalidValue
from ..models import one_line
from .alignment import Changed, Edits, Recorded, align

__all__ = ["GENERAL", "TITLE", "Changed", "Document", "Edits", "Fact", "Recorded", "align"]

TITLE = "# Agent Memory"
"""The first line of a file that retain has made."""
GENERAL = "general"
"""The category of a fact that stands under no heading."""

_BOM = "\ufeff"  # may begin any line: a line above it can go, and files be put together
_HEADING = re.compile(r"\ufeff* {0,3}(#{1,6})(?=\s|\Z)")
_ITEM = re.compile(r"\ufeff*( {0,3})(?:([-*+])|[0-9]{1,9}[.)])(?:\s+|\Z)")
_FENCE = re.compile(r"\ufeff* {0,3}(`{3,}(?=[^`]*\Z)|~{3,})(.*)", re.DOTALL)
_COMMENT = re.compile(r"\ufeff* {0,3}<!--")
_NO_LIST = 1_000  # an indent that no bullet has: no list item is open


class Fact(NamedTuple):
    """A fact as the file has it; ``position`` names its line for as long as the document lives."""

    category: str
    text: str
    position: int


class _Kind(Enum):
    FACT = 1
    BLANK = 2
    BREAK = 3  # a heading or a divider: ends a list
    BLOCK = 4  # in a code fence or a comment
    OWN = 5  # anything else


_FACT, _BLANK, _BREAK, _BLOCK, _OWN = _Kind


@dataclass(slots=True)
class _Line:
    raw: str
    end: str
    kind: _Kind
    text: str
    position: int

    def start(self) -> tuple[str, str]:
        """A fact's indent, and that with its bullet and the white space after it."""
        item = _ITEM.match(self.raw)
        assert item is not None, self
        return item[1], item.group()

    def empty(self) -> None:
        """Leave a fact's bullet and nothing else."""
        self.raw, self.kind, self.text = self.start()[1].rstrip(), _OWN, ""


@dataclass(slots=True)
class _Section:
    """A heading of any level (0: none) with the lines down to the next one."""

    level: int
    category: str
    lines: list[_Line]
    text: str | None = None  # the lines as one, while they are as they were

    def render(self) -> str:
        if self.text is None:
            self.text = "".join([line.raw + line.end for line in self.lines])
        return self.text

    def insert(self, line: _Line) -> None:
        at = self.room()
        if self.text is not None:
            cut = len(self.text) - sum(len(after.raw) + len(after.end) for after in self.lines[at:])
            self.text = f"{self.text[:cut]}{line.raw}{line.end}{self.text[cut:]}"
        self.lines.insert(at, line)

    def room(self) -> int:
        """Where a new fact goes: after the last one, or the heading, and what hangs on it."""
        lines = self.lines
        last = (n for n in range(len(lines) - 1, -1, -1) if lines[n].kind is _FACT)
        at = next(last, 0) + 1
        while at < len(lines) and lines[at].kind in (_OWN, _BLOCK):
            at += 1
        return at

    def is_bare(self) -> bool:
        """Whether nothing stands under the heading."""
        return all(line.kind is _BLANK for line in self.lines[1:])

    def drop(self, positions: set[int]) -> bool:
        """Take out the facts at ``positions``; whether there were any."""
        doomed = [line for line in self.lines if line.position in positions]
        if not doomed:
            return False
        self.text = None
        for line, below in zip(self.lines, self.lines[1:], strict=False):
            if line.position in positions and below.kind is _OWN and below.raw[:1].isspace():
                line.empty()
        kept = [line for line in self.lines if line.position not in positions or not line.text]
        if any(line.raw.startswith((" ", _BOM)) for line in kept) and _reads_otherwise(kept):
            for line in doomed:
                line.empty()
        else:
            self.lines = kept
        return True


class Document:
    """One ``MEMORY.md``: its facts, and edits that leave everything else as it stands.

    >>> document = Document.parse("# Agent Memory\\n\\n## personal\\n- Name: Alice\\n")
    >>> document.facts()
    [Fact(category='personal', text='Name: Alice', position=3)]
    >>> document.replace(3, "Name: Bob")
    >>> print(document.render(), end="")
    # Agent Memory
    <BLANKLINE>
    ## personal
    - Name: Bob
    """

    def __init__(self) -> None:
        self._bom = ""
        self._end = "\n"
        self._has_title = False
        self._open_comment = False
        self._sections = [_Section(0, GENERAL, [])]
        self._headed: dict[str, _Section] = {}  # the last section of each category
        self._facts: dict[int, _Line] = {}
        self._next = 0

    @classmethod
    def parse(cls, text: str) -> Document:
        """The document of which ``text`` is the file; any text is one."""
        document = cls()
        document._bom = text[: len(text) - len(text.lstrip(_BOM))]
        text = text[len(document._bom) :]
        if text.count("\r\n") * 2 > text.count("\n"):
            document._end = "\r\n"
        raws, ends = _split(text)
        hidden: set[int] = set()
        if "<!--" in text or "```" in text or "~~~" in text:
            hidden, document._open_comment = _hidden(raws)
        document._divide(raws, ends, hidden)
        for section in document._sections:
            for line, (kind, words) in zip(section.lines, _read(section.lines), strict=True):
                line.kind = kind
                if words:
                    line.text = words
                    document._facts[line.position] = line
        document._index()
        return document

    @classmethod
    def build(cls, facts: Iterable[tuple[str, str]]) -> Document:
        """A new document of ``(category, text)`` pairs, categories in order of appearance.

        >>> Document.build([("a", "x"), ("b", "y"), ("a", "z")]).render()
        '# Agent Memory\\n\\n## a\\n- x\\n- z\\n\\n## b\\n- y\\n'
        """
        document = cls()
        document.add_title()
        for category, text in facts:
            document.add(category, text)
        return document

    @property
    def has_title(self) -> bool:
        """Whether a line ``# Agent Memory`` is there, in any case."""
        return self._has_title

    def facts(self) -> list[Fact]:
        """The facts in the order of the file."""
        return [
            Fact(section.category, line.text, line.position)
            for section in self._sections
            for line in section.lines
            if line.kind is _FACT
        ]

    def add_title(self) -> None:
        """Put the title on top unless it is there."""
        if self._has_title:
            return
        top = self._sections[0]
        first = next(self._lines(), None)
        lines = [self._line(TITLE, _BREAK)]
        if first is not None and first.kind is not _BLANK:
            lines.append(self._line("", _BLANK))
        top.level, self._has_title = 1, True
        top.lines[:0] = lines
        top.text = None

    def add(self, category: str, text: str) -> int:
        """Write a fact and return its position.

        It goes into the last section headed ``category``, after the last fact that stands
        above that section's sub-headings; if there is no such heading, into a new section at
        the end of the file. A document without a visible line gets its title first. Raises
        ``InvalidValue`` if ``category`` or ``text`` is blank.
        """
        category, text = _required(category, "category"), _required(text, "text")
        if not self._has_title and not any(line.raw.strip() for line in self._lines()):
            self.add_title()
        last = self._last_line()
        section = self._headed.get(category) or self._new_section(category)
        line = self._line(self._bullet(text), _FACT, text)
        section.insert(line)
        self._facts[line.position] = line
        bottom = self._last_line()
        if last is not None and bottom is not None and bottom is not last and not last.end:
            last.end, bottom.end = self._end, ""  # the file still ends as it did
            self._changed()
        return line.position

    def remove(self, positions: int | Iterable[int]) -> None:
        """Take out one fact or many; in time linear in the document, however many.

        A category's heading goes too when nothing but blank lines is left under it, with one
        empty line if there is one on either side. A fact with indented lines below it leaves
        its bullet behind: without it they would become facts, or hang on another. Raises
        ``InvalidValue``, before anything is changed, for a position that is no fact's.
        """
        doomed = {positions} if isinstance(positions, int) else set(positions)
        for position in doomed:
            self._fact(position)
        sections: list[_Section] = []
        for number, section in enumerate(self._sections):
            below = self._sections[number + 1 : number + 2]
            goes = section.drop(doomed) and section.level == 2 and section.is_bare()
            if goes and not (below and below[0].level > 2):
                _give_blanks(section, sections)
            else:
                sections.append(section)
        for position in doomed:
            del self._facts[position]
        if len(sections) != len(self._sections):
            self._sections = sections
            self._index()

    def replace(self, position: int, text: str) -> None:
        """Change the text of the fact at ``position``, which keeps its place and its bullet.

        Raises ``InvalidValue`` if ``text`` is blank or the position is no fact's.
        """
        line, text = self._fact(position), _required(text, "text")
        if text != line.text:
            indent, prefix = line.start()
            line.raw, line.text = self._bullet(text, prefix, indent), text
            self._changed()

    def render(self) -> str:
        """The text of the file."""
        return self._bom + "".join([section.render() for section in self._sections])

    # -- parts --

    def _lines(self) -> Iterator[_Line]:
        return (line for section in self._sections for line in section.lines)

    def _changed(self) -> None:
        for section in self._sections:
            section.text = None

    def _last_line(self) -> _Line | None:
        return next((s.lines[-1] for s in reversed(self._sections) if s.lines), None)

    def _fact(self, position: int) -> _Line:
        try:
            return self._facts[position]
        except KeyError:
            raise InvalidValue(
                f"position {position!r} is no fact of this document; take one from facts()"
            ) from None

    def _index(self) -> None:
        self._headed = {s.category: s for s in self._sections if s.level == 2}

    def _divide(self, raws: Sequence[str], ends: Sequence[str], hidden: set[int]) -> None:
        section = self._sections[0]
        category = GENERAL
        for number, (raw, end) in enumerate(zip(raws, ends, strict=True)):
            kind = _BLOCK if number in hidden else _OWN
            heading = None
            if kind is _OWN and ("#" in raw[:4] or raw[:1] == _BOM):
                heading = _HEADING.match(raw)
            if heading is not None:
                kind, level = _BREAK, len(heading[1])
                name = _unclosed(one_line(raw[heading.end() :]))
                if level == 1:
                    category = GENERAL
                    self._has_title |= name.casefold() == TITLE[2:].casefold()
                elif level == 2:
                    category = name or GENERAL
                section = _Section(level, category, [])
                self._sections.append(section)
            section.lines.append(_Line(raw, end, kind, "", number))
        self._next = len(raws)

    def _line(self, raw: str, kind: _Kind, text: str = "") -> _Line:
        line = _Line(raw, self._end, kind, text, self._next)
        self._next += 1
        return line

    def _new_section(self, category: str) -> _Section:
        last = self._last_line()
        if last is not None and last.kind is not _BLANK:
            self._sections[-1].lines.append(self._line("", _BLANK))
            self._sections[-1].text = None
        name = category if _unclosed(category) == category else f"{category} ##"
        section = _Section(2, category, [self._line(f"## {name}", _BREAK)])
        self._sections.append(section)
        self._headed[category] = section
        return section

    def _bullet(self, text: str, prefix: str = "- ", indent: str = "") -> str:
        """A line that reads as ``text``, with ``prefix`` if that will do."""
        for start in (prefix, f"{indent}- ", f"{indent}* ", f"{indent}+ "):
            raw = start + text
            if not _is_divider(raw) and not (self._open_comment and _closes_comment(raw)):
                break
        return raw


def _required(value: str, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidType(f"{name} is a {type(value).__name__}; give text")
    line = one_line(value)
    if not line:
        raise InvalidValue(f"{name} is blank; a line of MEMORY.md needs at least one character")
    return line


def _split(text: str) -> tuple[list[str], list[str]]:
    r"""The lines of ``text`` and their ends: ``\n``, ``\r\n``, or none at the end of the file."""
    raws = text.split("\n")
    ends = ["\n"] * (len(raws) - 1) + [""]
    if "\r\n" in text:
        for number, raw in enumerate(raws[:-1]):
            if raw.endswith("\r"):
                raws[number], ends[number] = raw[:-1], "\r\n"
    if not raws[-1]:
        del raws[-1], ends[-1]
    return raws, ends


def _hidden(raws: Sequence[str]) -> tuple[set[int], bool]:
    """The lines that closed fences and comments hide; and whether a comment is left open."""
    fences = {n: mark.groups() for n, raw in enumerate(raws) if (mark := _FENCE.match(raw))}
    longest = {"`": 0, "~": 0}
    is_closed = {}
    for number, (run, rest) in reversed(fences.items()):
        is_closed[number] = len(run) <= longest[run[0]]
        if not rest.strip():
            longest[run[0]] = max(longest[run[0]], len(run))
    last_end = max((n for n, raw in enumerate(raws) if _closes_comment(raw)), default=-1)
    hidden: set[int] = set()
    resume, open_comment = 0, False
    for number, raw in enumerate(raws):
        if number < resume:
            continue
        if is_closed.get(number):
            resume = _end_of_fence(fences, number, len(raws)) + 1
        elif _COMMENT.match(raw) and number <= last_end:
            resume = next(n for n in range(number, len(raws)) if _closes_comment(raws[n])) + 1
        else:
            open_comment |= _COMMENT.match(raw) is not None
            continue
        hidden.update(range(number, resume))
    return hidden, open_comment


def _end_of_fence(fences: dict[int, tuple[str, ...]], start: int, stop: int) -> int:
    run = fences[start][0]
    for number in range(start + 1, stop):
        other, rest = fences.get(number, ("", ""))
        if other.startswith(run) and not rest.strip():
            return number
    raise AssertionError("called for a fence that is left open")


def _closes_comment(raw: str) -> bool:
    return "-->" in raw and not raw.lstrip(_BOM + " ").startswith(("+", "##"))


def _is_divider(raw: str) -> bool:
    """Whether Markdown draws a line there: three or more of ``-``, ``*`` or ``_`` and no more."""
    marks = "".join(raw.lstrip(_BOM).split())
    return len(marks) > 2 and marks[0] in "-*_" and marks.count(marks[0]) == len(marks)


def _unclosed(name: str) -> str:
    """A heading's text without the number signs that may close it."""
    body = name.rstrip("#")
    return body.rstrip() if not body or body.endswith(" ") else name


def _read(lines: Iterable[_Line]) -> Iterator[tuple[_Kind, str]]:
    """The kind of each line of a section, and a fact's text; no other section matters."""
    column, after_blank = _NO_LIST, False  # where the text of the open list item begins
    for line in lines:
        raw, text = line.raw, ""
        fixed = line.kind is _BLOCK or line.kind is _BREAK
        kind = line.kind if fixed else _OWN
        if not fixed and raw[:2] == "- " and raw[2:3].isalnum():  # nearly every line
            kind, column, text = _FACT, 2, one_line(raw[2:])
        elif not fixed and (item := _ITEM.match(raw)) and not _is_divider(raw):
            if len(item[1]) < column:
                column = len(item.group().lstrip(_BOM).rstrip()) + 1
                text = one_line(raw[item.end() :]) if item[2] else ""
                kind = _FACT if text else _OWN
        elif not fixed and not raw.strip():
            kind = _BLANK
        elif kind is _BREAK or (not fixed and _is_divider(raw)):
            kind, column = _BREAK, _NO_LIST
        elif (kind is _BLOCK or after_blank) and _indent(raw) < column:
            column = _NO_LIST
        after_blank = kind is _BLANK
        yield kind, text


def _indent(raw: str) -> int:
    return len(raw[: len(raw) - len(raw.lstrip())].expandtabs(4))


def _reads_otherwise(lines: Sequence[_Line]) -> bool:
    return any(line.kind is not kind for line, (kind, _) in zip(lines, _read(lines), strict=True))


def _give_blanks(section: _Section, above: Sequence[_Section]) -> None:
    """Leave the blank lines of a section that goes to the one above it, but for one.

    That one is the line that :meth:`Document.add` puts above a new section; if it stayed,
    every section that comes and goes would make the file longer.
    """
    blanks = section.lines[1:]
    last = next((s.lines[-1] for s in reversed(above) if s.lines), None)
    if blanks and not blanks[-1].raw and (last is None or last.kind is _BLANK):
        blanks.pop()
    above[-1].lines.extend(blanks)
    above[-1].text = None
