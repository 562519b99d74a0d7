"""The command ``retain serve``, as far as it does not serve (see tests/web)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retain import Scope
from retain.web.tokens import Tokens

Retain = Callable[..., Any]


def test_a_new_token_is_printed_once_and_bound_to_the_scope(retain: Retain, tmp_path: Path):
    file = tmp_path / "tokens.json"
    plain = retain("serve", "--new-token", "--tokens", str(file), "--user", "änn")
    made = retain("--json", "serve", "--new-token", "--read-only", "--tokens", str(file)).value
    tokens = Tokens(file)
    grant = tokens.grant(plain.lines[0])
    assert grant is not None and grant.scope == Scope(user="änn") and not grant.read_only
    grant = tokens.grant(made["token"])
    assert grant is not None and grant.scope == Scope() and grant.read_only
    assert made["scope"] == {} and "once" in plain.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--open"),
        (("--open", "--host", "0.0.0.0"), "this machine"),
        (("--open", "--tokens", "x"), "contradict"),
        (("--open", "--store", "memory:", "--workers", "2"), "of its own"),
        (("--tokens", "x", "--user", "ann"), "own scope"),
        (("--tokens", "none.json"), "none.json"),
        (("--new-token",), "--tokens"),
        (("--read-only", "--open"), "--new-token"),
        (("--open", "--max-body", "lots"), "size"),
        (("--open", "--max-body", "0"), "size"),
        (("--open", "--port", "70000"), "70000"),
        (("--open", "--rate", "-1"), "-1"),
    ],
    ids=" ".join,
)
def test_what_would_not_serve_is_refused(
    retain: Retain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, told: str
):
    monkeypatch.chdir(tmp_path)
    outcome = retain("serve", *words, expect=2)
    assert told in outcome.err
    assert not (tmp_path / "memory" / "memory.db").exists()
