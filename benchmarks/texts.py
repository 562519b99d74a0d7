"""Texts to remember and queries for them: made up, and the same in every run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

__all__ = ["Corpus"]

_STARTS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr pl sh st th tr".split()
_VOWELS = "a e i o u ai ea oo".split()
_ENDS = ["", "", "n", "r", "s", "ing", "ed", "ly"]  # so that a stemmer has something to do


class Corpus:
    """Texts of 12 to 28 words from a vocabulary whose frequencies follow Zipf's law.

    ``seed``: equal seeds give equal texts. ``words``: the size of the vocabulary.

    The word of rank r comes with a probability proportional to 1/r: about as often as in
    English (Zipf, 1949), where the first ranks are function words. Here none is one, so that
    a query's most frequent word is held by nearly every text: the worst case for an index.
    """

    def __init__(self, seed: int = 1949, words: int = 20_000) -> None:
        self._random = random.Random(seed)
        self._words = self._vocabulary(words)
        self._weights = list(accumulate(1 / rank for rank in range(1, words + 1)))

    def _vocabulary(self, size: int) -> list[str]:
        choice, found = self._random.choice, dict[str, None]()
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

    def query(self, texts: Sequence[str]) -> str:
        """Six words of one of ``texts``, as somebody would ask for it."""
        return " ".join(self._random.sample(self._random.choice(texts).split(), 6))
