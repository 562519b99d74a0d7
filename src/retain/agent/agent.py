"""The agent: what stays the same from run to run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..errors import InvalidType, InvalidValue, NotFound
from ..memories.conversation import ConversationMemory
from ..messages import Message
from ..providers import LocalProvider, Provider
from ..tools import Tool, make_recall_tool, make_remember_tool
from ..tools.values import did_you_mean
from .config import AgentConfig
from .loop import AgentResult, Conversation, Run, advance, run_loop
from .sessions import Session, SessionStore

__all__ = ["Agent"]


class Agent:
    """A model with tools, a conversation and long-term knowledge.

    ``tools``: what the model may call; the list is copied, and may be empty. ``provider``: who
    answers for the model, a :class:`LocalProvider` unless given. ``memory``: a
    ``ConversationMemory`` that carries the conversation from run to run; without one, every
    run begins anew. With ``config.knowledge_memory``, the model also gets the tools
    ``remember`` and ``recall``, unless ``tools`` has one of that name.

    With ``config.session_store``, the stored conversation of ``config.session_id`` is loaded
    into ``memory`` (a new ``ConversationMemory`` unless given), each run goes on where the last
    one ended, in whatever process, and what is said is stored before the call goes on: the turn
    before the model is asked, each use of tools with its answers, the answer. What ``memory``
    holds already comes after what is stored. With ``config.entity_memory`` and
    ``config.knowledge_graph``, both learn from a turn and its answer after that is kept; that
    they fail is logged as a warning.

    What the memories know is in every prompt of a run as it was when the run began, fenced as
    data, in the order entities, relationships, knowledge.

    Runs at the same time don't mix: each works on its own copy of tools and messages, and
    knows of ``memory`` what was there when it began. One conversation memory is one
    conversation, though: give each user an agent with a memory of its own.

    Raises ``InvalidType`` for a tool that is no :class:`Tool` and ``InvalidValue`` for two of
    one name.

    >>> Agent(tools=[]).run("Good morning").content
    'You said: Good morning'
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        provider: Provider | None = None,
        *,
        config: AgentConfig | None = None,
        memory: Conversation | None = None,
    ) -> None:
        self.config = AgentConfig() if config is None else config
        self.provider = LocalProvider() if provider is None else provider
        self.memory: Conversation | None = memory
        self._session: Session | None = None
        if self.config.session_store is not None:
            self._session = self._resumed(self.config.session_store)
        self.tools: list[Tool] = []
        self._own: list[Tool] = []
        for each in tools:
            self.add_tool(each)
        knowledge = self.config.knowledge_memory
        if knowledge is not None:
            pair = [make_remember_tool(knowledge), make_recall_tool(knowledge)]
            self._own = [each for each in pair if self._find(each.name) is None]
            self.tools += self._own

    def _resumed(self, store: SessionStore) -> Session:
        """The stored session, in the memory that was given or in a new one."""
        memory = ConversationMemory() if self.memory is None else self.memory
        if not isinstance(memory, ConversationMemory):
            raise InvalidType(
                f"memory is a {type(memory).__name__}; a session needs a ConversationMemory"
            )
        self.memory = memory
        return Session(store, self.config.session_id or "", memory)

    def add_tool(self, tool: Tool) -> None:
        """Let the model call ``tool`` from the next run on.

        It takes the place of a ``remember`` or ``recall`` that the agent made itself. Raises
        ``InvalidValue`` if the agent has been given another tool of that name.
        """
        if not isinstance(tool, Tool):
            raise InvalidType(f"{tool!r} is no Tool; make one of a function with @tool")
        there = self._find(tool.name)
        if there is None:
            self.tools.append(tool)
        elif there in self._own:
            self.tools[self.tools.index(there)] = tool
        else:
            raise InvalidValue(f"there is a tool {tool.name!r} already; remove it first")

    def remove_tool(self, name: str) -> Tool:
        """Take a tool from the model, from the next run on, and give it back.

        Raises ``NotFound`` if the agent has no tool of that name.
        """
        tool = self._find(name)
        if tool is None:
            names = [each.name for each in self.tools]
            raise NotFound(f"there is no tool {name!r}{did_you_mean(name, names)}")
        self.tools.remove(tool)
        return tool

    def _find(self, name: str) -> Tool | None:
        return next((each for each in self.tools if each.name == name), None)

    def run(self, messages: str | Message | Iterable[Message]) -> AgentResult:
        """Answer a text, a message or several, using tools as the model asks for them.

        The conversation memory keeps the turn before the model is asked, so that a failure of
        the provider, which is raised, does not lose it; ``run([])`` then answers it. A failure
        of a tool is logged and told to the model. If ``max_iterations`` is reached, the
        result says so and is not ``complete``.
        """
        run = self._begin(messages)
        step = advance(run)
        while not isinstance(step, AgentResult):
            step = advance(run, step.perform(self.provider))
        return step

    async def arun(self, messages: str | Message | Iterable[Message]) -> AgentResult:
        """:meth:`run` for coroutines: the tools of one message run at the same time.

        Tools that are plain functions, and the memories, run on threads, so that the event
        loop goes on.
        """
        run = self._begin(messages)
        step = await asyncio.to_thread(advance, run)
        while not isinstance(step, AgentResult):
            step = await asyncio.to_thread(advance, run, await step.aperform(self.provider))
        return step

    def _begin(self, messages: str | Message | Iterable[Message]) -> Run:
        memory = self.memory if self._session is None else self._session
        recalls = [each for each in self._own if each.name == "recall"]
        return run_loop(self.config, list(self.tools), memory, messages, recalls)
