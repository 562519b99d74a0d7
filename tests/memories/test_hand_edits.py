"""A person edits MEMORY.md while agents remember and forget: file and store agree."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from retain import Filter, KnowledgeMemory, Memory, NotFound, Scope

CATEGORIES = ["general", "preferences", "個人", "a b"]
WORDS = st.sampled_from(["tea", "東京", "café", "likes", "192.168.7.1", "# sharp", "- dash", "🦊"])


def facts_in(text: str) -> list[tuple[str, str]]:
    """The facts of a file that holds none but plain ones, read without retain."""
    category, found = "general", []
    for line in text.splitlines():
        if line.startswith("## "):
            category = line[3:].strip()
        elif line.startswith(("- ", "* ", "+ ")):
            found.append((category, " ".join(line[2:].split())))
    return found


class EditedDirectory(RuleBasedStateMachine):
    """Texts are unique, so that what an edit should do is beyond doubt."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.file = self.place / "MEMORY.md"
        self.memory = KnowledgeMemory(self.place)
        self.expected: dict[str, tuple[str, str]] = {}
        self.unknown: set[tuple[str, str]] = set()  # lines added by hand: ids not known yet
        self.notes: dict[str, None] = {}
        self.prose: list[str] = []
        self.count = 0

    def unique(self, word: str) -> str:
        self.count += 1
        return f"{word} {self.count}"

    def lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").split("\n")

    def write(self, lines: list[str]) -> None:
        self.file.write_text("\n".join(lines), encoding="utf-8")

    def fact_lines(self) -> list[int]:
        return [n for n, line in enumerate(self.lines()) if line.startswith(("- ", "* ", "+ "))]

    def id_of(self, category: str, text: str) -> str | None:
        found = [id for id, fact in self.expected.items() if fact == (category, text)]
        return found[0] if found else None

    # -- agents --

    @rule(word=WORDS, category=st.sampled_from(CATEGORIES), persistent=st.booleans())
    def remember(self, word: str, category: str, persistent: bool) -> None:
        text = self.unique(word)
        receipt = self.memory.remember(text, category, persistent)
        if persistent:
            self.expected[receipt.id] = (category, text)
        else:
            self.notes[receipt.id] = None

    @rule(data=st.data())
    @precondition(lambda self: self.expected or self.notes)
    def forget(self, data: st.DataObject) -> None:
        # in the order of their making, since ids are other ones when Hypothesis tries again
        id = data.draw(st.sampled_from([*self.expected, *self.notes]))
        assert self.memory.forget(id)
        self.expected.pop(id, None)
        self.notes.pop(id, None)

    @rule(data=st.data(), word=WORDS)
    @precondition(lambda self: self.expected)
    def update(self, data: st.DataObject, word: str) -> None:
        id = data.draw(st.sampled_from(list(self.expected)))
        text = self.unique(word)
        self.memory.update(id, content=text)
        self.expected[id] = (self.expected[id][0], text)

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = KnowledgeMemory(self.place)

    # -- the person --

    @rule(word=WORDS, data=st.data())
    def add_a_line(self, word: str, data: st.DataObject) -> None:
        lines, text = self.lines(), self.unique(word)
        headings = [n for n, line in enumerate(lines) if line.startswith("## ")]
        if headings:
            at = data.draw(st.sampled_from(headings))
            lines.insert(at + 1, f"- {text}")
            self.unknown.add((lines[at][3:], text))
        else:
            lines += ["## new", f"- {text}"]
            self.unknown.add(("new", text))
        self.write(lines)

    @rule(data=st.data())
    def delete_a_line(self, data: st.DataObject) -> None:
        self.settle()
        if not self.fact_lines():
            return
        lines = self.lines()
        at = data.draw(st.sampled_from(self.fact_lines()))
        [fact] = [f for n, f in self.numbered() if n == at]
        del lines[at]
        self.write(lines)
        id = self.id_of(*fact)
        assert id is not None
        self.expected.pop(id)
        self.settle()
        assert id in {memory.id for _, memory in self.memory.forgotten()}
        if data.draw(st.booleans()):
            assert self.memory.restore(id).id == id
            self.expected[id] = fact

    @rule(data=st.data(), word=WORDS)
    def change_a_line(self, data: st.DataObject, word: str) -> None:
        self.settle()
        if not self.fact_lines():
            return
        lines = self.lines()
        at = data.draw(st.sampled_from(self.fact_lines()))
        [(category, before)] = [f for n, f in self.numbered() if n == at]
        text = self.unique(word)
        lines[at] = f"- {text}"
        self.write(lines)
        id = self.id_of(category, before)
        assert id is not None
        self.expected[id] = (category, text)

    @rule(data=st.data())
    def write_prose(self, data: st.DataObject) -> None:
        prose = self.unique("My own words")
        lines = self.lines()
        lines.insert(data.draw(st.integers(1, len(lines))), prose)
        self.write(lines)
        self.prose.append(prose)

    @rule(how=st.sampled_from(["missing", "empty", "binary"]))
    def lose_the_file(self, how: str) -> None:
        self.settle()
        if how == "missing":
            self.file.unlink()
        else:
            self.file.write_bytes(b"" if how == "empty" else b"\0\xff\xfe" * 100)
        self.prose = []

    def numbered(self) -> list[tuple[int, tuple[str, str]]]:
        facts = iter(facts_in("\n".join(self.lines())))
        return [(n, next(facts)) for n in self.fact_lines()]

    def settle(self) -> None:
        """A read: what the person did is taken over, and new lines get their ids."""
        self.memory.get_persistent_facts()
        known = {m.id: m for m in self.memory.engine.store.iterate(narrow=Filter(persistent=True))}
        for id, memory in sorted(known.items(), key=lambda item: item[1].content):
            if (memory.category, memory.content) in self.unknown:
                self.unknown.discard((memory.category, memory.content))
                self.expected[id] = (memory.category, memory.content)

    @invariant()
    def file_and_store_agree(self) -> None:
        if not hasattr(self, "memory"):
            return
        self.settle()
        assert not self.unknown
        store = self.memory.engine.store
        known = {
            m.id: (m.category, m.content) for m in store.iterate(narrow=Filter(persistent=True))
        }
        assert known == self.expected
        text = self.file.read_text(encoding="utf-8")
        assert sorted(facts_in(text)) == sorted(self.expected.values())
        assert text.startswith("# Agent Memory")
        own = [line for line in text.split("\n") if line.startswith("My own words")]
        assert sorted(own) == sorted(self.prose)
        logged = [
            json.loads(line)["id"]
            for log in (self.place / "logs").iterdir()
            for line in log.read_text(encoding="utf-8").splitlines()
        ]
        assert sorted(logged) == sorted([*self.expected, *self.notes])
        assert not list(self.place.rglob("*.tmp"))

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            self.folder.cleanup()


TestEditedDirectory = EditedDirectory.TestCase
TestEditedDirectory.settings = settings(
    max_examples=60,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def test_a_new_line_is_a_persistent_memory_that_recall_finds(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", "preferences", persistent=True)
        file = place / "MEMORY.md"
        file.write_text(file.read_text() + "- Likes café\n\n## places\n* Lives in 東京\n")
        assert memory.get_persistent_facts() == {
            "preferences": ["Likes tea", "Likes café"],
            "places": ["Lives in 東京"],
        }
        [result] = memory.recall("東京")
        assert (result.memory.persistent, result.memory.category) == (True, "places")
        assert result.memory.source == "MEMORY.md"


def test_a_line_moved_under_another_heading_keeps_its_memory(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", "preferences", persistent=True)
        memory.remember("Lives in Rome", "places", persistent=True)
        (place / "MEMORY.md").write_text(
            "# Agent Memory\n\n## places\n- Lives in Rome\n- Likes tea\n"
        )
        assert memory.get_persistent_facts() == {"places": ["Lives in Rome", "Likes tea"]}
        found = memory.get(receipt.id)
        assert found is not None and found.category == "places"


def test_a_file_that_lost_its_title_loses_no_fact(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        for n in range(4):
            memory.remember(f"fact {n}", "things", persistent=True)
        lines = (place / "MEMORY.md").read_text().splitlines()
        (place / "MEMORY.md").write_text("\n".join(lines[-2:]))
        assert sorted(memory.get_persistent_facts()["things"]) == [f"fact {n}" for n in range(4)]
        assert memory.forgotten() == []


def test_garbage_in_place_of_the_file_is_set_aside(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", "preferences", persistent=True)
        (place / "MEMORY.md").write_bytes(b"\0" * 500)
        assert memory.get_persistent_facts() == {"preferences": ["Likes tea"]}
        [copy] = place.glob("MEMORY.md.set-aside-*")
        assert copy.read_bytes() == b"\0" * 500


def test_forget_is_final_at_once_even_for_what_could_be_restored(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", persistent=True)
        (place / "MEMORY.md").write_text("# Agent Memory\n")
        assert memory.get_persistent_facts() == {}
        assert memory.forget(receipt.id) is True
        assert memory.forgotten() == []
        with pytest.raises(NotFound):
            memory.restore(receipt.id)
        assert b"Likes tea" not in b"".join(
            path.read_bytes() for path in place.rglob("*") if path.is_file()
        )


def test_an_old_copy_saved_over_a_newer_file_costs_no_fact(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", persistent=True)
        opened = (place / "MEMORY.md").read_text()
        nuts = memory.remember("Allergic to peanuts", persistent=True)
        (place / "MEMORY.md").write_text(opened + "- Plays chess\n")  # without the peanuts
        assert memory.get_persistent_facts() == {"general": ["Likes tea", "Plays chess"]}
        [(_, lost)] = memory.forgotten()
        assert lost.content == "Allergic to peanuts"
        restored = memory.restore(lost.id)
        facts = memory.get_persistent_facts()["general"]
        assert sorted(facts) == ["Allergic to peanuts", "Likes tea", "Plays chess"]
        assert restored.content == "Allergic to peanuts"
        for id in (nuts.id, restored.id):
            memory.forget(id)
        assert memory.forgotten() == []


def test_what_a_line_said_before_is_gone_when_its_memory_is_forgotten(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("a zebra", persistent=True)
        (place / "MEMORY.md").write_text("# Agent Memory\n\n## general\n- a lynx\n")
        assert [m.content for _, m in memory.forgotten()] == ["a zebra"]
        assert memory.forget(receipt.id)
        assert memory.forgotten() == []
        left = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
        assert b"zebra" not in left


def test_files_of_a_scope_whose_store_was_lost_are_taken_over_by_the_new_one(place: Path) -> None:
    ann = Scope(user="ann")
    with KnowledgeMemory(place, scope=ann) as memory:
        memory.remember("Likes tea", persistent=True)
        memory.remember("a note")
    for path in place.glob("memory.db*"):
        path.unlink()
    with KnowledgeMemory(place) as memory:  # another scope comes first, and goes further
        memory.remember_many([f"note {n}" for n in range(50)])
    with KnowledgeMemory(place, scope=ann) as memory:
        assert memory.get_persistent_facts() == {"general": ["Likes tea"]}
        assert {m.content for m in memory.engine.store.list_all()} == {"Likes tea", "a note"}


def test_a_restored_fact_is_the_same_memory_again(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", "taste", persistent=True, importance=0.9)
        (place / "MEMORY.md").write_text("# Agent Memory\n")
        [(_, gone)] = memory.forgotten()
        assert gone.id == receipt.id
        restored = memory.restore(receipt.id)
        assert (restored.id, restored.importance_score) == (receipt.id, 0.9)
        assert memory.get_persistent_facts() == {"taste": ["Likes tea"]}
        assert memory.forgotten() == []


def test_what_was_deleted_by_hand_can_be_restored_for_thirty_days(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retain import clock

    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", persistent=True)
        (place / "MEMORY.md").write_text("# Agent Memory\n")
        memory.get_persistent_facts()
        later = clock.now() + 31 * clock.DAY
        monkeypatch.setattr(clock, "now", lambda: later)
        assert memory.forgotten() == []
        with pytest.raises(NotFound):
            memory.restore(receipt.id)
        memory.prune_logs()
        assert not (place / "MEMORY.forgotten.jsonl").exists()


def test_hooks_see_what_a_person_wrote(place: Path) -> None:
    def hook(text: str) -> str | None:
        return None if "secret" in text else text.replace("tea", "TEA")

    with KnowledgeMemory(place, pre_save=hook) as memory:
        receipt = memory.remember("Likes coffee", "taste", persistent=True)
        file = place / "MEMORY.md"
        file.write_text(file.read_text() + "- Likes tea\n- a secret\n")
        assert memory.get_persistent_facts() == {"taste": ["Likes coffee", "Likes TEA"]}
        assert "- a secret" in file.read_text()  # the person's line stays, but is no memory
        assert memory.recall("secret") == []
        file.write_text(file.read_text().replace("Likes coffee", "Likes secret coffee"))
        assert memory.get_persistent_facts() == {"taste": ["Likes coffee", "Likes TEA"]}
        found = memory.get(receipt.id)
        assert found is not None and found.content == "Likes coffee"


def test_a_line_typed_twice_is_one_memory(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", "taste", persistent=True)
        file = place / "MEMORY.md"
        file.write_text(file.read_text() + "- Likes tea\n")
        assert memory.get_persistent_facts() == {"taste": ["Likes tea"]}
        assert memory.memory_count == 1
        memory.remember("Likes coffee", "taste", persistent=True)
        assert memory.get_persistent_facts() == {"taste": ["Likes tea", "Likes coffee"]}


def test_edits_made_while_no_one_was_looking_are_heard_at_the_next_open(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", "taste", persistent=True)
        gone = memory.remember("Hates rain", "taste", persistent=True)
    (place / "MEMORY.md").write_text("# Agent Memory\n\n## taste\n- Likes green tea\n")
    with KnowledgeMemory(place) as memory:
        assert memory.get_persistent_facts() == {"taste": ["Likes green tea"]}
        found = memory.get(receipt.id)
        assert found is not None and found.content == "Likes green tea"
        texts = {memory.id: memory.content for _, memory in memory.forgotten()}
        assert texts == {gone.id: "Hates rain", receipt.id: "Likes tea"}


def test_a_lost_state_file_deletes_nothing(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("Likes tea", "taste", persistent=True)
        memory.remember("Hates rain", "taste", persistent=True)
    (place / ".MEMORY.synced").unlink()
    (place / "MEMORY.md").write_text("# Agent Memory\n\n## taste\n- Likes tea\n- new\n")
    with KnowledgeMemory(place) as memory:
        facts = memory.get_persistent_facts()["taste"]
        assert sorted(facts) == ["Hates rain", "Likes tea", "new"]
        assert memory.get(receipt.id) is not None
        assert memory.memory_count == 3


def test_a_memory_of_several_lines_is_one_line_and_stays_whole(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        receipt = memory.remember("one\n- two\n## three", "a\nb", persistent=True)
        file = place / "MEMORY.md"
        assert "## a b\n- one - two ## three\n" in file.read_text()
        file.write_text(file.read_text().replace("# Agent Memory", "# Agent Memory\n\nNote."))
        assert memory.get_persistent_facts() == {"a b": ["one - two ## three"]}
        found = memory.get(receipt.id)
        assert found is not None
        assert (found.content, found.category) == ("one\n- two\n## three", "a\nb")


def test_what_another_face_writes_stands_in_the_file_at_the_next_look(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.engine.store.save(Memory("m1", "Likes tea", persistent=True, category="taste"))
        assert memory.get_persistent_facts() == {"taste": ["Likes tea"]}
        assert "- Likes tea" in (place / "MEMORY.md").read_text()
        memory.engine.store.delete("m1")
        memory.flush()
        assert "Likes tea" not in (place / "MEMORY.md").read_text()


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_are_for_their_owner_only(place: Path) -> None:
    with KnowledgeMemory(place) as memory:
        memory.remember("Likes tea", persistent=True)
        assert place.stat().st_mode & 0o077 == 0
        for path in place.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path
