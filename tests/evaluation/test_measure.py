from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import (
    AgentMemory,
    ConversationMemory,
    InvalidType,
    InvalidValue,
    KnowledgeMemory,
    NotFound,
    Rejected,
)
from retain.evaluation import (
    CONFIGURATIONS,
    Case,
    Dataset,
    Item,
    Question,
    evaluate,
    load_dataset,
)

WORDS = "tea cat köln 東京 варенье ship train"


def dataset(items, *questions, unit="turn"):
    asked = [
        Question(f"q{at}", text, frozenset(relevant), category)
        for at, (text, relevant, category) in enumerate(questions)
    ]
    return Dataset("mine", "0" * 64, [Case("c", items, asked)], unit=unit)


ITEMS = [
    Item("1", "Ann drinks green tea", "Ann", "s1", 100.0),
    Item("2", "Bob drinks coffee", "Bob", "s1", 101.0),
    Item("3", "Ann's cat drinks milk", "Ann", "s2", 200.0),
]


def test_every_question_is_asked_and_its_answers_are_ranked():
    report = evaluate(
        dataset(
            ITEMS,
            ("green tea", {"1"}, "easy"),
            ("coffee and cat milk", {"2", "3"}, "hard"),
            ("zebra", {"3"}, "hard"),
        )
    )
    assert [(each.category, each.relevant, each.ranks) for each in report.outcomes] == [
        ("easy", 1, (1,)),
        ("hard", 2, (1, 2)),
        ("hard", 1, ()),
    ]
    assert (report.memories, report.depth, report.configuration) == (3, 50, "default")
    assert all(each.seconds >= 0 for each in report.outcomes)


def kept(items, unit="turn", make=ConversationMemory):
    """What a memory holds after the measurement."""
    memory = make()
    memory.close = lambda: None
    evaluate(dataset(items, ("tea", {items[0].id}, "x"), unit=unit), lambda: memory)
    return sorted(memory.engine.store.iterate(), key=lambda each: each.created_at)


def test_a_turn_is_remembered_as_add_turn_does():
    memory = ConversationMemory()
    for number, item in zip((1, 2, 1), ITEMS, strict=True):
        memory.add_turn(
            item.role,
            item.content,
            turn_number=number,
            session={"s1": "session_1", "s2": "session_2"}[item.session],
            created_at=item.created_at,
        )
    of_store = {"id", "revision", "access_count", "last_accessed"}

    def plain(memories):
        return [{k: v for k, v in each.to_dict().items() if k not in of_store} for each in memories]

    assert plain(kept(ITEMS)) == plain(memory.turns())


def test_a_document_is_remembered_as_it_is():
    (memory,) = kept([Item("d", "tea", fields={"tags": ["x"], "importance": 0.25})])
    assert (memory.content, memory.metadata, memory.source) == ("tea", {}, "")
    assert (memory.tags, memory.importance_score) == (["x"], 0.25)


def test_metadata_of_its_own_goes_with_a_turn():
    (memory,) = kept([Item("d", "tea", "Ann", "s", fields={"metadata": {"page": 3}})])
    assert memory.metadata == {"page": 3, "role": "Ann", "turn": 1, "session": "session_1"}


def test_ids_are_the_same_in_every_run_and_say_nothing():
    ids = [memory.id for memory in kept(ITEMS)]
    assert ids == [memory.id for memory in kept(ITEMS)]
    assert len(set(ids)) == 3
    assert all(len(id) == 32 for id in ids)


def test_sessions_are_ranked_by_their_best_turn():
    items = [
        *(Item(f"a{n}", "tea tea tea " + "filler " * n, "x", "a", 1.0 + n) for n in range(60)),
        Item("b1", "coffee", "x", "b", 500.0),
        Item("c1", "green tea and coffee", "x", "c", 600.0),
    ]
    data = dataset(items, ("green tea", {"a", "b", "c"}, "x"), unit="session")
    (outcome,) = evaluate(data, "words", depth=2).outcomes
    assert outcome.ranks == (1, 2)  # c, then a, though 60 turns of a are found
    data = dataset(items, ("green coffee", {"a", "b"}, "x"), unit="session")
    assert evaluate(data, "words").outcomes[0].ranks == (2,)  # c, b; nothing of a


def test_only_the_depth_is_looked_at():
    items = [Item(str(n), "tea", created_at=float(n)) for n in range(9)]
    data = dataset(items, ("tea", {"0", "8"}, "x"))
    assert evaluate(data, depth=8).outcomes[0].ranks == (1,)
    assert evaluate(data, depth=9).outcomes[0].ranks == (1, 9)


def test_an_equal_fact_that_is_kept_once_counts_for_both():
    fact = {"persistent": True}
    items = [Item("1", "tea", fields=fact), Item("2", "Tea", fields=fact)]
    (outcome,) = evaluate(dataset(items, ("tea", {"1", "2"}, "x"))).outcomes
    assert outcome.ranks == (1, 2)


def test_progress_is_told_from_nothing_to_all(write, locomo):
    data = load_dataset(write("data.json", [locomo[0], {**locomo[0], "sample_id": "2"}]))
    told = []
    report = evaluate(data, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 6) for done in range(7)]
    assert (report.dataset, report.digest, report.left_out) == (
        "data.json",
        data.digest,
        {"without evidence": 2, "adversarial": 2},
    )


def test_each_case_has_a_memory_of_its_own_that_is_closed():
    made = []

    def lexical():
        made.append(AgentMemory())
        return made[-1]

    case = Case("c", ITEMS, [Question("q", "tea", frozenset({"1"}))])
    other = Case("d", ITEMS[1:], [Question("q", "tea", frozenset({"2"}))])
    empty = Case("e", ITEMS, [])
    report = evaluate(Dataset("d", "", [case, other, empty]), lexical)
    assert [each.ranks for each in report.outcomes] == [(1,), ()]
    assert report.configuration == "lexical"
    assert len(made) == 2
    for memory in made:
        with pytest.raises(Exception, match="closed"):
            memory.recall("tea")


def test_any_face_can_be_measured(tmp_path):
    data = dataset(ITEMS, ("green tea", {"1"}, "x"))
    report = evaluate(data, lambda: KnowledgeMemory(tmp_path / "m"), name="a directory")
    assert (report.configuration, report.scores()["recall@1"]) == ("a directory", 1.0)


def test_named_configurations_make_empty_memories():
    assert {"default", "lexical"} <= set(CONFIGURATIONS)
    for make in CONFIGURATIONS.values():
        with make() as memory:
            assert memory.memory_count == 0


@pytest.mark.parametrize(
    ("configuration", "options", "error"),
    [
        ("nonsense", {}, InvalidValue),
        (3, {}, InvalidType),
        (dict, {}, InvalidType),
        ("default", {"depth": 0}, InvalidValue),
    ],
)
def test_what_cannot_be_measured_is_refused(configuration, options, error):
    with pytest.raises(error):
        evaluate(dataset(ITEMS, ("tea", {"1"}, "x")), configuration, **options)


def test_nothing_to_ask_is_said_so():
    with pytest.raises(NotFound, match="no question"):
        evaluate(dataset(ITEMS))


def test_what_the_memory_refuses_is_not_passed_over():
    items = [Item("1", "the same words here"), Item("2", "the same words here")]
    with pytest.raises(Rejected):
        evaluate(dataset(items, ("tea", {"1"}, "x")), lambda: ConversationMemory(dedupe=True))


@given(st.lists(st.lists(st.sampled_from(WORDS.split()), max_size=4), min_size=1, max_size=8))
def test_a_measurement_finds_what_recall_finds(texts):
    items = [Item(str(at), " ".join(words), created_at=float(at)) for at, words in enumerate(texts)]
    relevant = set(random.Random(0).sample([item.id for item in items], 1 + len(items) // 2))
    (outcome,) = evaluate(dataset(items, ("tea 東京", relevant, "x")), "words").outcomes
    memory = AgentMemory()
    memory.remember_many(
        [{"content": i.content, "created_at": i.created_at} for i in items if i.content]
    )
    found = [str(int(result.memory.created_at)) for result in memory.recall("tea 東京", k=50)]
    assert outcome.ranks == tuple(at for at, id in enumerate(found, 1) if id in relevant)
