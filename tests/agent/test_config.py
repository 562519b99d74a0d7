"""The settings of an agent."""

from __future__ import annotations

import dataclasses
import math

import pytest

from memories_in_process import Knowledge
from retain import EntityMemory, InMemoryStore, StoreSessions
from retain.agent import AgentConfig
from retain.errors import InvalidType, InvalidValue


@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [
        ("model", None, InvalidType),
        ("system_prompt", ["x"], InvalidType),
        ("max_iterations", 0, InvalidValue),
        ("max_iterations", -1, InvalidValue),
        ("max_iterations", 1.5, InvalidType),
        ("max_iterations", True, InvalidType),
        ("max_iterations", "5", InvalidType),
        ("max_tokens", 0, InvalidValue),
        ("max_tokens", 10.0, InvalidType),
        ("temperature", -0.1, InvalidValue),
        ("temperature", math.nan, InvalidValue),
        ("temperature", "hot", InvalidType),
        ("timeout", -1, InvalidValue),
        ("timeout", math.inf, InvalidValue),
        ("knowledge_memory", "./memory", InvalidType),
        ("knowledge_memory", object(), InvalidType),
        ("entity_memory", object(), InvalidType),
        ("entity_memory", EntityMemory, InvalidType),
        ("knowledge_graph", "kg.db", InvalidType),
        ("session_store", "sessions.db", InvalidType),
        ("session_id", "", InvalidValue),
        ("session_id", "a\0b", InvalidValue),
        ("session_id", "é" * 513, InvalidValue),
        ("session_id", 42, InvalidType),
    ],
)
def test_a_setting_that_can_not_be_is_refused_by_name(setting, value, error):
    with pytest.raises(error, match=f"^{setting}"):
        AgentConfig(**{setting: value})


def test_a_session_needs_a_store_and_an_id():
    store = StoreSessions(InMemoryStore())
    with pytest.raises(InvalidValue, match="session_store needs a session_id"):
        AgentConfig(session_store=store)
    with pytest.raises(InvalidValue, match="give both"):
        AgentConfig(session_id="s")
    assert AgentConfig(session_store=store, session_id="é" * 512).session_id == "é" * 512


def test_a_setting_that_does_not_exist_is_refused_by_name():
    for unknown in ("max_iteration", "session_stores"):
        with pytest.raises(TypeError, match=unknown):
            AgentConfig(**{unknown: 5})


def test_a_setting_does_not_change_behind_an_agents_back():
    config = AgentConfig(knowledge_memory=Knowledge(), temperature=0, timeout=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.model = "other"  # type: ignore[misc]
    assert dataclasses.replace(config, model="other").knowledge_memory is config.knowledge_memory
