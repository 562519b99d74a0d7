"""A tool: a function that a model can call, and how one is made of a plain function."""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, overload

from ..errors import InvalidType, InvalidValue
from .values import admits_none, coerce, did_you_mean, is_json, shown, type_schema


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One argument of a tool.

    ``annotation``: its type, as in a signature: ``str``, ``int``, ``float``, ``bool``,
    ``list``, ``dict``, ``list[str]`` and so on, ``Literal``, ``None``, ``Any``, and unions of
    these. ``description``: for the model. ``required``: whether it must be given;
    ``default``: what the function takes if it isn't.
    """

    name: str
    annotation: Any = str
    description: str = ""
    required: bool = True
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values; ``InvalidType`` if the annotation has none."""
        schema = type_schema(self.annotation, f"argument {self.name!r}")
        if self.description:
            schema["description"] = self.description
        if not self.required and is_json(self.default):
            schema["default"] = copy.deepcopy(self.default)
        return schema


class Tool:
    """A function with a name, a description and typed arguments that a model can call.

    Usually made by :func:`tool`. ``parameters`` are its arguments; ``is_async`` tells whether
    it is a coroutine function. Calling the tool itself calls the function as it is.

    Raises ``InvalidValue`` for a blank name or two arguments of one name, and ``InvalidType``
    for an argument whose annotation has no JSON schema.
    """

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Iterable[ToolParameter],
        function: Callable[..., Any],
    ) -> None:
        if not callable(function):
            raise InvalidType(f"tool {name!r} is given {function!r}; give a function")
        functools.update_wrapper(self, function)  # keeps __doc__ and __name__ for help()
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(f"a tool's name is {name!r}; give a word")
        self.name = name
        self.description = description
        self.parameters = list(parameters)
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self._by_name = {parameter.name: parameter for parameter in self.parameters}
        if len(self._by_name) < len(self.parameters):
            raise InvalidValue(f"tool {name!r} has two arguments of one name")
        try:
            self._properties = {each.name: each.schema() for each in self.parameters}
        except InvalidType as error:
            raise InvalidType(f"tool {name!r}: {error}") from None

    def __repr__(self) -> str:
        return f"<Tool {self.name}({', '.join(self._by_name)})>"

    def schema(self) -> dict[str, Any]:
        """``name``, ``description`` and ``parameters``, the JSON schema of the arguments."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": copy.deepcopy(self._properties),
                "required": [each.name for each in self.parameters if each.required],
                "additionalProperties": False,
            },
        }

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """``args`` with every value as its annotation says, ready for the function.

        Models give ``"5"`` for 5, ``"true"`` for true, 5.0 for 5, a list as JSON text, and the
        other way round; all of these are taken. ``None`` for an argument that may be left out
        counts as left out, unless its type admits ``None``. Arguments left out stay so.

        Raises ``InvalidType`` for a missing or an unknown argument and for a value of a type
        that can't be taken, ``InvalidValue`` for a value of a fitting type that can't be read.

        >>> parts = [ToolParameter("days", int), ToolParameter("sure", bool, required=False)]
        >>> Tool("wait", "Wait", parts, print).validate({"days": "5", "sure": "true"})
        {'days': 5, 'sure': True}
        """
        if not isinstance(args, Mapping):
            raise InvalidType(
                f"tool {self.name!r}: the arguments are a {type(args).__name__}; "
                "give a dict of values by name"
            )
        for name in args:
            if name not in self._by_name:
                hint = did_you_mean(name, self._by_name)
                raise InvalidType(f"tool {self.name!r} has no argument {shown(name)}{hint}")
        for parameter in self.parameters:
            if parameter.required and parameter.name not in args:
                raise InvalidType(
                    f"tool {self.name!r}: argument {parameter.name!r} is missing; give it"
                )
        return {
            name: coerce(
                self._by_name[name].annotation, value, f"tool {self.name!r}: argument {name!r}"
            )
            for name, value in args.items()
            if not self._counts_as_left_out(name, value)
        }

    def _counts_as_left_out(self, name: str, value: object) -> bool:
        parameter = self._by_name[name]
        return value is None and not parameter.required and not admits_none(parameter.annotation)

    def execute(self, args: Mapping[str, Any]) -> Any:
        """Call the function with ``args`` after :meth:`validate`, and give back what it returns.

        A coroutine function runs to its end: in an event loop of its own, and on a thread of
        its own where this thread's loop is running already (in a coroutine, use
        :meth:`aexecute`, which blocks nobody). What the function raises is raised.
        """
        result = self.function(**self.validate(args))
        return _wait_for(result) if inspect.isawaitable(result) else result

    async def aexecute(self, args: Mapping[str, Any]) -> Any:
        """:meth:`execute` for coroutines; a plain function runs on a thread of its own."""
        import asyncio  # here, since it takes longer to import than all of this package

        values = self.validate(args)
        if self.is_async:
            return await self.function(**values)
        result = await asyncio.to_thread(self.function, **values)
        return await result if inspect.isawaitable(result) else result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _wait_for(awaitable: Awaitable[Any]) -> Any:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def main() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, asyncio.run, main()).result()


# -- from a function to a tool ------------------------------------------------------------


@overload
def tool(name: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    name: str | Callable[..., Any] | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a :class:`Tool` of a function; with parentheses or without.

    ``name``: the function's own unless given. ``description``: what the docstring says above
    its first section unless given. Types come from the annotations, what an argument is for
    from the docstring's "Args:" section, or from a text in ``Annotated[…]``.

    Raises ``InvalidType`` for a function that takes ``*args``, ``**kwargs`` or ``self``, or an
    annotation that can't be resolved or has no JSON schema.

    >>> @tool(description="The weather in a city")
    ... def weather(city: str, days: int = 1) -> str:
    ...     return f"{days} days of rain in {city}"
    >>> weather.execute({"city": "Lyon", "days": "2"})
    '2 days of rain in Lyon'
    """
    if name is not None and not isinstance(name, str):
        return _tool_of(name, None, description)
    return lambda function: _tool_of(function, name, description)


def _tool_of(function: Callable[..., Any], name: str | None, description: str | None) -> Tool:
    if not callable(function):
        raise InvalidType(f"@tool is given {function!r}; give a function")
    if isinstance(function, Tool):
        function = function.function
    name = name or str(getattr(function, "__name__", ""))
    text, arguments = _read_docstring(inspect.getdoc(function) or "")
    try:
        hints = typing.get_type_hints(_signed(function), include_extras=True)
    except NameError as error:
        raise InvalidType(
            f"tool {name!r}: an annotation can't be resolved ({error}); "
            "use names of the module's top level"
        ) from None
    parameters = [
        _parameter_of(each, hints.get(each.name, Any), arguments.get(each.name, ""), name)
        for each in inspect.signature(function).parameters.values()
    ]
    return Tool(name, text if description is None else description, parameters, function)


def _signed(function: Callable[..., Any]) -> Any:
    """Where the annotations of a callable stand."""
    if isinstance(function, functools.partial):
        return _signed(function.func)
    return function if inspect.isroutine(function) else type(function).__call__


def _parameter_of(
    parameter: inspect.Parameter, annotation: Any, description: str, tool_name: str
) -> ToolParameter:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise InvalidType(
            f"tool {tool_name!r}: {parameter} can't be given by name; name every argument"
        )
    if parameter.name == "self":
        raise InvalidType(
            f"tool {tool_name!r} is a method without its object; use tool()(thing.{tool_name})"
        )
    if typing.get_origin(annotation) is Annotated:
        texts = [extra for extra in annotation.__metadata__ if isinstance(extra, str)]
        description = description or " ".join(texts)
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    return ToolParameter(parameter.name, annotation, description, required, default)


_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|See Also|Warnings?):\s*"
)
_ARGUMENT = re.compile(r"(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What stands above the first section, and the "Args:" section by argument."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if _SECTION.fullmatch(line)]
    description = "\n".join(lines[: heads[0]] if heads else lines).strip()
    arguments: dict[str, str] = {}
    for head in heads:
        if lines[head].startswith(("Args", "Arguments", "Parameters")):
            body = lines[head + 1 :]
            end = next((i for i, line in enumerate(body) if line[:1].strip()), len(body))
            arguments |= _read_arguments(body[:end])
    return description, arguments


def _read_arguments(lines: list[str]) -> dict[str, str]:
    """``name (type): text`` by name; a line indented further goes on with the one above."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    margin = next((_indent(line) for line in lines if line.strip()), 0)
    for line in filter(str.strip, lines):
        entry = _ARGUMENT.fullmatch(line.strip()) if _indent(line) <= margin else None
        if entry:
            current = found[entry[1]] = [entry[2]]
        else:
            current.append(line.strip())
    return {name: " ".join(filter(None, texts)) for name, texts in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
