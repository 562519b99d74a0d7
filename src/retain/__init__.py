"""Long-term memory for AI agents.

>>> from retain import AgentMemory
>>> memory = AgentMemory()
>>> _ = memory.remember("The project deadline is 1 March")
>>> memory.recall("deadline")[0].memory.content
'The project deadline is 1 March'

Every public name can be imported from here; what it needs is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent import (
        Agent as Agent,
        AgentConfig as AgentConfig,
        AgentResult as AgentResult,
        LocalProvider as LocalProvider,
    )
    from .backends import KnowledgeBackend as KnowledgeBackend
    from .context import fence as fence
    from .engine import Engine as Engine
    from .errors import (
        Conflict as Conflict,
        InvalidType as InvalidType,
        InvalidValue as InvalidValue,
        NetworkFilesystem as NetworkFilesystem,
        NotFound as NotFound,
        Rejected as Rejected,
        RetainError as RetainError,
        StoreBusy as StoreBusy,
        StoreClosed as StoreClosed,
        StoreCorrupt as StoreCorrupt,
        StoreFailed as StoreFailed,
        StoreTooNew as StoreTooNew,
    )
    from .guard import (
        dedupe_against as dedupe_against,
        defang_delimiters as defang_delimiters,
        strip_surrogates as strip_surrogates,
    )
    from .memories.agent import AgentMemory as AgentMemory, VectorStoreMemory as VectorStoreMemory
    from .memories.conversation import ConversationMemory as ConversationMemory
    from .memories.knowledge import KnowledgeMemory as KnowledgeMemory, Receipt as Receipt
    from .messages import Message as Message, Role as Role, ToolCall as ToolCall
    from .models import (
        Filter as Filter,
        KnowledgeEntry as KnowledgeEntry,
        Memory as Memory,
        MemoryImportance as MemoryImportance,
        MemoryType as MemoryType,
        RetrievalResult as RetrievalResult,
        from_entry as from_entry,
        to_entry as to_entry,
    )
    from .scope import Scope as Scope
    from .stores.base import (
        Changes as Changes,
        Driver as Driver,
        Order as Order,
        Problem as Problem,
        Selection as Selection,
        Store as Store,
        Written as Written,
    )
    from .stores.file import FileStore as FileStore
    from .stores.json_file import JSONFileStore as JSONFileStore
    from .stores.knowledge import (
        FileKnowledgeStore as FileKnowledgeStore,
        KnowledgeStore as KnowledgeStore,
        SQLiteKnowledgeStore as SQLiteKnowledgeStore,
    )
    from .stores.memory import InMemoryStore as InMemoryStore
    from .stores.sqlite import SQLiteStore as SQLiteStore
    from .tools import (
        Tool as Tool,
        make_recall_tool as make_recall_tool,
        make_remember_tool as make_remember_tool,
        tool as tool,
    )

__version__ = "0.1.0"

_ROOMS = {
    "agent": "Agent AgentConfig AgentResult LocalProvider",
    "backends": "KnowledgeBackend",
    "context": "fence",
    "engine": "Engine",
    "errors": (
        "Conflict InvalidType InvalidValue NetworkFilesystem NotFound Rejected RetainError "
        "StoreBusy StoreClosed StoreCorrupt StoreFailed StoreTooNew"
    ),
    "guard": "dedupe_against defang_delimiters strip_surrogates",
    "memories.agent": "AgentMemory VectorStoreMemory",
    "memories.conversation": "ConversationMemory",
    "memories.knowledge": "KnowledgeMemory Receipt",
    "messages": "Message Role ToolCall",
    "models": (
        "Filter KnowledgeEntry Memory MemoryImportance MemoryType RetrievalResult "
        "from_entry to_entry"
    ),
    "scope": "Scope",
    "stores.base": "Changes Driver Order Problem Selection Store Written",
    "stores.file": "FileStore",
    "stores.json_file": "JSONFileStore",
    "stores.knowledge": "FileKnowledgeStore KnowledgeStore SQLiteKnowledgeStore",
    "stores.memory": "InMemoryStore",
    "stores.sqlite": "SQLiteStore",
    "tools": "Tool make_recall_tool make_remember_tool tool",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
