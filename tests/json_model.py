"""A provider that answers with given texts, one after the other, and keeps what it was asked."""

from __future__ import annotations

from typing import Any

from retain import Message, Role


class Model:
    """Answers ``answers`` in turn; ``asked`` has the text of each question."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def complete(self, **prompt: Any) -> tuple[Message, None]:
        self.asked.append(prompt["messages"][-1].content)
        return Message(Role.ASSISTANT, self.answers.pop(0)), None
