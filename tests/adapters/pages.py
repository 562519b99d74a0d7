"""The program of a framework's page, run as a reader would: saved, and started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "frameworks"
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def program(name: str) -> str:
    """The one program of ``docs/frameworks/NAME.md``."""
    (text,) = _PROGRAM.findall((PAGES / f"{name}.md").read_text("utf-8"))
    return str(text)


def run_page(name: str, server_env: Mapping[str, str], tmp_path: Path, *says: str) -> str:
    """Start the program of a page in ``tmp_path``, say ``says`` to it, and give what it prints.

    ``server_env``: the environment variables by which it finds its model.
    """
    file = tmp_path / "program.py"
    file.write_text(program(name), "utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8", **server_env}
    run = subprocess.run(
        [sys.executable, str(file), *says],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    return run.stdout
