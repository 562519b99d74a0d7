"""What an agent's memories learn through a real provider, and what its faults cost: nothing."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from model_server import Asked, ModelServer, Reply
from retain import (
    Agent,
    AgentConfig,
    EntityMemory,
    InMemoryStore,
    KnowledgeGraphMemory,
    OpenAIProvider,
    StoreSessions,
)

ENTITIES = {
    "entities": [
        {"name": "Алиса", "type": "person", "attributes": [{"name": "city", "value": "Rio"}]}
    ]
}
TRIPLES = {
    "relationships": [
        {"subject": "Алиса", "relation": "lives_in", "object": "Rio", "confidence": 0.9}
    ]
}
FAULTS = {
    "malformed": lambda good: Reply("Sorry, I can't make a list."),
    "truncated": lambda good: Reply(good[:-10]),
    "of another form": lambda good: Reply('{"entities": [{"name": 5}], "relationships": [1]}'),
    "half right": lambda good: Reply(good.replace("]}", ', {"name": " ", "subject": " "}]}')),
    "refusing": lambda good: Reply(refusal="I won't."),
    "failing": lambda good: Reply(status=500, message="overloaded"),
    "no HTTP": lambda good: Reply(body=b"\x00\xff"),
    "cut": lambda good: Reply(good, cut=True),
    "slow": lambda good: Reply(good, delay=0.8),
}


def agent_of(server: ModelServer, sessions: StoreSessions, timeout: float = 30) -> Agent:
    provider = OpenAIProvider("m", api_key="k", base_url=server.url, max_retries=0)
    config = AgentConfig(
        entity_memory=EntityMemory(provider, timeout=timeout),
        knowledge_graph=KnowledgeGraphMemory(provider=provider, timeout=timeout),
        session_store=sessions,
        session_id="s",
    )
    return Agent([], provider, config=config)


def test_a_model_finds_what_the_next_prompt_knows():
    lock, prompts = threading.Lock(), []

    def script(asked: Asked) -> Reply:
        with lock:
            prompts.append(asked.prompt)
        if "List the named entities" in asked.prompt:
            return Reply(json.dumps(ENTITIES))
        if "List the relationships" in asked.prompt:
            return Reply(json.dumps(TRIPLES))
        return Reply("I see.")

    with ModelServer(script) as server:
        agent = agent_of(server, StoreSessions(InMemoryStore()))
        agent.run("Алиса lives in Rio")
        agent.run("And where does she live?")
    (second,) = [prompt for prompt in prompts if "<from-memory>" in prompt]
    assert "- Алиса [person] (city: Rio)" in second
    assert "- Алиса --[lives_in]--> Rio (confidence: 0.9)" in second
    learned = [prompt for prompt in prompts if "List the " in prompt]
    assert len(learned) == 4 and not any("[Known" in prompt for prompt in learned)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_gives_no_list_costs_neither_turn_nor_answer(fault: str, caplog):
    def script(asked: Asked) -> Reply:
        if "List the named entities" in asked.prompt:
            return FAULTS[fault](json.dumps(ENTITIES, ensure_ascii=False))
        if "List the relationships" in asked.prompt:
            return FAULTS[fault](json.dumps(TRIPLES, ensure_ascii=False))
        return Reply("I see.")

    sessions = StoreSessions(InMemoryStore())
    with ModelServer(script) as server, caplog.at_level(logging.DEBUG, "retain.agent"):
        agent = agent_of(server, sessions, 0.2 if fault == "slow" else 30)
        assert agent.run("Алиса lives in Rio").content == "I see."
    talk = sessions.load("s")
    assert talk is not None
    assert [message.content for message in talk.get_history()] == ["Алиса lives in Rio", "I see."]
    assert agent.config.entity_memory.entities == []
    assert agent.config.knowledge_graph.store.all() == []
    said = [record for record in caplog.records if record.name == "retain.agent"]
    assert [record.levelname for record in said] == ["WARNING", "WARNING"]
