"""Texts to remember and queries for them: made up, and the same in every run."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

__all__ = ["Corpus"]

_STARTS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr pl sh st th tr".split()
_VOWELS = "a e i o u ai ea oo".split()
_ENDS = ["", "", "n", "r", "s", "ing", "ed", "ly"]  # so that a stemmer has something to do


class Corpus:
    """Texts of 12 to 28 words from a vocabulary whose frequencies follow Zipf's law.

    ``seed``: equal seeds give equal texts. ``words``: the size of the vocabulary. ``known``: let
    words of the language that Python's reference manual is written in come first, about four of
    five in a text, for an embedder that knows words; made-up ones follow.

    The word of rank r comes with a probability proportional to 1/r: about as often as in
    English (Zipf, 1949), where the first ranks are function words. Here none is one, so that
    a query's most frequent word is held by nearly every text: the worst case for an index.
    """

    def __init__(self, seed: int = 1949, words: int = 20_000, known: bool = False) -> None:
        self._random = random.Random(seed)
        self._words = self._vocabulary(words, _manual() if known else [])
        self._weights = list(accumulate(1 / rank for rank in range(1, words + 1)))

    def _vocabulary(self, size: int, first: Sequence[str]) -> list[str]:
        choice, found = self._random.choice, dict.fromkeys(first)
        while len(found) < size:
            # two syllables and more: one alone may be a function word of some language
            syllables = [choice(_STARTS) + choice(_VOWELS) for _ in range(choice((2, 2, 2, 3, 4)))]
            found["".join(syllables) + choice(_ENDS)] = None
        return list(found)

    def text(self) -> str:
        """The next text."""
        length = self._random.randint(12, 28)
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=length))

    def texts(self, count: int) -> list[str]:
        """The next ``count`` texts."""
        return [self.text() for _ in range(count)]

    def batches(self, count: int, size: int = 10_000) -> Iterator[list[str]]:
        """The next ``count`` texts, at most ``size`` at once."""
        for start in range(0, count, size):
            yield self.texts(min(size, count - start))

    def query(self, texts: Sequence[str]) -> str:
        """Six words of one of ``texts``, as somebody would ask for it."""
        return " ".join(self._random.sample(self._random.choice(texts).split(), 6))


def _manual() -> list[str]:
    """The words of the reference manual that every Python carries, the commonest first."""
    from pydoc_data.topics import topics

    from retain.stopwords import stop_words

    words = re.findall(r"\b[a-z]{3,}\b", " ".join(topics.values()).lower())
    return [word for word, _ in Counter(words).most_common() if word not in stop_words("en")]
