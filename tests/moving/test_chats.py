from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from foreign_exports import (
    as_file,
    bread,
    chatgpt_chat,
    chatgpt_node,
    claude_chat,
    claude_message,
    contents,
    kept,
    zipped,
)
from retain import AgentMemory, ConversationMemory, MemoryType
from retain.errors import InvalidValue
from retain.moving import import_path, packed


def told(report: Any) -> list[str]:
    return [str(each) for each in report.troubles]


# -- ChatGPT -----------------------------------------------------------------------------------


def test_the_turns_of_the_current_path_come_in_with_their_times_and_roles():
    memory = AgentMemory()
    report = import_path(memory, as_file([bread()]))
    assert (report.format, report.imported, report.troubles) == ("chatgpt", 2, [])
    asked, answered = kept(memory)
    assert (asked.content, asked.source) == ("Wie lange geht Sauerteig?", "user")
    assert asked.created_at == 1_700_000_001.5
    assert asked.memory_type is MemoryType.EPISODIC and not asked.persistent
    assert answered.content == "Over night."
    assert answered.metadata == {
        "role": "assistant",
        "turn": 2,
        "session": "chat-1",
        "conversation": "Brot backen 🥖",
        "message": "good",
        "program": "chatgpt",
        "model": "gpt-x",
    }


def test_the_turns_are_those_of_a_conversation_memory():
    with ConversationMemory() as talk:
        import_path(talk, as_file([bread()]))
        assert [turn.metadata["role"] for turn in talk.turns()] == ["user", "assistant"]
        assert talk.search("Sauerteig")[0].memory.content == "Wie lange geht Sauerteig?"


def test_an_import_of_chats_that_is_run_again_brings_nothing_new():
    memory = AgentMemory()
    both = [bread(), {**bread(), "conversation_id": "chat-2"}]  # as a chat that was branched off
    assert import_path(memory, as_file(both)).imported == 4
    again = import_path(memory, as_file(both))
    assert (again.imported, again.known, again.troubles) == (0, 4, [])


def test_what_was_not_said_to_anybody_is_no_turn():
    def node(id: str, parent: str, **more: Any) -> dict[str, Any]:
        return chatgpt_node(id, parent, "assistant", "not said", **more)

    chat = chatgpt_chat(
        node("a", "root", recipient="python"),
        node("b", "a", metadata={"is_visually_hidden_from_conversation": True}),
        node("c", "b", content={"content_type": "thoughts", "thoughts": []}),
        node("d", "c", author={"role": "tool", "name": "browser"}),
        node("e", "d", content={"content_type": "text", "parts": ["", {"image": 1}]}),
        node("f", "e", content=None),
        chatgpt_node("g", "f", content={"content_type": "code", "text": "print(1)"}),
        chatgpt_node(
            "h", "g", content={"content_type": "multimodal_text", "parts": [{"text": "Hm"}, "!"]}
        ),
    )
    memory = AgentMemory()
    report = import_path(memory, as_file([chat]))
    assert sorted(contents(memory)) == ["Hm\n!", "print(1)"]
    assert report.troubles == []


def test_a_circle_and_a_missing_message_are_told_and_the_rest_comes_in():
    circle = chatgpt_chat(chatgpt_node("a", "b"), chatgpt_node("b", "a"))
    orphan = chatgpt_chat(chatgpt_node("c", "gone", text="Still here"), conversation_id="x")
    memory = AgentMemory()
    report = import_path(memory, as_file([circle, orphan]))
    assert sorted(contents(memory)) == ["Hello", "Hello", "Still here"]
    assert len(report.unreadable) == 2
    assert "conversation 1, message a: it answers 'b'" in told(report)[0]
    assert "conversation 2, message c: what it answers, 'gone', is not there" in told(report)[1]


def test_where_no_message_is_current_the_last_one_that_none_answers_is():
    memory = AgentMemory()
    chat = bread()
    for current in (None, "nowhere", ["good"]):
        import_path(memory, as_file([{**chat, "current_node": current}]))
    assert contents(memory) == ["Wie lange geht Sauerteig?", "Over night."]


def test_a_message_that_is_none_costs_itself_only():
    chat = chatgpt_chat(
        chatgpt_node("a", "root", text="first"),
        chatgpt_node("b", "a", author="user"),
        chatgpt_node("c", "b", content="x"),
        chatgpt_node("d", "c", content={"content_type": "weather", "degrees": 3}),
        {"id": "e", "parent": "d", "message": [1]},
        chatgpt_node("f", "e", create_time="soon"),
        chatgpt_node("g", "f", create_time=1e300),
        chatgpt_node("h", "g", text="lone \ud800"),
        chatgpt_node("i", "h", text="nul \0 is text", create_time=None),
    )
    memory = AgentMemory()
    report = import_path(memory, as_file([chat]))
    assert sorted(contents(memory)) == ["first", "nul \0 is text"]
    assert [each.where[-1] for each in report.unreadable] == ["b", "c", "d", "e", "f", "g", "h"]
    nul = next(each for each in kept(memory) if "nul" in each.content)
    assert nul.created_at == 1_700_000_000.25  # its conversation's


def test_a_title_that_is_no_text_costs_nothing():
    for title in (None, 3, "cut \ud83d"):
        memory = AgentMemory()
        report = import_path(memory, as_file([{**bread(), "title": title}]))
        assert (report.imported, report.troubles) == (2, [])


def test_one_conversation_alone_is_read(tmp_path: Path):
    for indent in (None, 2):
        memory = AgentMemory()
        assert import_path(memory, as_file(bread(), indent)).format == "chatgpt"
        assert memory.memory_count == 2


# -- Claude ------------------------------------------------------------------------------------


def test_the_messages_of_claude_come_in_as_turns():
    chat = claude_chat(
        claude_message(1, "human", "Wie viel Salz?", attachments=[{"file_name": "brot.txt"}]),
        claude_message(2, "assistant", "Zwei Prozent.", "Vom Mehl."),
    )
    memory = AgentMemory()
    report = import_path(memory, as_file([chat]))
    assert (report.format, report.imported, report.troubles) == ("claude", 2, [])
    asked, answered = kept(memory)
    assert asked.metadata == {
        "role": "user",
        "turn": 1,
        "session": "talk-1",
        "conversation": "Тесто",
        "message": "m1",
        "program": "claude",
        "files": ["brot.txt"],
    }
    assert asked.created_at == 1_770_112_860.25
    assert (answered.content, answered.source) == ("Zwei Prozent.\n\nVom Mehl.", "assistant")
    assert import_path(memory, as_file([chat])).known == 2


def test_of_blocks_those_of_text_count_and_without_blocks_the_text():
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "web", "input": {}},
        {"type": "text", "text": "Said"},
    ]
    chat = claude_chat(
        claude_message(1, "assistant", content=blocks, text="Said, and a placeholder"),
        claude_message(2, "assistant", content=blocks[:2], text="a placeholder"),
        claude_message(3, "human", content=[], text="From an old export"),
        claude_message(4, "human", content=3, text=None),
        "no message",
        claude_message(5, "", "nobody"),
    )
    memory = AgentMemory()
    report = import_path(memory, as_file([chat]))
    assert contents(memory) == ["Said", "From an old export"]
    assert [each.where[-9:] for each in report.unreadable] == [
        "message 4",
        "message 5",
        "message 6",
    ]


def test_what_claude_remembers_comes_in_note_by_note():
    memories = [
        {
            "conversations_memory": "**Work**\n\nBakes for the harbour.\n\n- Likes rye\n- Not oats",
            "project_memories": {"p1": "Uses 東京 flour."},
            "account_uuid": "a",
        }
    ]
    projects = [
        {
            "uuid": "p1",
            "name": "Bakery",
            "description": "Our bread",
            "prompt_template": "Answer in grams.",
            "docs": [{"filename": "x.md", "content": "a document"}],
            "created_at": "2026-01-02T03:04:05Z",
        }
    ]
    chats = [claude_chat(claude_message(1, "human", "Hello"))]
    files = {"conversations": chats, "memories": memories, "projects": projects}
    memory = AgentMemory()
    report = import_path(memory, zipped(users=[{"uuid": "a"}], **files))
    assert (report.format, report.troubles) == ("claude", [])
    facts = {each.content: each for each in kept(memory) if each.persistent}
    assert set(facts) == {
        *("Bakes for the harbour.", "Likes rye", "Not oats", "Uses 東京 flour."),
        *("Our bread", "Answer in grams."),
    }
    assert facts["Likes rye"].category == "Work"
    assert facts["Uses 東京 flour."].metadata == {"project": "p1"}
    assert facts["Answer in grams."].memory_type is MemoryType.PROCEDURAL
    again = import_path(memory, zipped(**files))
    assert (again.imported, again.known) == (0, 7)


def test_memories_that_are_none_are_told():
    values = [
        {"conversations_memory": 3},
        {"conversations_memory": "- Likes tea", "project_memories": [1]},
        {"project_memories": {"p": None, "q": {"deep": 1}}},
        {"uuid": "p", "prompt_template": 3},
        {"something": "else"},
        7,
    ]
    memory = AgentMemory()
    report = import_path(memory, as_file(values), format="claude")
    assert contents(memory) == ["Likes tea"]
    assert [each.where for each in report.unreadable] == [
        *("memory 1", "memory 2", "memory 3, project q", "project 4, prompt_template"),
        *("conversation 5", "conversation 6"),
    ]


# -- zip files and folders ---------------------------------------------------------------------


def test_an_export_is_read_from_its_zip_file_and_from_its_folder(tmp_path: Path):
    (tmp_path / "export").mkdir()
    for number in range(2):
        chat = {**bread(), "conversation_id": f"chat-{number}"}
        (tmp_path / "export" / f"conversations-00{number}.json").write_text(json.dumps([chat]))
    (tmp_path / "export" / "shared_conversations.json").write_text("[3]")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for file in (tmp_path / "export").iterdir():
            archive.write(file, f"a/folder/{file.name}")
        archive.writestr("chat.html", "<html>")
        archive.writestr("__MACOSX/._conversations.json", "\0")
    memory = AgentMemory()
    for source, new in (("export", 4), ("export.zip", 0)):
        report = import_path(memory, tmp_path / source)
        assert (report.format, report.imported, report.known) == ("chatgpt", new, 4 - new)
        assert report.troubles == []


def test_names_that_lead_out_of_a_zip_file_lead_nowhere(tmp_path: Path):
    names = ["../conversations.json", "/etc/conversations.json", "C:\\x\\conversations.json"]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number, name in enumerate(names):
            chat = {**bread(), "conversation_id": f"chat-{number}"}
            archive.writestr(name, json.dumps([chat]))
    before = sorted(tmp_path.parent.rglob("*"))
    import_path(AgentMemory(), tmp_path / "x.zip")
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_a_zip_file_that_unpacks_to_what_no_export_is_is_refused(monkeypatch: pytest.MonkeyPatch):
    bomb = zipped(conversations="[" + " " * (packed._SMALL + 1) + "]")
    with pytest.raises(InvalidValue, match="times its size"):
        import_path(AgentMemory(), bomb)
    monkeypatch.setattr(packed, "_MOST", 100)
    with pytest.raises(InvalidValue, match="the most that is read"):
        import_path(AgentMemory(), zipped(conversations=[bread()]))


def test_a_zip_file_of_something_else_is_refused():
    for file in (zipped(photo=1), io.BytesIO(b"PK\x03\x04 and nonsense")):
        memory = AgentMemory()
        with pytest.raises(InvalidValue):
            import_path(memory, file)
        assert memory.memory_count == 0


def test_a_zip_file_that_is_damaged_gives_what_can_be_unpacked():
    chats = [{**bread(), "conversation_id": f"chat-{n}"} for n in range(3000)]
    data = bytearray(zipped(conversations=chats).getvalue())
    data[len(data) // 2] ^= 0xFF
    memory = AgentMemory()
    report = import_path(memory, io.BytesIO(bytes(data)))
    assert any("can't be unpacked any further" in text for text in told(report))
    assert report.imported == memory.memory_count


def test_a_zip_file_that_comes_as_a_stream_is_refused():
    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(InvalidValue, match="name its path"):
        import_path(AgentMemory(), Stream(zipped(conversations=[bread()]).getvalue()))


# -- much ---------------------------------------------------------------------------------------


def test_an_element_of_any_length_is_read_and_one_without_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
):
    chat = chatgpt_chat(chatgpt_node("a", "root", text="é" * 5_000_000))
    memory = AgentMemory()
    assert import_path(memory, as_file([bread(), chat])).imported == 3
    monkeypatch.setattr("retain.moving.json_text.LONGEST", 1_000_000)
    memory = AgentMemory()
    report = import_path(memory, as_file([bread(), chat, bread()]))
    assert memory.memory_count == 2
    assert "longer than 1000000 characters" in told(report)[0]


def test_of_a_large_file_a_little_is_held_at_a_time(tmp_path: Path):
    import tracemalloc

    one = json.dumps(chatgpt_chat(chatgpt_node("a", "root", text="word " * 2000)))
    with (tmp_path / "conversations.json").open("w") as file:
        file.write("[")
        for number in range(4000):  # 40 MB
            file.write(one.replace("chat-1", f"chat-{number}") + (", " if number < 3999 else "]"))
    from retain.moving.sources import opened

    tracemalloc.start()
    with opened(tmp_path / "conversations.json", "auto") as source:
        assert sum(read.memory is not None for read in source.reads) == 4000
    assert tracemalloc.get_traced_memory()[1] < 12_000_000
    tracemalloc.stop()
