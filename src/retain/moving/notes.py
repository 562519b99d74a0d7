"""Notes in Markdown, taken apart into what can be remembered one by one."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Note", "front_matter", "notes"]

_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*|\*\*([^*]+)\*\*:?")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,4}[.)])\s+(.*)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})|<!--.*-->")
_CODE = re.compile(r"\s*(`{3,}|~{3,})")
_MEMBER = re.compile(r"([ \t]*)([A-Za-z_][\w.-]*):(?:[ \t]+(.*))?")
_BLOCKS = {">", ">-", ">+", "|", "|-", "|+"}


class Note(NamedTuple):
    """A paragraph or an item of a list: its line, the heading above it ("" for none), its text."""

    line: int
    heading: str
    text: str


def notes(text: str) -> list[Note]:
    """Every paragraph and every item of a list; items in items and code stay with theirs.

    >>> [(note.heading, note.text) for note in notes("# Build\\n- use make\\n- not ninja\\n")]
    [('Build', 'use make'), ('Build', 'not ninja')]
    """
    found: list[tuple[int, str, list[str]]] = []
    heading, code = "", ""
    last: list[str] | None = None  # the lines of the note that may go on
    blank = False
    for number, line in enumerate(text.splitlines(), 1):
        said, fence = line.strip(), _CODE.match(line)
        if not code and not said:
            blank = True
            continue
        item = None if code else _ITEM.fullmatch(line)
        title = None if code else _HEADING.fullmatch(line.rstrip())
        if not code and (title or _RULE.fullmatch(said)):
            heading, last = (title[1] or title[2] or "", None) if title else (heading, None)
        elif last is not None and (code or fence or line[0] in " \t" or not (blank or item)):
            last.append(line if code or fence else said)
        else:
            last = [item[1] if item else line if fence else said]
            found.append((number, heading, last))
        if fence and not (code and fence[1][0] != code):
            code = "" if code else fence[1][0]
        blank = False
    return [Note(number, title, "\n".join(lines)) for number, title, lines in found]


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The members before the text of a note between two lines ``---``, and the text.

    Read are texts, in quotes or not, over several lines too, and members of members under the
    names of both. Without a line that ends them there are none.

    >>> front_matter("---\\nname: tea\\nmetadata:\\n  type: user\\n---\\nLikes tea")
    ({'name': 'tea', 'metadata.type': 'user'}, 'Likes tea')
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return {}, text
    ends = [at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"]
    if not ends:
        return {}, text
    members: dict[str, list[str]] = {}
    outer = name = ""
    for line in (line.rstrip() for line in lines[1 : ends[0]]):
        member = _MEMBER.fullmatch(line)
        block = name in members and members[name][:1] and members[name][0] in _BLOCKS
        if member and not member[1]:
            outer = name = member[2]
            members[name] = [member[3] or ""]
        elif member and outer and not block and not any(members[outer]):
            name = f"{outer}.{member[2]}"
            members[name] = [member[3] or ""]
        elif name:
            members[name].append(line.strip())
    values = {name: _value(parts) for name, parts in members.items()}
    return {name: text for name, text in values.items() if text}, "".join(lines[ends[0] + 1 :])


def _value(parts: list[str]) -> str:
    if parts[0] in _BLOCKS:
        return ("\n" if parts[0][0] == "|" else " ").join(parts[1:]).strip()
    text = " ".join(filter(None, parts)).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1].replace('\\"', '"')
    return text
