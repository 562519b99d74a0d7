"""A small PostgREST over a real PostgreSQL, for what supabase-py asks of one.

It speaks as much of PostgREST's HTTP as tables and functions need: filters, upserts, what is
returned, single objects, functions by named arguments, schemas, a role for each key, and errors
in PostgREST's own words. Every request is one transaction, as there. The hosted service is
another program: what passes here has not been tried there.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolTimeout

PREFIX = "/rest/v1/"


class Refused(Exception):
    """An answer that is an error, as PostgREST words it."""

    def __init__(
        self, status: int, code: str | None, message: str, details: Any = None, hint: Any = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"code": code, "details": details, "hint": hint, "message": message}


class Answer(NamedTuple):
    """What goes back: ``body`` is JSON, or nothing; ``count`` the rows there are, if asked."""

    status: int
    body: str = ""
    rows: int = 0
    count: int | None = None


class Request(NamedTuple):
    """What came in, taken apart. ``query``: its parameters, in order, a name perhaps twice."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes

    def parameter(self, name: str) -> str | None:
        return next((value for key, value in self.query if key == name), None)

    def prefers(self, wish: str) -> bool:
        return wish in [part.strip() for part in self.headers.get("Prefer", "").split(",")]

    @property
    def wants_object(self) -> bool:
        return self.headers.get("Accept", "").startswith("application/vnd.pgrst.object+json")

    def json(self) -> Any:
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise Refused(400, "PGRST102", f"Empty or invalid json: {error}") from None


class PostgREST:
    """The server, in threads of this process; ``url`` is what ``create_client`` takes.

    ``roles`` maps each key to the database role its requests run as, ``None`` for the role of
    ``database_url`` itself. ``schemas``: those that can be asked for, the first unless told.
    ``keep_alive``: let connections stay, which supabase-py has no call to close.
    """

    def __init__(
        self,
        database_url: str,
        roles: Mapping[str, str | None],
        schemas: Sequence[str],
        keep_alive: bool,
    ) -> None:
        self.keep_alive = keep_alive
        self.roles = roles
        self.schemas = schemas
        self.pool = ConnectionPool(database_url, min_size=0, max_size=16, timeout=10.0, open=True)
        self.requests = 0
        handler = type("Handler", (_Handler,), {"place": self})
        self._server = _HTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        """End it, and close what it has open."""
        self._server.shutdown()
        self._thread.join()
        self._server.close_all()
        self.pool.close()

    # -- one request -----------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """What PostgREST would answer."""
        role = self._role(request)
        read = request.method in ("GET", "HEAD")
        schema = request.headers.get("Accept-Profile" if read else "Content-Profile")
        if schema is not None and schema not in self.schemas:
            known = ", ".join(self.schemas)
            raise Refused(
                406, "PGRST106", f"Invalid schema: {schema}", None, f"Only {known} are exposed"
            )
        if not request.path.startswith(PREFIX):
            raise Refused(404, "PGRST125", "Invalid path specified in request URL")
        what = request.path[len(PREFIX) :]
        with self._transaction(request, role, schema or self.schemas[0]) as db:
            if what.startswith("rpc/"):
                answer = _Call(db, schema or self.schemas[0], request).answer(what[4:])
            else:
                answer = _Table(db, schema or self.schemas[0], what, request).answer()
            if request.wants_object and answer.rows != 1:
                raise Refused(
                    406,
                    "PGRST116",
                    "Cannot coerce the result to a single JSON object",
                    f"The result contains {answer.rows} rows",
                )
        return answer

    def _role(self, request: Request) -> str | None:
        """The role of the key; the gateway in front of the real one looks at ``apikey`` first."""
        key = request.headers.get("apikey")
        if key is None:
            raise Refused(401, None, "No API key found in request", hint="No `apikey` header")
        if key not in self.roles:
            raise Refused(401, None, "Invalid API key", hint="Double check your API key.")
        token = request.headers.get("Authorization", f"Bearer {key}").removeprefix("Bearer ")
        if token not in self.roles:
            raise Refused(401, "PGRST301", "No suitable key was found to decode the JWT")
        return self.roles[token]

    @contextlib.contextmanager
    def _transaction(
        self, request: Request, role: str | None, schema: str
    ) -> Iterator[psycopg.Cursor[Any]]:
        try:
            with self.pool.connection() as connection, connection.cursor() as db:
                if role is not None:
                    db.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
                settings = {
                    "search_path": f'"{schema}", public',
                    "request.method": request.method,
                    "request.path": request.path,
                    "request.jwt.claims": json.dumps({"role": role}),
                }
                for name, value in settings.items():
                    db.execute("SELECT set_config(%s, %s, true)", (name, value))
                if request.method in ("GET", "HEAD"):
                    db.execute("SET TRANSACTION READ ONLY")
                yield db
        except PoolTimeout:
            raise Refused(
                504, "PGRST003", "Timed out acquiring connection from connection pool."
            ) from None
        except psycopg.Error as error:
            raise _refused(error, role) from error


class _Table:
    """One request for a table or view."""

    def __init__(self, db: psycopg.Cursor[Any], schema: str, name: str, request: Request) -> None:
        self.db, self.request, self.name = db, request, name
        self.table = sql.Identifier(schema, name)
        db.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s)"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (self.table.as_string(db),),
        )
        self.columns = [column for (column,) in db.fetchall()]
        if not self.columns:
            raise Refused(
                404, "PGRST205", f"Could not find the table '{schema}.{name}' in the schema cache"
            )

    def answer(self) -> Answer:
        kind = self.request.method
        if kind in ("GET", "HEAD"):
            return self._rows(self._select(), 200)
        statement = {"POST": self._insert, "PATCH": self._update, "DELETE": self._delete}.get(kind)
        if statement is None:
            raise Refused(405, "PGRST117", f"Unsupported HTTP method: {kind}")
        created = kind == "POST"
        if self.request.prefers("return=representation"):
            return self._rows(statement(), 201 if created else 200)
        answer = self._rows(statement(), 0)
        return answer._replace(status=201 if created else 204, body="")

    def _rows(self, statement: sql.Composable, status: int) -> Answer:
        """Run it, its rows as JSON that the database itself makes."""
        row = (
            "coalesce(json_agg(r)->0, 'null')"
            if self.request.wants_object
            else ("coalesce(json_agg(r), '[]')")
        )
        self.db.execute(
            sql.SQL(
                "WITH source AS ({}) SELECT {}::text, count(r) FROM (SELECT {} FROM source) r"
            ).format(statement, sql.SQL(row), self._selected())
        )
        body, rows = self.db.fetchone() or ("[]", 0)
        count = rows
        if self.request.method in ("GET", "HEAD") and self.request.prefers("count=exact"):
            query = sql.SQL("SELECT count(*) FROM {}{}").format(self.table, self._where())
            count = (self.db.execute(query).fetchone() or (0,))[0]
        counted = any(self.request.prefers(f"count={how}") for how in ("exact", "planned"))
        return Answer(status, body, rows, count if counted else None)

    def _selected(self) -> sql.Composable:
        names = [name for name in (self.request.parameter("select") or "*").split(",") if name]
        if names == ["*"]:
            return sql.SQL("*")
        return sql.SQL(", ").join(sql.Identifier(_unquoted(name)) for name in names)

    def _select(self) -> sql.Composable:
        parts: list[sql.Composable] = [sql.SQL("SELECT * FROM {}").format(self.table)]
        parts.append(self._where())
        order = self.request.parameter("order")
        if order:
            parts.append(sql.SQL(" ORDER BY "))
            parts.append(sql.SQL(", ").join(self._order(term) for term in order.split(",")))
        for name in ("limit", "offset"):
            value = self.request.parameter(name)
            if value is not None:
                parts.append(sql.SQL(f" {name.upper()} {{}}").format(sql.Literal(int(value))))
        return sql.Composed(parts)

    def _order(self, term: str) -> sql.Composable:
        name, *how = term.split(".")
        words = {"asc": "ASC", "desc": "DESC", "nullsfirst": "NULLS FIRST"}
        words["nullslast"] = "NULLS LAST"
        if not set(how) <= words.keys():
            raise Refused(400, "PGRST100", f'"failed to parse order ({term})"')
        text = " ".join(words[word] for word in how)
        return sql.SQL(f"{{}} {text}").format(sql.Identifier(_unquoted(name)))

    _RESERVED = ("select", "order", "limit", "offset", "columns", "on_conflict")
    _OPERATORS = {  # noqa: RUF012
        "eq": "=",
        "neq": "<>",
        "gt": ">",
        "gte": ">=",
        "lt": "<",
        "lte": "<=",
        "like": "LIKE",
    }

    def _where(self) -> sql.Composable:
        filters = [
            self._filter(*pair) for pair in self.request.query if pair[0] not in self._RESERVED
        ]
        if not filters:
            return sql.SQL("")
        return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(filters)

    def _filter(self, name: str, text: str) -> sql.Composable:
        operator, dot, value = text.partition(".")
        if operator == "not" and dot:
            return sql.SQL("NOT ({})").format(self._filter(name, value))
        column = self.table + sql.SQL(".") + sql.Identifier(_unquoted(name))
        if operator == "is" and value in ("null", "true", "false"):
            return column + sql.SQL(f" IS {value.upper()}")
        if operator == "in" and value.startswith("(") and value.endswith(")"):
            values = [sql.Literal(part) for part in _listed(value[1:-1])]
            return column + sql.SQL(" IN ({})").format(sql.SQL(", ").join(values))
        if not dot or operator not in self._OPERATORS:
            raise Refused(400, "PGRST100", f'"failed to parse filter ({text[:99]})"')
        return column + sql.SQL(f" {self._OPERATORS[operator]} {{}}").format(sql.Literal(value))

    # -- writing ---------------------------------------------------------------------------

    def _given(self, rows: Any) -> list[str]:
        """The columns that a body names, each one of the table's."""
        named = self.request.parameter("columns")
        if named:
            names = [_unquoted(name) for name in _listed(named)]
        elif isinstance(rows, list):
            names = list(rows[0]) if rows else []
        else:
            names = list(rows)
        for name in names:
            if name not in self.columns:
                raise Refused(
                    400,
                    "PGRST204",
                    f"Could not find the '{name}' column of '{self.name}' in the schema cache",
                )
        return names

    def _insert(self) -> sql.Composable:
        rows = self.request.json()
        names = self._given(rows)
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        many = rows if isinstance(rows, list) else [rows]
        return sql.SQL(
            "INSERT INTO {t} ({c}) SELECT {c} FROM json_populate_recordset(NULL::{t}, {body})"
            "{conflict} RETURNING {t}.*"
        ).format(
            t=self.table,
            c=columns,
            body=sql.Literal(json.dumps(many, ensure_ascii=False)),
            conflict=self._conflict(names),
        )

    def _conflict(self, names: Sequence[str]) -> sql.Composable:
        merge = self.request.prefers("resolution=merge-duplicates")
        if not merge and not self.request.prefers("resolution=ignore-duplicates"):
            return sql.SQL("")
        named = self.request.parameter("on_conflict")
        unique = [_unquoted(name) for name in _listed(named)] if named else self._primary_key()
        on = sql.SQL(", ").join(map(sql.Identifier, unique))
        if not merge:
            return sql.SQL(" ON CONFLICT ({}) DO NOTHING").format(on)
        new = sql.SQL(", ").join(
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in names
        )
        return sql.SQL(" ON CONFLICT ({}) DO UPDATE SET {}").format(on, new)

    def _primary_key(self) -> list[str]:
        found = self.db.execute(
            "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid"
            " AND attnum = ANY (indkey) WHERE indrelid = to_regclass(%s) AND indisprimary",
            (self.table.as_string(self.db),),
        )
        return [name for (name,) in found]

    def _update(self) -> sql.Composable:
        row = self.request.json()
        new = sql.SQL(", ").join(
            sql.SQL("{0} = body.{0}").format(sql.Identifier(name)) for name in self._given(row)
        )
        return sql.SQL(
            "UPDATE {t} SET {new} FROM json_populate_record(NULL::{t}, {body}) body{where}"
            " RETURNING {t}.*"
        ).format(
            t=self.table,
            new=new,
            body=sql.Literal(json.dumps(row, ensure_ascii=False)),
            where=self._where(),
        )

    def _delete(self) -> sql.Composable:
        return sql.SQL("DELETE FROM {t}{where} RETURNING {t}.*").format(
            t=self.table, where=self._where()
        )


class _Function(NamedTuple):
    """A function as the catalogue knows it: ``arguments`` maps names to types."""

    arguments: dict[str, str]
    defaults: int  # of the last arguments, which may be left out
    many: bool  # whether it returns a set
    rows: bool  # whether what it returns has columns
    void: bool
    lone_json: bool  # one unnamed argument, which is the whole body


class _Call:
    """One call of a function."""

    def __init__(self, db: psycopg.Cursor[Any], schema: str, request: Request) -> None:
        self.db, self.schema, self.request = db, schema, request

    def answer(self, name: str) -> Answer:
        if self.request.method == "POST":
            arguments = self.request.json()
        else:
            arguments = dict(self.request.query)
        function = self._chosen(name, arguments)
        body = sql.Literal(json.dumps(arguments, ensure_ascii=False))
        if function.lone_json:
            source, given = sql.SQL("(SELECT 1) body"), body
        elif arguments:
            types = sql.SQL(", ").join(
                sql.Identifier(key) + sql.SQL(f" {function.arguments[key]}") for key in arguments
            )
            source = sql.SQL("json_to_record({}) AS body({})").format(body, types)
            given = sql.SQL(", ").join(
                sql.SQL("{0} := body.{0}").format(sql.Identifier(key)) for key in arguments
            )
        else:
            source, given = sql.SQL("(SELECT 1) body"), sql.SQL("")
        row = sql.SQL("r") if function.rows else sql.SQL("r.value")
        alias = sql.SQL("value") if function.rows else sql.SQL("_(value)")
        shown = "coalesce(json_agg({}), '[]')"
        if not function.many or self.request.wants_object:
            shown = "coalesce(json_agg({})->0, 'null')"
        self.db.execute(
            sql.SQL(
                f"WITH r AS (SELECT {{alias}}.* FROM {{source}}, LATERAL {{f}}({{given}}) {{as_}})"
                f" SELECT ({shown.format('{row}')})::text, count(*) FROM r"
            ).format(
                alias=sql.SQL("value" if function.rows else "_"),
                source=source,
                f=sql.Identifier(self.schema, name),
                given=given,
                as_=alias,
                row=row,
            )
        )
        text, rows = self.db.fetchone() or ("null", 0)
        if function.void:
            return Answer(204, "", 1)
        return Answer(200, text, rows)

    def _chosen(self, name: str, arguments: Any) -> _Function:
        """The one function that takes arguments of these names."""
        names = set(arguments) if isinstance(arguments, dict) else set()
        fitting = [found for found in self._known(name) if _takes(found, names)]
        if not fitting:
            shown = ", ".join(sorted(names)) or "no parameters"
            raise Refused(
                404,
                "PGRST202",
                f"Could not find the function {self.schema}.{name}({shown}) in the schema cache",
                f"Searched for the function {self.schema}.{name} with {shown}",
            )
        if len(fitting) > 1:
            raise Refused(300, "PGRST203", f"Could not choose the best candidate for {name}")
        return fitting[0]

    def _known(self, name: str) -> Iterator[_Function]:
        found = self.db.execute(
            """
            SELECT p.proargnames, p.proargmodes::text[], p.pronargdefaults, p.proretset,
                   t.typtype = 'c' OR p.prorettype = 'record'::regtype OR 't' = ANY (p.proargmodes),
                   p.prorettype = 'void'::regtype,
                   ARRAY(SELECT format_type(a.type, NULL)
                         FROM unnest(p.proargtypes) WITH ORDINALITY a(type, n) ORDER BY n)
            FROM pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace
            JOIN pg_type t ON t.oid = p.prorettype
            WHERE s.nspname = %s AND p.proname = %s AND p.prokind = 'f'
            """,
            (self.schema, name),
        )
        for names, modes, defaults, many, rows, void, types in found.fetchall():
            given = [
                argument
                for argument, mode in zip(names or [], modes or "i" * len(names or []), strict=True)
                if mode in "ibv"
            ]
            lone = not given and len(types) == 1 and types[0] in ("json", "jsonb")
            arguments = dict(zip(given, types, strict=True)) if given else {}
            if len(given) == len(types) or lone:
                yield _Function(arguments, defaults, many, bool(rows), void, lone)


def _takes(function: _Function, names: set[str]) -> bool:
    if function.lone_json:
        return True
    known = list(function.arguments)
    return set(known[: len(known) - function.defaults]) <= names <= set(known)


def _listed(text: str) -> list[str]:
    """The parts of a list with commas between them, some perhaps in double quotes."""
    parts, part, quoted, escaped = [], "", False, False
    for character in text:
        if escaped:
            part, escaped = part + character, False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            parts.append(part)
            part = ""
        else:
            part += character
    return [*parts, part]


def _unquoted(name: str) -> str:
    return _listed(name)[0]


_STATUSES = {
    "08": 503,
    "09": 500,
    "0L": 403,
    "0P": 403,
    "23503": 409,
    "23505": 409,
    "25006": 405,
    "25": 500,
    "28": 403,
    "2D": 500,
    "38": 500,
    "39": 500,
    "3B": 500,
    "40": 500,
    "53400": 500,
    "53": 503,
    "54": 500,
    "55": 500,
    "57": 500,
    "58": 500,
    "F0": 500,
    "HV": 500,
    "P0001": 400,
    "P0": 500,
    "42883": 404,
    "42P01": 404,
    "42P17": 500,
    "XX": 500,
}
"""The HTTP status of a SQLSTATE, or of its class; 400 for others. From PostgREST's manual."""


def _refused(error: psycopg.Error, role: str | None) -> Refused:
    code = error.sqlstate
    if code is None:
        if isinstance(error, psycopg.OperationalError):
            return Refused(
                503, "PGRST001", "Database connection error. Retrying the connection.", str(error)
            )
        return Refused(400, "22021", str(error))  # psycopg itself refuses a NUL
    if code == "42501":
        status = 401 if role == "anon" else 403
    elif code.startswith("PT") and code[2:].isdigit():  # a function chose the status
        status = int(code[2:])
    else:
        status = _STATUSES.get(code, _STATUSES.get(code[:2], 400))
    shown = error.diag
    return Refused(
        status, code, shown.message_primary or "", shown.message_detail, shown.message_hint
    )


class _HTTPServer(ThreadingHTTPServer):
    """Knows its connections, so that it can end them with it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        self._sockets: set[Any] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._sockets.discard(request)
        super().shutdown_request(request)

    def close_all(self) -> None:
        for request in list(self._sockets):
            self.shutdown_request(request)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, or each waits for the other's acknowledgement
    place: PostgREST

    def handle(self) -> None:
        # The client may go away at any time, and so does the test that ends the server.
        with contextlib.suppress(ConnectionError, ValueError):
            super().handle()

    def _serve(self) -> None:
        self.place.requests += 1
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qsl(url.query, keep_blank_values=True)
        request = Request(self.command, unquote(url.path), query, self.headers, body)
        try:
            answer = self.place.answer(request)
        except Refused as refusal:
            answer = Answer(refusal.status, json.dumps(refusal.body, ensure_ascii=False))
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = do_PUT = _serve

    def _send(self, answer: Answer) -> None:
        data = answer.body.encode()
        self.send_response(answer.status)
        if answer.body:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        if answer.status != 204:
            self.send_header("Content-Length", str(len(data)))
        span = f"0-{answer.rows - 1}" if answer.rows else "*"
        total = "*" if answer.count is None else answer.count
        self.send_header("Content-Range", f"{span}/{total}")
        if not self.place.keep_alive:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Nothing: the tests say what failed."""


def start(
    database_url: str,
    key: str = "service-key",
    *,
    role: str | None = None,
    keys: Mapping[str, str | None] | None = None,
    schemas: Sequence[str] = ("public", "retain"),
    keep_alive: bool = False,
) -> PostgREST:
    """A server for ``create_client(server.url, key)``, until its ``stop()``.

    Requests with ``key`` run as ``role``, those with one of ``keys`` as the role it maps to;
    ``None`` is the role that ``database_url`` logs in as.
    """
    return PostgREST(database_url, {key: role, **(keys or {})}, schemas, keep_alive)
