"""A memory for LangGraph and LangChain: a store for graphs, tools, and what is known in the prompt.

:class:`RetainStore` is LangGraph's ``BaseStore``. The others take a memory (any face, or a
``Client``), or a function of the run's ``RunnableConfig`` that gives one, so that one agent
serves many users. The page ``docs/frameworks/langgraph.md`` has a whole program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import InvalidType, InvalidValue, MissingPackage
from ..memories.agent import AgentMemory
from ..tools import Recalling, Tool, memory_tools, recalled
from .langgraph_items import InvalidNamespace
from .langgraph_store import RetainStore
from .runs import checked

try:
    from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import StructuredTool, ToolException
    from langgraph.config import get_config
except ImportError as error:
    raise MissingPackage.needed("the adapter for LangGraph", "langgraph", error) from error

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse

__all__ = [
    "InvalidNamespace",
    "MemoryOf",
    "RetainStore",
    "langchain_tools",
    "memory_middleware",
    "memory_prompt",
]

T = TypeVar("T")
MemoryOf: TypeAlias = Callable[[RunnableConfig], Recalling]
"""A function that gives the memory of a run, say by ``config["configurable"]["user_id"]``."""


def langchain_tools(memory: Recalling | MemoryOf) -> list[StructuredTool]:
    """``remember``, ``recall`` and ``forget`` as LangChain tools: ``create_agent(tools=…)``.

    What ``recall`` answers is fenced as data. Arguments that don't fit are told to the model; a
    store that fails raises. What a model passes reaches the scope of the run's memory and no
    other. Called from an event loop, they work on threads.

    Raises ``InvalidType`` if ``memory`` is neither a memory nor a function.
    """
    memory_of = _memory_of(memory)
    if not callable(memory):
        return [_langchain_tool(tool, _always(tool)) for tool in memory_tools(memory)]

    def of_run(at: int) -> Callable[[RunnableConfig], Tool]:
        return lambda config: memory_tools(memory_of(config))[at]

    # What they look like is the same whosever memory it will be.
    shown = memory_tools(AgentMemory())
    return [_langchain_tool(tool, of_run(at)) for at, tool in enumerate(shown)]


def _always(thing: T) -> Callable[[RunnableConfig], T]:
    return lambda config: thing


def _langchain_tool(shown: Tool, tool_of: Callable[[RunnableConfig], Tool]) -> StructuredTool:
    """A tool that looks like ``shown``, and calls the one of the run."""

    def call(config: RunnableConfig, **args: Any) -> Any:
        try:
            return tool_of(config).execute(args)
        except (InvalidType, InvalidValue) as error:
            raise ToolException(str(error)) from error

    async def acall(config: RunnableConfig, **args: Any) -> Any:
        return await asyncio.to_thread(call, config, **args)

    return StructuredTool(
        name=shown.name,
        description=shown.description,
        args_schema=shown.schema()["parameters"],
        func=call,
        coroutine=acall,
        handle_tool_error=True,
    )


def memory_middleware(memory: Recalling | MemoryOf, *, k: int = 5) -> AgentMiddleware[Any, Any]:
    """What is known, for ``create_agent(middleware=[…])``: in the system message of each request.

    It is found by what the user said last, fenced as data, one memory a line, and made anew for
    each request; the messages of the run stay as they are. ``k``: how many memories that match,
    at most. Raises ``MissingPackage`` where ``langchain`` is not installed.
    """
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ImportError as error:
        raise MissingPackage.needed("memory_middleware", "langgraph", error) from error

    memory_of = _memory_of(memory)

    def informed(request: ModelRequest[Any]) -> ModelRequest[Any]:
        block = recalled(memory_of(get_config()), _said(request.messages), k)
        if not block:
            return request
        return request.override(system_message=_with_block(request.system_message, block))

    class MemoryMiddleware(AgentMiddleware[Any, Any]):
        """Puts what is known into the system message."""

        def wrap_model_call(
            self,
            request: ModelRequest[Any],
            handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
        ) -> ModelResponse[Any]:
            return handler(informed(request))

        async def awrap_model_call(
            self,
            request: ModelRequest[Any],
            handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
        ) -> ModelResponse[Any]:
            return await handler(await asyncio.to_thread(informed, request))

    return MemoryMiddleware()


def memory_prompt(
    memory: Recalling | MemoryOf, prompt: str = "", *, k: int = 5
) -> Callable[[Any, RunnableConfig], list[BaseMessage]]:
    """The same for ``create_react_agent(prompt=…)``, or for a node of a graph of your own.

    A function of a state with ``messages`` that gives these after a system message: ``prompt``
    and what is known. ``k`` as for :func:`memory_middleware`.
    """
    memory_of = _memory_of(memory)

    def prompted(state: Any, config: RunnableConfig) -> list[BaseMessage]:
        messages = state["messages"] if isinstance(state, dict) else state.messages
        block = recalled(memory_of(config), _said(messages), k)
        system = SystemMessage(prompt) if prompt else None
        if block:
            system = _with_block(system, block)
        return [system, *messages] if system else list(messages)

    return prompted


def _memory_of(memory: Recalling | MemoryOf) -> MemoryOf:
    if callable(memory):
        return memory
    return _always(checked(memory, "the run's config"))


def _said(messages: Sequence[AnyMessage | BaseMessage]) -> str:
    """What the user said last."""
    return next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def _with_block(system: SystemMessage | None, block: str) -> SystemMessage:
    """A system message with a block after what it has, in whatever form that is."""
    if system is None or not system.content:
        return SystemMessage(block)
    if isinstance(system.content, str):
        content: Any = f"{system.content}\n\n{block}"
    else:
        content = [*system.content, {"type": "text", "text": f"\n\n{block}"}]
    return system.model_copy(update={"content": content})
