from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.directory.memory_md import Changed, Document, Edits, Fact, Recorded, align
from retain.errors import InvalidValue

relaxed = settings(max_examples=200)

texts = st.sampled_from(["a", "b", "c", "a b", "a b c", "東京に住む", "東京で働く", "x y z"])
some_pairs = st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), texts | st.text(min_size=1)))


def record(pairs: list[tuple[str, str]]) -> list[Recorded]:
    return [Recorded(f"id{n}", category, text) for n, (category, text) in enumerate(pairs)]


def facts(pairs: list[tuple[str, str]]) -> list[Fact]:
    """Facts at positions that are not their indices, as in a file."""
    return [Fact(category, text, 10 + 2 * n) for n, (category, text) in enumerate(pairs)]


def in_one(*texts: str) -> list[tuple[str, str]]:
    return [("c", text) for text in texts]


def told(old: list[tuple[str, str]], new: list[tuple[str, str]]) -> dict[str, int | str | None]:
    """Old line's number → the new line's, "…*" if it was changed, None if it is gone."""
    edits = align(record(old), facts(new))
    found: dict[str, int | str | None] = {id[2:]: None for id in edits.gone}
    found |= {id[2:]: (at - 10) // 2 for id, at in edits.kept.items()}
    found |= {change.id[2:]: f"{(change.position - 10) // 2}*" for change in edits.changed}
    return dict(sorted(found.items()))


# -- properties ------------------------------------------------------------------------------


def test_an_empty_file_and_no_record_have_no_edits():
    assert align([], []) == Edits({}, [], [], [])


@relaxed
@given(some_pairs)
def test_a_file_as_it_was_recorded_is_all_kept(pairs):
    edits = align(record(pairs), facts(pairs))
    kept = {f"id{n}": 10 + 2 * n for n in range(len(pairs))}
    assert edits == Edits(kept, [], [], [])


def check_partition(recorded: list[Recorded], now: list[Fact]) -> Edits:
    edits = align(recorded, now)
    ids = [*edits.kept, *(change.id for change in edits.changed), *edits.gone]
    at = [*edits.kept.values(), *(change.position for change in edits.changed), *edits.added]
    assert sorted(ids) == sorted(line.id for line in recorded)
    assert sorted(at) == sorted(fact.position for fact in now)
    old = {line.id: (line.category, line.text) for line in recorded}
    new = {fact.position: (fact.category, fact.text) for fact in now}
    assert all(old[id] == new[position] for id, position in edits.kept.items())
    for change in edits.changed:
        assert new[change.position] == (change.category, change.text) != old[change.id]
    assert [change.position for change in edits.changed] == sorted(
        change.position for change in edits.changed
    )
    return edits


@relaxed
@given(some_pairs, some_pairs)
def test_every_id_and_every_line_has_exactly_one_fate(old, new):
    check_partition(record(old), facts(new))


@relaxed
@given(some_pairs, st.data())
def test_lines_put_in_another_order_or_under_another_heading_keep_their_ids(pairs, data):
    order = data.draw(st.permutations(range(len(pairs))))
    headings = data.draw(st.lists(st.sampled_from("pqrs"), min_size=len(order)))
    edits = check_partition(
        record(pairs), facts([(headings[n], pairs[old][1]) for n, old in enumerate(order)])
    )
    assert not edits.gone
    assert not edits.added


@relaxed
@given(some_pairs.filter(bool), st.data())
def test_one_changed_line_keeps_its_id_and_so_does_every_other(pairs, data):
    number = data.draw(st.integers(0, len(pairs) - 1))
    category, text = pairs[number]
    changed = data.draw((texts | st.text(min_size=1)).filter(lambda new: new != text))
    new = [*pairs[:number], (category, changed), *pairs[number + 1 :]]
    edits = align(record(pairs), facts(new))
    assert edits.changed == [Changed(f"id{number}", 10 + 2 * number, category, changed)]
    assert len(edits.kept) == len(pairs) - 1
    assert all(at == 10 + 2 * int(id[2:]) for id, at in edits.kept.items())


@relaxed
@given(some_pairs.filter(bool), st.data())
def test_one_deleted_line_is_gone_and_nothing_else_happens(pairs, data):
    number = data.draw(st.integers(0, len(pairs) - 1))
    edits = align(record(pairs), facts(pairs[:number] + pairs[number + 1 :]))
    assert [pairs[int(id[2:])] for id in edits.gone] == [pairs[number]]
    assert len(edits.kept) == len(pairs) - 1
    assert not edits.changed
    assert not edits.added


@relaxed
@given(some_pairs, st.data())
def test_one_new_line_is_added_and_nothing_else_happens(pairs, data):
    number = data.draw(st.integers(0, len(pairs)))
    line = data.draw(st.tuples(st.sampled_from("pqrs"), texts))
    new = facts([*pairs[:number], line, *pairs[number:]])
    edits = align(record(pairs), new)
    assert [fact[:2] for fact in new if fact.position in edits.added] == [line]
    assert len(edits.kept) == len(pairs)
    assert not edits.changed
    assert not edits.gone


file_edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "change", "move", "heading", "prose", "reverse"]),
        st.integers(0, 60),
        st.integers(0, 60),
        texts,
    ),
    max_size=8,
)


def edited(text: str, changes: list[tuple[str, int, int, str]]) -> str:
    """``text`` after a person's work on its lines."""
    lines = text.split("\n")
    for kind, at, to, new in changes:
        at %= len(lines) + 1
        if kind == "insert":
            lines.insert(at, f"- {new}")
        elif kind == "prose":
            lines.insert(at, f"({new})")
        elif kind == "heading":
            lines.insert(at, f"## {new}")
        elif kind == "reverse":
            lines[at : at + 5] = lines[at : at + 5][::-1]
        elif at < len(lines):
            line = lines.pop(at)
            if kind == "change":
                lines.insert(at, f"{line} {new}")
            elif kind == "move":
                lines.insert(to % (len(lines) + 1), line)
    return "\n".join(lines)


def check_file(pairs: list[tuple[str, str]], changes: list[tuple[str, int, int, str]]) -> None:
    before = Document.build(pairs)
    recorded = record([fact[:2] for fact in before.facts()])
    after = Document.parse(edited(before.render(), changes))
    edits = check_partition(recorded, after.facts())
    if not {"insert", "heading", "change"} & {change[0] for change in changes}:
        assert not edits.added
    if not {"delete", "change"} & {change[0] for change in changes}:
        assert not edits.gone


some_files = st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), texts), max_size=12)


@relaxed
@given(some_files, file_edits)
def test_a_file_that_a_person_worked_on_is_told_apart_line_by_line(pairs, changes):
    check_file(pairs, changes)


@pytest.mark.slow
@settings(max_examples=400)
@given(some_files, file_edits)
def test_a_file_that_a_person_worked_on_is_told_apart_line_by_line_long(pairs, changes):
    check_file(pairs, changes)


# -- single cases ----------------------------------------------------------------------------


def test_equal_lines_are_told_apart_by_their_neighbours():
    old = in_one("p", "ok", "q", "ok", "r")
    assert told(old, in_one("p", "no", "q", "ok", "r")) == {
        "0": 0,
        "1": "1*",
        "2": 2,
        "3": 3,
        "4": 4,
    }
    assert told(old, in_one("q", "ok", "r", "p", "ok")) == {"0": 3, "1": 4, "2": 0, "3": 1, "4": 2}


def test_an_equal_line_is_matched_by_the_line_above_it_alone():
    old, new = in_one("x", "ok", "a", "ok"), in_one("q", "a", "ok", "w")
    assert told(old, new) == {"0": None, "1": None, "2": 1, "3": 2}


def test_an_equal_line_of_the_same_category_comes_before_one_that_was_moved():
    old = [("q", "ok"), *(("p", text) for text in ("u", "a", "ok", "b", "ok"))]
    new = [("p", text) for text in ("u", "c", "ok", "d")]
    edits = align(record(old), facts(new))
    assert edits.kept == {"id1": 10, "id3": 14}
    assert "id0" in edits.gone


def test_lines_that_came_from_another_category_do_not_hide_a_changed_one():
    old = [("p", "a"), ("p", "b"), ("p", "c"), ("q", "m"), ("q", "n")]
    new = [("p", text) for text in ("a", "m", "B!", "n", "c")]
    assert told(old, new) == {"0": 0, "1": "2*", "2": 4, "3": "1*", "4": "3*"}


def test_lines_that_went_to_another_category_do_not_hide_a_changed_one():
    old = [*(("p", text) for text in ("a", "m", "b", "n", "c")), ("q", "z")]
    new = [("p", "a"), ("p", "B!"), ("p", "c"), ("q", "z"), ("q", "m"), ("q", "n")]
    assert told(old, new) == {"0": 0, "1": "4*", "2": "1*", "3": "5*", "4": 2, "5": 3}


def test_a_line_under_another_heading_keeps_its_id():
    edits = align(record([("p", "a"), ("q", "b")]), facts([("q", "b"), ("q", "a")]))
    assert edits == Edits({"id1": 10}, [Changed("id0", 12, "q", "a")], [], [])


def test_a_renamed_heading_takes_its_lines_along_and_the_changed_one_too():
    old = [("p", "a"), ("p", "b"), ("p", "c"), ("q", "d")]
    new = [("r", "a"), ("r", "B!"), ("r", "c"), ("q", "d")]
    assert told(old, new) == {"0": "0*", "1": "1*", "2": "2*", "3": 3}


def test_a_line_that_replaces_another_categorys_is_new():
    edits = align(record([("p", "a"), ("q", "b")]), facts([("p", "a"), ("r", "b!")]))
    assert edits == Edits({"id0": 10}, [], [12], ["id1"])


def test_as_many_lines_as_before_are_changed_in_order():
    assert told(in_one("p", "a", "b", "q"), in_one("p", "x", "y", "q")) == {
        "0": 0,
        "1": "1*",
        "2": "2*",
        "3": 3,
    }


def test_of_more_lines_than_before_the_likest_is_the_changed_one():
    old = in_one("p", "Works at Acme Corp", "q")
    new = in_one("p", "Has a dog", "Works at Globex Corp", "Likes tea", "q")
    assert told(old, new) == {"0": 0, "1": "2*", "2": 4}


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [
        ("東京都に住んでいる", "大阪府に住んでいる", "猫が好き"),
        ("ชอบดื่มชาเขียว", "ชอบดื่มชาดำ", "มีแมวสองตัว"),
        ("Живёт в Москве", "Живёт в Казани", "Любит чай"),
        ("caf\u00e9 at noon", "CAFE\u0301 at nine", "two dogs"),
        ("Straße 5", "STRASSE 6", "two dogs"),
        ("يعيش في القاهرة", "يعيش في دبي", "يحب الشاي"),
    ],
)
def test_likeness_is_told_in_any_language(old, new, other):
    assert told(in_one("p", old), in_one("p", other, new)) == {"0": 0, "1": "2*"}


def test_lines_that_share_nothing_with_the_new_ones_are_gone():
    edits = align(record(in_one("p", "a b c", "q")), facts(in_one("p", "d e", "f g", "q")))
    assert edits == Edits({"id0": 10, "id2": 16}, [], [12, 14], ["id1"])


def test_a_changed_line_is_found_when_its_section_was_put_in_another_order():
    old = in_one("p", "a", "q", "r", "s")
    assert told(old, in_one("r", "s", "q", "p", "A")) == {"0": 3, "1": "4*", "2": 2, "3": 0, "4": 1}
    assert told(old, in_one("s", "A", "q", "r", "p")) == {"0": 4, "1": "1*", "2": 2, "3": 3, "4": 0}


def test_an_id_that_is_recorded_twice_is_refused():
    with pytest.raises(InvalidValue, match="'a' is recorded 2 times"):
        align([Recorded("a", "c", "x"), Recorded("a", "c", "y")], [])


# -- size ------------------------------------------------------------------------------------

MANY = 5_000


def many(kind: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    numbered = in_one(*(f"fact number {n}" for n in range(MANY)))
    if kind == "reversed":
        return numbered, numbered[::-1]
    if kind == "moved":
        return numbered, [("d", text) for _, text in numbered]
    if kind == "equal":
        return in_one(*["same"] * MANY), in_one(*["same"] * (MANY // 2))
    if kind == "changed":
        return numbered, [*in_one("more"), *((name, f"{text}!") for name, text in numbered)]
    shared = " ".join(f"w{n}" for n in range(60))
    return (
        in_one(*(f"{shared} a{n}" for n in range(MANY))),
        in_one(*(f"{shared} b{n}" for n in range(MANY + 1))),
    )


@pytest.mark.parametrize("kind", ["reversed", "moved", "equal", "changed", "all alike"])
def test_thousands_of_lines_are_aligned_in_a_moment(kind):
    old, new = many(kind)
    started = time.perf_counter()
    edits = check_partition(record(old), facts(new))
    assert time.perf_counter() - started < 10  # quadratic: minutes
    assert len(edits.kept) == {"reversed": MANY, "equal": MANY // 2}.get(kind, 0)
    assert len(edits.changed) == (MANY if kind in ("moved", "changed") else 0)
