"""The embedder that comes with the install, and its table."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import text
from retain.errors import InvalidType, StoreCorrupt
from retain.search import static
from retain.search.embedders import (
    Embedder,
    StaticEmbedder,
    default_embedder,
)

TABLE = Path(static.__file__).with_name("static")
PARTS = ("keys", "scales", "rows", "near", "alike")
DOG, BILL = "We adopted a puppy last week", "The invoice for the electricity is due"


def lengths(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.linalg.norm(vectors, axis=-1)


def key(form: str) -> np.uint64:
    return np.uint64(np.frombuffer(text.key(form), np.uint64)[0])


# --- the shipped table ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return default_embedder()


def test_the_default_is_one_embedder_that_everyone_shares(embedder: StaticEmbedder):
    assert default_embedder() is embedder
    assert isinstance(embedder, Embedder)


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Which dog do they have?", DOG, BILL),
        ("How much do we owe for power?", BILL, DOG),
        ("What car does he drive?", "Tom bought a used Toyota truck", "Tom baked bread on Sunday"),
        ("Is she ill?", "Anna is in hospital with a fever", "Anna plays the violin at night"),
        ("places to eat", "an Italian restaurant downtown", "a screwdriver and some nails"),
    ],
)
def test_a_text_is_found_by_what_it_means(
    embedder: StaticEmbedder, question: str, near: str, far: str
):
    asked = embedder.embed_query(question)
    similar, different = embedder.embed([near, far]) @ asked
    assert similar > different


def test_vectors_are_of_unit_length_or_zero(embedder: StaticEmbedder):
    texts = [DOG, "", "!?", "\0", "zqxjkvwpt", "\ud800", "dog", "a" * 100_000, "the"]
    found = embedder.embed(texts)
    assert found.dtype == np.float32
    assert found.shape == (len(texts), embedder.dimensions)
    known = lengths(found) > 0
    assert known.tolist() == [True, False, False, False, False, False, True, False, True]
    assert lengths(found[known]) == pytest.approx(1, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=60), max_size=8))
def test_any_text_is_embedded_alone_as_it_is_among_others(texts: list[str]):
    embedder = default_embedder()
    together = embedder.embed(texts)
    assert np.isfinite(together).all()
    for one, vector in zip(texts, together, strict=True):
        assert embedder.embed_query(one) == pytest.approx(vector, abs=1e-5)


def test_a_vector_is_the_scaled_sum_of_its_words_rows(embedder: StaticEmbedder):
    scales = np.load(TABLE / "scales.npy")
    words = [form for forms in text.terms(DOG) for form in forms]
    total = np.zeros(embedder.dimensions)
    for word in words:
        at = int(np.searchsorted(embedder.keys, key(word)))
        assert embedder.keys[at] == key(word), word
        total += embedder.rows[at].astype(np.float64) * scales[at]
    assert embedder.embed_query(DOG) == pytest.approx(total / lengths(total), abs=1e-5)


def test_a_long_text_is_the_sum_of_its_parts(embedder: StaticEmbedder):
    pages = [f"{DOG}. " * 200, f"{BILL}. " * 500]
    parts = embedder.embed([DOG, BILL])
    # The same words over and over point where one such sentence does.
    assert (embedder.embed(pages) * parts).sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_a_megabyte_is_embedded(embedder: StaticEmbedder):
    long = " ".join(f"{DOG} {number}" for number in range(30_000))[:1_000_000]
    assert lengths(embedder.embed_query(long)) == pytest.approx(1, abs=1e-4)


def test_no_texts_give_no_vectors(embedder: StaticEmbedder):
    assert embedder.embed([]).shape == (0, embedder.dimensions)


@pytest.mark.parametrize("wrong", ["a text", b"bytes", [1], [None], [b"bytes"]])
def test_what_is_no_list_of_texts_is_refused(embedder: StaticEmbedder, wrong: Any):
    with pytest.raises(InvalidType):
        embedder.embed(wrong)


def test_threads_get_the_vectors_that_one_thread_gets():
    fresh = StaticEmbedder()  # so that they load the table at once, too
    texts = [f"{DOG} {number}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fresh.embed(texts), range(16)))
    expected = default_embedder().embed(texts)
    for vectors in found:
        np.testing.assert_array_equal(vectors, expected)


def test_words_have_vectors_of_their_own(embedder: StaticEmbedder):
    words = np.array([key(form) for form in ("dog", "puppi", "invoic", "zqxjkvwpt")])
    known, units = embedder.vectors(words)
    assert known.tolist() == [True, True, True, False]
    assert lengths(units) == pytest.approx([1, 1, 1, 0], abs=1e-5)
    assert units[0] @ units[1] > units[0] @ units[2]
    none, empty = embedder.vectors(words[:0])
    assert none.shape == (0,)
    assert empty.shape == (0, embedder.dimensions)


def test_the_table_is_sorted_mapped_and_not_to_be_written(embedder: StaticEmbedder):
    assert (np.diff(embedder.keys.astype(np.float64)) >= 0).all()
    assert len(np.unique(embedder.keys)) == len(embedder.keys) == len(embedder.rows)
    assert isinstance(embedder.rows, np.memmap)
    for array in (embedder.keys, embedder.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_shipped_table_is_the_one_that_its_name_says(embedder: StaticEmbedder):
    digest = hashlib.blake2b(digest_size=6)
    for part in ("keys", "scales", "rows"):
        digest.update(np.ascontiguousarray(np.load(TABLE / f"{part}.npy")).tobytes())
    about = json.loads((TABLE / "about.json").read_text("utf-8"))
    assert embedder.name == f"{about['name']}:{digest.hexdigest()}"
    assert sum(file.stat().st_size for file in TABLE.iterdir()) < 16_000_000


def test_the_table_says_what_it_was_made_of_under_which_licences():
    about = json.loads((TABLE / "about.json").read_text("utf-8"))
    assert about["teacher"]["licence"] == "Apache-2.0"
    assert all(source["licence"] and source["texts"] for source in about["corpus"])


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(
    "part", ["about.json", "keys.npy", "scales.npy", "rows.npy", "near.npy", "alike.npy"]
)
@pytest.mark.parametrize("damage", [Path.unlink, _cut], ids=["lost", "cut"])
def test_a_damaged_table_says_where_it_is_and_what_to_do(
    tmp_path: Path, part: str, damage: Callable[[Path], None]
):
    folder = shutil.copytree(TABLE, tmp_path / "table")
    damage(folder / part)
    with pytest.raises(StoreCorrupt, match="reinstall") as caught:
        StaticEmbedder(folder).embed(["text"])
    assert str(folder) in str(caught.value)


def test_arrays_that_do_not_fit_each_other_are_refused(tmp_path: Path):
    folder = shutil.copytree(TABLE, tmp_path / "table")
    np.save(folder / "keys.npy", np.load(folder / "keys.npy")[1:])
    with pytest.raises(StoreCorrupt):
        StaticEmbedder(folder).dimensions  # noqa: B018


def test_the_related_words_of_the_table_are_those_that_its_vectors_say(embedder: StaticEmbedder):
    places, alike = embedder.near
    for at in range(0, len(embedder.keys), 4_001):
        own = embedder.rows[at].astype(np.float64)
        rows = embedder.rows.astype(np.float32)
        cosines = rows @ own / np.linalg.norm(rows, axis=1) / np.linalg.norm(own)
        cosines[at] = -2.0
        best = np.sort(cosines)[::-1][: places.shape[1]]
        assert alike[at].astype(np.float64) == pytest.approx(best, abs=2e-3)
        assert cosines[places[at]] == pytest.approx(best, abs=1e-4)
