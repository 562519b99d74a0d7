"""Asking a model for JSON of a given form, and believing nothing that is of another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ExtractionFailed
from ..messages import Message, Role

__all__ = ["ask"]

_SHOWN = 120  # characters of a wrong answer in a message
_LONGEST = 4_000_000  # characters of an answer
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def ask(
    provider: Any,
    *,
    model: str,
    system: str,
    text: str,
    schema: Mapping[str, Any],
    timeout: float | None = 60.0,
) -> Any:
    """What a model answers to ``text``, as a value of the form that ``schema`` says.

    ``provider``: whoever answers for the model; one with ``complete_json`` is asked for JSON of
    that form, any other (``complete``) for text with JSON in it. ``system``: what is to be done.
    ``schema``: JSON Schema, of which ``type``, ``properties``, ``required``, ``items``,
    ``enum``, ``minimum``, ``maximum``, ``minLength`` and ``maxItems`` are verified; members it
    doesn't name are left out of the value. ``timeout``: seconds, ``None`` for the provider's.

    Raises ``ExtractionFailed``, which says what was wrong: the provider failed (then ``from``
    its error), or the answer is no JSON or of another form. Writes nothing.

    >>> from retain.messages import Message
    >>> class Model:
    ...     def complete(self, **prompt):
    ...         return Message("assistant", 'Here you are: {"names": ["Miu"]}'), None
    >>> names = {"type": "array", "items": {"type": "string"}}
    >>> schema = {"type": "object", "properties": {"names": names}, "required": ["names"]}
    >>> ask(Model(), model="m", system="List the names.", text="My cat is Miu", schema=schema)
    {'names': ['Miu']}
    """
    messages = [Message(Role.USER, text)]
    answer: object
    try:
        if hasattr(provider, "complete_json"):
            answer, _ = provider.complete_json(
                model=model,
                system_prompt=system,
                messages=messages,
                schema=schema,
                timeout=timeout,
            )
        else:
            message, _ = provider.complete(
                model=model,
                system_prompt=f"{system}\n\n{_FORM}\n{json.dumps(schema)}",
                messages=messages,
                tools=[],
                temperature=None,
                max_tokens=None,
                timeout=timeout,
            )
            answer = _json_in(message.content)
    except ExtractionFailed:
        raise
    except Exception as error:  # whatever an SDK or a provider of one's own raises
        raise ExtractionFailed(
            f"the model {model!r} gave no answer: {_short(f'{type(error).__name__}: {error}')}; "
            "try again, or extract without a provider"
        ) from error
    return _formed(answer, schema, "the answer")


_FORM = "Answer with JSON alone, no other word, that follows this JSON Schema:"


def _json_in(text: object) -> object:
    """The JSON of an answer: all of it, what stands in a fence, or the first value in it."""
    if not isinstance(text, str) or not text.strip():
        raise ExtractionFailed("the answer is empty; the model gave no JSON: try again")
    if len(text) > _LONGEST:
        raise ExtractionFailed(f"the answer has {len(text)} characters; at most {_LONGEST:,} count")
    for candidate in _candidates(text):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise ExtractionFailed(
        f"the answer is no JSON, or it was cut off: {_short(text)}; try again, or give a model "
        "that keeps to a form"
    )


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from (part.partition("\n")[2] for part in text.split("```")[1::2])
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    if starts:
        yield text[min(starts) : max(text.rfind("}"), text.rfind("]")) + 1]


def _formed(value: object, schema: Mapping[str, Any], where: str) -> Any:
    """``value`` without what ``schema`` doesn't name, if it has the form that this says."""
    wanted = schema.get("type", [])
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise ExtractionFailed(f"{where} is {_short(value)}; it has to be {' or '.join(kinds)}")
    if "enum" in schema and value not in schema["enum"]:
        raise ExtractionFailed(f"{where} is {_short(value)}; it has to be one of {schema['enum']}")
    if isinstance(value, str) and len(value.strip()) < schema.get("minLength", 0):
        raise ExtractionFailed(f"{where} is blank")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not least <= value <= most:  # NaN fails this too
            raise ExtractionFailed(f"{where} is {value!r}; it has to be from {least} to {most}")
    if isinstance(value, Mapping):
        return _members(value, schema, where)
    if isinstance(value, list):
        most = schema.get("maxItems", math.inf)
        if len(value) > most:
            raise ExtractionFailed(f"{where} has {len(value)} items; at most {most} are believed")
        form = schema.get("items", {})
        return [_formed(each, form, f"{where}[{at}]") for at, each in enumerate(value)]
    return value


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    named = schema.get("properties")
    if named is None:
        return dict(value)
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise ExtractionFailed(f"{where} has no {missing[0]!r}: {_short(dict(value))}")
    return {
        name: _formed(value[name], form, f"{where}.{name}")
        for name, form in named.items()
        if name in value
    }


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _short(value: object) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
