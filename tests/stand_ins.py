"""Memories for the tests of the tools and the agent, which need one but test none."""

from __future__ import annotations

from collections.abc import Iterable

from retain.errors import InvalidValue
from retain.messages import Message
from retain.models import Memory, one_line


class Receipt(str):
    reason = ""


class Knowledge:
    """Keeps memories in a list; refuses texts that hold ``refused``."""

    def __init__(self, refused: str = "\0") -> None:
        self.memories: list[Memory] = []
        self.refused = refused

    def remember(
        self, content: str, category: str = "general", persistent: bool = False
    ) -> Receipt:
        if not content.strip():
            raise InvalidValue("content is blank; give some text")
        if self.refused in content:
            receipt = Receipt()
            receipt.reason = "the hook no_secrets refused the text"
            return receipt
        self.memories.append(Memory(content=content, category=category, persistent=persistent))
        return Receipt(f"Remembered: {content}")

    def match(self, query: str, k: int) -> list[Memory]:
        words = query.casefold().split()
        texts = [(f"{each.category} {each.content}".casefold(), each) for each in self.memories]
        found = [each for text, each in texts if not words or any(w in text for w in words)]
        return found[:k]

    def build_context(self) -> str:
        lines = [f"- ({one_line(m.category)}) {one_line(m.content)}" for m in self.memories]
        return "\n".join(["[Recent Memory]", *lines]) if lines else ""


class Conversation:
    """Keeps messages in a list; falsy while it is empty."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def add(self, message: Message) -> None:
        self._messages.append(message)

    def add_many(self, messages: Iterable[Message]) -> None:
        self._messages.extend(messages)

    def get_history(self) -> list[Message]:
        return list(self._messages)

    def __len__(self) -> int:
        return len(self._messages)
