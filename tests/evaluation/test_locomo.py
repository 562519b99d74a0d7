from __future__ import annotations

import pytest

from retain import InvalidValue, clock
from retain.evaluation import load_dataset


def load(write, locomo, **options):
    return load_dataset(write("chats.json", locomo), **options)


def test_turns_are_items_with_speaker_session_and_time(write, locomo):
    dataset = load(write, locomo)
    assert (dataset.format, dataset.unit, dataset.name) == ("locomo", "turn", "chats.json")
    (case,) = dataset.cases
    assert [item.id for item in case.items] == ["D1:1", "D1:2", "D2:1", "D2:2"]
    assert [item.role for item in case.items] == ["Ann", "Bob", "Ann", "Bob"]
    assert [item.session for item in case.items] == 2 * ["session_1"] + 2 * ["session_2"]
    assert [clock.iso(item.created_at or 0) for item in case.items] == [
        "2023-05-08T13:56:00Z",
        "2023-05-08T13:56:01Z",
        "2024-02-29T00:05:00Z",
        "2024-02-29T00:05:01Z",
    ]


def test_an_image_is_its_caption_after_the_text(write, locomo):
    locomo[0]["conversation"]["session_1"][0].update(text="", blip_caption="a cathedral")
    items = load(write, locomo).cases[0].items
    assert items[3].content == "Look! [a photo of a sailing boat]"
    assert items[0].content == "[a cathedral]"


def test_questions_of_four_categories_with_evidence_are_asked(write, locomo):
    dataset = load(write, locomo)
    assert [(q.category, q.relevant) for q in dataset.cases[0].questions] == [
        ("single-hop", {"D1:1"}),
        ("multi-hop", {"D2:1", "D2:2"}),
        ("temporal", {"D2:1"}),
    ]
    assert dataset.left_out == {"without evidence": 1, "adversarial": 1}


@pytest.mark.parametrize("hour", ["12:00 pm", "1:00 pm", "11:59 am", "12:59 am"])
def test_hours_are_read_as_the_clock_with_twelve_says(write, locomo, hour):
    locomo[0]["conversation"]["session_1_date_time"] = f"{hour} on 8 May, 2023"
    found = clock.iso(load(write, locomo).cases[0].items[0].created_at or 0)[11:16]
    assert (
        found
        == {
            "12:00 pm": "12:00",
            "1:00 pm": "13:00",
            "11:59 am": "11:59",
            "12:59 am": "00:59",
        }[hour]
    )


def test_without_a_time_there_is_none(write, locomo):
    del locomo[0]["conversation"]["session_1_date_time"]
    assert load(write, locomo).cases[0].items[0].created_at is None


def test_sessions_can_be_what_is_to_be_found(write, locomo):
    case = load(write, locomo, unit="session").cases[0]
    assert len(case.items) == 4
    assert [q.relevant for q in case.questions] == [{"session_1"}, {"session_2"}, {"session_2"}]
    case = load(write, locomo, unit="session-document").cases[0]
    assert [item.id for item in case.items] == ["session_1", "session_2"]
    assert case.items[0].content == "Ann: I moved to Köln.\nBob: I bake bread, 東京 style."
    assert case.items[0].role is None
    assert clock.iso(case.items[1].created_at or 0) == "2024-02-29T00:05:00Z"


def change(sample, *path, to):
    *parents, last = path
    for name in parents:
        sample = sample[name]
    sample[last] = to


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("conversation",), {}, "[0].conversation has no 'session_1'"),
        (("conversation", "session_1"), "hi", '[0].conversation.session_1 is "hi"; give a list'),
        (("conversation", "session_1", 1, "text"), 5, "session_1[1].text is 5; give text"),
        (("conversation", "session_1", 1, "speaker"), "", "session_1[1].speaker is blank"),
        (("conversation", "session_1", 1, "dia_id"), None, "session_1[1] has no 'dia_id'"),
        (("conversation", "session_1", 1, "dia_id"), "D2:1", "two memories have the id 'D2:1'"),
        (("conversation", "session_1_date_time"), "noon", "session_1_date_time is 'noon'; give"),
        (
            ("conversation", "session_1_date_time"),
            "1:00 pm on 31 June, 2023",
            "which is no time that there is",
        ),
        (("qa", 1, "question"), " ", "[0].qa[1].question is blank"),
        (("qa", 1, "category"), 9, "[0].qa[1].category is 9; give a number from 1 to 5"),
        (("qa", 1, "category"), [1], "[0].qa[1].category is a list; give a whole number"),
        (("qa", 1, "category"), True, "[0].qa[1].category is true; give a whole number"),
        (("qa", 1, "evidence"), "D1:1", '[0].qa[1].evidence is "D1:1"; give a list'),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(write, locomo, path, value, message):
    change(locomo[0], *path, to=value)
    with pytest.raises(InvalidValue) as caught:
        load(write, locomo)
    assert message in str(caught.value)
