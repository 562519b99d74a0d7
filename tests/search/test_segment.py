"""Postings against a dictionary of counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.search import segment as module
from retain.search.segment import Segment, Tail, merged, segment_of

Reference = dict[int, Counter[int]]  # a term's rows, and how often it stands in each

TERMS = [0, 1, 2**63, 2**64 - 1, *range(500, 506)]
texts = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), max_size=12)


def encoded(terms: list[int]) -> bytes:
    return np.array(terms, np.uint64).tobytes()


def reference(first: int, many: list[list[int]]) -> Reference:
    found: Reference = {}
    for row, terms in enumerate(many, first):
        for term in terms:
            found.setdefault(term, Counter())[row] += 1
    return found


def segment(first: int, many: list[list[int]]) -> Segment:
    terms = [term for text in many for term in text]
    rows = [row for row, text in enumerate(many) for _ in text]
    return segment_of(first, len(many), np.array(terms, np.uint64), np.array(rows, np.int32))


def content(postings: Segment | Tail) -> Reference:
    """All that it holds of ``TERMS``, each checked for its form."""
    found: Reference = {}
    for term in TERMS:
        posted = postings.posted(term)
        if posted is not None:
            assert (posted.rows.dtype, posted.counts.dtype) == (np.int32, np.uint8)
            assert len(posted.rows) > 0
            assert (np.diff(posted.rows) > 0).all()
            rows, counts = posted.rows.tolist(), posted.counts.tolist()
            found[term] = Counter(dict(zip(rows, counts, strict=True)))
    return found


@given(many=texts, first=st.sampled_from([0, 7]), shuffle=st.randoms(use_true_random=False))
def test_a_segment_holds_every_occurrence_in_whatever_order_they_came(many, first, shuffle):
    pairs = [(term, row) for row, text in enumerate(many) for term in text]
    shuffle.shuffle(pairs)
    terms, rows = (np.array([pair[at] for pair in pairs], np.uint64) for at in (0, 1))
    made = segment_of(first, len(many), terms, rows.astype(np.int32))
    assert content(made) == reference(first, many)
    assert (made.first, made.size, made.end) == (first, len(many), first + len(many))
    assert made.posted(77) is None
    assert made.nbytes >= 8 * len(made.terms) + 5 * len(made.rows)


@pytest.mark.parametrize("few", [0, 2, 512])
@given(batches=st.lists(texts, max_size=4))
def test_a_tail_makes_the_same_segment_whether_texts_come_one_by_one_or_many_at_once(few, batches):
    first, row = 3, 3
    tail = Tail()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", few)
        for batch in batches:
            tail.add(row, list(map(encoded, batch)))
            row += len(batch)
    many = [text for batch in batches for text in batch]
    made = segment_of(first, len(many), *tail.postings(first))
    assert content(made) == reference(first, many)
    if few == 512:
        assert content(tail) == content(made)
        assert (tail.nbytes > 0) == any(many)
        tail.move(-2)
        assert content(tail) == reference(first - 2, many)
        assert content(segment_of(1, len(many), *tail.postings(1))) == reference(1, many)


@given(parts=st.lists(texts, min_size=1, max_size=4), first=st.sampled_from([0, 9]))
def test_merged_segments_hold_what_each_of_them_did(parts, first):
    segments, row = [], first
    for part in parts:
        segments.append(segment(row, part))
        row += len(part)
    many = [text for part in parts for text in part]
    one = merged(segments)
    assert content(one) == reference(first, many)
    assert (one.first, one.size) == (first, len(many))


@given(parts=st.lists(texts, min_size=1, max_size=4), data=st.data())
def test_rows_that_are_not_live_go_in_a_merge_and_the_others_are_numbered_anew(parts, data):
    segments, row = [], 0
    for part in parts:
        segments.append(segment(row, part))
        row += len(part)
    live = data.draw(st.lists(st.booleans(), min_size=row, max_size=row))
    many = [text for part in parts for text in part]
    kept = [text for text, lives in zip(many, live, strict=True) if lives]
    one = merged(segments, np.array(live, bool))
    assert content(one) == reference(0, kept)
    assert (one.first, one.size) == (0, len(kept))
    assert set(one.terms.tolist()) == {term for text in kept for term in text}


@given(parts=st.lists(texts, min_size=3, max_size=3))
def test_merging_twice_is_merging_once(parts):
    sizes = np.cumsum([0, *map(len, parts)]).tolist()
    one, two, three = (segment(at, part) for at, part in zip(sizes, parts, strict=False))
    once, twice = merged([one, two, three]), merged([merged([one, two]), three])
    for name in ("terms", "starts", "rows", "counts"):
        assert np.array_equal(getattr(once, name), getattr(twice, name))


def test_a_term_counts_at_most_255_times():
    many = [[1] * 300, [1] * 255, [1] * 2]
    expected = {1: Counter({0: 255, 1: 255, 2: 2})}
    tail = Tail()
    tail.add(0, list(map(encoded, many)))
    assert content(tail) == content(segment(0, many)) == expected
    assert content(merged([segment(0, many)], np.ones(3, bool))) == expected
