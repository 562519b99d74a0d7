"""XQuAD (Artetxe et al., ACL 2020) as retrieval: questions, and the paragraphs they are on."""

from __future__ import annotations

from collections import Counter

from .dataset import Case, Dataset, Item, Question, checked_case
from .reading import DataFile, Node, digest

__all__ = ["read_corpora"]


def read_corpora(file: DataFile) -> Dataset:
    """The dataset in ``file``: an object whose ``corpora`` each are a case.

    A corpus has an ``id`` (of XQuAD, the language), ``docs`` (pairs of id and text) and
    ``queries`` (``id``, ``text``, ``rel``, and a ``cat``, the corpus' id unless given).
    """
    cases = [_case(corpus) for corpus in file.whole()["corpora"].items()]
    return Dataset(file.path.name, digest(file), cases, "xquad")


def _case(corpus: Node) -> Case:
    name = corpus["id"].id()
    items = []
    for document in corpus["docs"].items():
        id, text = document.items(2)
        items.append(Item(id.id(), text.text()))
    known = {item.id for item in items}
    questions = []
    left_out: Counter[str] = Counter()
    for query in corpus["queries"].items():
        category = query.get("cat")
        relevant = query["rel"].ids()
        if unknown := relevant - known:
            raise query["rel"].wrong(f"has {min(unknown)!r}, which is none of the docs")
        if not relevant:
            left_out["without evidence"] += 1
            continue
        questions.append(
            Question(
                query["id"].id(),
                query["text"].words(),
                relevant,
                category.words() if category else name,
            )
        )
    return checked_case(name, items, questions, left_out)
