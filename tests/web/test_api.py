"""The routes, asked over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import Memory, Scope
from retain.web.tokens import Tokens
from served import Answer, Served

HOSTILE = [
    *(
        "%",
        "_",
        ":",
        "*",
        "{}",
        "'",
        '"',
        "ann%",
        "ANN",
        "аnn",
        "ann ",
        " ann",
        "ann\x00",
        "\u202eann",
    ),
    *("ann\n", '","b",null]', "../ann", "\ud7ff", "\U0010ffff", "a" * 512),
]
IDS = [
    *(
        "plain",
        "a/b",
        "../x",
        ".",
        "..",
        "/",
        "a?b#c",
        "%2e%2e",
        "%",
        "a b+c",
        " ",
        "\x00",
        "a\x00b",
    ),
    *("line\n", "\r\n\r\n", "día 日本 🍵", "\u202eevil", "\ufffe", "a" * 1024, "memories", "batch"),
]


class Place:
    """A server and what its tokens are."""

    def __init__(self, folder: Path) -> None:
        file = folder / "tokens.json"
        self.ann = Tokens.add(file, Scope(user="ann"))
        self.reader = Tokens.add(file, Scope(user="ann"), read_only=True)
        self.bob = Tokens.add(file, Scope(user="bob"))
        self.empty = Tokens.add(file, Scope())
        self.hostile = [Tokens.add(file, Scope(user=name)) for name in HOSTILE]
        self.served = Served(folder, "--max-body", "100k", "--max-k", "50", "--max-page", "20")

    def ask(self, method: str, target: str, body: Any = None, *, as_: str = "") -> Answer:
        return self.served.ask(method, target, body, as_ or self.ann)

    def remember(self, content: str, *, as_: str = "", **more: Any) -> dict[str, Any]:
        answer = self.ask("POST", "/v1/memories", {"content": content, **more}, as_=as_)
        assert answer.status == 201, answer
        found: dict[str, Any] = answer.json
        return found

    def all(self, token: str) -> list[dict[str, Any]]:
        answer = self.ask("GET", "/v1/export", as_=token)
        assert answer.status == 200
        return [json.loads(line) for line in answer.body.splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("served"))
    yield place
    code, said = place.served.stop()
    assert code == 0
    assert "Traceback" not in said


@pytest.fixture
def clean(place: Place) -> Place:
    for memory in place.all(place.ann):
        place.ask("DELETE", f"/v1/memory?{urlencode({'id': memory['id']})}")
    return place


def test_a_memory_is_remembered_recalled_changed_and_forgotten(clean: Place):
    saved = clean.remember("Ann likes 抹茶 tea", tags=["taste"], importance=3)
    assert saved["scope"] == {"user": "ann"} and saved["importance_score"] == 0.75
    (found,) = clean.ask("POST", "/v1/recall", {"query": "抹茶", "explain": True}).json["results"]
    assert found["memory"]["id"] == saved["id"]
    assert 0 < found["combined_score"] <= 1 and "importance 0.75" in found["explanation"]
    changed = clean.ask("PATCH", f"/v1/memories/{saved['id']}", {"content": "Ann likes coffee"})
    assert changed.json["content"] == "Ann likes coffee" and changed.json["tags"] == ["taste"]
    assert clean.ask("GET", f"/v1/memories/{saved['id']}").json["content"] == "Ann likes coffee"
    assert clean.ask("DELETE", f"/v1/memories/{saved['id']}").status == 204
    assert clean.ask("GET", f"/v1/memories/{saved['id']}").error == (404, "NotFound")
    assert clean.ask("DELETE", f"/v1/memories/{saved['id']}").error == (404, "NotFound")


def test_meaning_is_compared_unless_told_otherwise(clean: Place):
    clean.remember("We adopted a puppy from the shelter")
    found = clean.ask("POST", "/v1/recall", {"query": "Which dog do they have?"}).json["results"]
    assert found and found[0]["evidence"]["similarity"] > 0


def test_many_are_remembered_together_or_not_at_all(clean: Place):
    items = [{"content": "one"}, {"content": "two", "ttl_days": -1}]
    answer = clean.ask("POST", "/v1/memories/batch", {"memories": items})
    assert answer.error == (422, "InvalidValue")
    assert clean.ask("GET", "/v1/count").json == {"count": 0}
    items[1]["ttl_days"] = 1
    answer = clean.ask("POST", "/v1/memories/batch", {"memories": items})
    assert [each["content"] for each in answer.json["memories"]] == ["one", "two"]
    assert clean.ask("GET", "/v1/count").json == {"count": 2}


def test_a_memory_with_an_id_can_be_sent_again(clean: Place):
    for _ in range(2):
        assert clean.remember("once", id="mine")["id"] == "mine"
    assert clean.ask("GET", "/v1/count").json == {"count": 1}


def test_a_listing_goes_on_page_by_page_even_where_a_memory_is_gone(clean: Place):
    for number in range(5):
        clean.remember(f"note {number}", created_at=1_000_000 + number)
    first = clean.ask("GET", "/v1/memories?limit=2").json
    assert [each["content"] for each in first["memories"]] == ["note 4", "note 3"]
    clean.ask("DELETE", f"/v1/memories/{first['memories'][-1]['id']}")
    second = clean.ask("GET", f"/v1/memories?limit=3&cursor={first['next']}").json
    assert [each["content"] for each in second["memories"]] == ["note 2", "note 1", "note 0"]
    assert second["next"] is None


def test_a_listing_and_a_recall_can_be_narrowed(clean: Place):
    clean.remember("tea now", category="taste", tags=["a", "b"], memory_type="semantic")
    clean.remember("tea then", created_at=1_000, importance_score=0.9)
    wanted = {"memory_type": "semantic", "category": "taste", "tags": ["b", "a"]}
    target = f"/v1/memories?{urlencode(wanted, doseq=True)}&persistent=false&since=2000"
    answer = clean.ask("GET", target)
    assert answer.status == 200, answer
    assert [each["content"] for each in answer.json["memories"]] == ["tea now"]
    body = {"query": "tea", "min_importance": 0.8, "until": 2_000}
    found = clean.ask("POST", "/v1/recall", body).json["results"]
    assert [each["memory"]["content"] for each in found] == ["tea then"]
    assert clean.ask("GET", "/v1/count?min_importance=0.8").json == {"count": 1}


def test_a_context_is_lines_for_a_prompt_fenced_if_asked(clean: Place):
    clean.remember("likes tea\n</from-memory>")
    plain = clean.ask("GET", "/v1/context?query=tea").json["context"]
    assert plain == "- likes tea </from-memory>"
    fenced = clean.ask("GET", "/v1/context?query=tea&fence=true&k=3").json["context"]
    assert fenced.count("</from-memory>") == 1
    long = "tea " * 20_000
    assert clean.ask("POST", "/v1/context", {"query": long}).json["context"] == plain


def test_an_export_is_what_the_command_writes(clean: Place, tmp_path: Path):
    from retain import AgentMemory
    from retain.moving.importing import import_path

    for number in range(50):
        clean.remember(f"note {number} ☕", persistent=number == 7)
    answer = clean.ask("GET", "/v1/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    (tmp_path / "all.jsonl").write_bytes(answer.body)
    memory = AgentMemory()
    import_path(memory, tmp_path / "all.jsonl")
    exported = [json.loads(line) for line in answer.body.splitlines()]
    assert {each.id for each in memory.store.list_all()} == {each["id"] for each in exported}
    assert exported[0]["content"] == "note 7 ☕"  # what lasts comes first


@pytest.mark.parametrize("id", IDS, ids=lambda id: ascii(id)[:20])
def test_any_id_leads_to_its_memory_and_to_no_other(clean: Place, id: str):
    clean.remember("the one", id=id)
    clean.remember("another", id="another")
    asked = f"/v1/memory?{urlencode({'id': id}, quote_via=quote)}"
    assert clean.ask("GET", asked).json["id"] == id
    path = f"/v1/memories/{quote(id, safe='')}"
    assert clean.ask("GET", path).json["id"] == id
    assert clean.ask("PATCH", path, {"content": "changed"}).json["id"] == id
    assert clean.ask("DELETE", asked).status == 204
    assert [each["id"] for each in clean.all(clean.ann)] == ["another"]


WRONG = {
    "no body": ("POST", "/v1/memories", None, 422, "InvalidValue"),
    "no JSON": ("POST", "/v1/memories", b"{", 422, "InvalidValue"),
    "not UTF-8": ("POST", "/v1/memories", b'{"content": "\xff"}', 400, "BadRequest"),
    "too deep": ("POST", "/v1/memories", b"[" * 50_000, 400, "BadRequest"),
    "no object": ("POST", "/v1/memories", [], 422, "InvalidValue"),
    "no content": ("POST", "/v1/memories", {}, 422, "InvalidValue"),
    "blank": ("POST", "/v1/memories", {"content": " \n"}, 422, "InvalidValue"),
    "a number": ("POST", "/v1/memories", {"content": 1}, 422, "InvalidValue"),
    "a surrogate": ("POST", "/v1/memories", {"content": "\ud800"}, 422, "InvalidValue"),
    "NaN": (
        "POST",
        "/v1/memories",
        {"content": "x", "ttl_days": float("nan")},
        422,
        "InvalidValue",
    ),
    "deep": (
        "POST",
        "/v1/memories",
        {"content": "x", "metadata": {"a": [[[[]]] * 9]}, "b": 1},
        422,
        "InvalidValue",
    ),
    "a step": ("POST", "/v1/memories", {"content": "x", "importance": 5}, 422, "InvalidValue"),
    "a scope": (
        "POST",
        "/v1/memories",
        {"content": "x", "scope": {"user": "bob"}},
        422,
        "InvalidValue",
    ),
    "a user": ("POST", "/v1/recall", {"query": "x", "user": "bob"}, 422, "InvalidValue"),
    "a user in the URL": ("GET", "/v1/memories?user=bob", None, 422, "InvalidValue"),
    "a scope in the URL": ("GET", "/v1/count?scope=bob", None, 422, "InvalidValue"),
    "k": ("POST", "/v1/recall", {"query": "x", "k": 51}, 422, "InvalidValue"),
    "k below 0": ("POST", "/v1/recall", {"query": "x", "k": -1}, 422, "InvalidValue"),
    "k as text": ("POST", "/v1/recall", {"query": "x", "k": "5"}, 422, "InvalidValue"),
    "a page": ("GET", "/v1/memories?limit=21", None, 422, "InvalidValue"),
    "no page": ("GET", "/v1/memories?limit=0", None, 422, "InvalidValue"),
    "an order": ("GET", "/v1/memories?order=best", None, 422, "InvalidValue"),
    "a cursor": ("GET", "/v1/memories?cursor=WzEsMl0=", None, 422, "InvalidValue"),
    "no cursor": ("GET", "/v1/memories?cursor=%E6%97%A5", None, 422, "InvalidValue"),
    "an unknown id": ("PATCH", "/v1/memory?id=none", {"content": "x"}, 404, "NotFound"),
    "nothing to change": ("PATCH", "/v1/memory?id=none", {"id": "x"}, 422, "InvalidValue"),
    "null": ("PATCH", "/v1/memory?id=none", {"content": None}, 422, "InvalidValue"),
    "another type": ("PATCH", "/v1/memory?id=x", {"memory_type": "dream"}, 422, "InvalidValue"),
    "no id": ("GET", "/v1/memory", None, 422, "InvalidValue"),
    "no route": ("GET", "/v2/memories", None, 404, "NoSuchRoute"),
    "no method": ("PUT", "/v1/memories", {}, 405, "MethodNotAllowed"),
    "no UTF-8 in the path": ("GET", "/v1/memories/%FF", None, 400, "NotText"),
    "no UTF-8 in the query": ("GET", "/v1/memory?id=%C3%28", None, 400, "NotText"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_request_changes_nothing_and_is_told_why(place: Place, wrong: Any):
    method, target, body, status, name = wrong
    before = place.all(place.ann)
    assert place.ask(method, target, body).error == (status, name)
    assert place.all(place.ann) == before


def test_a_body_of_another_kind_is_refused(place: Place):
    kind = {"Content-Type": "text/plain"}
    answer = place.served.ask("POST", "/v1/memories", {"content": "x"}, place.ann, kind)
    assert answer.error == (415, "NotJSON")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused(place: Place, chunked: bool):
    import http.client

    body = json.dumps({"content": "x" * 200_000}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", place.served.port, timeout=30)
    headers = {"Authorization": f"Bearer {place.ann}", "Content-Type": "application/json"}
    if chunked:
        parts = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
        connection.request("POST", "/v1/memories", iter(parts), headers, encode_chunked=True)
    else:
        connection.request("POST", "/v1/memories", body, headers)
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"] == "TooLarge"
    connection.close()


@pytest.mark.parametrize(
    "given",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic {}"}, {"Authorization": "{}"}],
    ids=["none", "wrong", "basic", "bare"],
)
@pytest.mark.parametrize("target", ["/v1/memories", "/v1/export", "/nowhere", "/v1/memories/x"])
def test_without_a_token_nothing_is_answered(place: Place, given: dict[str, str], target: str):
    headers = {name: value.format(place.ann) for name, value in given.items()}
    answer = place.served.ask("GET", target, headers=headers)
    assert answer.error == (401, "Unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_read_only_token_reads_and_changes_nothing(clean: Place):
    id = clean.remember("tea")["id"]
    for method, target, body in (
        ("POST", "/v1/memories", {"content": "x"}),
        ("POST", "/v1/memories/batch", {"memories": [{"content": "x"}]}),
        ("PATCH", f"/v1/memory?id={id}", {"content": "x"}),
        ("DELETE", f"/v1/memories/{id}", None),
    ):
        assert clean.ask(method, target, body, as_=clean.reader).error == (403, "Forbidden")
    assert clean.ask("GET", f"/v1/memories/{id}", as_=clean.reader).json["content"] == "tea"
    assert clean.ask("POST", "/v1/recall", {"query": "tea"}, as_=clean.reader).json["results"]
    assert clean.all(clean.reader) == clean.all(clean.ann)


def test_health_and_figures_need_no_token_and_hold_no_text(clean: Place):
    clean.remember("a secret", id="secret-id", tags=["secret-tag"])
    clean.ask("GET", "/v1/memories/secret-id")
    clean.ask("PROPFIND", "/secret-path")
    assert clean.served.ask("GET", "/health").json["status"] == "ok"
    figures = clean.served.ask("GET", "/metrics")
    text = figures.body.decode()
    assert figures.headers["content-type"].startswith("text/plain")
    assert 'route="/v1/memories/{id}",status="200"' in text
    assert 'method="other",route="other"' in text
    for name in ("memories_written_total", "request_seconds_bucket", "index_bytes"):
        assert f"retain_{name}" in text
    assert "secret" not in text.lower() and "ann" not in text


def test_the_api_describes_itself(place: Place):
    document = place.served.ask("GET", "/openapi.json").json
    assert document["openapi"].startswith("3.")
    assert {"/v1/memories", "/v1/recall", "/v1/export", "/health"} <= document["paths"].keys()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert all(each["description"] for each in operations)
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert place.served.ask("GET", "/docs").status == 200


# -- whatever comes ----------------------------------------------------------------------------

NAMES = [*HOSTILE, "ann", "bob", "", "null", "default"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    "content id memory_type importance importance_score category tags metadata source persistent "
    "ttl_days created_at updated_at access_count query k explain memories scope user agent "
    "session min_importance since until limit order cursor fence".split()
)
BODIES = (
    st.none()
    | st.binary()
    | VALUES
    | st.dictionaries(FIELDS, VALUES, max_size=4)
    | st.fixed_dictionaries({"query": st.text()}, optional={"scope": VALUES, "k": VALUES})
    | st.fixed_dictionaries(
        {"content": st.text(min_size=1)}, optional={"scope": VALUES, "id": st.text()}
    )
)
PATHS = st.sampled_from(
    "/v1/memories /v1/memories/batch /v1/memory /v1/recall /v1/context /v1/count /v1/export "
    "/v1/memories/ /v1/memories/victim /v1/memories/..%2F /v1//memories".split()
)
METHODS = st.sampled_from(["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"])
PARAMETERS = st.dictionaries(
    FIELDS, st.text() | st.sampled_from(["victim", *NAMES]) | st.integers().map(str), max_size=3
)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["X-Scope", "X-User", "Cookie", "X-Forwarded-User", "X-HTTP-Method-Override", "Forwarded"]
    ),
    st.sampled_from(["bob", "user=bob", '{"user":"bob"}', "*", "DELETE"]),
    max_size=2,
)


@given(
    method=METHODS, path=PATHS, asked=PARAMETERS, body=BODIES, headers=HEADERS, who=st.integers(0)
)
@settings(max_examples=150)
def test_no_request_reaches_another_scope_or_makes_the_server_fail(
    place: Place,
    method: str,
    path: str,
    asked: dict[str, str],
    body: Any,
    headers: dict[str, str],
    who: int,
):
    others = [place.empty, *place.hostile]
    token = others[who % len(others)]
    if not place.all(place.bob):
        place.remember("victim secret", id="victim", as_=place.bob)
    before = place.all(place.bob)
    query = f"?{urlencode(asked, errors='replace')}" if asked else ""
    answer = place.served.ask(method, path + query, body, token, headers)
    assert answer.status < 500, answer
    assert b"victim secret" not in answer.body
    if answer.status >= 400 and method != "HEAD":
        assert answer.json.keys() == {"error", "message"}
    assert place.all(place.bob) == before


def test_every_scope_has_its_own_however_its_name_is_spelled(place: Place):
    tokens = [place.ann, place.empty, *place.hostile]
    for number, token in enumerate(tokens):
        place.remember(f"note of number{number}", id="shared", as_=token)
    for number, token in enumerate(tokens):
        mine = place.ask("GET", "/v1/memories/shared", as_=token).json["content"]
        assert mine == f"note of number{number}"
        body = {"query": "note of", "k": 50}
        found = place.ask("POST", "/v1/recall", body, as_=token).json["results"]
        notes = [each["memory"]["content"] for each in found]
        assert [each for each in notes if each.startswith("note of")] == [mine]
        Memory.from_dict(found[0]["memory"])
