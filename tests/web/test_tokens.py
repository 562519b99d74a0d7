"""The file of tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retain import InvalidValue, Scope, StoreFailed
from retain.web.tokens import Tokens, digest


def test_a_token_allows_its_scope_and_is_not_in_the_file(tmp_path: Path):
    file = tmp_path / "tokens.json"
    ann = Tokens.add(file, Scope(user="änn"))
    bob = Tokens.add(file, Scope(user="bob", session="s"), read_only=True)
    tokens = Tokens(file)
    assert len(tokens) == 2
    found = tokens.grant(ann)
    assert found is not None and found.scope == Scope(user="änn") and not found.read_only
    found = tokens.grant(bob)
    assert found is not None and found.scope == Scope(user="bob", session="s") and found.read_only
    text = file.read_text("utf-8")
    assert ann not in text and bob not in text
    assert file.stat().st_mode & 0o077 == 0
    for wrong in ("", ann[:-1], ann + "x", digest(ann), "änn", "\udcff"):
        assert tokens.grant(wrong) is None


def test_a_changed_file_is_read_again_and_a_wrong_one_changes_nothing(tmp_path: Path, caplog: Any):
    file = tmp_path / "tokens.json"
    first = Tokens.add(file, Scope(user="ann"))
    tokens = Tokens(file)
    second = Tokens.add(file, Scope(user="bob"))
    tokens.refresh()
    assert tokens.grant(second) is not None
    file.write_text("{")
    tokens.refresh()
    assert tokens.grant(first) is not None and "no JSON" in caplog.text
    file.unlink()
    tokens.refresh()
    assert tokens.grant(first) is not None
    file.write_text('{"tokens": []}')
    tokens.refresh()
    assert tokens.grant(first) is None


ENTRY = {"sha256": digest("x"), "scope": {"user": "ann"}}


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"tokens": {}},
        {"tokens": [], "more": 1},
        {"tokens": ["x"]},
        {"tokens": [{**ENTRY, "sha256": "abc"}]},
        {"tokens": [{**ENTRY, "sha256": digest("x").upper()}]},
        {"tokens": [{"sha256": digest("x")}]},
        {"tokens": [{**ENTRY, "scope": {"user": ""}}]},
        {"tokens": [{**ENTRY, "scope": {"usr": "ann"}}]},
        {"tokens": [{**ENTRY, "readonly": True}]},
        {"tokens": [{**ENTRY, "read_only": 1}]},
        {"tokens": [ENTRY, {**ENTRY, "scope": {"user": "bob"}}]},
    ],
    ids=json.dumps,
)
def test_a_file_with_a_mistake_is_refused_as_a_whole(tmp_path: Path, content: Any):
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidValue):
        Tokens(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InvalidValue, match="--new-token"):
        Tokens(tmp_path / "none.json")
    with pytest.raises(StoreFailed):
        Tokens(tmp_path)
