"""SIGKILL at any moment: what a call has answered is there at the next open, and whole."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from faults.places import (
    KINDS,
    STORES,
    DirectoryPlace,
    Place,
    assert_in_step,
    leftovers,
    open_place,
)
from faults.workers import Child, Work, at_point, die
from retain import Memory, Scope
from retain.stores import file

SHORT_AND_LONG = [5, pytest.param(50, marks=pytest.mark.slow)]
SOME_AND_MANY = pytest.mark.parametrize("step", [29, pytest.param(5, marks=pytest.mark.slow)])


def text(name: object, length: int = 40) -> str:
    """A text that ends in its own digest, so that a part of it is known as such."""
    words = f"{name}: 東京タワー, «naïve» 🦊 " + "lorem ipsum " * (length // 12)
    return f"{words}\n\t{hashlib.sha256(words.encode()).hexdigest()[:12]}"


def is_whole(content: str) -> bool:
    words, _, digest = content.partition("\n\t")
    return hashlib.sha256(words.encode()).hexdigest()[:12] == digest


def texts(name: str) -> Iterator[str]:
    """Texts of all sizes, some of more than a page."""
    for number in count():
        yield text(f"{name}.{number}", 9_000 if number % 5 == 4 else 40)


def assert_fit(kind: str, folder: Path, place: Place) -> None:
    """What must hold at the first open after a kill."""
    assert leftovers(folder) == []
    assert all(map(is_whole, place.contents().values()))
    if isinstance(place, DirectoryPlace):
        assert_in_step(place)


# -- at random moments ---------------------------------------------------------------------


def remember_on(kind: str, folder: Path, name: str, tell: Callable[[Any], None]) -> None:
    with open_place(kind, folder) as place:
        for number, content in enumerate(texts(name)):
            tell([place.remember(content, persistent=number % 3 == 1), content])


@pytest.mark.parametrize("kills", SHORT_AND_LONG)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_answered_is_there_after_a_kill(kind: str, kills: int, tmp_path: Path) -> None:
    random = Random(f"{kind} {kills}")
    answered: dict[str, str] = {}
    for number in range(kills):
        child = Child(partial(remember_on, kind, tmp_path, str(number)))
        assert child.listen(60, enough=1), "the child ended by itself"
        child.listen(random.uniform(0, 0.06))
        answered |= dict(child.kill())
        with open_place(kind, tmp_path) as place:
            assert answered.items() <= place.contents().items()
            assert_fit(kind, tmp_path, place)
    assert len(answered) >= kills


@pytest.mark.parametrize("kills", [3, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_while_a_place_is_opened_for_the_first_time_harms_nothing(
    kind: str, kills: int, memory_folder: Path
) -> None:
    random = Random(f"{kind} {kills}")
    for number in range(kills):
        folder = memory_folder / str(number)
        child = Child(partial(remember_on, kind, folder, str(number)))
        child.listen(random.uniform(0, 0.02))
        answered = dict(child.kill())
        with open_place(kind, folder) as place:
            assert answered.items() <= place.contents().items()
            assert_fit(kind, folder, place)


# -- at every point that touches the disk --------------------------------------------------

Job = Callable[[Place], Any]


def killed_at(number: int, job: Callable[[], Any]) -> Work:
    """Work that dies before its ``number``-th call to the disk, or tells how many there were."""

    def work(tell: Callable[[Any], None]) -> None:
        with at_point(number, die) as passed:
            job()
        tell(len(passed))

    return work


def every_point(
    job: Callable[[Path], Any], template: Path, folder: Path, step: int
) -> Iterator[Path]:
    """A copy of ``template`` for every ``step``-th point at which ``job`` can be killed on it."""
    for number in count(0, step):
        place = folder / f"at-{number}"
        shutil.copytree(template, place)
        child = Child(killed_at(number, partial(job, place)))
        if child.wait() == 0:
            assert number > 0, "there was no point to be killed at"
            return
        assert not child.said
        yield place
        shutil.rmtree(place)


def done_on(kind: str, job: Job, folder: Path) -> None:
    with open_place(kind, folder) as place:
        job(place)


OLD, NEW, FACT = text("old"), text("new", 9_000), text("fact\nof two lines")
LATER = text("later\nand  longer", 9_000)


def fill(kind: str, folder: Path) -> None:
    with open_place(kind, folder) as place:
        for number in range(3):
            place.remember(text(f"kept {number}"), persistent=number == 1)
        place.remember(OLD)
        place.remember(FACT, persistent=True)
        place.forget(place.remember(text("gone")))


def id_of(place: Place, content: str) -> str:
    return next(id for id, found in place.contents().items() if found == content)


KEPT = [text(f"kept {number}") for number in range(3)]
JOBS: dict[str, tuple[Job, list[str]]] = {
    "open": (lambda place: None, [*KEPT, OLD, FACT]),
    "remember": (lambda place: place.remember(NEW), [*KEPT, OLD, FACT, NEW]),
    "remember a fact": (lambda place: place.remember(NEW, True), [*KEPT, OLD, FACT, NEW]),
    "remember many": (
        lambda place: place.remember_many([NEW, LATER]),
        [*KEPT, OLD, FACT, NEW, LATER],
    ),
    "update": (lambda place: place.update(id_of(place, OLD), NEW), [*KEPT, FACT, NEW]),
    "update a fact": (lambda place: place.update(id_of(place, FACT), LATER), [*KEPT, OLD, LATER]),
    "forget": (lambda place: place.forget(id_of(place, OLD)), [*KEPT, FACT]),
    "forget a fact": (lambda place: place.forget(id_of(place, FACT)), [*KEPT, OLD]),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
@SOME_AND_MANY
def test_a_call_that_is_killed_at_any_point_is_done_or_not_done(
    kind: str, job: str, memory_folder: Path, step: int
) -> None:
    template = memory_folder / "template"
    template.mkdir()
    fill(kind, template)
    before, (work, after) = [*KEPT, OLD, FACT], JOBS[job]
    for folder in every_point(partial(done_on, kind, work), template, memory_folder, step):
        with open_place(kind, folder) as place:
            assert sorted(place.contents().values()) in (sorted(before), sorted(after))
            assert_fit(kind, folder, place)
            place.remember(text("and on"), persistent=True)
        with open_place(kind, folder) as place:
            assert text("and on") in place.contents().values()
            assert_fit(kind, folder, place)


@pytest.mark.parametrize("kind", ["json", "file", "sqlite", "directory"])
@SOME_AND_MANY
def test_a_first_open_that_is_killed_at_any_point_is_made_up_for(
    kind: str, memory_folder: Path, step: int
) -> None:
    template = memory_folder / "template"
    template.mkdir()

    def first(place: Place) -> None:
        place.remember(NEW, persistent=True)

    for folder in every_point(partial(done_on, kind, first), template, memory_folder, step):
        with open_place(kind, folder) as place:
            assert list(place.contents().values()) in ([], [NEW])
            place.remember(OLD)
            assert_fit(kind, folder, place)


@pytest.mark.parametrize("kind", STORES)
@SOME_AND_MANY
def test_a_scope_is_forgotten_or_not_forgotten(kind: str, memory_folder: Path, step: int) -> None:
    template = memory_folder / "template"
    template.mkdir()
    fill(kind, template)
    ann = Scope(user="ann")
    with open_place(kind, template) as place:
        place.face.store.scoped(ann).save_many([Memory(content=NEW), Memory(content=LATER)])
    job = partial(done_on, kind, lambda place: place.face.store.forget_scope(ann))
    for folder in every_point(job, template, memory_folder, step):
        with open_place(kind, folder) as place:
            found = {memory.content for memory in place.face.store.scoped(ann).list_all()}
            assert found in (set(), {NEW, LATER})
            assert sorted(place.contents().values()) == sorted([*KEPT, OLD, FACT])
            assert_fit(kind, folder, place)


@SOME_AND_MANY
def test_a_compaction_that_is_killed_at_any_point_loses_nothing(
    memory_folder: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = memory_folder / "template"
    template.mkdir()
    fill("file", template)
    with open_place("file", template) as place:
        for _ in range(20):
            place.forget(place.remember(text("gone", 4_000)))
    monkeypatch.setattr(file, "_SLACK", 0)
    job = partial(done_on, "file", lambda place: place.remember(NEW))
    size = (template / "memory" / "memories.jsonl").stat().st_size
    for folder in every_point(job, template, memory_folder, step):
        with open_place("file", folder) as place:
            found = sorted(place.contents().values())
            assert found in (sorted([*KEPT, OLD, FACT]), sorted([*KEPT, OLD, FACT, NEW]))
            assert_fit("file", folder, place)
    done_on("file", lambda place: place.remember(NEW), template)
    assert (template / "memory" / "memories.jsonl").stat().st_size < size / 2


# -- what only a directory can do ----------------------------------------------------------


def edit(change: Callable[[str], str]) -> Job:
    """A person's edit, saved as editors save, and the next look at it."""

    def job(place: Place) -> None:
        path = place.face.directory / "MEMORY.md"
        copy = path.with_name("MEMORY.md~")
        copy.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        copy.replace(path)
        place.face.flush()

    return job


def line(content: str) -> str:
    return " ".join(content.split())


def without_fact(page: str) -> str:
    return page.replace(f"- {line(FACT)}\n", "")


CHANGES: dict[str, tuple[Job, list[str]]] = {
    "clear logs": (lambda place: place.face.clear_logs(), [KEPT[1], FACT]),
    "prune logs": (lambda place: place.face.prune_logs(0), [*KEPT, OLD, FACT]),
    "clear": (lambda place: place.face.clear(), []),
    "a line added": (
        edit(lambda page: f"{page}\n## by hand\n- {line(NEW)}\n"),
        [*KEPT, OLD, FACT, line(NEW)],
    ),
    "a line changed": (
        edit(lambda page: page.replace(line(FACT), line(FACT) + " indeed")),
        [*KEPT, OLD, line(FACT) + " indeed"],
    ),
    "a line deleted": (edit(without_fact), [*KEPT, OLD]),
    "all at once": (
        edit(
            lambda page: without_fact(page).replace("# Agent Memory\n", "# Agent Memory\n\n- by\n")
        ),
        [*KEPT, OLD, "by"],
    ),
    "a fact made a note": (
        lambda place: place.face.update(id_of(place, FACT), persistent=False),
        [*KEPT, OLD, FACT],
    ),
    "a fact moved": (
        lambda place: place.face.update(id_of(place, FACT), category="two  words"),
        [*KEPT, OLD, FACT],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@SOME_AND_MANY
def test_a_directory_is_in_step_after_a_kill_at_any_point(
    change: str, memory_folder: Path, step: int
) -> None:
    template = memory_folder / "template"
    template.mkdir()
    fill("directory", template)
    before, (job, after) = [*KEPT, OLD, FACT], CHANGES[change]
    work = partial(done_on, "directory", job)
    for folder in every_point(work, template, memory_folder, step):
        with open_place("directory", folder) as place:
            found = sorted(place.contents().values())
            assert leftovers(folder) == []
            if change == "all at once":  # a line a transaction: any of them may be done
                assert set(found) <= {*before, *after}
                assert set(found) >= set(before) & set(after)
            else:
                assert found in (sorted(before), sorted(after))
            facts = frozenset(m.id for m in place.memories() if m.persistent)
            assert_in_step(place, unlogged=facts if change == "clear logs" else frozenset())


@SOME_AND_MANY
def test_a_restore_that_is_killed_at_any_point_is_done_or_can_be_done_again(
    memory_folder: Path,
    step: int,
) -> None:
    template = memory_folder / "template"
    template.mkdir()
    fill("directory", template)
    with open_place("directory", template) as place:
        doomed = id_of(place, FACT)
        edit(without_fact)(place)
        assert [memory.id for _, memory in place.face.forgotten()] == [doomed]
    job = partial(done_on, "directory", lambda place: place.face.restore(doomed))
    for folder in every_point(job, template, memory_folder, step):
        with open_place("directory", folder) as place:
            restorable = {memory.id for _, memory in place.face.forgotten()}
            assert doomed in {*place.contents(), *restorable}
            if doomed not in place.contents():
                place.face.restore(doomed)
            assert place.contents()[doomed] == FACT
            assert_fit("directory", folder, place)


# -- one kill after the other, in one place ------------------------------------------------


def random_job(random: Random, name: str, known: dict[str, str]) -> tuple[Job, dict[str, str]]:
    """A call on a place that holds ``known``, and what it holds after it."""
    content = text(name, random.choice([40, 9_000]))
    id = random.choice(sorted(known)) if known else ""
    others = {other: each for other, each in known.items() if other != id}
    match random.choice(["remember", "fact", "update", "forget"] if known else ["remember"]):
        case "remember":
            return (lambda place: place.remember(content)), {**known, "new": content}
        case "fact":
            return (lambda place: place.remember(content, True)), {**known, "new": content}
        case "update":
            return (lambda place: place.update(id, content)), {**others, id: content}
        case _:
            return (lambda place: place.forget(id)), others


@pytest.mark.parametrize("kills", SHORT_AND_LONG)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kill_does_more_harm_than_the_one_before(kind: str, kills: int, tmp_path: Path) -> None:
    random = Random(f"{kind} {kills}")
    known: dict[str, str] = {}
    for number in range(kills):
        job, after = random_job(random, str(number), known)
        Child(killed_at(random.randrange(60), partial(done_on, kind, job, tmp_path))).wait()
        with open_place(kind, tmp_path) as place:
            found = place.contents()
            assert sorted(found.values()) in (sorted(known.values()), sorted(after.values()))
            assert found.keys() >= known.keys() & after.keys()
            assert_fit(kind, tmp_path, place)
            known = found
