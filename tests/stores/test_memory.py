from pathlib import Path

import pytest

from retain import InMemoryStore, InvalidValue
from retain.testing import StoreConformance


class TestInMemoryStore(StoreConformance):
    histories = 10
    durable = False

    def open_store(self, place: Path) -> InMemoryStore:
        return InMemoryStore()


def test_a_backup_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="export"):
        InMemoryStore().backup(tmp_path / "copy")
