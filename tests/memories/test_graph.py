"""The knowledge graph: learned, stored once, shown within a limit, in any triple store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from json_model import Model
from retain import (
    InMemoryStore,
    KnowledgeGraphMemory,
    LocalProvider,
    Message,
    Role,
    SQLiteTripleStore,
    Triple,
)
from retain.errors import ExtractionFailed, InvalidType, InvalidValue, Rejected


def answer(*triples: str) -> str:
    return f'{{"relationships": [{", ".join(triples)}]}}'


WORKS = '{"subject": "Alice", "relation": "works at", "object": "Acme", "confidence": 0.9}'


def test_a_model_finds_triples_and_the_block_shows_them():
    graph = KnowledgeGraphMemory(provider=Model(answer(WORKS), answer(WORKS)), model="m")
    assert graph.build_context() == ""
    graph.learn("Alice works at Acme")
    graph.observe("As I said")
    graph.add("Alice", "knows", "花子")
    assert graph.build_context() == (
        "[Known Relationships]\n- Alice --[knows]--> 花子\n"
        "- Alice --[works_at]--> Acme (confidence: 0.9)"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "{}",
        answer(WORKS, WORKS.replace("Alice", " ")),
        answer(WORKS, WORKS.replace("0.9", "1.5")),
        answer(WORKS, WORKS.replace("0.9", "NaN")),
        answer(WORKS, WORKS.replace("Acme", "x" * 501)),
        answer(WORKS)[:-5],
    ],
)
def test_an_answer_that_is_wrong_anywhere_is_refused_whole(wrong: str):
    graph = KnowledgeGraphMemory(provider=Model(wrong))
    with pytest.raises(ExtractionFailed):
        graph.learn("Alice works at Acme")
    assert len(graph) == 0


def test_a_provider_that_is_no_model_leaves_it_to_the_rules():
    graph = KnowledgeGraphMemory(provider=LocalProvider())
    assert graph.learn("Bob works at Acme") == [Triple("Bob", "works_at", "Acme")]


def test_its_own_block_and_tools_teach_nothing():
    graph = KnowledgeGraphMemory()
    graph.add("Alice", "works_at", "Acme")
    graph.learn([Message(Role.ASSISTANT, f"{graph.build_context()}\n- Ghost works at Acme")])
    graph.learn([Message(Role.TOOL, "Ghost works at Acme", "recall")])
    assert len(graph) == 1


def test_the_block_is_limited_to_what_fits_the_query_and_then_the_newest():
    graph = KnowledgeGraphMemory(max_context_triples=3)
    for number in range(10):
        graph.add(f"n{number}", "knows", "Bob" if number else "Ольга")
    assert graph.build_context().splitlines()[1:] == [
        f"- n{number} --[knows]--> Bob" for number in (9, 8, 7)
    ]
    assert graph.build_context("Who knows Ольга?").splitlines()[1] == "- n0 --[knows]--> Ольга"
    assert len(graph.build_context("knows").splitlines()) == 4
    assert len(graph.query("knows")) == 10


def test_triples_last_under_either_name_of_the_argument(tmp_path: Path):
    place = str(tmp_path / "kg.db")
    with KnowledgeGraphMemory(store=SQLiteTripleStore(db_path=place)) as graph:
        graph.learn("Bob works at Acme")
    with KnowledgeGraphMemory(storage=SQLiteTripleStore(place)) as graph:
        assert graph.query("acme") == [Triple("Bob", "works_at", "Acme")]
        assert graph.forget("BOB", "works at", "acme") and not graph.forget("Bob", "x", "y")
        graph.add(Triple("a", "b", "c"))
        graph.clear()
        assert len(graph) == 0
    store = InMemoryStore()
    KnowledgeGraphMemory(store).add("a", "b", "c")
    assert KnowledgeGraphMemory(store=store, storage=store).query("a c") == [Triple("a", "b", "c")]


def test_what_is_no_triple_store_is_refused():
    for wrong in (5, object(), SQLiteTripleStore):
        with pytest.raises(InvalidType, match="add_many"):
            KnowledgeGraphMemory(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="two names"):
        KnowledgeGraphMemory("memory:", storage=InMemoryStore())
    with pytest.raises(InvalidValue, match="blank"):
        KnowledgeGraphMemory().add("a", " ", "c")
    with pytest.raises(InvalidValue, match="max_context_triples"):
        KnowledgeGraphMemory(max_context_triples=0)


def test_a_triple_store_of_somebody_else_will_do():
    class Theirs:
        def __init__(self) -> None:
            self.kept: list[Triple] = []

        def add(self, triple: Triple) -> None:
            self.kept.append(triple)

        def add_many(self, triples: list[Triple]) -> None:
            self.kept += triples

        def query(self, keywords: list[str]) -> list[Triple]:
            return [t for t in self.kept if any(word in str(t) for word in keywords)]

        def all(self) -> list[Triple]:
            return list(self.kept)

        def count(self) -> int:
            return len(self.kept)

        def clear(self) -> None:
            self.kept.clear()

    with KnowledgeGraphMemory(Theirs()) as graph:
        graph.learn("Bob works at Acme")
        assert "Bob --[works_at]--> Acme" in graph.build_context("Acme")
        with pytest.raises(InvalidType, match="delete"):
            graph.forget("Bob", "works_at", "Acme")
        graph.clear()
        assert graph.build_context() == ""


def test_of_a_long_query_the_end_counts():
    graph = KnowledgeGraphMemory(max_context_triples=1)
    for name in ("Émile", "Bob", "Cid"):
        graph.add(name, "likes", f"tea {name}")
    shown = graph.build_context("Bob " * 1_000 + "and Émile " * 200)
    assert shown.splitlines()[1:] == ["- Émile --[likes]--> tea Émile"]


def test_what_hooks_make_no_triple_costs_that_one_alone(caplog):
    model = Model(answer(WORKS, WORKS.replace("Acme", "Ωmega")))
    graph = KnowledgeGraphMemory(pre_save=lambda text: text.replace("Acme", ""), provider=model)
    assert [triple.object for triple in graph.learn("x")] == ["Ωmega"]
    assert "a relationship is left out" in caplog.text


def test_hooks_refuse_one_triple():
    def no_secrets(text: str) -> str | None:
        return None if "secret" in text else text

    graph = KnowledgeGraphMemory(
        pre_save=no_secrets, provider=Model(answer(WORKS, WORKS.replace("Acme", "secret")))
    )
    learned: list[Any] = graph.learn("x")
    assert [triple.object for triple in learned] == ["Acme"]
    with pytest.raises(Rejected):
        graph.add("Bob", "knows", "the secret")
    assert len(graph) == 1
