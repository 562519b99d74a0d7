"""The tests that every store must pass, ours and yours.

Subclass :class:`StoreConformance` in a test module and say how your store is opened::

    from retain.testing import StoreConformance

    class TestMyStore(StoreConformance):
        def open_store(self, place):
            return Store(MyDriver(place / "my.db"))

pytest and hypothesis must be installed (extra ``testing``).
"""

from __future__ import annotations

from .conformance import StoreConformance
from .strategies import HOSTILE, filters, json_objects, memories, texts

__all__ = ["HOSTILE", "StoreConformance", "filters", "json_objects", "memories", "texts"]
