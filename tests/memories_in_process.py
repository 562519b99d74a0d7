"""The real faces without files, for the tests of the tools and the agent."""

from __future__ import annotations

from retain import KnowledgeMemory, Memory


class Knowledge(KnowledgeMemory):
    """A knowledge memory in the process; its hook refuses texts that hold ``refused``."""

    def __init__(self, refused: str = "\0") -> None:
        def no_secrets(text: str) -> str | None:
            return None if refused in text else text

        super().__init__(None, pre_save=no_secrets)

    @property
    def memories(self) -> list[Memory]:
        """All of them, oldest first."""
        return self.engine.store.list_all()[::-1]
