from pathlib import Path

from retain import JSONFileStore
from retain.testing import StoreConformance


class TestJSONFileStore(StoreConformance):
    def open_store(self, place: Path) -> JSONFileStore:
        return JSONFileStore(place / "memories.json")
