"""Tools made of functions: their schema, their arguments, their execution."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import threading
from typing import Annotated, Any, Literal, Optional

import pytest

from retain.errors import InvalidType, InvalidValue, RetainError
from retain.tools import Tool, ToolParameter, tool


@tool
def book(
    city: str,
    nights: int = 1,
    budget: float | None = None,
    breakfast: bool = False,
    guests: list[str] = [],  # noqa: B006 (a default that must not be shared)
    wishes: Optional[dict[str, int]] = None,  # noqa: UP045 (as older programs write it)
    room: Literal["single", "double"] = "single",
) -> dict[str, Any]:
    """Book a room.

    It is held for a day.

    Args:
        city: Where to
            look for it.
        nights (int): How many.
        room (str, optional): Which kind: the
            double ones are larger.

    Returns:
        city: What was booked.
    """
    return dict(locals())


@tool(name="answer", description="The answer to everything")
async def deep_thought(question: str = "") -> str:
    await asyncio.sleep(0)
    return f"42 ({threading.current_thread().name})"


def test_a_schema_tells_types_defaults_and_what_arguments_are_for():
    schema = book.schema()
    assert schema["name"] == "book"
    assert schema["description"] == "Book a room.\n\nIt is held for a day."
    parameters = schema["parameters"]
    assert parameters["type"] == "object"
    assert parameters["required"] == ["city"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"] == {
        "city": {"type": "string", "description": "Where to look for it."},
        "nights": {"type": "integer", "description": "How many.", "default": 1},
        "budget": {"type": ["number", "null"], "default": None},
        "breakfast": {"type": "boolean", "default": False},
        "guests": {"type": "array", "items": {"type": "string"}, "default": []},
        "wishes": {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "integer"}},
                {"type": "null"},
            ],
            "default": None,
        },
        "room": {
            "enum": ["single", "double"],
            "description": "Which kind: the double ones are larger.",
            "default": "single",
        },
    }
    assert json.loads(json.dumps(schema)) == schema


def test_a_schema_is_the_callers_own():
    book.schema()["parameters"]["properties"]["guests"]["default"].append("me")
    assert book.schema()["parameters"]["properties"]["guests"]["default"] == []


def test_name_and_description_may_be_given():
    assert (deep_thought.name, deep_thought.description) == ("answer", "The answer to everything")
    assert tool()(lambda: 1).name == "<lambda>"
    assert tool(description="")(book.function).description == ""
    assert tool("renamed")(book).schema()["parameters"] == book.schema()["parameters"]


def test_the_function_behind_a_tool_is_still_one():
    assert book("Lyon", 2)["nights"] == 2
    assert book("Lyon", nights="2")["nights"] == "2"  # as it is, unvalidated
    assert book.__name__ == "book" and "Book a room" in (book.__doc__ or "")
    assert repr(deep_thought) == "<Tool answer(question)>"


def test_arguments_are_made_what_their_annotations_say():
    args = {
        "city": "Lyon",
        "nights": "2",
        "budget": "99.5",
        "breakfast": "true",
        "guests": '["Ann", "Bo"]',
        "wishes": {"pillows": 2.0},
        "room": "double",
    }
    expected = args | {
        "nights": 2,
        "budget": 99.5,
        "breakfast": True,
        "guests": ["Ann", "Bo"],
        "wishes": {"pillows": 2},
    }
    assert book.validate(args) == expected
    assert book.execute(args) == expected


def test_arguments_that_are_left_out_or_null_get_the_functions_own_default():
    args = {"city": "Lyon", "nights": None, "guests": None, "budget": None}
    assert book.validate(args) == {"city": "Lyon", "budget": None}
    assert book.execute(args)["nights"] == 1


def test_a_function_never_gets_the_callers_own_containers():
    guests = ["Ann"]
    book.validate({"city": "Lyon", "guests": guests})["guests"].append("Bo")
    assert guests == ["Ann"]


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        ({}, InvalidType, "argument 'city' is missing"),
        ({"city": None}, InvalidType, "argument 'city' is a NoneType; give text"),
        ({"city": "Lyon", "night": 2}, InvalidType, "no argument 'night'; did you mean 'nights'?"),
        ({"ctiy": "Lyon"}, InvalidType, "did you mean 'city'?"),
        ({"city": "Lyon", "zzz": 2}, InvalidType, "known: city, nights, budget"),
        ({"city": "Lyon", 5: 2}, InvalidType, "no argument 5"),
        ({"city": "Lyon", "nights": "many"}, InvalidValue, "'nights' is 'many'; give a whole"),
        ({"city": "Lyon", "nights": 1.5}, InvalidValue, "'nights' is 1.5"),
        ({"city": "Lyon", "nights": True}, InvalidType, "'nights' is a bool"),
        ({"city": "Lyon", "guests": "Ann"}, InvalidValue, "'guests' is 'Ann'; give a list"),
        ({"city": "Lyon", "guests": ["Ann", None]}, InvalidType, "argument 'guests'[1] is a None"),
        ({"city": "Lyon", "wishes": {"tea": "x"}}, InvalidValue, "'wishes'"),
        ({"city": "Lyon", "room": "dubble"}, InvalidValue, "did you mean 'double'?"),
        (["Lyon"], InvalidType, "the arguments are a list"),
        ('{"city": "Lyon"}', InvalidType, "the arguments are a str"),
    ],
)
def test_wrong_arguments_are_refused_with_tool_argument_and_way_out(args, error, said):
    with pytest.raises(error) as caught:
        book.validate(args)
    assert "'book'" in str(caught.value)
    assert said in str(caught.value)


def test_a_long_value_is_shown_short():
    with pytest.raises(InvalidValue) as caught:
        book.validate({"city": "Lyon", "nights": "x" * 100_000})
    assert len(str(caught.value)) < 200


def test_what_the_function_raises_is_raised():
    @tool
    def fail() -> None:
        raise LookupError("no such room")

    with pytest.raises(LookupError, match="no such room"):
        fail.execute({})


# -- coroutines ---------------------------------------------------------------------------


def test_a_coroutine_function_runs_without_a_loop_and_with_one():
    async def main() -> tuple[Any, Any]:
        return deep_thought.execute({}), await deep_thought.aexecute({})

    assert deep_thought.is_async and not book.is_async
    assert deep_thought.execute({}) == "42 (MainThread)"
    blocking, awaited = asyncio.run(main())
    assert blocking.startswith("42 (") and blocking != awaited
    assert awaited == "42 (MainThread)"


def test_a_plain_function_does_not_hold_up_the_loop():
    arrived, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        arrived.set()
        assert go_on.wait(60)
        return "done"

    async def main() -> Any:
        waiting = asyncio.create_task(wait.aexecute({}))
        while not arrived.is_set():
            await asyncio.sleep(0.001)
        go_on.set()
        return await waiting

    assert asyncio.run(main()) == "done"


def test_a_function_that_gives_back_a_coroutine_is_awaited_too():
    async def later() -> str:
        return "later"

    now = tool(name="now")(lambda: later())
    assert now.execute({}) == "later"
    assert asyncio.run(now.aexecute({})) == "later"


def test_context_variables_reach_a_tool_wherever_it_runs():
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    @tool
    def plain() -> str:
        return user.get()

    @tool
    async def coroutine() -> str:
        return user.get()

    async def main() -> list[Any]:
        user.set("ann")
        awaited = [await each.aexecute({}) for each in (plain, coroutine)]
        return [*awaited, plain.execute({}), coroutine.execute({})]

    assert asyncio.run(main()) == ["ann"] * 4


# -- what a tool can be made of -----------------------------------------------------------


def test_methods_partials_and_callable_objects_make_tools():
    class Desk:
        def open(self, city: str, nights: int = 1) -> str:
            return f"{city}, {nights}"

        def __call__(self, nights: int) -> int:
            return nights

    opened = tool()(Desk().open)
    assert opened.execute({"city": "Lyon", "nights": "3"}) == "Lyon, 3"
    assert tool("desk")(Desk()).execute({"nights": "3"}) == 3
    lyon = tool("lyon")(functools.partial(Desk().open, "Lyon"))
    assert lyon.execute({"nights": "3"}) == "Lyon, 3"


def test_annotated_texts_describe_an_argument_that_the_docstring_does_not():
    @tool
    def look(where: Annotated[str, "A street"], when: Annotated[int, 5, "A year"] = 0) -> None:
        """Look.

        Args:
            when: The year
        """

    properties = look.schema()["parameters"]["properties"]
    assert properties["where"] == {"type": "string", "description": "A street"}
    assert properties["when"] == {"type": "integer", "description": "The year", "default": 0}
    assert look.validate({"where": 5}) == {"where": "5"}


def test_an_argument_without_an_annotation_takes_anything():
    @tool
    def keep(thing, other=object()):  # noqa: B008 (a default that JSON can't hold)
        return thing

    assert keep.schema()["parameters"]["properties"] == {"thing": {}, "other": {}}
    thing = object()
    assert keep.execute({"thing": thing}) is thing
    assert keep.validate({"thing": None}) == {"thing": None}


def test_a_function_whose_arguments_have_no_name_makes_no_tool():
    class Desk:
        def open(self, city: str) -> None: ...

    for function in (lambda *cities: 1, lambda **cities: 1, lambda city, /: 1):
        with pytest.raises(InvalidType, match=r"'x'.*can't be given by name"):
            tool("x")(function)
    with pytest.raises(InvalidType, match=r"method without its object.*thing\.open"):
        tool(Desk.open)


def test_an_annotation_that_no_model_can_follow_makes_no_tool():
    class Local: ...

    def local(thing: Local) -> None: ...

    def bytes_of(thing: list[bytes]) -> None: ...

    def numbered(thing: dict[int, str]) -> None: ...

    def halves(thing: Literal[b"x"]) -> None: ...

    with pytest.raises(InvalidType, match=r"'local'.*can't be resolved.*Local"):
        tool(local)
    for function in (bytes_of, numbered, halves):
        with pytest.raises(InvalidType, match=rf"'{function.__name__}'.*'thing'.*no JSON schema"):
            tool(function)


def test_what_is_no_function_makes_no_tool():
    with pytest.raises(InvalidType, match="give a function"):
        tool("x")("y")  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="give a function"):
        Tool("x", "", [], None)  # type: ignore[arg-type]
    for name in ("", "  ", None):
        with pytest.raises(InvalidValue, match="name"):
            Tool(name, "", [], print)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="two arguments"):
        Tool("x", "", [ToolParameter("a"), ToolParameter("a")], print)


def test_a_tool_can_be_made_by_hand():
    add = Tool(
        "add", "Add up", [ToolParameter("a", int), ToolParameter("b", int, "", False, 1)], max
    )
    assert add.validate({"a": "5"}) == {"a": 5}
    assert add.schema()["parameters"]["required"] == ["a"]


def test_a_refusal_is_caught_as_retains_and_as_pythons_own():
    for kind in (RetainError, TypeError):
        with pytest.raises(kind):
            book.validate({})
    for kind in (RetainError, ValueError):
        with pytest.raises(kind):
            book.validate({"city": "Lyon", "nights": "x"})


def test_a_docstring_may_have_any_shape():
    @tool
    def bare(a: int = 0, b: int = 0, c: int = 0) -> None:
        """
        Args:
          not an entry
          a:
            On the next line, with an
            aside: really.

          b (list[int]): Two
          c: Three
        Raises:
          a: never
        """

    properties = bare.schema()["parameters"]["properties"]
    assert bare.description == ""
    assert [properties[name]["description"] for name in "abc"] == [
        "On the next line, with an aside: really.",
        "Two",
        "Three",
    ]
