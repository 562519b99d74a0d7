"""What may be written: hooks, the sanitizers that come with retain, and near-duplicates."""

from .dedupe import dedupe_against
from .hooks import Hook, HookChain
from .sanitizers import defang_delimiters, strip_surrogates

__all__ = ["Hook", "HookChain", "dedupe_against", "defang_delimiters", "strip_surrogates"]
