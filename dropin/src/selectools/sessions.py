"""``selectools.sessions``: where an agent keeps its conversations."""

from retain import SessionStore, SQLiteSessionStore

__all__ = ["SQLiteSessionStore", "SessionStore"]
