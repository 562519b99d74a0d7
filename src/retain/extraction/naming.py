"""Who and what a text names, and how they are related, by rules that need no model.

Rules that are precise rather than complete: a name counts only beside one of the phrases below
("works at", "is a", "my colleague …"), and a sentence that asks, doubts or supposes teaches
nothing. Names may be of any script: what begins with a capital letter, or is of a script that
has none. A text is read once, in time that is linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from .. import text as texts
from ..stores.triples import Triple
from . import lexicon

__all__ = ["USER", "Named", "named_in", "related_in", "without_blocks"]

USER = "user"
"""What the one who speaks is called in a relationship."""

_LONGEST_WORD = 60
_MOST_WORDS = 5  # of a name, and of a role
_QUOTED_NAME = 3  # words in quotes that may be a name
_DOUBT = 0.6  # how sure "I think that Bob works at Acme" is

_RUN = re.compile(r"[^\s!\"#$%()*,/:;<=>?@\[\\\]^`{|}~«»„“”‘…。、，！？：；（）「」『』《》—–•]+")
_END = re.compile(r"[!?\n。！？;；…]")
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^“”\n]*”|„[^„“\n]*“|«[^«»\n]*»|「[^「」\n]*」",
    re.DOTALL,
)
_HEADING = re.compile(
    r"\[(?:known entities|known relationships|long-term memory|recent memory)\]", re.IGNORECASE
)
_ITEM = re.compile(r"\s*(?:[-*>#|]|&gt;|\[|$)")
_FENCED = re.compile(r"<from-memory>.*?(?:</from-memory>|\Z)", re.DOTALL | re.IGNORECASE)
_ENTITY_LINE = re.compile(r"\s*[-*>]+\s.{1,400}?(?:\[[^\]\n]{1,60}\](?:\s*\(|\s*$)|--\[)")


@dataclass(frozen=True, slots=True)
class Named:
    """A named entity as a text has it: its name, its type, what is said of it."""

    name: str
    type: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence. ``apart``: whether a comma or the like stands before it."""

    text: str
    apart: bool = False
    owns: bool = False
    """Whether it had an ``'s``."""

    @property
    def low(self) -> str:
        return self.text.casefold()

    @property
    def names(self) -> bool:
        """Whether it can be part of a name."""
        first = unicodedata.category(self.text[0])
        title = self.text.isupper() and self.low in lexicon.PEOPLE  # "our CEO Olga"
        return first in ("Lu", "Lt", "Lo") and self.low not in lexicon.NO_NAMES and not title


@dataclass(frozen=True, slots=True)
class Fact:
    """That a subject of some type stands in a relation to an object of some type ("" for none)."""

    subject: str
    type: str
    relation: str
    object: str
    object_type: str
    sure: float = 1.0


def named_in(text: str, *, user: bool = True) -> list[Named]:
    """The entities that ``text`` names and says something of, in the order in which it does.

    ``user``: whether the user says it, so that "I" and "my" are theirs.

    >>> for one in named_in("My colleague Alice is an engineer in Rio. She likes tea."):
    ...     print(one.name, one.type, one.attributes)
    Alice person {'role': 'engineer', 'city': 'Rio', 'relation': 'colleague'}
    """
    found: dict[str, Named] = {}
    for fact in _facts(text, user):
        for name, type, attributes in _entities(fact):
            known = found.setdefault(texts.fold(name), Named(name, type or lexicon.OTHER))
            known.attributes.update(attributes)
            if type and known.type == lexicon.OTHER:
                found[texts.fold(name)] = Named(known.name, type, known.attributes)
    for one in found.values():
        if "relation" in one.attributes:  # what is said beside it matters more
            one.attributes["relation"] = one.attributes.pop("relation")
    return list(found.values())


def related_in(text: str, *, user: bool = True) -> list[Triple]:
    """The relationships that ``text`` states; the one who speaks is called ``user`` in them.

    >>> print(*related_in("I live in Rio. I think Bob works at Acme."), sep="\\n")
    user --[lives_in]--> Rio
    Bob --[works_at]--> Acme (confidence: 0.6)
    """
    found: dict[tuple[str, str, str], Triple] = {}
    for fact in _facts(text, user):
        if fact.subject:
            relation = "_".join(fact.relation.split())
            triple = Triple(fact.subject, relation, fact.object, fact.sure)
            found.setdefault(triple.key, triple)
    return list(found.values())


def without_blocks(text: str) -> str:
    """``text`` without what a memory's own context block says, which a model may have echoed.

    >>> without_blocks("I know:\\n[Known Entities]\\n- Ghost [person]\\n\\nAnything else?")
    'I know:\\n\\nAnything else?'
    """
    kept: list[str] = []
    inside = False
    for line in _FENCED.sub(" ", text).splitlines():
        heading = _HEADING.search(line)
        if heading is not None:
            inside = True
            line = line[: heading.start()]
            if line.strip():
                kept.append(line)
        elif inside and line.strip() and _ITEM.match(line):
            continue
        elif not _ENTITY_LINE.match(line):
            inside = inside and not line.strip()
            kept.append(line)
    return "\n".join(kept)


def _entities(fact: Fact) -> Iterator[tuple[str, str, dict[str, str]]]:
    attribute = lexicon.ATTRIBUTES.get(fact.relation)
    if fact.subject in (USER, ""):
        if fact.relation == "name":
            yield fact.object, "person", {"relation": "the user"}
        elif _kind_of(fact.relation, kin=True):
            yield fact.object, fact.object_type, {"relation": fact.relation}
        elif fact.object_type in lexicon.KEPT:
            yield fact.object, fact.object_type, {}
        return
    if attribute == "role" and fact.type != "person":
        attribute = "kind"
    yield fact.subject, fact.type, {attribute: fact.object} if attribute else {}
    if fact.object_type in lexicon.KEPT:
        yield fact.object, fact.object_type, {}


# -- sentences -----------------------------------------------------------------------------


def _sentences(text: str) -> Iterator[list[Word]]:
    """The sentences that state something, as words."""
    text = unicodedata.normalize("NFC", text).replace("\u2019", "'")
    text = _QUOTED.sub(lambda found: _unquoted(found[0]), text)
    words: list[Word] = []
    end = 0
    for run in _RUN.finditer(text):
        gap, raw = text[end : run.start()], run[0]
        if _END.search(gap):
            yield from _stating(words, gap)
            words = []
        end = run.end()
        bare = raw.strip("'.-_&+")
        if not bare or len(bare) > _LONGEST_WORD:
            words.append(Word("…", True))
            continue
        apart = bool(gap.strip()) or raw[0] in "'-"
        owns = len(bare) > 2 and bare[-2:].casefold() == "'s"
        parts = lexicon.CONTRACTIONS.get(bare.casefold())
        if parts is None:
            words.append(Word(bare[:-2] if owns else bare, apart, owns))
        else:
            words += [Word(parts[0], apart), *map(Word, parts[1:])]
        if raw.endswith(".") and bare.casefold() not in lexicon.TITLES and len(bare) > 1:
            yield words
            words = []
    yield from _stating(words, text[end:])


def _unquoted(span: str) -> str:
    """A name in quotes without them; whatever else stands there is somebody else's, or code."""
    words = span.split()
    return span[1:-1] if len(words) <= _QUOTED_NAME and not span.startswith("`") else " … "


def _stating(words: list[Word], end: str) -> Iterator[list[Word]]:
    if "?" not in end and "？" not in end:
        yield words


def _facts(text: str, user: bool) -> Iterator[Fact]:
    for words in _sentences(text):
        lows = [word.low for word in words]
        if len(words) < 2 or lexicon.SUPPOSING.intersection(lows):
            continue
        if all(word.text.isupper() for word in words if word.text.isascii()) and any(
            word.text.isascii() and len(word.text) > 1 for word in words
        ):
            continue  # shouting: no telling what is a name
        sure = _DOUBT if lexicon.DOUBTING.intersection(lows) else 1.0
        for fact in Sentence(words, lows, user).facts():
            yield fact if sure == 1.0 else Fact(*_parts(fact), sure)


def _parts(fact: Fact) -> tuple[str, str, str, str, str]:
    return fact.subject, fact.type, fact.relation, fact.object, fact.object_type


class Sentence:
    """One sentence, looked through from its first word to its last."""

    def __init__(self, words: list[Word], lows: list[str], user: bool) -> None:
        self.words = words
        self.lows = lows
        self.user = user
        self.subjects: list[str] = []  # of the last phrase, for "… and lives in Rio"

    def facts(self) -> Iterator[Fact]:
        at = 0
        while at < len(self.words):
            yield from self._introduced(at)
            yield from self._owned(at)
            phrase = _phrase(self.lows, at)
            if phrase is not None:
                yield from self._stated(at, phrase)
            elif self.lows[at] in ("is", "am", "are"):
                yield from self._is(at)
            at += 1

    # -- names -----------------------------------------------------------------------------

    def _name_at(self, at: int, *, apart: bool = False) -> tuple[str, int]:
        """The name that begins at a word, and where it ends; ("", at) if none does."""
        start = at
        if at < len(self.words) and self.lows[at] in ("the", "a", "an"):
            start += 1
        end = start
        while end < len(self.words) and end - start < _MOST_WORDS:
            word = self.words[end]
            if word.apart and (end > start or not apart):
                break
            joins = end > start and word.low in lexicon.JOINING and self._names(end + 1)
            if not (word.names or joins):
                break
            end += 1
            if word.owns:
                break
        return self._joined(start, end), end if end > start else at

    def _names(self, at: int) -> bool:
        return at < len(self.words) and self.words[at].names and not self.words[at].apart

    def _name_before(self, at: int) -> tuple[str, int]:
        """The name that ends just before a word, and where it begins; ("", at) if none does."""
        start = at
        while start > 0 and at - start < _MOST_WORDS:
            word = self.words[start - 1]
            if start < at and (self.words[start].apart or word.owns):
                break
            joins = start < at and start > 1 and word.low in lexicon.JOINING
            if not (word.names or (joins and self.words[start - 2].names)):
                break
            start -= 1
        if at < len(self.words) and self.words[at].apart:
            return "", at
        return self._joined(start, at), start

    def _joined(self, start: int, end: int) -> str:
        return " ".join(word.text for word in self.words[start:end])

    def _subjects(self, at: int, *, several: bool = False) -> list[str]:
        """Who does what the phrase at a word says; ``several`` may, if the verb is a plural."""
        while at > 0 and self.lows[at - 1] in lexicon.ADVERBS and not self.words[at].apart:
            at -= 1
        if at == 0:
            return []
        before = self.lows[at - 1]
        if before == "i":
            return [USER] if self.user else []
        if before == "who":  # "Bob, who works"
            return [name for name in [self._ending(at - 1)] if name]
        if before == "and":
            return self.subjects
        name, start = self._name_before(at)
        if not name or self.words[at - 1].owns:
            return []
        names = [name]
        if several and start > 1 and self.lows[start - 1] == "and" and not self.words[start].apart:
            other, _ = self._name_before(start - 1)
            names = [other, name] if other else names
        return names

    def _ending(self, at: int) -> str:
        start = at
        while start > 0 and self.words[start - 1].names and at - start < _MOST_WORDS:
            start -= 1
            if self.words[start].apart:
                break
        return self._joined(start, at)

    # -- what is said ----------------------------------------------------------------------

    def _stated(self, at: int, phrase: lexicon.Phrase) -> Iterator[Fact]:
        """Of "Bob works at Acme" what the phrase says."""
        subjects = self._subjects(at, several=phrase.person != 3)
        if phrase.person == 1 and not (subjects == [USER] or len(subjects) > 1):
            return
        if phrase.person == 3 and subjects == [USER]:
            return
        name, _ = self._name_at(at + len(phrase.words))
        if not subjects or not name:
            return
        self.subjects = subjects
        for subject in subjects:
            if texts.fold(subject) != texts.fold(name):
                yield Fact(subject, phrase.subject, phrase.relation, name, phrase.object)

    def _is(self, at: int) -> Iterator[Fact]:
        """Of "Alice is an engineer at Acme in Rio" what she is, and where."""
        subjects = self._subjects(at)
        if not subjects or at + 1 >= len(self.words) or self.words[at + 1].apart:
            return
        article = self.lows[at + 1]
        if article in ("my", "our"):
            noun, end = self._noun(at + 2)
            type = _kind_of(noun, kin=True)
            if self.user and type in ("person", "animal") and subjects != [USER]:
                for subject in subjects:
                    yield Fact(USER, "person", noun, subject, type)
            return
        if article not in ("a", "an", "the"):
            return
        noun, end = self._noun(at + 2)
        type = _kind_of(noun)
        if not type or (subjects == [USER] and type != "person"):
            return
        self.subjects = subjects
        for subject in subjects:
            yield Fact(subject, type, "is_a", noun, "")
        yield from self._where(end, subjects, type)

    def _where(self, at: int, subjects: list[str], type: str) -> Iterator[Fact]:
        """What follows "is an engineer": "at Acme", "in Rio", "from Peru"."""
        while at < len(self.words) and not self.words[at].apart:
            relation = lexicon.PLACED.get((type, self.lows[at]))
            name, end = self._name_at(at + 1)
            if relation is None or not name:
                return
            place = relation in ("lives_in", "located_in", "comes_from")
            if place and (name.casefold() in lexicon.NO_PLACES or len(name) < 2):
                return
            for subject in subjects:
                yield Fact(subject, type, relation, name, "place" if place else "organization")
            at = end

    def _noun(self, at: int) -> tuple[str, int]:
        """The words in small letters from one on, and where they end: "software engineer"."""
        end = at
        while end < len(self.words) and end - at < _MOST_WORDS:
            word = self.words[end]
            small = word.text[0].islower() or word.low in lexicon.PEOPLE
            if word.apart or not small or word.low in lexicon.AFTER_NOUN:
                break
            end += 1
        return self._joined(at, end), end

    def _introduced(self, at: int) -> Iterator[Fact]:
        """Of "my colleague Alice", "my cat is called Miu" and "my name is Ann" who they are."""
        if self.lows[at] not in ("my", "our", "a", "an") or self.words[at].owns:
            return
        mine = self.lows[at] in ("my", "our")
        noun, end = self._noun(at + 1)
        words = noun.split()
        link = next((n for n, w in enumerate(words) if w in ("named", "called", "is")), len(words))
        words, linked = words[:link], words[link:]
        if not words or end >= len(self.words):
            return
        if mine and not self.user:
            return
        if words[-1] == "name" and mine and linked == ["is"]:
            words = words[:-1]  # of "my name is" nothing is left, of "my wife's name is" the wife
        elif linked == ["is"] or not (mine or linked):  # "my brother is German", "a doctor Bob"
            return
        type = _kind_of(" ".join(words), kin=True) if words else "person"
        name, _ = self._name_at(end)
        if type in ("person", "animal") and name and self.lows[end] not in ("the", "a", "an"):
            yield Fact(USER if mine else "", "person", " ".join(words) or "name", name, type)

    def _owned(self, at: int) -> Iterator[Fact]:
        """Of "Alice's husband Tom" whose he is."""
        if not self.words[at].owns or not self.words[at].names:
            return
        noun, end = self._noun(at + 1)
        type = _kind_of(noun, kin=True)
        name, _ = self._name_at(end)
        owner, _ = self._name_before(at + 1)
        if owner and name and type in ("person", "animal"):
            yield Fact(owner, "person", noun, name, type)


@cache
def _phrases() -> dict[str, list[lexicon.Phrase]]:
    """The phrases by their first word, the longest first."""
    found: dict[str, list[lexicon.Phrase]] = {}
    for phrase in sorted(lexicon.PHRASES, key=lambda phrase: -len(phrase.words)):
        found.setdefault(phrase.words[0], []).append(phrase)
    return found


def _phrase(lows: list[str], at: int) -> lexicon.Phrase | None:
    for phrase in _phrases().get(lows[at], ()):
        if tuple(lows[at : at + len(phrase.words)]) == phrase.words:
            return phrase
    return None


def _kind_of(noun: str, *, kin: bool = False) -> str:
    """The type of what is called so: "person" of "software engineer", "" if that isn't known."""
    last = noun.casefold().rpartition(" ")[2]
    if last in lexicon.PEOPLE or (kin and last in lexicon.KIN):
        return "person"
    if last in lexicon.ANIMALS:
        return "animal"
    return lexicon.THINGS.get(last, "")
