"""Types that a model is told, as JSON schemas, and what is made of the values that it gives."""

from __future__ import annotations

import difflib
import json
import math
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Union

from ..errors import InvalidType, InvalidValue

_LISTS = (list, abc.Sequence, abc.Iterable, abc.Collection)
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_NONE = type(None)
_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    _NONE: "null",
}


def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The kind of an annotation (Any, Union, Literal, list, dict or a scalar), and its parts."""
    if annotation is None:
        return _NONE, ()
    if annotation in (Any, object):
        return Any, ()
    origin, args = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin is Annotated:
        return _parts(args[0])
    if origin in (Union, types.UnionType):
        return Union, args
    if origin in _LISTS:
        return list, args
    if origin in _DICTS:
        return dict, args
    return origin, args


def type_schema(annotation: Any, where: str) -> dict[str, Any]:
    """The JSON schema of an annotation; ``InvalidType``, naming ``where``, if it has none."""
    kind, args = _parts(annotation)
    if kind is Any:
        return {}
    if kind is Union:
        members = [type_schema(member, where) for member in args]
        if all(member.keys() == {"type"} for member in members):
            return {"type": [member["type"] for member in members]}
        return {"anyOf": members}
    if kind is Literal and all(isinstance(value, (str, int, _NONE)) for value in args):
        return {"enum": list(args)}
    if kind is list:
        return {"type": "array", "items": type_schema(args[0] if args else Any, where)}
    if kind is dict and (not args or _parts(args[0])[0] in (str, Any)):  # JSON's keys are text
        values = type_schema(args[1] if args else Any, where)
        return {"type": "object", "additionalProperties": values}
    for scalar, name in _JSON_TYPES.items():
        if kind is scalar:
            return {"type": name}
    raise InvalidType(
        f"{where} is annotated {annotation!r}, which has no JSON schema here; use str, int, "
        "float, bool, list, dict, None, Literal, Any, or a union of these"
    )


def admits_none(annotation: Any) -> bool:
    """Whether ``None`` is one of the values."""
    kind, args = _parts(annotation)
    if kind is Union:
        return any(map(admits_none, args))
    return kind in (Any, _NONE) or (kind is Literal and None in args)


def coerce(annotation: Any, value: Any, where: str) -> Any:
    """``value`` as ``annotation`` says, or an error that begins with ``where``."""
    kind, args = _parts(annotation)
    if kind is Any:
        return value
    if kind is Union:
        return _coerce_to_any(args, value, where)
    if kind is Literal:
        return _coerce_to_literal(args, value, where)
    if kind is list:
        values = _structure(value, (list, tuple), "a list", where)
        return [
            coerce(args[0] if args else Any, item, f"{where}[{i}]") for i, item in enumerate(values)
        ]
    if kind is dict:
        items = _structure(value, Mapping, "an object", where).items()
        return {
            key: coerce(args[1] if args else Any, item, f"{where}[{shown(key)}]")
            for key, item in items
        }
    return _SCALARS[kind](value, where)


def _coerce_to_any(members: tuple[Any, ...], value: Any, where: str) -> Any:
    """``value`` itself if it is of one of the types, else as the first that can take it."""
    taken = []
    for member in members:
        try:
            result = coerce(member, value, where)
        except (InvalidType, InvalidValue) as error:
            failure = error
            continue
        if result is value or (type(result) is type(value) and result == value):
            return result
        taken.append(result)
    if taken:
        return taken[0]
    raise failure


def _coerce_to_literal(options: tuple[Any, ...], value: Any, where: str) -> Any:
    same = [option for option in options if type(option) is type(value) and option == value]
    alike = same or [option for option in options if _fits(option, value)]
    if alike:
        return alike[0]
    hint = did_you_mean(value, map(str, options))
    raise InvalidValue(f"{where} is {shown(value)}, which is no choice{hint}")


def _fits(option: Any, value: Any) -> bool:
    try:
        return bool(coerce(type(option), value, "") == option)
    except (InvalidType, InvalidValue):
        return False


def _structure(value: Any, kind: Any, called: str, where: str) -> Any:
    """``value`` if it is of ``kind``, or what it says as JSON text."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise InvalidType(f"{where} is a {type(value).__name__}; give {called}")
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, kind):
        raise InvalidValue(f"{where} is {shown(value)}; give {called}, or {called} as JSON text")
    return parsed


def _as_text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float, list, tuple, Mapping)):
        try:
            return json.dumps(value, ensure_ascii=False)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidValue(f"{where} can't be put into text ({error}); give text") from None
    raise InvalidType(f"{where} is a {type(value).__name__}; give text")


def as_whole_number(value: Any, where: str) -> int:
    """``value`` as an ``int``: 5, 5.0, "5" or "5.0"; an error that begins with ``where`` else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidType(f"{where} is a {type(value).__name__}; give a whole number")
    try:
        number: int | float = value if not isinstance(value, str) else int(value)
    except ValueError:
        number = _as_float(value)
    if isinstance(number, float) and not number.is_integer():  # NaN and infinities neither
        raise InvalidValue(f"{where} is {shown(value)}; give a whole number")
    return int(number)


def _as_number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidType(f"{where} is a {type(value).__name__}; give a number")
    number = _as_float(value)
    if not math.isfinite(number):
        raise InvalidValue(f"{where} is {shown(value)}; give a number")
    return number


def _as_float(value: int | float | str) -> float:
    """``value`` as a float; NaN if it is no number, or too large a one."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


_YES = frozenset({"true", "yes", "y", "on", "1", 1})
_NO = frozenset({"false", "no", "n", "off", "0", 0})


def as_bool(value: Any, where: str) -> bool:
    """``value`` as a ``bool``: true, 1, "yes"; an error that begins with ``where`` else."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, (int, float, str)):
        raise InvalidType(f"{where} is a {type(value).__name__}; give true or false")
    word = value.strip().casefold() if isinstance(value, str) else value
    if word not in _YES and word not in _NO:
        raise InvalidValue(f"{where} is {shown(value)}; give true or false")
    return word in _YES


def _as_none(value: Any, where: str) -> None:
    if value is not None and value != "null":
        raise InvalidValue(f"{where} is {shown(value)}; give null")


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    str: _as_text,
    bool: as_bool,
    int: as_whole_number,
    float: _as_number,
    _NONE: _as_none,
}


def is_json(value: Any) -> bool:
    """Whether ``value`` can be written as JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def shown(value: Any) -> str:
    """``value`` as an error names it: short, however long it is."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a sentence that says that ``name`` is unknown: the nearest known name, or all.

    >>> did_you_mean("contnet", ["content", "category"])
    "; did you mean 'content'?"
    >>> did_you_mean("x", ["content", "category"])
    '; known: content, category'
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names) or 'none'}"
