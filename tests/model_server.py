"""A model's service for the tests: real HTTP, the real wire formats, and answers from a script.

It speaks OpenAI's chat completions and responses and Anthropic's messages, each plain and
streamed, with parallel tool calls, as the services themselves do, so that the official SDKs and
every framework above them can be driven without a network:

    with ModelServer(remembering) as server:
        client = openai.OpenAI(base_url=server.url, api_key="any")
        ...
        assert server.requests[0].tools == ["remember"]

A script is a function of what is asked; it is called on the thread of the request. What it
raises is the answer 500, and is raised again when the server is left.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import model_wires
from model_wires import Asked, Wire

__all__ = ["Asked", "ModelServer", "Reply", "remembering", "turns"]

_MODELS = ["scripted-1", "scripted-1-mini"]


@dataclass(frozen=True)
class Reply:
    """What the model says, or what goes wrong.

    ``text``; ``calls``: (tool name, arguments), more than one are parallel; arguments that are a
    text go out as they stand, be they JSON or not. ``refusal``: it declines, in these words.
    ``finish``: ``"length"`` or ``"content_filter"``, why it stopped early. ``thinking``: an
    Anthropic model's thoughts before it.

    ``status`` with ``message``: the service's error; ``body``: these bytes instead of an answer;
    ``delay``: seconds before anything is sent; ``cut``: the connection ends amid the answer.
    """

    text: str = ""
    calls: Iterable[tuple[str, dict[str, Any] | str]] = field(default_factory=list)
    refusal: str = ""
    finish: str = ""
    thinking: str = ""
    status: int = 200
    message: str = ""
    body: bytes | None = None
    delay: float = 0.0
    cut: bool = False


Script = Callable[[Asked], Reply]


def remembering(asked: Asked) -> Reply:
    """A model that remembers when told to, and asks its memory when it is asked something.

    "Remember that X" calls ``remember(content=X)``, a question calls ``recall(query=question)``,
    where such a tool is offered; a tool's result is passed on after "Done: ". Everything else is
    answered with "I know: " and what the prompt has inside fences.
    """
    if asked.last_result:
        return Reply(f"Done: {asked.last_result}")
    wish = re.search(r"remember that\s+(.+)", asked.last_user, re.IGNORECASE | re.DOTALL)
    if wish and "remember" in asked.tools:
        return Reply(calls=[("remember", {"content": wish[1].strip()})])
    if asked.last_user.rstrip().endswith(("?", "？", "؟")) and "recall" in asked.tools:
        return Reply(calls=[("recall", {"query": asked.last_user.strip()})])
    known = re.findall(r"<from-memory>\n(.*?)\n</from-memory>", asked.prompt, re.DOTALL)
    return Reply("I know: " + "\n".join(known))


def turns(*replies: Reply) -> Script:
    """The script that gives these, in order, and after that the last one again and again."""
    left, lock = list(replies), threading.Lock()

    def next_one(_: Asked) -> Reply:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return next_one


class ModelServer:
    """A context manager: the service runs on a loopback port of its own while it is entered.

    ``url`` is OpenAI's ``base_url``, ``root`` Anthropic's; ``requests`` are all that were asked,
    in order, as ``Asked``.
    """

    def __init__(self, script: Script = remembering) -> None:
        self.script = script
        self.requests: list[Asked] = []
        self.failures: list[Exception] = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.conversations = model_wires.Conversations()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.root = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.url = f"{self.root}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.hang_up()
        self._http.server_close()  # waits for the threads of the requests
        if self.failures and kind is None:
            raise self.failures[0]

    def answer(self, asked: Asked) -> Reply:
        """What the script says."""
        with self.lock:
            self.requests.append(asked)
        try:
            return self.script(asked)
        except Exception as error:  # noqa: BLE001 (raised when the server is left)
            with self.lock:
                self.failures.append(error)
            return Reply(status=500, message=f"the script failed: {error!r}")


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
    owner: ModelServer

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that clients keep alive."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):  # the client was quicker
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, address: Any) -> None:
        """Clients may go; anything else is a fault of the server, and fails the test."""
        error = sys.exc_info()[1]
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            with self.owner.lock:
                self.owner.failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests look at ``requests``."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        anthropic = "anthropic-version" in self.headers
        if path.endswith("/models"):
            self._json(200, model_wires.models(_MODELS, anthropic))
        elif "/models/" in path:
            self._json(200, model_wires.model(path.rpartition("/models/")[2], anthropic))
        else:
            self._unknown(path)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        wire = next((w for end, w in model_wires.WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self._unknown(path)
            return
        try:
            raw = json.loads(data)
            asked = wire.read(raw, dict(self.headers.items()), self.server.owner.conversations)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._json(400, wire.error(400, f"the request can't be read: {error!r}"))
            return
        self._reply(wire, asked, self.server.owner.answer(asked))

    def _reply(self, wire: Wire, asked: Asked, reply: Reply) -> None:
        if reply.delay:
            self.server.owner.stopping.wait(reply.delay)
        streamed = bool(asked.raw.get("stream"))
        if reply.body is not None:
            kind = "text/event-stream" if streamed and reply.status == 200 else "application/json"
            self._send(reply.status, reply.body, kind, cut=reply.cut)
        elif reply.status != 200:
            self._json(reply.status, wire.error(reply.status, reply.message), cut=reply.cut)
        else:
            answer = wire.answer(asked, reply)
            self.server.owner.conversations.keep(asked, answer)
            if streamed:
                self._stream(wire.events(asked, answer), cut=reply.cut)
            else:
                self._json(200, answer, cut=reply.cut)

    def _unknown(self, path: str) -> None:
        error = {"message": f"there is no {path} here", "type": "invalid_request_error"}
        self._json(404, {"type": "error", "error": {**error, "param": None, "code": None}})

    def _json(self, status: int, body: Any, *, cut: bool = False) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", cut=cut)

    def _send(self, status: int, body: bytes, kind: str, *, cut: bool) -> None:
        self._head(status, kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection |= cut

    def _stream(self, events: Iterator[str], *, cut: bool) -> None:
        self._head(200, "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        chunks = [event.encode() for event in events]
        for chunk in chunks[: len(chunks) // 2] if cut else chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name in ("x-request-id", "request-id"):
            self.send_header(name, model_wires.new_id("req"))
        if status == 429 or status >= 500:
            self.send_header("retry-after-ms", "5")  # so that the SDKs' retries are quick
