"""Each adapter is tested beside its own framework, in an environment that has no other.

``environments/NAME.in`` says what that of ``test_NAME.py`` has, ``NAME.txt`` which versions;
``make test-adapters`` makes them, and runs each file in
its own. Elsewhere the file is not collected.
"""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
ONLY = os.environ.get("RETAIN_ADAPTER")
"""Whose environment this is; ``None`` for the project's own, which has no framework."""

collect_ignore = [
    f"test_{lock.stem}.py" for lock in (HERE / "environments").glob("*.txt") if lock.stem != ONLY
]
