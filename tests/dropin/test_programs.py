"""What programs written for the two packages see: the texts and files that they parse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codomyrmex.agentic_memory import JSONFileStore
from codomyrmex.agentic_memory.core.memory import AgentMemory, ConversationMemory, KnowledgeMemory
from codomyrmex.agentic_memory.core.models import MemoryImportance, MemoryType
from selectools import Agent, AgentConfig, LocalProvider, knowledge, tool
from selectools.toolbox.memory_tools import make_recall_tool, make_remember_tool


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[knowledge.KnowledgeMemory]:
    with knowledge.KnowledgeMemory(storage_dir=str(tmp_path / "notes")) as memory:
        memory.remember("Drinks tea, never coffee", category="taste", persistent=True)
        memory.remember("Plays the cello", category="music", persistent=True)
        memory.remember("Allergic to 落花生", category="taste", persistent=True)
        memory.remember("Rehearsal moved to Thursday", category="music")
        memory.remember("Looking for a flat in Lyon", category="home")
        yield memory


def test_the_context_has_a_section_of_facts_and_one_of_recent_notes(notes):
    lines = notes.build_context().splitlines()
    facts, recent = lines[: lines.index("")], lines[lines.index("[Recent Memory]") :]
    assert facts[0] == "[Long-term Memory]"
    assert [line for line in lines if line.startswith("## ")] == ["## taste", "## music"]
    taste = lines.index("## taste")
    assert lines[taste + 1 : taste + 3] == ["- Drinks tea, never coffee", "- Allergic to 落花生"]
    stamp = r"- \[\d{4}-\d\d-\d\d \d\d:\d\d\] "
    assert len(recent) == 3
    assert re.fullmatch(stamp + r"\(music\) Rehearsal moved to Thursday", recent[1])
    assert re.fullmatch(stamp + r"\(home\) Looking for a flat in Lyon", recent[2])
    assert lines[lines.index("[Recent Memory]") - 1] == ""


def test_an_empty_section_is_left_out(tmp_path: Path):
    with knowledge.KnowledgeMemory(storage_dir=str(tmp_path / "a")) as memory:
        assert memory.build_context() == ""
        memory.remember("Only for today")
        assert memory.build_context().startswith("[Recent Memory]\n- [")
    with knowledge.KnowledgeMemory(storage_dir=str(tmp_path / "b")) as memory:
        memory.remember("For good", persistent=True)
        assert memory.build_context() == "[Long-term Memory]\n## general\n- For good"


def test_the_facts_are_a_markdown_file_with_a_heading_for_each_category(notes, tmp_path: Path):
    text = (tmp_path / "notes" / "MEMORY.md").read_text("utf-8")
    assert text.splitlines()[0] == "# Agent Memory"
    lines = [line for line in text.splitlines()[1:] if line]
    assert lines == [
        "## taste",
        "- Drinks tea, never coffee",
        "- Allergic to 落花生",
        "## music",
        "- Plays the cello",
    ]


def test_the_log_has_a_json_line_for_each_memory_in_the_file_of_its_day(notes, tmp_path: Path):
    (log,) = (tmp_path / "notes" / "logs").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.jsonl", log.name)
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert len(lines) == 5
    for line in lines:
        assert list(line)[:5] == ["timestamp", "category", "content", "persistent", "id"]
        assert re.fullmatch(rf"{log.stem}T\d\d:\d\d:\d\d(\.\d+)?Z", line["timestamp"])
    assert [line["persistent"] for line in lines] == [True, True, True, False, False]


def test_the_recall_tool_numbers_what_it_found_and_names_the_category(notes):
    recall = make_recall_tool(notes)
    found = recall.execute({"query": "cello", "limit": "3"})
    assert found == "Found 1 memory:\n1. [music] Plays the cello"
    both = recall.execute({"query": "taste"}).splitlines()
    assert both[0] == "Found 2 memories:"
    assert both[1].startswith("1. [taste] ") and both[2].startswith("2. [taste] ")


def test_the_recall_tool_says_so_when_it_found_nothing(notes):
    assert make_recall_tool(notes).execute({"query": "zebra"}) == (
        "No memories found matching 'zebra'."
    )


def test_the_recall_tool_takes_any_limit(notes):
    recall = make_recall_tool(notes)
    assert len(recall.execute({"query": "", "limit": 2}).splitlines()) == 3
    for nonsense in ("many", "0", "-1", 0):
        assert len(recall.execute({"query": "", "limit": nonsense}).splitlines()) == 6


def test_the_remember_tool_writes_what_the_model_says(notes):
    remember = make_remember_tool(notes)
    answer = remember.execute({"content": "Sings bass", "category": "music", "persistent": "true"})
    assert isinstance(answer, str) and answer
    assert notes.get_persistent_facts()["music"] == ["Plays the cello", "Sings bass"]


def test_an_agent_gains_the_two_tools_and_leaves_the_list_of_the_caller_alone(notes):
    @tool(description="Somebody's own way of looking things up")
    def recall(query: str) -> str:
        return query

    own = [recall]
    config = AgentConfig(knowledge_memory=notes)
    agent = Agent(tools=own, provider=LocalProvider(), config=config)
    assert sorted(each.name for each in agent.tools) == ["recall", "remember"]
    assert recall in agent.tools
    assert own == [recall]


def test_a_recall_finds_and_scores_as_the_formula_says():
    memory = AgentMemory()
    memory.remember("The lease ends in June", importance=MemoryImportance.HIGH)
    memory.remember("Grows tomatoes", memory_type=MemoryType.SEMANTIC)
    (found,) = memory.recall("lease June", k=5)
    assert found.memory.content == "The lease ends in June"
    assert found.relevance_score == 1.0
    assert found.importance_score == 0.75
    assert found.combined_score == pytest.approx(0.5 + 0.3 * found.recency_score + 0.15)


def test_a_file_of_memories_is_one_readable_array_that_the_next_program_opens(tmp_path: Path):
    place = tmp_path / "deep" / "memories.json"
    AgentMemory(store=JSONFileStore(str(place))).remember("Rides a red bicycle")
    assert [each["content"] for each in json.loads(place.read_text("utf-8"))] == [
        "Rides a red bicycle"
    ]
    (found,) = AgentMemory(store=JSONFileStore(str(place))).recall("bicycle")
    assert found.memory.content == "Rides a red bicycle"


def test_turns_and_facts_carry_where_they_came_from():
    turn = ConversationMemory().add_turn("user", "Where is the station?", turn_number=3)
    assert (turn.metadata["role"], turn.metadata["turn"]) == ("user", 3)
    fact = KnowledgeMemory().add_fact("Lyon lies on the Rhône", source="atlas")
    assert fact.metadata["source"] == "atlas"
    assert (fact.memory_type, fact.importance) == (MemoryType.SEMANTIC, MemoryImportance.HIGH)
    assert fact.persistent
