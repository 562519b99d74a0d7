from pathlib import Path

from retain import FileStore
from retain.testing import StoreConformance


class TestFileStore(StoreConformance):
    def open_store(self, place: Path) -> FileStore:
        return FileStore(place / "memory")
