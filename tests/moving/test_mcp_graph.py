from __future__ import annotations

import io
import json

from foreign_exports import as_file, as_lines, contents, kept
from retain import AgentMemory, MemoryType
from retain.moving import import_path

ANN = {
    "type": "entity",
    "name": "Ann",
    "entityType": "person",
    "observations": ["Likes tea", "Wohnt in Köln"],
}
KOELN = {"type": "entity", "name": "Köln", "entityType": "city", "observations": []}
LIVES = {"type": "relation", "from": "Ann", "to": "Köln", "relationType": "lives_in"}


def test_observations_and_relations_become_lasting_facts():
    memory = AgentMemory()
    report = import_path(memory, as_lines(ANN, KOELN, LIVES))
    assert (report.format, report.imported, report.troubles) == ("mcp-graph", 4, [])
    facts = {each.content: each for each in kept(memory)}
    assert set(facts) == {
        *("Ann: Likes tea", "Ann: Wohnt in Köln", "Köln (city)", "Ann lives_in Köln"),
    }
    tea = facts["Ann: Likes tea"]
    assert (tea.category, tea.tags, tea.persistent) == ("person", ["Ann"], True)
    assert tea.memory_type is MemoryType.SEMANTIC
    assert tea.metadata == {"entity": "Ann", "observation": "Likes tea"}
    lives = facts["Ann lives_in Köln"]
    assert lives.metadata == {"subject": "Ann", "relation": "lives_in", "object": "Köln"}
    assert memory.recall("Köln", memory_type=MemoryType.SEMANTIC)


def test_a_graph_is_imported_once_and_what_grew_is_added():
    memory = AgentMemory()
    import_path(memory, as_lines(ANN, LIVES))
    more = {**ANN, "observations": ["Sings", *ANN["observations"]]}
    report = import_path(memory, as_lines(more, LIVES))
    assert (report.imported, report.known) == (1, 3)


def test_what_read_graph_answers_is_read_too():
    graph = {
        "entities": [{name: value for name, value in ANN.items() if name != "type"}],
        "relations": [{name: value for name, value in LIVES.items() if name != "type"}],
    }
    for indent in (None, 2):
        memory = AgentMemory()
        report = import_path(memory, as_file(graph, indent))
        assert (report.format, report.imported, report.troubles) == ("mcp-graph", 3, [])


def test_what_is_no_part_of_a_graph_is_told_with_its_place():
    bad = [
        {"type": "entity", "name": "", "entityType": "x", "observations": ["y"]},
        {"type": "entity", "name": "Bob", "observations": "Likes tea"},
        {"type": "entity", "name": "Eve", "observations": ["fine", 3, " "]},
        {"type": "relation", "from": "Ann", "to": None, "relationType": "x"},
        {"type": "shape"},
        [1],
    ]
    memory = AgentMemory()
    report = import_path(memory, as_lines(ANN, *bad))
    assert sorted(contents(memory)) == ["Ann: Likes tea", "Ann: Wohnt in Köln", "Eve: fine"]
    assert [each.where for each in report.unreadable] == [
        "line 2, observation 1",
        "line 3",
        "line 4, observation 2",
        "line 4, observation 3",
        "line 5",
        "line 6",
        "line 7",
    ]


def test_a_line_that_was_torn_is_told():
    data = (json.dumps(ANN) + "\n" + json.dumps(LIVES)[:-5]).encode()
    memory = AgentMemory()
    report = import_path(memory, io.BytesIO(data))
    assert report.imported == 2
    assert "the file ends there" in report.unreadable[0].reason
