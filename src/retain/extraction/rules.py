"""What to remember of a conversation, found without a model.

A turn is cut into sentences and these into clauses. What stands in code, in quotation marks, in
a question, in a "what if" or in a text that was given to be worked on is left out. A clause
counts if it begins as people begin who ask that something be remembered, or tell of themselves
(``phrases.py`` knows how); a date that it names is worked out. The words stay those that were
said. Precision comes before recall: what no rule knows is not remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from ..models import MemoryType
from .dates import is_past, may_begin, named
from .found import Finding, Turn
from .phrases import Phrases, phrases_for

__all__ = ["by_rules"]

_LONGEST = 600  # characters of a sentence that is looked at
_SHORTEST = 2  # characters of a memory
_MACHINES = {"assistant", "system", "developer", "tool", "function", "model", "ai", "bot"}

_FENCED = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_QUOTED = re.compile(
    r'"[^"\n]+"|“[^“”\n]+”|«[^«»\n]+»|„[^„“”\n]+[“”]|‘[^‘’\n]+’'
    r"|「[^「」\n]+」|『[^『』\n]+』|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w)"
)
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？；])|\n+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|etc|z\.b|nr|bzw|sr|sra|p\.m|a\.m)|\b\d{1,2})\.$",
    re.I,
)
_CODE = re.compile(
    r"[{}\\]|==|::|->|=>|</|/>|\w\(\)|;\s*$"
    r"|^\s*(?:def|class|import|from \w+ import|select|git|npm|pip|sudo|const|let|var|return)\b"
    r"|^\s*[>$#]|^\s*//",
    re.I,
)
_QUESTION = re.compile(r"[?？؟]\W{0,8}$|[吗呢么][。.]?$|(?:です|ます|ません|でした)か[。.]?$")
_JOKING = re.compile(
    r"\b(?:kidding|jk|joking|scherz|es broma|je plaisante|brincadeira|yeah,? right|lucky me|"
    r"just what i needed)\b|\b(?:oh great|oh wonderful|na super|na toll|na prima)\b|/s\b|"
    r"[🙄🙃]|冗談|开玩笑",
    re.I,
)
_WORKING = re.compile(  # on a thing of the moment: what happened to it is no memory
    r"\b(?:errors?|bugs?|code|script|server|build|compil\w+|commit\w*|branch|debug\w*|"
    r"exception|crash\w*|install\w*|repo|query|function|api|logs?|(?:the|unit) tests?|"
    r"try|tried|discuss\w*|ausprobiert|endpoints?|deploy\w*|refactor\w*|timeouts?|[45]0\d|"
    r"fehler|código|probé|probar|essayer|essayé|testei|tentar|コード|エラー|代码|报错|试试)\b",
    re.I,
)
_IN_HAND = re.compile(  # the thing that is worked on
    r"\b(?:files?|functions?|components?|regex|spreadsheet|queries|exit code|line \d+|class called|"
    r"(?:this|that|the|second|third|last|first) (?:script|paragraph|version|draft|tone|title|text|"
    r"email|table|chart|step|column|row|one|option)|\w+\.(?:jpg|png|pdf|py|js|ts|txt|csv|json)|"
    r"(?:este|esse|este|un|um) script|(?:el|le|o) (?:tono|ton|tom)|código|archivo|párrafo|fichier|"
    r"paragraphe|un script|arquivo|parágrafo|datei|skript|absatz)\b|O\(|版本|代码|程序(?!员)|"
    r"プログラム|コード|第[一二三四]个|\b(?:haha|lol|hehe)\b|"
    r"\bfor (?:this|the) (?:trip|project|gift|party|event)\b",
    re.I,
)
_SPECIFIED = re.compile(  # of a program, in a task
    r"\b(?:functions?|returns?|edge cases?|inputs?|outputs?|variables?|methods?|parameters?|"
    r"arrays?|strings?|index|loops?|class(?:es)? (?:must|should))\b",
    re.I,
)
_PASTED = re.compile(  # a letter, or what was said elsewhere
    r"^(?:from|subject|betreff|asunto|objet|assunto|件名|主题)[:：][ \t]*\S"
    r"|\n[ \t]*(?:(?:best|kind|warm) (?:regards|wishes)|regards|sincerely|yours|best,|"
    r"mit freundlichen|"
    r"(?:viele|liebe|beste) grü(?:ß|ss)e|saludos|atentamente|cordialement|atenciosamente|敬具|此致)"
    r"|^\[?\d[\d:./ T-]{3,20}\]?,? (?:- )?\w[\w ]{0,20}: ",
    re.I | re.M,
)
_MOMENT = re.compile(r"\b(?:rn|brb|atm|look at (?:her|him|them))\b", re.I)
_ASKS = re.compile(r"(?:when|what|how|why|who|where|which)\b", re.I)
_EDGES = " \t\r\n,;:.!。，、；！-–—*•>"
_YEARLY = re.compile(
    r"birth|geburtstag|cumpleaños|anniversa|aniversário|誕生|生日|\bborn\b|geboren|née?\b|naci|nasc",
    re.I,
)


class _Kind(NamedTuple):
    """What a clause of one kind becomes."""

    memory_type: MemoryType
    category: str
    importance: float
    persistent: bool


_KINDS = {
    "fact": _Kind(MemoryType.SEMANTIC, "facts", 0.6, True),
    "preference": _Kind(MemoryType.SEMANTIC, "preferences", 0.6, True),
    "instruction": _Kind(MemoryType.PROCEDURAL, "instructions", 0.7, True),
    "event": _Kind(MemoryType.EPISODIC, "events", 0.5, False),
    "plan": _Kind(MemoryType.EPISODIC, "plans", 0.6, False),
}
_PLAINLY = {"kin": "fact", "correction": "fact", "request": "fact", "dated": "plan"}
_REQUESTED = 0.8  # the least importance of what somebody asked to have remembered


def by_rules(turns: Sequence[Turn]) -> list[Finding]:
    """What to remember of ``turns``, in the order in which it was said.

    Only what users say counts, not what an assistant does. Contents are the users' own words,
    without those that ask to remember them, each date followed by what it is. Deterministic, and
    linear in the length of the turns; raises nothing, whatever they say.

    >>> from datetime import datetime, timezone
    >>> said = "Hi! Please remember that I prefer tea. We fly to Oslo next Friday. Any tips?"
    >>> at = datetime(2026, 12, 1, tzinfo=timezone.utc)
    >>> [found.content for found in by_rules([Turn("user", said, at)])]
    ['I prefer tea', 'We fly to Oslo next Friday (2026-12-11)']
    """
    found: dict[tuple[int, str], Finding] = {}
    for at, turn in enumerate(turns):
        if turn.role.lower() in _MACHINES or _is_not_meant(turn.text):
            continue
        for finding in _of_turn(turn, at):
            found.setdefault((at, finding.content.casefold()), finding)
    return list(found.values())


def _is_not_meant(text: str) -> bool:
    return bool(_JOKING.search(text) or _PASTED.search(text))


def _of_turn(turn: Turn, at: int) -> Iterator[Finding]:
    day = turn.at.date()
    asked = False
    before: list[str] = []
    for sentence in _sentences(turn.text):
        phrases = phrases_for(sentence)
        bare = _unfilled(sentence, phrases)
        if phrases.play.match(bare):
            return
        wish = phrases.request.match(bare)
        if wish and _is_meant(bare, wish.end(), before, phrases):
            yield from _requested(bare[wish.end() :], phrases, day, at)
        elif asked and not wish:  # "Please remember this. …"
            yield from _requested(bare, phrases, day, at)
        else:
            yield from _told(bare, phrases, day, at)
        asked = bool(wish and not bare[wish.end() :].strip(_EDGES))
        before.append(bare)


def _is_meant(text: str, rest: int, before: Sequence[str], phrases: Phrases) -> bool:
    """Whether it is to be remembered: no question, and no part of a task that was given."""
    if _QUESTION.search(text) and _ASKS.match(text, rest):  # "remember when…?"
        return False
    if phrases.mine.search(text):
        return True
    return not (_SPECIFIED.search(text) or any(map(phrases.task.match, before[-20:])))


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a turn that its author says themself, a space for each white space."""
    for prose in _FENCED.split(text)[::2]:  # every second part is code
        start = 0
        for end in [*(m for m in _END.finditer(prose)), None]:
            stop = len(prose) if end is None else end.start()
            if (
                end is not None
                and "\n" not in end[0]
                and _ABBREVIATED.search(prose[max(start, stop - 8) : stop])
            ):
                continue
            piece = prose[start:stop]
            start = len(prose) if end is None else end.end()
            least = 6 if piece.isascii() else _SHORTEST  # "I'm 40", "我叫小明"
            if not least <= len(piece.strip()) <= _LONGEST or _is_foreign(piece):
                continue
            yield " ".join(piece.split()).replace("’", "'")


def _is_foreign(piece: str) -> bool:
    """Whether it is code, or (partly) quoted from somebody else."""
    return bool(piece.lstrip().startswith(">") or _CODE.search(piece) or _QUOTED.search(piece))


def _unfilled(text: str, phrases: Phrases) -> str:
    """``text`` without the words before what is meant."""
    text = text.lstrip(_EDGES)
    for _ in range(4):
        match = phrases.filler.match(text)
        if match is None or match.end() == len(text):
            break
        text = text[match.end() :].lstrip(_EDGES)
    return text


def _requested(rest: str, phrases: Phrases, day: date, at: int) -> Iterator[Finding]:
    content = rest.rstrip("?？ ").strip(_EDGES)
    if len(content) < _SHORTEST or not any(letter.isalnum() for letter in content):
        return
    made = _made(content, _kind(content, phrases, day) or "fact", day, at)
    yield replace(
        made,
        importance=max(made.importance, _REQUESTED),
        persistent=made.persistent or made.date is None,
        tags=("requested",),
    )


def _told(sentence: str, phrases: Phrases, day: date, at: int) -> Iterator[Finding]:
    if phrases.nothing.match(sentence):
        return
    is_question = bool(_QUESTION.search(sentence))
    for clause, is_last in _clauses(sentence, phrases):
        bare = _unfilled(clause.strip(_EDGES), phrases).rstrip(_EDGES)
        if not (phrases.any_rule.match(bare) or may_begin(bare)) or phrases.nothing.match(bare):
            continue
        if (cut := phrases.cut.search(bare)) and cut.start():
            bare = bare[: cut.start()].rstrip(_EDGES)
        elif is_question and is_last:  # the question itself
            continue
        kind = _kind(bare, phrases, day)
        if kind is None or _IN_HAND.search(bare) or _MOMENT.search(bare):
            continue
        if kind != "plan" or not _WORKING.search(bare):
            yield _made(bare, kind, day, at)


def _clauses(sentence: str, phrases: Phrases) -> Iterator[tuple[str, bool]]:
    """The clauses, and whether each goes on to the end of the sentence."""
    start = 0
    for split in [*phrases.split.finditer(sentence), None]:
        if split is None:
            yield sentence[start:], True
        else:
            yield sentence[start : split.start()], False
            start = split.end()


def _kind(clause: str, phrases: Phrases, day: date) -> str | None:
    """Of what kind a clause is, if a rule knows it."""
    heads = [clause]
    if may_begin(clause) and (when := named(clause, day)) and when.start == 0:
        heads.append(clause[when.end :].lstrip(_EDGES + "はに"))  # "Yesterday I adopted a cat"
    for head in heads:
        if not phrases.any_rule.match(head):
            continue
        for kind, pattern in phrases.rules:
            if pattern.match(head) and (kind != "dated" or named(clause, day)):
                return _PLAINLY.get(kind, kind)
    return None


def _made(clause: str, kind: str, day: date, at: int) -> Finding:
    when = None if _YEARLY.search(clause) else named(clause, day)
    content = clause
    if when is not None and not when.spelt:
        content = f"{clause[: when.end]} ({when.date}){clause[when.end :]}"
        if is_past(when.date, day):
            kind = "event" if kind == "plan" else kind
        elif kind in ("fact", "event"):
            kind = "plan"
    it = _KINDS[kind]
    return Finding(
        content,
        at,
        it.memory_type,
        it.category,
        it.importance,
        it.persistent,
        (),
        None if when is None else when.date,
    )
