"""Vectors in whole numbers, and what is like what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from retain.search.vector import Vectors, quantised, similarities

numbers = st.floats(-1, 1, width=32)


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@given(vectors=arrays.arrays(np.float32, (5, 12), elements=numbers))
def test_whole_numbers_are_off_by_half_of_one_at_most(vectors):
    rows, scale = quantised(vectors)
    assert (rows.dtype, scale.dtype) == (np.int8, np.float32)
    assert np.abs(rows.astype(int)).max() <= 127
    off = np.abs(rows * scale[:, None].astype(np.float64) - vectors)
    assert (off <= 0.5001 * scale[:, None] + 1e-37).all()
    blank = ~vectors.any(axis=1)
    assert not rows[blank].any()
    assert not scale[blank].any()


@given(
    query=arrays.arrays(np.float32, (1, 32), elements=numbers),
    vectors=arrays.arrays(np.float32, (9, 32), elements=numbers),
)
def test_similarities_are_products_of_whole_numbers(query, vectors):
    rows, scale = quantised(unit(vectors))
    found = similarities(unit(query)[0], rows, scale)
    (asked,), (worth,) = quantised(unit(query))
    for similarity, row, one in zip(found, rows, scale, strict=True):
        product = sum(int(a) * int(b) for a, b in zip(asked, row, strict=True))
        expected = max(-1.0, min(1.0, product * float(worth) * float(one)))
        assert max(-1.0, min(1.0, float(similarity))) == pytest.approx(expected, abs=1e-6)
    assert found == pytest.approx(unit(vectors) @ unit(query)[0], abs=0.03)


@pytest.mark.parametrize("dimensions", [1, 3, 8, 31, 64, 256, 1024])
def test_the_largest_products_do_not_overflow(dimensions):
    vector = np.full((1, dimensions), 1 / np.sqrt(dimensions), np.float32)
    rows, scale = quantised(np.concatenate([vector, -vector]))
    assert similarities(vector[0], rows, scale) == pytest.approx([1.0, -1.0], abs=1e-5)


def test_nothing_is_like_no_rows_and_a_row_of_zeros_is_like_nothing():
    query = unit(np.ones((1, 8)))[0]
    assert similarities(query, np.zeros((0, 8), np.int8), np.zeros(0, np.float32)).shape == (0,)
    assert similarities(query, *quantised(np.zeros((2, 8), np.float32))).tolist() == [0.0, 0.0]


def test_rows_are_made_one_after_the_other_and_stay_as_room_is_made_for_more():
    random = np.random.default_rng(1)
    vectors = unit(random.normal(size=(300, 16)))
    made = Vectors(16)
    for first in range(0, 300, 7):
        count = min(7, 300 - first)
        made.append(count)
        assert not made.made[first:].any()
        assert not made.rows[first:].any()
        made.put(np.arange(first, first + count), vectors[first : first + count])
    rows, scale = quantised(vectors)
    assert np.array_equal(made.rows, rows)
    assert np.array_equal(made.scale, scale)
    assert made.made.all()
    assert made.nbytes >= 300 * 16


def test_of_a_mask_the_vectors_stay_and_room_can_be_made_for_more():
    vectors = unit(np.random.default_rng(2).normal(size=(6, 4)))
    made = Vectors(4, 6)
    made.put(np.array([0, 2, 3, 5]), vectors[[0, 2, 3, 5]])
    assert made.kept(np.ones(6, bool)) is made
    kept = made.kept(np.array([True, False, True, False, True, True]))
    assert kept.made.tolist() == [True, True, False, True]
    assert np.array_equal(kept.rows, made.rows[[0, 2, 4, 5]])
    assert (kept.size, made.size) == (4, 6)
    longer = np.array([True, False, True, False, True, True, True, False])  # of more than these
    assert np.array_equal(made.kept(longer).rows, kept.rows)
    kept.append(2)
    kept.put(np.array([5]), vectors[:1])
    assert kept.made.tolist() == [True, True, False, True, False, True]
    assert np.array_equal(kept.rows[5], made.rows[0])


def test_vectors_of_a_file_are_all_there_and_take_no_memory_of_the_process():
    rows, scale = quantised(unit(np.random.default_rng(3).normal(size=(5, 4))))
    fixed = Vectors.of(rows, scale)
    assert (fixed.fixed, fixed.size, fixed.made.all()) == (True, 5, True)
    own = Vectors(4, 5)
    own.put(np.arange(5), unit(np.ones((5, 4))))
    assert fixed.nbytes < own.nbytes


@pytest.mark.parametrize("kept", ["all", "none", "some"])
def test_gathered_vectors_are_those_kept_of_each_part(kept: str):
    random = np.random.default_rng(4)
    vectors = random.normal(size=(12, 4)).astype(np.float32)
    whole = Vectors(4, 12)
    whole.put(np.arange(0, 12, 2), vectors[::2])
    mask = {"all": np.ones(12, bool), "none": np.zeros(12, bool), "some": np.arange(12) % 3 > 0}
    parts = [
        (whole.rows[first:end], whole.scale[first:end], whole.made[first:end])
        for first, end in ((0, 5), (5, 6), (6, 12))
    ]
    found, expected = Vectors.gathered(4, parts, mask[kept]), whole.kept(mask[kept])
    for name in ("rows", "scale", "made"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.size == np.count_nonzero(mask[kept])
