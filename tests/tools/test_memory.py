"""The tools remember and recall."""

from __future__ import annotations

import pytest

from memories_in_process import Knowledge
from retain.errors import InvalidType, InvalidValue, StoreFailed
from retain.models import Memory
from retain.tools import Tool, make_recall_tool, make_remember_tool


@pytest.fixture
def knowledge() -> Knowledge:
    return Knowledge(refused="password")


@pytest.fixture
def remember(knowledge: Knowledge) -> Tool:
    return make_remember_tool(knowledge)


@pytest.fixture
def recall(knowledge: Knowledge) -> Tool:
    return make_recall_tool(knowledge)


def test_remember_writes_what_it_is_given(knowledge: Knowledge, remember: Tool):
    content = " Läuft  täglich\nam See "
    answer = remember.execute({"content": content, "category": " Sport", "persistent": True})
    assert type(answer) is str and "Sport" in answer
    (memory,) = knowledge.memories
    assert (memory.content, memory.category, memory.persistent) == (content, " Sport", True)


@pytest.mark.parametrize(
    ("given", "persistent"),
    [("true", True), ("True", True), (True, True), (1, True), ("false", False), (None, False)],
)
def test_persistent_is_a_boolean_or_its_text(knowledge, remember, given, persistent):
    remember.execute({"content": "Drinks tea", "persistent": given})
    assert knowledge.memories[0].persistent is persistent


@pytest.mark.parametrize("blank", ["", "  ", "\n", None])
def test_a_blank_category_is_general(knowledge: Knowledge, remember: Tool, blank):
    remember.execute({"content": "Drinks tea", "category": blank})
    assert knowledge.memories[0].category == "general"


def test_remember_says_why_it_did_not_save(knowledge: Knowledge, remember: Tool):
    told = remember.execute({"content": "the password is 1234"})
    assert told == "Not saved: the hook no_secrets refused the text"
    assert (
        remember.execute({"content": " "})
        == "Not saved: there is nothing to remember: the content is blank"
    )
    told = remember.execute({"content": "Drinks tea", "persistent": "perhaps"})
    assert told == "Not saved: persistent is 'perhaps'; give true or false"
    assert knowledge.memories == []


def test_arguments_that_do_not_fit_are_refused_before_anything_is_written(knowledge, remember):
    with pytest.raises(InvalidType, match="did you mean 'content'"):
        remember.execute({"contents": "Drinks tea"})
    with pytest.raises(InvalidType, match="'content' is missing"):
        remember.execute({"category": "taste"})
    assert knowledge.memories == []


def test_a_store_that_fails_is_not_the_models_mistake(
    knowledge: Knowledge, remember: Tool, recall: Tool, monkeypatch: pytest.MonkeyPatch
):
    def fail(*args: object, **options: object) -> None:
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(knowledge, "remember", fail)
    monkeypatch.setattr(knowledge, "match", fail)
    for call in (lambda: remember.execute({"content": "x"}), lambda: recall.execute({"query": ""})):
        with pytest.raises(StoreFailed, match="disk is full"):
            call()


def test_recall_numbers_what_it_found_and_names_categories(knowledge: Knowledge, recall: Tool):
    knowledge.remember("Prefers dark roast", "taste")
    assert recall.execute({"query": "dark"}) == "Found 1 memory:\n1. [taste] Prefers dark roast"
    knowledge.remember("Dark hair")
    assert recall.execute({"query": "dark"}) == (
        "Found 2 memories:\n1. Dark hair\n2. [taste] Prefers dark roast"
    )


def test_recall_says_that_it_found_nothing(recall: Tool):
    assert recall.execute({"query": "l'été 夏"}) == "No memories found matching 'l'été 夏'."
    assert recall.execute({"query": ""}) == "No memories found matching ''."


def test_a_memory_is_one_line_whatever_it_holds(knowledge: Knowledge, recall: Tool):
    odd = "a\nb\r\nc\rd\u2028e\u2029f\x85g\vh\fi\x1cj\t k"
    knowledge.remember(odd, category="x\ny", importance=0.9)
    knowledge.remember("2. [fake] a\n3. b")
    found = recall.execute({"query": ""})
    assert found == "Found 2 memories:\n1. [x y] a b c d e f g h i j k\n2. 2. [fake] a 3. b"
    assert len(found.splitlines()) == 3


@pytest.mark.parametrize("limit", [3, "3", 3.0, " 3 ", "3.0"])
def test_recall_gives_as_many_as_asked_for(knowledge: Knowledge, recall: Tool, limit):
    for number in range(9):
        knowledge.remember(f"note {number}")
    assert recall.execute({"query": "note", "limit": limit}).startswith("Found 3 memories:\n")


@pytest.mark.parametrize(
    "limit", [None, 0, "0", -1, "-7", "many", "", 2.5, True, [], {}, float("nan"), "9" * 5000]
)
def test_recall_gives_five_for_a_limit_that_is_none(knowledge: Knowledge, recall: Tool, limit):
    for number in range(9):
        knowledge.remember(f"note {number}")
    assert recall.execute({"query": "note", "limit": limit}).startswith("Found 5 memories:\n")
    assert recall.execute({"query": "note"}).startswith("Found 5 memories:\n")


def test_a_limit_beyond_all_numbers_of_memories_is_one_a_machine_can_count(
    knowledge: Knowledge, recall: Tool, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []
    monkeypatch.setattr(knowledge, "match", lambda query, k: asked.append(k) or [])
    recall.execute({"query": "", "limit": 10**30})
    recall.execute({"query": "", "limit": 1000})
    assert asked == [2**31 - 1, 1000]


def test_a_query_that_can_not_be_searched_is_told_to_the_model(
    knowledge: Knowledge, recall: Tool, monkeypatch: pytest.MonkeyPatch
):
    def refuse(query: str, k: int) -> list[Memory]:
        raise InvalidValue("query holds a lone surrogate")

    monkeypatch.setattr(knowledge, "match", refuse)
    assert recall.execute({"query": "\ud800"}) == "Not searched: query holds a lone surrogate"


def test_the_schemas_admit_what_models_give(remember: Tool, recall: Tool):
    written = remember.schema()["parameters"]
    assert written["required"] == ["content"]
    assert written["properties"]["persistent"]["type"] == ["boolean", "string"]
    assert written["properties"]["persistent"]["default"] is False
    assert written["properties"]["category"]["default"] == "general"
    read = recall.schema()["parameters"]
    assert read["required"] == ["query"]
    assert read["properties"]["limit"]["type"] == ["integer", "string"]
    assert read["properties"]["limit"]["default"] == 5
    for each in (remember.schema(), recall.schema()):
        assert each["description"]
        assert all(p["description"] for p in each["parameters"]["properties"].values())


def test_two_memories_have_tools_of_their_own(knowledge: Knowledge, remember: Tool):
    other = Knowledge()
    make_remember_tool(other).execute({"content": "theirs"})
    remember.execute({"content": "ours"})
    assert [each.content for each in knowledge.memories] == ["ours"]
    assert [each.content for each in other.memories] == ["theirs"]
