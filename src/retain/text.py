"""Text to terms: the only tokenizer of the house.

Everything stored is indexed by :func:`terms` and every query is cut by :func:`query_terms`,
so that relevance is the same everywhere. A word is a tuple of *forms*; a word of a query and
a word of a text match when they share one.

- Text is folded first (NFKC and case folding); zero-width characters and bidirectional controls
  go; white space, punctuation, symbols and control characters separate.
- Scripts that put spaces between words: the first form is the Snowball stem for the script
  (English for Latin), without diacritics. The second is the stem for the language of the text,
  if its function words tell another one. Arabic and Cyrillic words are a form unstemmed too,
  Arabic and Hebrew ones without the article, "and" or "in" that is written as one with them.
- The parts of ``foo_bar``, ``wi-fi`` and ``192.168.7.1`` are words; the first of a pair carries
  the pair written as one (``wifi``) as a further form.
- Scripts that don't, and Hangul, where particles stick to words: every character of a text is a
  word whose first form is the pair of it and the next. A query's words are the pairs alone.
- An emoji is a word, the same in every skin tone. ``c++`` and ``c#`` are words.

A word counts by its first 64 characters. Every step is linear in the length of the text.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import re
import threading
import unicodedata
from bisect import bisect
from collections.abc import Iterable
from typing import Any, Protocol

from .stopwords import LANGUAGES, LOOKALIKES, stop_words

__all__ = ["Forms", "fold", "plain", "query_terms", "signature", "terms"]

Forms = tuple[str, ...]

_VERSION = 1  # to be raised with every change of what a text is cut into
_LONGEST = 64  # characters of a word that count
_CACHED = 32_768  # compounds in a cache: about 10 MB
_MARKS_IN_A_ROW = 30  # what Unicode's stream-safe text format (UAX #15) allows


# --- folding ----------------------------------------------------------------------------------


def fold(text: str) -> str:
    """``text`` as it is compared where case doesn't matter: NFKC and case-folded.

    NFKC once more at the end, since case folding can take a text out of it.

    >>> fold("STRASSE") == fold("straße"), fold("Ｃａｆｅ\\u0301")
    (True, 'café')
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _stream_safe(text)).casefold()
    return unicodedata.normalize("NFKC", folded)


def plain(text: str) -> str:
    """``text`` as equal texts are told by: NFC, trimmed, every run of white space one space.

    >>> plain("  The router\\n is  192.168.7.1 ")
    'The router is 192.168.7.1'
    """
    return " ".join(unicodedata.normalize("NFC", _stream_safe(text)).split())


# Combining marks and symbols: no pattern tells them apart, so a row of them is looked at closer.
_MARKS_PERHAPS = re.compile(rf"[^\w\s!-~]{{{_MARKS_IN_A_ROW + 1},}}")


def _stream_safe(text: str) -> str:
    """``text`` without the marks that follow thirty others.

    Normalisation sorts a row of marks by insertion, and 100 KB of them would take minutes.
    """
    if len(text) <= 512:
        return text
    return _MARKS_PERHAPS.sub(_without_heap, text)


def _without_heap(row: re.Match[str]) -> str:
    kept, marks = [], 0
    for char in row.group():
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MARKS_IN_A_ROW:
            kept.append(char)
    return "".join(kept)


# --- compounds: folded text, cut at white space and the commonest separators ------------------

_ZWJ, _ZWNJ = "\u200d", "\u200c"
_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
_HAS_INVISIBLE = re.compile(f"[{_ZWJ}{_INVISIBLE}]")
_INVISIBLE_PART = re.compile(  # but the tags of a flag (Scotland's), and what joins two emoji
    f"(\U0001f3f4[\U000e0020-\U000e007f]+)|[{_INVISIBLE}]|{_ZWJ}(?![\u2190-\u2bff\U0001f000-\U0001faff])"
)
_TYPOGRAPHIC = (("’", "'"), ("‘", "'"), ("“", " "), ("”", " "), ("—", " "), ("–", " "), ("…", " "))
_PERSIAN_JOINT = re.compile(f"(?<=[\u0620-\u06ff]){_ZWNJ}+(?=[\u0620-\u06ff])")
_GERSHAYIM = re.compile('(?<=[\u05d0-\u05ea])["\u05f4](?=[\u05d0-\u05ea])')
_THOUSANDS = re.compile(",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
# A character to a character and a split: nothing in the standard library cuts a text quicker.
_ASCII_COMPOUNDS = "".join(c if c.isalnum() or c in "'#+-_" else " " for c in map(chr, range(128)))
_COMPOUND = re.compile(
    '[^\\x00-\\x20!"$-&(-*,./:-@\\[-^`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\u060c\u061b\u061f\u06d4'
    "\u0964\u0965\u1680\u2000-\u200a\u2012-\u2017\u201a-\u202f\u2030\u2031\u2033-\u205f"
    "\u3000-\u3003\u3008-\u3020\ud800-\udfff]+"
)


def _compounds(text: str) -> list[str]:
    if not text.isascii():
        for char, plainer in _TYPOGRAPHIC:  # what English is beyond ASCII for
            text = text.replace(char, plainer)
    if text.isascii():
        if "," in text:
            text = _THOUSANDS.sub("_", text)
        return text.lower().translate(_ASCII_COMPOUNDS).split()
    if _HAS_INVISIBLE.search(text):
        text = _INVISIBLE_PART.sub(r"\1", _PERSIAN_JOINT.sub("-", text))
    text = fold(text).replace("i\u0307", "i").replace("l·l", "ll")  # from İ; Catalan
    if '"' in text or "\u05f4" in text:
        text = _GERSHAYIM.sub("", text)
    return _COMPOUND.findall(_THOUSANDS.sub("_", text))


# --- pieces: compounds, cut where the kind of character changes -------------------------------

_SIGNS = {
    **dict.fromkeys("'\u02bb\u02bc\u2032\u05f3", "q"),
    **dict.fromkeys("-\u2010", "h"),
    **dict.fromkeys("\u1039\u17d2\u1a60\u1b44\ua9c0", "k"),
    **dict.fromkeys("\u3030\u303d", "e"),
    "_": "u",
    "+": "p",
    "#": "#",
    _ZWJ: "z",
}
_SCRIPTS = "LGCYHAVTX"
# From which code point on which kind of characters is found.
_BLOCKS = [
    (int(start, 16), kind)
    for start, kind in (
        block.split(":")
        for block in (
            "0:L 370:G 400:C 530:Y 590:H 600:A 700:X 750:A 780:X 860:A 900:V 980:X B80:T C00:X "
            "E00:s 10A0:X 1100:d 1200:X 1780:s 1800:X 1950:s 19E0:X 1A20:s 1AB0:X 1B00:s 1B80:X "
            "1C80:C 1C90:X 1D00:L 1F00:G 2000:L 231A:e 231C:L 23E9:e 23F4:L 23F8:e 23FB:L 25FD:e "
            "25FF:L 2600:e 27C0:L 2B05:e 2B08:L 2B1B:e 2B1D:L 2B50:e 2B51:L 2B55:e 2B56:L 2C00:X "
            "2C60:L 2C80:X 2DE0:C 2E00:X 3000:d A000:X A640:C A6A0:X A720:L A800:X A8E0:V A900:X "
            "A960:d A980:s AA00:X AA60:s AAE0:X AB30:L AB70:X AC00:d D800:X F900:d FB00:X 1AFF0:d "
            "1B170:X 1F000:e 1F100:X 1F170:e 1F18A:X 1F18E:e 1F18F:X 1F191:e 1F1E6:f 1F200:e "
            "1F3FB:t 1F400:e 1FB00:X 20000:d 40000:X E0020:y E0080:X"
        ).split()
    )
]


def _kind(char: str) -> str:
    """What ``char`` is, in one letter: the patterns below are written in these.

    ==================  ====================================================================
    ``L G C Y H``       Latin, Greek, Cyrillic, Armenian, Hebrew letters
    ``A V T X``         Arabic, Devanagari, Tamil, all other letters of scripts with spaces
    ``d``               Han, kana, bopomofo, Hangul: every character is worth a word
    ``s``               letters of other scripts without spaces (Thai, Khmer, Myanmar ...)
    ``n m k``           digits; marks; marks that put the next letter below this one
    ``e t f y z``       what emoji are made of: pictures, skin tones, flag letters, tags, joiners
    ``q h u p #``       apostrophe, hyphen, ``_``, ``+``, ``#``
    space               anything else
    ==================  ====================================================================
    """
    if char in _SIGNS:
        return _SIGNS[char]
    block = _BLOCKS[bisect(_BLOCKS, (ord(char), "~")) - 1][1]
    category = unicodedata.category(char)[0]
    if category == "M":
        return "m"
    if category == "N":
        return "d" if block == "d" else "n"
    if category == "L":
        return block if block in _SCRIPTS or block in "ds" else "X"
    return block if block in "eftyz" else " "


class _Kinds(dict[int, str]):
    """Code point to kind, for ``str.translate``: of the characters that were met."""

    def __missing__(self, point: int) -> str:
        if len(self) >= _CACHED:
            self.clear()
        kind = self[point] = _kind(chr(point))
        return kind


_kinds = _Kinds()
_APOSTROPHE = re.compile("['\u02bb\u02bc\u2032\u05f3]")
_TONE = re.compile("[\U0001f3fb-\U0001f3ff]")
_ASCII_PIECE = re.compile(
    r"(?<![0-9]_)[0-9]{1,3}(?:_[0-9]{3}){1,6}(?!_?[0-9])"
    r"|[a-z](?:\+\+|#(?![a-z0-9]))|[a-z0-9]+(?:'[a-z0-9]+)*"
)
_PIECE = re.compile(
    r"(?<!nu)n{1,3}(?:unnn){1,6}(?!u?n)|(?<![A-Znm])L(?:pp|#(?![A-Zn]))|"
    + "|".join(f"(?:n+(?:qn+)*q?)?({c})[{c}nmk]*(?:q[{c}n][{c}nmk]*)*" for c in _SCRIPTS)
    + r"|n[nm]*(?:qn[nm]*)*|d[dm]*|s[smk]*|e[ty]*(?:ze[ty]*)*|ff?|t"
)
_UNIT = re.compile("[ds](?:m|ks?)*")


def _pieces(compound: str) -> list[tuple[str, str]]:
    """The pieces of ``compound`` and their kinds, which is the letters' where digits go before."""
    if compound.isascii():
        return [("L", piece) for piece in _ASCII_PIECE.findall(compound)]
    kinds = compound.translate(_kinds)
    return [
        (
            match[match.lastindex] if match.lastindex else kinds[match.start()],
            compound[match.start() : match.end()],
        )
        for match in _PIECE.finditer(kinds)
    ]


# --- words and their forms --------------------------------------------------------------------

_SCRIPT_STEMMERS = {
    "L": "english",
    "C": "russian",
    "G": "greek",
    "A": "arabic",
    "Y": "armenian",
    "V": "hindi",
    "T": "tamil",
}
# Those that an older PyStemmer lacks (czech, persian, polish) are done without there.
_LANGUAGE_STEMMERS = dict(
    pair.split(":")
    for pair in (
        "ca:catalan cs:czech da:danish de:german es:spanish fa:persian fi:finnish fr:french "
        "hu:hungarian id:indonesian it:italian nl:dutch no:norwegian pl:polish pt:portuguese "
        "ro:romanian sv:swedish tr:turkish"
    ).split()
)
_OTHER_SCRIPTS = ("ru", "uk", "el", "ar", "he", "fa", "hi", "ja", "zh", "ko")
_PREFIXES = {  # "and", "the", "in", "to" ..., which Arabic and Hebrew write as one with the word
    "A": re.compile("^(?:و?(?:ال|بال|كال|فال)|و?لل|[وفبل](?=....))(?=..)"),
    "H": re.compile("^ו?(?:כ?ש)?[הבלכמ]?(?=...)"),
}
_ENGLISH_ENDINGS = frozenset({"s", "d", "m", "ll", "re", "ve"})
_ELISIONS = frozenset(  # French, Italian, Catalan; O'Brien
    "c d j l m n o s t v qu jusqu lorsqu puisqu quoiqu all dall dell nell sull quell un gl".split()
)
# Latin letters that Unicode doesn't take apart; ё, and the Ukrainian letters that the Russian
# stemmer knows no vowels in; Arabic letters that the keyboards of different countries write the
# same words with, and the line that stretches them.
_PLAINER_LETTERS = str.maketrans(
    "øđðłħıŧɨɓɗƙёіїєґ\u06cc\u0649\u06a9\u0671\u06c1\u06be\u06d5",
    "oddlhitibdkеииег\u064a\u064a\u0643\u0627\u0647\u0647\u0647",
    "\u0640",
) | {ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th"}


def _bare(word: str, script: str) -> str:
    """``word`` without the diacritics of its script, its digits in ASCII."""
    if word.isascii():
        return word
    if script in "LGAHn":
        word = unicodedata.normalize("NFD", word)
    if script in "LGAHnC":  # in Cyrillic й is one character here, and a stress is a mark
        word = "".join(c for c in word if unicodedata.category(c)[0] != "M")
        word = unicodedata.normalize("NFC", word.translate(_PLAINER_LETTERS))
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in word)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


def _snowball() -> Any:
    import Stemmer  # type: ignore[import-not-found,unused-ignore]

    return Stemmer


class _Stemmers(threading.local):
    """Snowball's stemmers, which no two threads may use at once: a set for each."""

    def __init__(self) -> None:
        self.made: dict[str, _Stemmer | None] = {}

    def stem(self, algorithm: str, word: str) -> str:
        try:
            stemmer = self.made[algorithm]
        except KeyError:
            snowball = _snowball()
            known = algorithm in snowball.algorithms()
            stemmer = self.made[algorithm] = snowball.Stemmer(algorithm, 0) if known else None
        return word if stemmer is None else stemmer.stemWord(word)


_stemmers = _Stemmers()


def _readings(word: str) -> list[str]:
    """What ``word`` may be looked up as, for its apostrophe; the likeliest first."""
    parts = _APOSTROPHE.split(word)
    if len(parts) > 1 and parts[-1] in _ENGLISH_ENDINGS:  # Caroline's, we'll
        parts.pop()
    joined = "".join(parts)
    if len(parts) > 1 and parts[0] in _ELISIONS:  # l'eau, O'Brien
        return ["".join(parts[1:]), joined]
    if len(parts) > 1 and len(parts[0]) > 2 and not joined.endswith("nt"):  # Ankara'da, not don't
        return [joined, parts[0]]
    return [joined]


def _forms(readings: Iterable[str], script: str, language: str) -> Forms:
    by_script = _SCRIPT_STEMMERS.get(script)
    by_language = _LANGUAGE_STEMMERS.get(language)
    forms: dict[str, None] = {}
    for reading in readings:
        bare = _bare(reading, script) or reading
        forms[(by_script and _stemmers.stem(by_script, bare)) or bare] = None
        if by_language and script == ("A" if language == "fa" else "L"):
            forms[_bare(_stemmers.stem(by_language, reading), script)] = None
        if script in "AC":
            # These stemmers take off too much at times: a word isn't the stem of its inflections.
            forms[bare] = None
        if script in _PREFIXES:
            forms[_PREFIXES[script].sub("", bare)] = None
    return tuple(form[:_LONGEST] for form in forms if form)


def _emoji(piece: str) -> Forms:
    toneless = (_TONE.sub("", piece) or piece)[:_LONGEST]
    return tuple(dict.fromkeys((toneless, toneless.split(_ZWJ)[0])))


class _Pairs(dict[str, Forms]):
    """Pairs of characters to forms, so that a long text doesn't hold the same ones many times."""

    def __missing__(self, pair: str) -> Forms:
        if len(self) >= _CACHED:
            self.clear()
        forms = self[pair] = (pair, pair[0])
        return forms


_pairs = _Pairs()


def _grams(run: str, query: bool) -> list[Forms]:
    """The pairs of a run without spaces: alone for a query, with their first halves for a text."""
    if run.isalnum():  # no marks
        pairs = map(operator.add, run, run[1:])
        if query and len(run) > 1:
            return list(zip(pairs, strict=True))
        return [*map(_pairs.__getitem__, pairs), (run[-1],)]
    found = _UNIT.finditer(run.translate(_kinds))
    units = [run[unit.start() : unit.end()][:_LONGEST] for unit in found]
    pairs = map(operator.add, units, units[1:])
    if query and len(units) > 1:
        return list(zip(pairs, strict=True))
    return [*zip(pairs, units, strict=False), (units[-1],)]


def _pair(compound: str, pieces: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The script of ``wi-fi`` and ``wifi``; nothing for what is no pair of words of a script."""
    if len(pieces) != 2:
        return None
    (script, first), (other, second) = pieces
    if len(compound) != len(first) + 1 + len(second) or compound[len(first)] not in "-_\u2010":
        return None
    pair = first + second
    script, other = (other, script) if script == "n" else (script, other)
    if script not in _SCRIPTS or other not in (script, "n") or not pair.isalnum():
        return None
    return None if pair.isdecimal() or len(pair) > _LONGEST else (script, pair)


class _Cache(dict[str, tuple[Forms, ...]]):
    """Compounds to words: a dictionary that fills itself, since nothing is quicker to ask."""

    def __init__(self, language: str, *, query: bool, stops: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.language = language
        self.query = query
        self.stops = stops

    def __missing__(self, compound: str) -> tuple[Forms, ...]:
        words = tuple(self._words(compound))
        if len(compound) <= _LONGEST and len(words) <= 4:  # others hardly come twice
            if len(self) >= _CACHED:
                self.clear()
            self[compound] = words
        return words

    def _words(self, compound: str) -> list[Forms]:
        if self.language == "en" and compound.isalnum() and compound.isascii():  # nearly all
            word = compound[:_LONGEST]
            return [] if word in self.stops else [(_stemmers.stem("english", word) or word,)]
        words: list[Forms] = []
        pieces = _pieces(compound)
        for kind, piece in pieces:
            if kind in "ds":
                grams = _grams(piece, self.query)
                words += [gram for gram in grams if gram[0] not in self.stops]
            elif kind in "eft":
                words.append(_emoji(piece))
            elif "_" in piece:  # 10,000
                groups = _bare(piece, "n").split("_")
                whole = "".join(groups)
                words.append((whole,) if self.query else tuple(dict.fromkeys((whole, *groups))))
            elif piece[-1] in "+#":  # C++
                words.append((piece,))
            else:
                readings = _readings(piece[:_LONGEST])
                if readings[0] not in self.stops:
                    words.append(_forms(readings, kind, self.language))
        if len(words) == 2 and (pair := _pair(compound, pieces)):
            script, joined = pair
            words[0] = tuple(dict.fromkeys(words[0] + _forms([joined], script, self.language)))
        return words


# --- texts ------------------------------------------------------------------------------------


@functools.cache
def _text_cache(language: str) -> _Cache:
    return _Cache(language, query=False)


@functools.cache
def _query_cache(language: str, sure: bool, keep: bool) -> _Cache:
    """For queries of a language: ``sure`` if two words told it, ``keep`` for no stop words."""
    if keep:
        return _Cache(language, query=True)
    stops = stop_words(language)
    if not sure or language in _OTHER_SCRIPTS:
        # One word is no reason to drop a name, Ella or Ben, that is a function word elsewhere.
        stops = stops.difference(LOOKALIKES) | stop_words("en")
    return _Cache(language, query=True, stops=stops.union(*map(stop_words, _OTHER_SCRIPTS)))


@functools.cache
def _votes() -> tuple[dict[str, int], frozenset[str], frozenset[str]]:
    """Whose function word each is, all of them, and those that show a text not to be English.

    Whose: a number with a byte for each language, so that a sum of them counts the votes.
    """
    votes: dict[str, int] = {}
    for place, name in enumerate(LANGUAGES):
        for word in stop_words(name):
            votes[word] = votes.get(word, 0) + (1 << 8 * place)
    telling = frozenset(word for word in votes if len(word) > 1 or not word.isascii())
    return votes, frozenset(votes), telling - stop_words("en") - LOOKALIKES


def _vote(compounds: list[str]) -> tuple[str, bool]:
    """The language of a text by its function words, and whether two of them say so.

    English where none does, or as many English words as of any other language.
    """
    votes, words, foreign = _votes()
    if foreign.isdisjoint(compounds):
        return "en", False
    total = sum(map(votes.__getitem__, words.intersection(compounds)))
    counts = total.to_bytes(len(LANGUAGES), "little")
    most = max(counts)
    return LANGUAGES[counts.index(most)], most > 1


def terms(text: str) -> list[Forms]:
    """The words of a text to be indexed, in order, each as its distinct forms.

    The first form is the word's own; the others are what it is found by beside.

    >>> terms("Caroline's wi-fi, 東京")
    [('carolin',), ('wi', 'wifi'), ('fi',), ('東京', '東'), ('京',)]
    """
    compounds = _compounds(text)
    words = map(_text_cache(_vote(compounds)[0]).__getitem__, compounds)
    return list(itertools.chain.from_iterable(words))


def key(form: str) -> bytes:
    """Eight bytes for a form, the same in every process: what an index knows it by."""
    return hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class _Keys(dict[str, bytes]):
    """Compounds to the keys of their forms, one after the other: it fills itself too."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._words = _Cache(language, query=False)._words

    def __missing__(self, compound: str) -> bytes:
        words = self._words(compound)
        found = b"".join(map(key, itertools.chain.from_iterable(words)))
        if len(compound) <= _LONGEST and len(words) <= 4:
            if len(self) >= _CACHED:
                self.clear()
            self[compound] = found
        return found


@functools.cache
def _key_cache(language: str) -> _Keys:
    return _Keys(language)


def keys(text: str) -> bytes:
    """The keys of all forms of :func:`terms`, one after the other, in one pass.

    >>> keys("red red house") == 2 * key("red") + key("hous")
    True
    """
    compounds = _compounds(text)
    return b"".join(map(_key_cache(_vote(compounds)[0]).__getitem__, compounds))


def query_terms(text: str) -> list[Forms]:
    """The distinct words of a query, in order, without stop words unless it has nothing else.

    Stop words are those of the query's language, which its own function words tell, and
    without them English ones; in other scripts than Latin those of every language.

    >>> query_terms("What is the colour of Caroline's house? The red house?")
    [('colour',), ('carolin',), ('hous',), ('red',)]
    >>> query_terms("To be or not to be")
    [('to',), ('be',), ('or',), ('not',)]
    """
    compounds = _compounds(text)
    language, sure = _vote(compounds)
    words = _distinct(map(_query_cache(language, sure, False).__getitem__, compounds))
    return words or _distinct(map(_query_cache(language, sure, True).__getitem__, compounds))


def _distinct(words: Iterable[tuple[Forms, ...]]) -> list[Forms]:
    distinct: list[Forms] = []
    seen: set[str] = set()
    for forms in itertools.chain.from_iterable(words):
        if seen.isdisjoint(forms):
            distinct.append(forms)
            seen.update(forms)
    return distinct


def signature() -> str:
    """What the forms depend on beside the text: an index made under another is to be rebuilt.

    It changes with this module, with the version of Snowball and with that of Unicode.
    """
    return f"{_VERSION}/snowball {_snowball().version()}/unicode {unicodedata.unidata_version}"
