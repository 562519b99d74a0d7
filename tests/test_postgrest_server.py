"""The PostgREST of the tests answers supabase-py as PostgREST's manual says."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from postgrest.exceptions import APIError
from supabase import Client, create_client

import postgrest_server as rest
import servers

SETUP = """
CREATE TABLE people (
    id text PRIMARY KEY, name text NOT NULL, age int UNIQUE, at timestamptz DEFAULT now()
);
CREATE FUNCTION add(a int, b int DEFAULT 5) RETURNS int LANGUAGE sql AS 'SELECT a + b';
CREATE FUNCTION twice(data jsonb) RETURNS jsonb LANGUAGE sql
    AS $$ SELECT jsonb_build_object('sum', (data->>'n')::int * 2) $$;
CREATE FUNCTION whole(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION numbers(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, n)';
CREATE FUNCTION pairs() RETURNS TABLE (x int, y text) LANGUAGE sql
    AS $$ SELECT * FROM (VALUES (1, 'eins'), (2, '東京')) v $$;
CREATE FUNCTION one() RETURNS people LANGUAGE sql AS 'SELECT * FROM people LIMIT 1';
CREATE FUNCTION nothing() RETURNS void LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION refuse() RETURNS int LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'no' USING HINT = 'ask again', DETAIL = 'why'; END $$;
CREATE SCHEMA retain;
CREATE FUNCTION retain.who() RETURNS text LANGUAGE sql AS 'SELECT current_user::text';
"""


@pytest.fixture(scope="module")
def server() -> Iterator[rest.PostgREST]:
    url = servers.new_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(SETUP)
    server = rest.start(url)
    yield server
    server.stop()


@pytest.fixture
def client(server: rest.PostgREST) -> Client:
    client = create_client(server.url, "service-key")
    client.table("people").delete().neq("id", "").execute()
    return client


def refusal(query: object) -> tuple[str | None, str | None]:
    with pytest.raises(APIError) as raised:
        query.execute()  # type: ignore[attr-defined]
    return raised.value.code, raised.value.message


def test_rows_are_inserted_read_changed_and_deleted(client: Client):
    table = client.table("people")
    hostile = "a,b\"c'd\\e.(f)%&=東京"
    [made] = table.insert({"id": hostile, "name": "Ann"}).execute().data
    assert (made["id"], made["name"], made["age"]) == (hostile, "Ann", None)
    table.insert([{"id": "2", "name": "Bob"}, {"id": "3", "name": "Zoë", "age": 9}]).execute()
    assert table.select("name").eq("id", hostile).execute().data == [{"name": "Ann"}]
    assert table.select("id").is_("age", "null").order("id").limit(1).execute().data == [
        {"id": "2"}
    ]
    assert table.select("id").in_("id", [hostile, "3"]).order("id").execute().data == [
        {"id": "3"},
        {"id": hostile},
    ]
    [changed] = table.update({"age": 7}).eq("id", hostile).eq("name", "Ann").execute().data
    assert changed["age"] == 7
    assert table.update({"age": 8}).eq("id", hostile).eq("name", "Bob").execute().data == []
    [gone] = table.delete().eq("id", "2").execute().data
    assert gone["name"] == "Bob"
    assert table.select("*", count="exact").execute().count == 2


def test_an_upsert_replaces_or_leaves_what_is_there(client: Client):
    table = client.table("people")
    table.upsert({"id": "1", "name": "Ann"}).execute()
    table.upsert({"id": "1", "name": "Bob"}).execute()
    assert table.select("name").execute().data == [{"name": "Bob"}]
    table.upsert({"id": "1", "name": "Cid"}, on_conflict="id", ignore_duplicates=True).execute()
    assert table.select("name").execute().data == [{"name": "Bob"}]
    assert table.insert({"id": "2", "name": "x"}, returning="minimal").execute().data == []


def test_an_upsert_without_a_column_that_is_required_is_refused_even_where_the_row_is_there(
    client: Client,
):
    client.table("people").insert({"id": "1", "name": "Ann"}).execute()
    assert refusal(client.table("people").upsert({"id": "1", "age": 4}))[0] == "23502"


def test_a_single_object_is_one_row_or_an_error(client: Client):
    client.table("people").insert({"id": "1", "name": "Ann"}).execute()
    table = client.table("people").select("id, name")
    assert table.eq("id", "1").single().execute().data == {"id": "1", "name": "Ann"}
    assert refusal(client.table("people").select("id").eq("id", "2").single())[0] == "PGRST116"
    assert client.table("people").select("id").eq("id", "2").maybe_single().execute() is None


def test_errors_are_worded_as_postgrest_does(client: Client):
    people = client.table("people")
    people.insert({"id": "1", "name": "Ann"}).execute()
    assert refusal(people.insert({"id": "1", "name": "Bob"}))[0] == "23505"
    assert refusal(people.insert({"id": "2"}))[0] == "23502"
    assert refusal(people.insert({"id": "2", "nam": "x"}))[0] == "PGRST204"
    assert refusal(client.table("nobody").select("*")) == (
        "PGRST205",
        "Could not find the table 'public.nobody' in the schema cache",
    )
    assert refusal(people.select("*").filter("id", "almost", "1"))[0] == "PGRST100"
    assert refusal(client.rpc("add", {"b": 1}))[0] == "PGRST202"
    assert refusal(client.rpc("refuse", {})) == ("P0001", "no")
    assert refusal(client.schema("secret").table("people").select("*"))[0] == "PGRST106"


def test_functions_return_json_scalars_sets_tables_rows_and_nothing(client: Client):
    def call(name: str, **arguments: object) -> object:
        return client.rpc(name, arguments).execute().data

    assert call("add", a=1) == 6
    assert call("add", a=1, b=2) == 3
    assert call("twice", data={"n": 4}) == {"sum": 8}
    assert call("whole", any="thing") == {"any": "thing"}
    assert call("numbers", n=3) == [1, 2, 3]
    assert call("numbers", n=0) == []
    assert call("pairs") == [{"x": 1, "y": "eins"}, {"x": 2, "y": "東京"}]
    assert call("nothing") == []
    client.table("people").insert({"id": "1", "name": "Ann"}).execute()
    assert call("one")["name"] == "Ann"  # type: ignore[index]


def test_a_key_is_checked_and_stands_for_a_role():
    url = servers.new_database()
    with psycopg.connect(servers.postgres_url(), autocommit=True) as db:
        db.execute(
            "DO $$ BEGIN CREATE ROLE retain_guest;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        db.execute("GRANT retain_guest TO retain_tests")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(SETUP)
        db.execute("GRANT USAGE ON SCHEMA retain TO retain_guest")
    server = rest.start(url, keys={"guest-key": "retain_guest"})
    try:
        owner, guest = (create_client(server.url, key) for key in ("service-key", "guest-key"))
        assert owner.schema("retain").rpc("who", {}).execute().data == "retain_tests"
        assert guest.schema("retain").rpc("who", {}).execute().data == "retain_guest"
        assert refusal(guest.table("people").select("*"))[0] == "42501"
        nobody = create_client(server.url, "wrong-key")
        assert refusal(nobody.table("people").select("*"))[1] == "Invalid API key"
    finally:
        server.stop()
