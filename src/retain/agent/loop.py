"""One run of an agent, as a generator that says what it needs and is sent the answer.

The generator knows nothing of waiting: it yields a request (ask the model, use these tools),
and whoever drives it, plainly or in a coroutine, carries the request out in its own way. So the
two kinds of run are one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from ..context import fence
from ..errors import InvalidType, InvalidValue, NotFound, RetainError
from ..guard.sanitizers import strip_surrogates
from ..messages import Message, Role, ToolCall
from ..providers import Prompt, Provider
from ..tools import Tool
from ..tools.values import did_you_mean
from .config import AgentConfig

logger = logging.getLogger("retain.agent")


class Conversation(Protocol):
    """What a run needs of the memory of a conversation; ``ConversationMemory`` has it."""

    def add_many(self, messages: list[Message], /) -> Any:
        """Keep these, in order."""

    def get_history(self) -> list[Message]:
        """What is kept, oldest first."""


@dataclass(slots=True)
class AgentResult:
    """What came of a run.

    ``content``: the answer, ``message`` as a message. ``tool_calls``: every call that the model
    asked for, in order. ``iterations``: how often it was asked. ``complete``: whether it came
    to an answer; if not, ``content`` says that ``max_iterations`` was reached. ``usage``: what
    each of its answers used, in the provider's terms.
    """

    content: str
    message: Message
    tool_calls: list[ToolCall] = field(default_factory=list)
    iterations: int = 0
    complete: bool = True
    usage: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AskModel:
    """The request for the model's next message; its answer is what the provider gives."""

    prompt: Prompt

    def perform(self, provider: Provider) -> Any:
        return provider.complete(**self.prompt)

    async def aperform(self, provider: Provider) -> Any:
        return await provider.acomplete(**self.prompt)


@dataclass(frozen=True, slots=True)
class UseTools:
    """The request to carry out the calls of one message; its answer is a text for each.

    In a plain run one after the other, in a coroutine all at the same time.
    """

    tools: Mapping[str, Tool]
    calls: Sequence[ToolCall]

    def perform(self, provider: Provider) -> list[str]:
        return [self._use(call) for call in self.calls]

    async def aperform(self, provider: Provider) -> list[str]:
        return await asyncio.gather(*map(self._ause, self.calls))

    def _use(self, call: ToolCall) -> str:
        try:
            return _as_text(self._tool(call.tool_name).execute(call.parameters))
        except Exception as error:  # noqa: BLE001 (the model is told, and the log)
            return _report(call, error)

    async def _ause(self, call: ToolCall) -> str:
        try:
            return _as_text(await self._tool(call.tool_name).aexecute(call.parameters))
        except Exception as error:  # noqa: BLE001 (the model is told, and the log)
            return _report(call, error)

    def _tool(self, name: str) -> Tool:
        if name not in self.tools:
            raise NotFound(f"there is no tool {name!r}{did_you_mean(name, self.tools)}")
        return self.tools[name]


Request: TypeAlias = AskModel | UseTools
Run: TypeAlias = Generator[Request, Any, AgentResult]


def advance(run: Run, answer: Any = None) -> Request | AgentResult:
    """What the run needs next when it is sent ``answer``, or what came of it."""
    try:
        return run.send(answer)
    except StopIteration as end:
        result: AgentResult = end.value
        return result


def run_loop(
    config: AgentConfig,
    tools: Iterable[Tool],
    memory: Conversation | None,
    given: str | Message | Iterable[Message],
    recalls: Sequence[Tool] = (),
) -> Run:
    """One run: the model is asked until it calls no more tools.

    The turn is in ``memory`` before anything can fail; a message that calls tools goes there
    together with the answers, since neither can stand alone. ``recalls``: the tools whose
    answers are memories, which the model is given fenced.
    """
    by_name = {tool.name: tool for tool in tools}
    transcript = _opened(memory, given)
    unlearned = _unanswered(transcript)
    system_prompt = _system_prompt(config, unlearned)
    calls: list[ToolCall] = []
    usage: list[Any] = []
    for iteration in range(1, config.max_iterations + 1):
        answer = yield AskModel(
            {
                "model": config.model,
                "system_prompt": system_prompt,
                "messages": list(transcript),
                "tools": list(by_name.values()),
                "temperature": config.temperature,
                "max_tokens": config.max_tokens,
                "timeout": config.timeout,
            }
        )
        message, used = _checked(answer)
        usage.append(used)
        if not message.tool_calls:
            _keep(memory, [message])
            _learn(config, [*unlearned, message])
            return AgentResult(message.content, message, calls, iteration, True, usage)
        calls += message.tool_calls
        results = yield UseTools(by_name, message.tool_calls)
        fenced = [by_name.get(call.tool_name) in recalls for call in message.tool_calls]
        exchange = [message, *map(_answer, message.tool_calls, results, fenced)]
        transcript += exchange
        _keep(memory, exchange)
    text = f"Stopped without an answer: max_iterations ({config.max_iterations}) was reached."
    logger.warning(text)
    message = Message(Role.ASSISTANT, text)
    _keep(memory, [message])
    _learn(config, unlearned)
    return AgentResult(text, message, calls, config.max_iterations, False, usage)


def _opened(memory: Conversation | None, given: str | Message | Iterable[Message]) -> list[Message]:
    """What was said so far and now, the latter kept."""
    turn = _as_messages(given)
    # Read before the turn is kept: another run's turn may be kept in between.
    history = [] if memory is None else list(memory.get_history())
    if not history and not turn:
        raise InvalidValue("there is nothing to answer; give a text or messages")
    _keep(memory, turn)
    return history + turn


def _as_messages(given: str | Message | Iterable[Message]) -> list[Message]:
    if isinstance(given, str):
        return [Message(Role.USER, given)]
    if isinstance(given, Message):
        return [given]
    messages = list(given) if isinstance(given, Iterable) else [given]
    for message in messages:
        if not isinstance(message, Message):
            raise InvalidType(f"a {type(message).__name__} is no Message; give a text or messages")
    return messages


def _keep(memory: Conversation | None, messages: list[Message]) -> None:
    if memory is not None and messages:  # "is not None", since an empty memory is falsy
        memory.add_many(messages)


def _unanswered(transcript: list[Message]) -> list[Message]:
    """What the user said since the last answer: this turn, and those that a failure left."""
    turns: list[Message] = []
    for message in reversed(transcript):
        if message.role is Role.ASSISTANT and not message.tool_calls:
            break
        if message.role is Role.USER:
            turns.insert(0, message)
    return turns


def _system_prompt(config: AgentConfig, turn: list[Message]) -> str:
    """What the model is told first: what its owner says, and what is known, fenced as data."""
    entities, graph, knowledge = (
        config.entity_memory,
        config.knowledge_graph,
        config.knowledge_memory,
    )
    known = (
        "" if entities is None else entities.build_context(),
        "" if graph is None else graph.build_context(turn[-1].content if turn else ""),
        "" if knowledge is None else knowledge.build_context(),
    )
    return "\n\n".join(
        filter(None, (config.system_prompt, fence("\n\n".join(filter(None, known)))))
    )


def _learn(config: AgentConfig, turn: list[Message]) -> None:
    """Have the memories learn from an answered turn; a failure costs neither turn nor answer."""
    for memory in (config.entity_memory, config.knowledge_graph):
        if memory is None:
            continue
        try:
            memory.learn(turn)
        except RetainError as error:
            logger.warning("nothing was learned of a turn: %s", error)
        except Exception:
            logger.exception("nothing was learned of a turn")


def _checked(answer: Any) -> tuple[Message, Any]:
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Message)):
        raise InvalidType(f"the provider gave {answer!r}; a provider gives (Message, usage)")
    message, used = answer
    try:
        if message.role is not Role.ASSISTANT:
            raise InvalidValue(f"its role is {message.role!r}")
        calls = Message(message.role, message.content, tool_calls=message.tool_calls).tool_calls
        # what no session could keep and read again shall not be carried out
        Message.from_dict(json.loads(json.dumps(message.to_dict())))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidType(
            f"the provider gave a message that a model can't say ({error}); it gives one of "
            "the assistant's, of texts, with ToolCalls whose arguments are JSON"
        ) from error
    sound = strip_surrogates(message.content)  # which no store and no service would take
    ids = [call.id for call in calls or ()]
    if sound != message.content or len(set(ids)) < len(ids):
        message = replace(message, content=sound, tool_calls=_told_apart(calls))
    return message, used


def _told_apart(calls: list[ToolCall] | None) -> list[ToolCall] | None:
    """``calls`` of different ids, since an answer says by its call's id what it answers."""
    seen: set[str] = set()
    apart = []
    for call in calls or ():
        apart.append(replace(call, id="") if call.id in seen else call)
        seen.add(call.id)
    return apart or calls


def _answer(call: ToolCall, text: str, fenced: bool) -> Message:
    text = strip_surrogates(text)
    content = fence(text) if fenced else text
    return Message(Role.TOOL, content, call.tool_name, text, tool_call_id=call.id)


def _as_text(result: Any) -> str:
    if isinstance(result, str):
        return str(result)
    try:
        return json.dumps(result, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are no text, or a circle
        return str(result)


def _report(call: ToolCall, error: Exception) -> str:
    """Log the failure of a call, and say it to the model, so that it can mend it."""
    if isinstance(error, RetainError):
        logger.warning("tool %s: %s", call.tool_name, error)
        return f"Error: {error}"
    logger.error("tool %s failed", call.tool_name, exc_info=error)
    return f"Error: tool {call.tool_name!r} failed with {type(error).__name__}: {error}"
