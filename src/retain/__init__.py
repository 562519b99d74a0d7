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
    )
    from .agent import (
        AgentConfig as AgentConfig,
    )
    from .agent import (
        AgentResult as AgentResult,
    )
    from .agent.sessions import (
        SessionInfo as SessionInfo,
    )
    from .agent.sessions import (
        SessionStore as SessionStore,
    )
    from .agent.sessions import (
        SQLiteSessionStore as SQLiteSessionStore,
    )
    from .agent.sessions import (
        StoreSessions as StoreSessions,
    )
    from .backends import ComparingBackend as ComparingBackend
    from .backends import KnowledgeBackend as KnowledgeBackend
    from .backends.fsspec import FsspecKnowledgeBackend as FsspecKnowledgeBackend
    from .backends.redis import RedisKnowledgeBackend as RedisKnowledgeBackend
    from .backends.supabase import SupabaseKnowledgeBackend as SupabaseKnowledgeBackend
    from .client import AsyncClient as AsyncClient
    from .client import Client as Client
    from .context import fence as fence
    from .engine import Engine as Engine
    from .errors import (
        Conflict as Conflict,
    )
    from .errors import (
        EmbeddingFailed as EmbeddingFailed,
    )
    from .errors import (
        ExtractionFailed as ExtractionFailed,
    )
    from .errors import (
        InvalidType as InvalidType,
    )
    from .errors import (
        InvalidValue as InvalidValue,
    )
    from .errors import (
        MissingPackage as MissingPackage,
    )
    from .errors import (
        MissingRow as MissingRow,
    )
    from .errors import (
        NetworkFilesystem as NetworkFilesystem,
    )
    from .errors import (
        NotFound as NotFound,
    )
    from .errors import (
        ProviderFailed as ProviderFailed,
    )
    from .errors import (
        Rejected as Rejected,
    )
    from .errors import (
        RetainError as RetainError,
    )
    from .errors import (
        StoreBusy as StoreBusy,
    )
    from .errors import (
        StoreClosed as StoreClosed,
    )
    from .errors import (
        StoreCorrupt as StoreCorrupt,
    )
    from .errors import (
        StoreFailed as StoreFailed,
    )
    from .errors import (
        StoreTooNew as StoreTooNew,
    )
    from .guard.dedupe import dedupe_against as dedupe_against
    from .guard.sanitizers import (
        defang_delimiters as defang_delimiters,
    )
    from .guard.sanitizers import (
        strip_surrogates as strip_surrogates,
    )
    from .memories.agent import AgentMemory as AgentMemory
    from .memories.agent import VectorStoreMemory as VectorStoreMemory
    from .memories.async_store import AsyncKnowledgeStore as AsyncKnowledgeStore
    from .memories.async_store import AsyncStore as AsyncStore
    from .memories.asynchronous import (
        AsyncAgentMemory as AsyncAgentMemory,
    )
    from .memories.asynchronous import (
        AsyncConversationMemory as AsyncConversationMemory,
    )
    from .memories.asynchronous import (
        AsyncKnowledgeMemory as AsyncKnowledgeMemory,
    )
    from .memories.asynchronous import (
        AsyncVectorStoreMemory as AsyncVectorStoreMemory,
    )
    from .memories.conversation import ConversationMemory as ConversationMemory
    from .memories.entities import Entity as Entity
    from .memories.entities import EntityMemory as EntityMemory
    from .memories.graph import KnowledgeGraphMemory as KnowledgeGraphMemory
    from .memories.knowledge import KnowledgeMemory as KnowledgeMemory
    from .memories.knowledge import Receipt as Receipt
    from .memories.observing import Observed as Observed
    from .messages import Message as Message
    from .messages import Role as Role
    from .messages import ToolCall as ToolCall
    from .models import (
        Filter as Filter,
    )
    from .models import (
        KnowledgeEntry as KnowledgeEntry,
    )
    from .models import (
        Memory as Memory,
    )
    from .models import (
        MemoryImportance as MemoryImportance,
    )
    from .models import (
        MemoryType as MemoryType,
    )
    from .models import (
        from_entry as from_entry,
    )
    from .models import (
        to_entry as to_entry,
    )
    from .providers.anthropic import AnthropicProvider as AnthropicProvider
    from .providers.base import Offered as Offered
    from .providers.base import Prompt as Prompt
    from .providers.base import Provider as Provider
    from .providers.local import LocalProvider as LocalProvider
    from .providers.openai import OpenAIProvider as OpenAIProvider
    from .results import Evidence as Evidence
    from .results import RetrievalResult as RetrievalResult
    from .scope import Scope as Scope
    from .search.blend import Blend as Blend
    from .search.embedders import Embedder as Embedder
    from .search.embedders import StaticEmbedder as StaticEmbedder
    from .search.model_embedders import OllamaEmbedder as OllamaEmbedder
    from .search.model_embedders import OpenAIEmbedder as OpenAIEmbedder
    from .search.model_embedders import SentenceTransformerEmbedder as SentenceTransformerEmbedder
    from .stores.base import (
        Changes as Changes,
    )
    from .stores.base import (
        Driver as Driver,
    )
    from .stores.base import (
        Order as Order,
    )
    from .stores.base import (
        Problem as Problem,
    )
    from .stores.base import (
        Selection as Selection,
    )
    from .stores.base import (
        Store as Store,
    )
    from .stores.base import (
        Written as Written,
    )
    from .stores.file import FileStore as FileStore
    from .stores.json_file import JSONFileStore as JSONFileStore
    from .stores.knowledge import (
        FileKnowledgeStore as FileKnowledgeStore,
    )
    from .stores.knowledge import (
        KnowledgeStore as KnowledgeStore,
    )
    from .stores.knowledge import (
        SQLiteKnowledgeStore as SQLiteKnowledgeStore,
    )
    from .stores.memory import InMemoryStore as InMemoryStore
    from .stores.opening import open as open
    from .stores.postgres import PostgresStore as PostgresStore
    from .stores.redis import (
        RedisKnowledgeStore as RedisKnowledgeStore,
    )
    from .stores.redis import (
        RedisStore as RedisStore,
    )
    from .stores.sqlite import SQLiteStore as SQLiteStore
    from .stores.supabase import SupabaseKnowledgeStore as SupabaseKnowledgeStore
    from .stores.supabase import SupabaseStore as SupabaseStore
    from .stores.triples import SQLiteTripleStore as SQLiteTripleStore
    from .stores.triples import Triple as Triple
    from .stores.triples import TripleStore as TripleStore
    from .tools import (
        Tool as Tool,
    )
    from .tools import (
        ToolParameter as ToolParameter,
    )
    from .tools import (
        make_forget_tool as make_forget_tool,
    )
    from .tools import (
        make_recall_tool as make_recall_tool,
    )
    from .tools import (
        make_remember_tool as make_remember_tool,
    )
    from .tools import (
        memory_tools as memory_tools,
    )
    from .tools import (
        recalled as recalled,
    )
    from .tools import (
        tool as tool,
    )

__version__ = "0.1.0"

_ROOMS = {
    "agent": "Agent AgentConfig AgentResult",
    "agent.sessions": "SQLiteSessionStore SessionInfo SessionStore StoreSessions",
    "backends": "ComparingBackend KnowledgeBackend",
    "backends.fsspec": "FsspecKnowledgeBackend",
    "backends.redis": "RedisKnowledgeBackend",
    "backends.supabase": "SupabaseKnowledgeBackend",
    "client": "AsyncClient Client",
    "context": "fence",
    "engine": "Engine",
    "errors": (
        "Conflict EmbeddingFailed ExtractionFailed InvalidType InvalidValue MissingPackage "
        "MissingRow NetworkFilesystem NotFound ProviderFailed Rejected RetainError "
        "StoreBusy StoreClosed StoreCorrupt StoreFailed StoreTooNew"
    ),
    "guard.dedupe": "dedupe_against",
    "guard.sanitizers": "defang_delimiters strip_surrogates",
    "memories.agent": "AgentMemory VectorStoreMemory",
    "memories.async_store": "AsyncKnowledgeStore AsyncStore",
    "memories.asynchronous": (
        "AsyncAgentMemory AsyncConversationMemory AsyncKnowledgeMemory AsyncVectorStoreMemory"
    ),
    "memories.conversation": "ConversationMemory",
    "memories.entities": "Entity EntityMemory",
    "memories.graph": "KnowledgeGraphMemory",
    "memories.knowledge": "KnowledgeMemory Receipt",
    "memories.observing": "Observed",
    "messages": "Message Role ToolCall",
    "models": ("Filter KnowledgeEntry Memory MemoryImportance MemoryType from_entry to_entry"),
    "providers.anthropic": "AnthropicProvider",
    "providers.base": "Offered Prompt Provider",
    "providers.local": "LocalProvider",
    "providers.openai": "OpenAIProvider",
    "results": "Evidence RetrievalResult",
    "scope": "Scope",
    "search.blend": "Blend",
    "search.embedders": "Embedder StaticEmbedder",
    "search.model_embedders": "OllamaEmbedder OpenAIEmbedder SentenceTransformerEmbedder",
    "stores.base": "Changes Driver Order Problem Selection Store Written",
    "stores.file": "FileStore",
    "stores.json_file": "JSONFileStore",
    "stores.knowledge": "FileKnowledgeStore KnowledgeStore SQLiteKnowledgeStore",
    "stores.memory": "InMemoryStore",
    "stores.opening": "open",
    "stores.postgres": "PostgresStore",
    "stores.redis": "RedisKnowledgeStore RedisStore",
    "stores.sqlite": "SQLiteStore",
    "stores.supabase": "SupabaseKnowledgeStore SupabaseStore",
    "stores.triples": "SQLiteTripleStore Triple TripleStore",
    "tools": (
        "Tool ToolParameter make_forget_tool make_recall_tool make_remember_tool memory_tools "
        "recalled tool"
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF.keys() - {"open"})  # which must not take the place of Python's own


def __getattr__(name: str) -> object:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF})
