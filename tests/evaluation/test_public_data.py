"""The public sets, where they are at hand: as many questions as are published, found as well.

The floors are below what ``docs/evaluation.md`` has, by about what a change for the better in one
place may cost in another.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from retain.evaluation import Dataset, evaluate, load_dataset

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LOCOMO = "locomo10.json"
LONGMEMEVAL = "longmemeval_s120.questions.jsonl.xz"
XQUAD = "xquad.json"

pytestmark = pytest.mark.slow


def data(name: str, **options) -> Dataset:
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not in shared/data beside the repository")
    return load_dataset(DATA / name, **options)


def every(step: int, dataset: Dataset, *, of: str = "cases") -> Dataset:
    """Every so many of the cases, or of each case's questions: to be through in a minute."""
    if of == "cases":
        return replace(dataset, cases=dataset.cases[::step])
    return replace(
        dataset,
        cases=[replace(case, questions=case.questions[::step]) for case in dataset.cases],
    )


def assert_at_least(scores: dict[str, float], **floors: float) -> None:
    missed = {name: scores[name] for name, floor in floors.items() if scores[name] < floor}
    assert not missed


def counts(dataset: Dataset) -> dict[str, int]:
    return dict(Counter(q.category for case in dataset.cases for q in case.questions))


def test_locomo_has_its_questions_and_most_of_their_turns_are_found():
    dataset = data(LOCOMO)
    assert counts(dataset) == {
        "multi-hop": 282,
        "temporal": 321,
        "open-domain": 92,
        "single-hop": 841,
    }
    assert dataset.item_count == 5882
    assert dataset.left_out == {"adversarial": 446, "without evidence": 4}
    scores = evaluate(dataset).scores()
    assert_at_least(scores, **{"recall@10": 0.78, "recall@5": 0.69, "mrr": 0.58})


def test_the_two_halves_of_locomo_make_the_whole():
    first, second = (
        data(LOCOMO, conversations=range(1, 6)),
        data(LOCOMO, conversations=range(6, 11)),
    )
    assert first.question_count + second.question_count == 1536
    assert first.question_count == 760


@pytest.mark.parametrize(
    ("unit", "memories", "floors"),
    [
        ("turn", 58_552, {"recall@10": 0.88}),
        ("session", 58_552, {"recall@10": 0.95, "all@5": 0.88}),
        ("session-document", 5_690, {"recall@10": 0.93}),
    ],
    ids=["turn", "session", "session-document"],
)
def test_longmemeval_has_its_questions_in_every_unit_and_most_is_found(
    unit: str, memories: int, floors: dict[str, float]
):
    dataset = data(LONGMEMEVAL, unit=unit)
    assert set(counts(dataset).values()) == {20}
    assert dataset.question_count == 120
    assert dataset.item_count == memories
    if unit == "session-document":  # which says the same in a part of the time
        dataset = every(3, dataset)
    assert_at_least(evaluate(dataset).scores(), **floors)


def test_the_original_form_of_longmemeval_is_the_same_data(tmp_path: Path):
    split = data(LONGMEMEVAL)
    with lzma.open(
        DATA / LONGMEMEVAL.replace("questions", "sessions"), "rt", encoding="utf-8"
    ) as lines:
        turns = {row["session_id"]: row["turns"] for row in map(json.loads, lines)}
    questions = []
    with lzma.open(DATA / LONGMEMEVAL, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, list(lines)[:5]):
            haystack = row.pop("haystack")
            row["haystack_session_ids"] = [id for id, _ in haystack]
            row["haystack_dates"] = [date for _, date in haystack]
            row["haystack_sessions"] = [turns[id] for id, _ in haystack]
            questions.append(row)
    path = tmp_path / "original.json"
    path.write_text(json.dumps(questions), encoding="utf-8")
    assert load_dataset(path).cases == split.cases[:5]


def test_xquad_has_its_questions_in_each_language_and_their_paragraphs_are_found():
    dataset = data(XQUAD)
    assert counts(dataset) == dict.fromkeys(["en", "zh", "es", "de", "ar", "hi", "ru"], 1190)
    report = evaluate(every(7, dataset, of="questions"))
    assert min(report.scores(language)["recall@5"] for language in counts(dataset)) >= 0.94
