"""What every back end of retain does, on a real server each."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carriers import KINDS, Make, maker
from retain import InvalidType, InvalidValue, KnowledgeBackend, KnowledgeMemory
from retain.backends import ComparingBackend

HOSTILE = [
    "a",
    "x" * 512,
    "東" * 512,
    "../../etc/passwd",
    "a/b\\c",
    ".",
    "..",
    "~",
    " ",
    "%_*?[a]{b}:'\"`$;-- #&+=",
    "user Ann",
    "user ann",
    "e\u0301",
    "é",
    "\u202eright to left",
    "👩‍👩‍👧",
    "null",
    "line\nbreak\ttab\x7f",
    "\ufffe\uffff",
]
BLOBS = [
    b"",
    b"{}",
    "東京 👩‍👩‍👧 \ufffe".encode(),
    b"b64:",
    b"b64:aGk=",
    b"a\0b",
    b"\xff\xfe\x00" * 99,
    b"'; drop table x; -- \\ \" %s {} \r\n",
    bytes(range(256)) * 999,
]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return maker(request.param, tmp_path)


def test_it_can_be_compared_with(make: Make):
    backend = make("a")
    assert isinstance(backend, KnowledgeBackend) and isinstance(backend, ComparingBackend)
    assert backend.key == "a"


def test_nothing_is_kept_at_first(make: Make):
    assert make("a").load_bytes() is None


def test_what_is_saved_is_loaded_byte_for_byte(make: Make):
    for blob in BLOBS:
        make("a").save_bytes(blob)
        assert make("a").load_bytes() == blob
        assert make("b").replace_bytes(make("b").load_bytes(), blob)
        assert make("b").load_bytes() == blob


def test_every_key_has_a_blob_of_its_own(make: Make):
    for key in HOSTILE:
        assert make(key).load_bytes() is None
        make(key).save_bytes(key.encode())
    for key in HOSTILE:
        assert make(key).load_bytes() == key.encode()
        assert make(key).replace_bytes(key.encode(), b"changed " + key.encode())
    for key in HOSTILE:
        assert make(key).load_bytes() == b"changed " + key.encode()


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("", InvalidValue),
        ("x" * 513, InvalidValue),
        ("a\0b", InvalidValue),
        ("\ud800", InvalidValue),
        (5, InvalidType),
        (b"a", InvalidType),
    ],
    ids=["empty", "long", "nul", "surrogate", "number", "bytes"],
)
def test_what_is_no_key_is_refused(make: Make, key: Any, error: type[Exception]):
    with pytest.raises(error, match="key"):
        make(key)


def test_only_what_is_known_is_replaced(make: Make):
    one, other = make("a"), make("a")
    assert one.replace_bytes(None, b"1")
    assert not other.replace_bytes(None, b"2")
    assert not other.replace_bytes(b"0", b"2")
    assert one.load_bytes() == b"1"
    assert other.replace_bytes(b"1", b"2")
    assert not one.replace_bytes(b"1", b"3")
    assert one.load_bytes() == b"2"
    one.save_bytes(b"3")
    assert not other.replace_bytes(b"2", b"4")
    assert other.load_bytes() == b"3"
    assert not make("b").replace_bytes(b"3", b"4")
    assert make("b").load_bytes() is None


def test_a_replacement_that_is_sent_again_after_its_answer_was_lost_is_no_conflict(make: Make):
    assert make("a").replace_bytes(None, b"1")
    assert make("a").replace_bytes(None, b"1")
    assert make("a").replace_bytes(b"1", b"2")
    assert make("a").replace_bytes(b"1", b"2")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["load", "save", "replace"]),
        st.integers(0, 1),
        st.sampled_from([None, b"", b"1", b"2", b"b64:", b"\xff"]),
        st.sampled_from([b"", b"1", b"2", b"b64:", b"\xff"]),
    ),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_two_objects_do_what_one_variable_would(make: Make, steps: list[Any]):
    key = f"steps {id(steps)} {len(steps)}"
    both = make(key), make(key)
    both[0].save_bytes(b"first")
    kept = b"first"
    for action, which, old, new in steps:
        if action == "save":
            both[which].save_bytes(new)
            kept = new
        elif action == "replace":
            fits = old == kept or new == kept
            assert both[which].replace_bytes(old, new) is fits
            kept = new if fits else kept
        assert both[1 - which].load_bytes() == kept


def test_of_many_that_replace_at_once_none_overwrites_another(make: Make):
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            backend = make("list")
            for n in range(5):
                kept = backend.load_bytes()
                while not backend.replace_bytes(kept, (kept or b"") + f"{name}{n} ".encode()):
                    kept = backend.load_bytes()
        except BaseException as error:  # noqa: BLE001 - shown by the assert below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    names = (make("list").load_bytes() or b"").decode().split()
    assert sorted(names) == sorted(f"{name}{n}" for name in "abcd" for n in range(5))


def test_the_next_host_goes_on_where_the_last_one_was(make: Make, tmp_path: Path):
    with KnowledgeMemory(tmp_path / "one", backend=make("user/1")) as memory:
        fact = memory.remember("Likes 東京", "taste", persistent=True)
        memory.remember("Saw a zebra")
    with KnowledgeMemory(tmp_path / "other", backend=make("user/1")) as memory:
        assert memory.get_persistent_facts() == {"taste": ["Likes 東京"]}
        assert [found.memory.content for found in memory.recall("zebra")] == ["Saw a zebra"]
        memory.forget(fact.id)
    assert "東京".encode() not in (make("user/1").load_bytes() or b"")
    with KnowledgeMemory(tmp_path / "nobody", backend=make("user/2")) as memory:
        assert len(memory) == 0
