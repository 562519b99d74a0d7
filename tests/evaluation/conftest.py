"""Small data in each format, and a place to write it to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a value as JSON, or several values as a line each; the path."""

    def write(name: str, *values: Any, lines: bool = False) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if lines or len(values) != 1:
            text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        else:
            text = json.dumps(values[0], ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def locomo() -> list[dict[str, Any]]:
    """One sample of two sessions, the later one first in the file."""
    return [
        {
            "sample_id": "conv-1",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Bob",
                "session_2_date_time": "12:05 am on 29 February, 2024",
                "session_2": [
                    {"speaker": "Ann", "dia_id": "D2:1", "text": "My cat Miu is ill."},
                    {
                        "speaker": "Bob",
                        "dia_id": "D2:2",
                        "text": "Look!",
                        "blip_caption": "a photo of a sailing boat",
                    },
                ],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Köln."},
                    {"speaker": "Bob", "dia_id": "D1:2", "text": "I bake bread, 東京 style."},
                ],
                "session_3_date_time": "1:00 pm on 1 March, 2024",
            },
            "qa": [
                {"question": "Where to?", "answer": "Köln", "evidence": ["D1:1"], "category": 4},
                {
                    "question": "Which pet, which ship?",
                    "answer": "…",
                    "evidence": ["D2:1; D:2:2", "D", "D9:9"],
                    "category": 1,
                },
                {"question": "Why?", "answer": "…", "evidence": [], "category": 3},
                {"question": "Whose dog?", "adversarial_answer": "…", "category": 5},
                {"question": "When ill?", "answer": "…", "evidence": ["D02:01"], "category": 2},
            ],
        }
    ]


@pytest.fixture
def longmemeval() -> list[dict[str, Any]]:
    """Two questions in the original form, one that can't be answered, one without evidence."""
    sessions = {
        "answer_1": [
            {"role": "user", "content": "I bought a red bike.", "has_answer": True},
            {"role": "assistant", "content": "Enjoy the ride!", "has_answer": False},
        ],
        "noise": [
            {"role": "user", "content": "What is the capital of Peru?"},
            {"role": "assistant", "content": "Lima."},
        ],
    }
    question = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What colour has my bike?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "red",
        "answer_session_ids": ["answer_1"],
        "haystack_session_ids": ["noise", "answer_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [sessions["noise"], sessions["answer_1"]],
    }
    return [
        question,
        {
            **question,
            "question_id": "q2",
            "question_type": "multi-session",
            "question": "Which capital did I ask about?",
            "answer_session_ids": ["noise"],
        },
        {**question, "question_id": "q3_abs", "answer_session_ids": ["answer_1"]},
    ]


@pytest.fixture
def corpora() -> dict[str, Any]:
    """Two languages, two paragraphs each."""
    return {
        "corpora": [
            {
                "id": "en",
                "docs": [["p0", "The cat sleeps."], ["p1", "The dog barks."]],
                "queries": [
                    {"id": "q0", "text": "which animal barks?", "rel": ["p1"], "cat": "en"},
                    {"id": "q1", "text": "which animal flies?", "rel": []},
                ],
            },
            {
                "id": "zh",
                "docs": [["p0", "猫在睡觉。"], ["p1", "狗在叫。"]],
                "queries": [{"id": "q0", "text": "什么在睡觉？", "rel": ["p0"]}],
            },
        ]
    }
