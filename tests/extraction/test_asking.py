"""A model's answer is believed only in the form that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from retain import ExtractionFailed, Message
from retain.extraction import ask

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "number", "minimum": 0, "maximum": 150},
        "kind": {"type": "string", "enum": ["cat", "dog"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "owner": {"type": ["string", "null"]},
    },
    "required": ["name"],
}


class Says:
    """A model that answers with one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.prompt: dict[str, Any] = {}

    def complete(self, **prompt: Any) -> tuple[Message, None]:
        self.prompt = prompt
        return Message("assistant", self.text), None


class Gives:
    """A model that answers with a value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def complete_json(self, **prompt: Any) -> tuple[Any, None]:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value, None


def asked(provider: Any) -> Any:
    return ask(provider, model="m", system="s", text="猫", schema=SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Miu"}',
        ' \n{"name": "Miu", "more": 1}\n',
        'Here you are:\n```json\n{"name": "Miu"}\n```\nAnything else?',
        'Sure! {"name": "Miu"} is what I found.',
    ],
)
def test_json_is_taken_out_of_a_text_without_what_nobody_asked_for(text: str):
    assert asked(Says(text)) == {"name": "Miu"}


def test_a_model_without_schemas_is_told_the_form():
    model = Says('{"name": "Miu"}')
    asked(model)
    assert '"required": ["name"]' in model.prompt["system_prompt"]
    assert [m.content for m in model.prompt["messages"]] == ["猫"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I can't help with that.", "no JSON"),
        ('{"name": "Miu"', "cut off"),
        ("[" * 100_000, "no JSON"),
        ("```json\n" * 1000, "no JSON"),
        ('["Miu"]', "object"),
    ],
)
def test_an_answer_that_is_no_json_is_told(text: str, why: str):
    with pytest.raises(ExtractionFailed, match=why):
        asked(Says(text))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "object"),
        ({}, "no 'name'"),
        ({"name": " "}, "blank"),
        ({"name": 7}, "string"),
        ({"name": "Miu", "age": 151}, "from 0 to 150"),
        ({"name": "Miu", "age": float("nan")}, "from 0 to 150"),
        ({"name": "Miu", "age": True}, "number"),
        ({"name": "Miu", "kind": "cow"}, "one of"),
        ({"name": "Miu", "tags": ["a", "b", "c"]}, "3 items"),
        ({"name": "Miu", "tags": ["a", None]}, r"tags\[1\]"),
        ({"name": "Miu", "owner": []}, "string or null"),
    ],
)
def test_a_value_of_another_form_is_refused(value: Any, why: str):
    with pytest.raises(ExtractionFailed, match=why):
        asked(Gives(value))


def test_a_failing_provider_is_the_cause():
    broken = ConnectionError("no route")
    with pytest.raises(ExtractionFailed, match="no route") as caught:
        asked(Gives(broken))
    assert caught.value.__cause__ is broken


def test_a_long_answer_is_shown_short():
    with pytest.raises(ExtractionFailed) as caught:
        asked(Says("x" * 10_000))
    assert len(str(caught.value)) < 400
