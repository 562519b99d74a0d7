"""The MCP server: a memory for every client of the Model Context Protocol.

:func:`memory_server` makes a server of the official SDK over one memory, to be run by any of
the SDK's transports; ``retain mcp`` runs it over standard input and output, and over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import MissingPackage, RetainError
from ..memories.knowledge import KnowledgeMemory
from ..models import one_line
from . import mcp_tools
from .mcp_greeting import IDENTITY, INSTRUCTIONS

try:
    import anyio
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server
    from mcp.shared.exceptions import MCPError
except ImportError as error:
    raise MissingPackage.needed("the MCP server", "mcp", error) from error

__all__ = ["Desk", "desk_server", "memory_server"]

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

_PLAIN = "text/plain"

_AT_ONCE = 4  # threads for one memory: a store takes its writers one at a time anyway


def memory_server(memory: KnowledgeMemory, *, read_only: bool = False) -> Server[Any]:
    """An MCP server over ``memory``, which stays the caller's to close.

    ``read_only``: offer only the tools that change nothing. Everything stays in the scope of
    ``memory``. Its calls run on threads, so that none blocks another; a call that has begun to
    write is finished even if its client goes away.

    >>> from retain import KnowledgeMemory
    >>> memory_server(KnowledgeMemory(None)).name
    'retain'
    """
    desk = Desk(memory, read_only=read_only)
    return desk_server(lambda context: desk)


class Desk:
    """What one client is served: a memory in its scope, the tools over it, a few threads."""

    def __init__(self, memory: KnowledgeMemory, *, read_only: bool = False) -> None:
        self.memory = memory
        self.offered = mcp_tools.offers(memory, read_only=read_only)
        self.readable = {resource.uri: resource for resource in mcp_tools.resources(memory)}
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call ``function`` on a thread; once it has begun it is not abandoned."""
        return await anyio.to_thread.run_sync(function, *args, limiter=self._limiter)

    async def tell(self, function: Callable[..., T], *args: Any) -> T:
        """:meth:`run`, with what goes wrong as an error of the protocol."""
        try:
            return await self.run(function, *args)
        except RetainError as error:
            raise _error(types.INTERNAL_ERROR, one_line(str(error))) from error


def desk_server(desk_of: Callable[[Context], Desk]) -> Server[Any]:
    """A server that takes the desk of each request from ``desk_of``."""

    async def list_tools(context: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(offer) for offer in desk_of(context).offered])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        desk = desk_of(context)
        try:
            answer = await desk.run(
                mcp_tools.call, desk.offered, params.name, params.arguments or {}
            )
        except RetainError as error:
            return types.CallToolResult(content=[_text(one_line(str(error)))], is_error=True)
        return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.data)

    async def list_resources(context: Context, params: Any) -> types.ListResourcesResult:
        readable = desk_of(context).readable.values()
        return types.ListResourcesResult(resources=[_resource(each) for each in readable])

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        desk, uri = desk_of(context), str(params.uri)
        if uri not in desk.readable:
            raise _error(
                types.INVALID_PARAMS,
                f"there is no resource {uri}; known: {', '.join(desk.readable)}",
            )
        text = await desk.tell(desk.readable[uri].read)
        contents = types.TextResourceContents(uri=uri, mime_type=_PLAIN, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(context: Context, params: Any) -> types.ListPromptsResult:
        name, title, about = mcp_tools.PROMPT
        prompt = types.Prompt(name=name, title=title, description=about)
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        desk, (name, _, about) = desk_of(context), mcp_tools.PROMPT
        if params.name != name:
            raise _error(types.INVALID_PARAMS, f"there is no prompt {params.name!r}; known: {name}")
        if params.arguments:
            raise _error(types.INVALID_PARAMS, f"the prompt {name} takes no arguments")
        text = await desk.tell(mcp_tools.prompt_text, desk.memory)
        message = types.PromptMessage(role="user", content=_text(text))
        return types.GetPromptResult(description=about, messages=[message])

    return Server(
        IDENTITY["name"],
        version=IDENTITY["version"],
        title=IDENTITY["title"],
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _tool(offer: mcp_tools.Offer) -> types.Tool:
    hints = types.ToolAnnotations(
        title=offer.title,
        read_only_hint=offer.reads,
        destructive_hint=offer.destroys,
        idempotent_hint=offer.repeats,
        open_world_hint=False,
    )
    return types.Tool(
        name=offer.tool.name,
        title=offer.title,
        description=offer.tool.description,
        input_schema=offer.tool.schema()["parameters"],
        output_schema=offer.output,
        annotations=hints,
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _error(code: int, message: str) -> MCPError:
    """An error of the protocol, for what has no answer in which it could be told."""
    return MCPError(code=code, message=message)


def _resource(resource: mcp_tools.Resource) -> types.Resource:
    return types.Resource(
        uri=resource.uri,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=_PLAIN,
    )
