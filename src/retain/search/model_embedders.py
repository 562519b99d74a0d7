"""Embedders for models that a user asks for, in this process or behind a service.

:class:`SentenceTransformerEmbedder` loads one, :class:`OllamaEmbedder` asks one on this machine,
:class:`OpenAIEmbedder` any endpoint that speaks OpenAI's protocol. Nothing is loaded or asked
before the first text.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from .. import clock
from ..errors import EmbeddingFailed, InvalidType, InvalidValue, installing

__all__ = ["OllamaEmbedder", "OpenAIEmbedder", "SentenceTransformerEmbedder"]

Floats = npt.NDArray[np.float32]

_LONGEST_ANSWER = 1 << 28  # bytes: 2,048 vectors of 3,072 numbers, written out
_LONGEST_WAIT = 60.0  # seconds that a service may ask for before a retry


class _Prefixed(ABC):
    """What the embedders of a model share: prefixes, batches, checks, unit length."""

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None,
        query_prefix: str,
        text_prefix: str,
        batch_size: int,
        max_chars: int,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise InvalidValue(f"model={model!r} names no model")
        for what, number in (("batch_size", batch_size), ("max_chars", max_chars)):
            if not isinstance(number, int) or number < 1:
                raise InvalidValue(f"{what}={number!r} is not a whole number of at least 1")
        if dimensions is not None and (not isinstance(dimensions, int) or dimensions < 1):
            raise InvalidValue(f"dimensions={dimensions!r} is not a whole number of at least 1")
        self._model = model
        self._asked_dimensions = dimensions
        self._dimensions = dimensions
        self._query_prefix = query_prefix
        self._text_prefix = text_prefix
        self._batch_size = batch_size
        self._max_chars = max_chars
        self._lock = threading.Lock()

    _kind = ""

    @property
    def name(self) -> str:
        """The kind of embedder and the model, with what else the vectors depend on."""
        size = f":{self._asked_dimensions}" if self._asked_dimensions else ""
        prefix = f":{self._text_prefix!r}" if self._text_prefix else ""
        return f"{self._kind}:{self._model}{size}{prefix}"

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; asks the model once where it was not said."""
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Floats:
        """A row of unit length for each text, zero for a blank one.

        Raises :class:`EmbeddingFailed` if the model gives no usable vectors.
        """
        if isinstance(texts, (str, bytes)):
            raise InvalidType("embed() takes a list of texts, not one text: write embed([text])")
        return self._embed(texts, self._text_prefix)

    def embed_query(self, text: str) -> Floats:
        """The vector of a question, with the prefix for questions before it."""
        vector: Floats = self._embed([text], self._query_prefix)[0]
        return vector

    def _embed(self, texts: Sequence[str], prefix: str) -> Floats:
        ready = [prefix + clean for clean in (_sendable(t, self._max_chars) for t in texts)]
        # Services refuse an empty text, and it means nothing: its row stays zero.
        worth = [row for row, clean in enumerate(ready) if clean[len(prefix) :].strip()]
        batches = [
            self._vectors([ready[row] for row in worth[start : start + self._batch_size]])
            for start in range(0, len(worth), self._batch_size)
        ]
        vectors = np.zeros((len(ready), self.dimensions), np.float32)
        if batches:
            vectors[worth] = np.concatenate(batches)
        return vectors

    def _vectors(self, batch: list[str]) -> Floats:
        return self._checked(self._ask(batch), len(batch))

    @abstractmethod
    def _ask(self, batch: list[str]) -> Any:
        """What the model answers: a sequence of vectors, if all is well."""

    def _checked(self, found: Any, count: int) -> Floats:
        """``found`` as unit vectors, if it is a finite one of the right size for each text."""
        try:
            vectors = np.array(found, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise EmbeddingFailed(
                f"{self.name} answered with something else than vectors of one length: {error}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise EmbeddingFailed(
                f"{self.name} was asked for {count} vectors and answered with an array of shape "
                f"{vectors.shape}; check that {self._model!r} is an embedding model"
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingFailed(
                f"{self.name} answered with NaN or infinite numbers: the model or its runtime "
                "is broken; try it in a higher precision"
            )
        with self._lock:
            self._dimensions = self._dimensions or vectors.shape[1]
        if vectors.shape[1] != self._dimensions:
            raise EmbeddingFailed(
                f"{self.name} answered with vectors of {vectors.shape[1]} numbers where "
                f"{self._dimensions} were expected; make an embedder with "
                f"dimensions={vectors.shape[1]}, or none to take what the model gives"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors.astype(np.float32)


def _sendable(text: str, longest: int) -> str:
    """``text`` without what JSON and tokenizers choke on, cut to ``longest`` characters."""
    if not isinstance(text, str):
        raise InvalidType(f"a text to embed must be a str, not {type(text).__name__}")
    cut = text[:longest].replace("\0", " ")
    return cut.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- in this process --------------------------------------------------------------------------


class SentenceTransformerEmbedder(_Prefixed):
    """A model that ``sentence-transformers`` loads, from a folder or by name.

    ``query_prefix`` and ``text_prefix``: what the model was trained to see before questions and
    texts (``"query: "`` and ``"passage: "`` for E5). ``dimensions``: the first so many numbers
    alone, for models trained for it. ``device``: as torch names it. A name that is no folder is
    downloaded by that library when the first text is embedded.

    Needs the extra ``retain[sentence-transformers]``.

    >>> embedder = SentenceTransformerEmbedder(
    ...     "intfloat/multilingual-e5-small", query_prefix="query: ", text_prefix="passage: "
    ... )
    >>> embedder.name
    "sentence-transformers:intfloat/multilingual-e5-small:'passage: '"
    """

    _kind = "sentence-transformers"

    def __init__(
        self,
        model: str | Path,
        *,
        dimensions: int | None = None,
        query_prefix: str = "",
        text_prefix: str = "",
        batch_size: int = 32,
        max_chars: int = 20_000,
        device: str | None = None,
    ) -> None:
        super().__init__(
            os.fspath(model) if isinstance(model, Path) else model,
            dimensions=dimensions,
            query_prefix=query_prefix,
            text_prefix=text_prefix,
            batch_size=batch_size,
            max_chars=max_chars,
        )
        self._device = device
        self._loaded: Any = None
        self._loading = threading.Lock()

    def _ask(self, batch: list[str]) -> Any:
        with self._loading:  # and encoding: a torch module is not for two threads at once
            if self._loaded is None:
                self._loaded = self._load()
            try:
                return self._loaded.encode(
                    batch,
                    batch_size=self._batch_size,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
            except (RuntimeError, ValueError, IndexError) as error:
                raise EmbeddingFailed(f"{self.name} failed on a text: {error}") from error

    def _load(self) -> Any:
        try:
            from sentence_transformers import (  # type: ignore[import-not-found,unused-ignore]
                SentenceTransformer,
            )
        except ImportError as error:
            raise EmbeddingFailed(
                "sentence-transformers cannot be imported: "
                f"{installing('sentence-transformers')} ({error})"
            ) from error
        try:
            return SentenceTransformer(
                self._model, device=self._device, truncate_dim=self._asked_dimensions
            )
        except Exception as error:  # whatever its parts raise
            raise EmbeddingFailed(
                f"sentence-transformers cannot load {self._model!r}: {error}"
            ) from error


# --- behind HTTP ------------------------------------------------------------------------------


class _Service(_Prefixed):
    """An embedder that asks a service by HTTP."""

    def __init__(
        self, model: str, url: str, *, timeout: float, retries: int, **shared: Any
    ) -> None:
        super().__init__(model, **shared)
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise InvalidValue(f"{url!r} is no address of a service; it begins with http(s)://")
        if not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
            raise InvalidValue(f"timeout={timeout!r} is not a number of seconds above 0")
        if not isinstance(retries, int) or retries < 0:
            raise InvalidValue(f"retries={retries!r} is not a whole number of at least 0")
        self._url = url
        self._timeout = timeout
        self._retries = retries

    def _post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """What the service answers, tried again where trying again can help."""
        request = urllib.request.Request(
            self._url.rstrip("/") + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "User-Agent": "retain", **headers},
        )
        for attempt in range(self._retries + 1):
            try:
                return self._answer(request)
            except _TryAgain as failure:
                wait = failure.wait if failure.wait is not None else 0.5 * 2**attempt
                if attempt == self._retries or wait > _LONGEST_WAIT:
                    tried = f"after {attempt + 1} tries" if attempt else "at once"
                    raise EmbeddingFailed(f"{self.name} gave up {tried}: {failure}") from failure
                time.sleep(wait)
        raise AssertionError("the last attempt returned nothing and raised nothing")

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            with _opener.open(request, timeout=self._timeout) as response:
                answer = response.read(_LONGEST_ANSWER + 1)
                missing = response.length  # of what was announced
        except urllib.error.HTTPError as error:
            with error:
                said = _said(error)
            if error.code in (408, 409, 429) or error.code >= 500:
                raise _TryAgain(f"{error.code} {said}", _asked_wait(error.headers)) from error
            raise EmbeddingFailed(self._refused(error.code, said)) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _TryAgain(f"no answer from {self._url}: {reason!r}") from error
        if len(answer) > _LONGEST_ANSWER:
            raise EmbeddingFailed(f"{self.name} answered with more than {_LONGEST_ANSWER} bytes")
        if missing:
            raise _TryAgain(f"the answer of {self._url} ended {missing} bytes early")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise EmbeddingFailed(
                f"{self.name} answered with something else than JSON ({error}); "
                f"is {self._url} the right address?"
            ) from error

    def _refused(self, status: int, said: str) -> str:
        way_out = {
            400: "the model's limit may be lower than max_chars",
            401: "check the API key",
            403: "check what the API key may do",
            404: "check the model's name and the address",
            413: "a lower batch_size or max_chars may help",
        }.get(status, "")
        return f"{self.name} at {self._url} refused: {status} {said}" + (
            f" ({way_out})" if way_out else ""
        )


class OpenAIEmbedder(_Service):
    """Any endpoint that speaks OpenAI's embeddings protocol: OpenAI, vLLM, LM Studio, TEI …

    ``base_url``: what ``/embeddings`` is appended to. ``api_key``: that of the environment
    variable ``OPENAI_API_KEY`` if ``None``; it is sent to OpenAI alone unless given here.
    ``dimensions``: asked of models that can shorten their vectors. ``timeout`` in seconds for
    each try, ``retries`` after the first where the service is busy or cannot be reached.
    ``max_chars``: what of a text is sent.

    >>> OpenAIEmbedder("text-embedding-3-small", dimensions=512, api_key="sk-...").name
    'openai:text-embedding-3-small:512'
    """

    _kind = "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        query_prefix: str = "",
        text_prefix: str = "",
        batch_size: int = 128,
        max_chars: int = 8_000,
        timeout: float = 30.0,
        retries: int = 3,
    ) -> None:
        super().__init__(
            model,
            base_url or "https://api.openai.com/v1",
            timeout=timeout,
            retries=retries,
            dimensions=dimensions,
            query_prefix=query_prefix,
            text_prefix=text_prefix,
            batch_size=batch_size,
            max_chars=max_chars,
        )
        key = api_key if api_key or base_url else os.environ.get("OPENAI_API_KEY")
        if not key and not base_url:
            raise InvalidValue(
                "OpenAI asks for a key: set OPENAI_API_KEY or give api_key=; "
                "for another service give base_url="
            )
        if base_url:
            self._kind = f"openai@{urlsplit(base_url).netloc.rpartition('@')[2]}"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def _ask(self, batch: list[str]) -> Any:
        body: dict[str, Any] = {"model": self._model, "input": batch}
        if self._asked_dimensions:
            body["dimensions"] = self._asked_dimensions
        answer = self._post("/embeddings", body, self._headers)
        try:
            rows = {row["index"]: row["embedding"] for row in answer["data"]}
            return [rows[index] for index in range(len(batch))]
        except (KeyError, TypeError, IndexError) as error:
            raise EmbeddingFailed(
                f"{self.name} was asked for {len(batch)} vectors and its answer lacks some "
                f"({error!r}); is {self._url} an endpoint of OpenAI's protocol?"
            ) from error


class OllamaEmbedder(_Service):
    """A model that Ollama runs, on this machine or another.

    ``timeout`` in seconds for each try: the first one loads the model.

    >>> OllamaEmbedder("nomic-embed-text", text_prefix="search_document: ").name
    "ollama:nomic-embed-text:'search_document: '"
    """

    _kind = "ollama"

    def __init__(
        self,
        model: str,
        *,
        host: str = "http://127.0.0.1:11434",
        dimensions: int | None = None,
        query_prefix: str = "",
        text_prefix: str = "",
        batch_size: int = 64,
        max_chars: int = 20_000,
        timeout: float = 120.0,
        retries: int = 3,
    ) -> None:
        super().__init__(
            model,
            host,
            timeout=timeout,
            retries=retries,
            dimensions=dimensions,
            query_prefix=query_prefix,
            text_prefix=text_prefix,
            batch_size=batch_size,
            max_chars=max_chars,
        )

    def _ask(self, batch: list[str]) -> Any:
        answer = self._post("/api/embed", {"model": self._model, "input": batch}, {})
        try:
            return answer["embeddings"]
        except (KeyError, TypeError) as error:
            raise EmbeddingFailed(
                f"{self.name} answered without embeddings; Ollama has had /api/embed since "
                f"0.3: is {self._url} one?"
            ) from error

    def _refused(self, status: int, said: str) -> str:
        if status == 404:
            return f"{self.name} at {self._url} refused: {said} (try: ollama pull {self._model})"
        return super()._refused(status, said)


class _TryAgain(EmbeddingFailed):
    """A failure that may pass; ``wait``: the seconds that the service asked for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, and its key would go to whom it was not given."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _said(error: urllib.error.HTTPError) -> str:
    """The message in an answer that is an error, in a line of at most 300 characters."""
    try:
        body = error.read(10_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    try:
        found = json.loads(body)["error"]
        body = found["message"] if isinstance(found, dict) else str(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # not JSON, or not of that form: the body itself says what there is to say
    return " ".join(str(body).split())[:300] or str(error.reason)


def _asked_wait(headers: Any) -> float | None:
    """The seconds of ``Retry-After`` (RFC 9110, 10.2.3), which is a number or a date."""
    asked = headers.get("Retry-After")
    if asked is None:
        return None
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass  # then it is a date
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - clock.now())
    except (ValueError, TypeError):
        return None
