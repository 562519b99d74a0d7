"""How people say what is worth remembering, by language: data for ``rules.py``, and its form.

A language is a text of patterns: ``name: pattern``, an indented line going on with the one
before it, as if nothing stood between. ``let NAME: pattern`` gives a part a name, which stands
for it as ``<NAME>``. Patterns are regular expressions for single spaces and straight
apostrophes, whatever the case, and are tried at the beginning of a sentence or clause. They say
who speaks of themselves: whatever they don't know is not remembered.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .phrases_eastern import JA, ZH
from .phrases_english import EN
from .phrases_european import DE, ES, FR, PT

__all__ = ["Phrases", "phrases_for"]

_EUROPEAN, _EASTERN = (EN, DE, ES, FR, PT), (JA, ZH)
_PARTS = ("filler", "request", "nothing", "play", "task", "split", "cut", "mine")
_DROPPED = re.compile(r"'(?=(?:m|ve|d|ll|t)\b)")  # "im", "dont": apostrophes that many leave out
_IS_LATIN = re.compile("[A-Za-zÀ-ÿ]")
_IS_EASTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Phrases:
    """The patterns of some languages.

    ``filler``: words before what is meant, left out. ``request``: words that ask to remember
    what follows. ``nothing``: a sentence that begins so says nothing of the person; ``play``:
    nor does all that follows it. ``task``: a sentence that begins so asks for work. ``split``:
    where a clause with a subject of its own begins; ``cut``: where a clause goes over to asking
    for something. ``mine``: that somebody speaks of themselves. ``rules``: what makes a clause
    worth keeping, as pairs of kind and pattern, the first that matches is right; one of kind
    ``dated`` counts only with a date. ``any_rule``: whether one matches.
    """

    filler: re.Pattern[str]
    request: re.Pattern[str]
    nothing: re.Pattern[str]
    play: re.Pattern[str]
    task: re.Pattern[str]
    split: re.Pattern[str]
    cut: re.Pattern[str]
    mine: re.Pattern[str]
    rules: tuple[tuple[str, re.Pattern[str]], ...]
    any_rule: re.Pattern[str]


def phrases_for(text: str) -> Phrases:
    """The patterns for the languages of the scripts that ``text`` is in.

    >>> bool(phrases_for("Hi").request.match("Please remember that I prefer tea"))
    True
    """
    if not _IS_EASTERN.search(text):
        return _compiled(_EUROPEAN)
    return _compiled(_EUROPEAN + _EASTERN if _IS_LATIN.search(text) else _EASTERN)


@functools.cache
def _compiled(texts: tuple[str, ...]) -> Phrases:
    parts: dict[str, list[str]] = {part: [] for part in _PARTS}
    rules: list[tuple[str, str]] = []
    for text in texts:
        for name, pattern in _entries(text):
            if name in parts:
                parts[name].append(pattern)
            else:
                rules.append((name, pattern))
    joined = {part: _joined(patterns) for part, patterns in parts.items()}
    compiled = tuple((kind, _joined([pattern])) for kind, pattern in rules)
    return Phrases(**joined, rules=compiled, any_rule=_joined(pattern for _, pattern in rules))


def _joined(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    named: dict[str, str] = {}
    for entry in re.sub(r"\n +", "", text.strip("\n")).split("\n"):
        name, _, pattern = entry.partition(": ")
        pattern = _DROPPED.sub("'?", pattern)
        for part, meaning in named.items():
            pattern = pattern.replace(f"<{part}>", meaning)
        if name.startswith("let "):
            named[name.removeprefix("let ")] = pattern
        else:
            yield name, pattern
