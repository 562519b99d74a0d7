"""What an installation of retain weighs and whether it talks: run inside it, prints JSON.

``sizes``: bytes by distribution, pip and setuptools aside. ``able``: the distributions whose code
imports a module that can open a connection, and where. ``spoke``: what a socket was used for
while memories were remembered and recalled.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

_TOOLS = {"pip", "setuptools", "wheel"}
_SPEAKING = set("aiohttp ftplib http httpx requests smtplib socket ssl urllib3".split())


def sizes(found: list[Distribution]) -> dict[str, int]:
    """Bytes on disk by distribution."""
    paths = {each.name: [Path(str(file.locate())) for file in each.files or ()] for each in found}
    return {
        name: sum(path.stat().st_size for path in files if path.is_file())
        for name, files in paths.items()
    }


def able(distribution: Distribution) -> list[str]:
    """The files, tests aside, that import something that can open a connection."""
    return [
        str(file)
        for file in distribution.files or ()
        if file.suffix == ".py" and "tests" not in file.parts and "testing" not in file.parts
        if _speaks(ast.parse(Path(str(file.locate())).read_bytes()))
    ]


def _speaks(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        if any(name.split(".")[0] in _SPEAKING or name == "urllib.request" for name in names):
            return True
    return False


def spoke() -> list[str]:
    """The audit events of sockets while retain's main job runs."""
    events: list[str] = []
    sys.addaudithook(lambda event, _: events.append(event) if "socket" in event else None)
    from retain.cli import main

    for words in (
        ["remember", "The deadline is 1 March", "--persistent"],
        ["recall", "deadline"],
        ["context"],
        ["check"],
    ):
        with contextlib.redirect_stdout(io.StringIO()):
            code = main(["--dir", sys.argv[1], *words], standalone_mode=False)
        assert not code, words
    return events


if __name__ == "__main__":
    dists = [each for each in distributions() if each.name not in _TOOLS]
    report = {
        "sizes": sizes(dists),
        "able": {each.name: files for each in dists if (files := able(each))},
        "spoke": spoke(),
    }
    print(json.dumps(report))
