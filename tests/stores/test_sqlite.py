from pathlib import Path

from retain import SQLiteStore
from retain.testing import StoreConformance


class TestSQLiteStore(StoreConformance):
    def open_store(self, place: Path) -> SQLiteStore:
        return SQLiteStore(place / "memory.db")
