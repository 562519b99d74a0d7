"""Knowledge stores as a user might write them: the six methods of the specification, no more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from retain import KnowledgeEntry

MEMBERS = ["id", "content", "category", "importance", "persistent", "ttl_days"]
MEMBERS += ["created_at", "updated_at", "metadata"]


class ForeignStore:
    """Keeps rows with the specified members and nothing else, as a table elsewhere would."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def save(self, entry: KnowledgeEntry) -> str:
        self.rows[entry.id] = {name: getattr(entry, name) for name in MEMBERS}
        return entry.id

    def get(self, entry_id: str) -> KnowledgeEntry | None:
        row = self.rows.get(entry_id)
        return None if row is None else KnowledgeEntry(**row)

    def query(
        self,
        category: str | None = None,
        min_importance: float = 0.0,
        since: datetime | None = None,
        limit: int = 50,
    ) -> list[KnowledgeEntry]:
        found = [
            KnowledgeEntry(**row)
            for row in self.rows.values()
            if category in (None, row["category"])
            and row["importance"] >= min_importance
            and (since is None or row["created_at"] >= since)
        ]
        found.sort(key=lambda entry: entry.created_at, reverse=True)
        return sorted(found, key=lambda entry: -entry.importance)[:limit]

    def delete(self, entry_id: str) -> bool:
        return self.rows.pop(entry_id, None) is not None

    def count(self) -> int:
        return len(self.rows)

    def prune(self, max_age_days: int | None = None, min_importance: float = 0.0) -> int:
        return 0
