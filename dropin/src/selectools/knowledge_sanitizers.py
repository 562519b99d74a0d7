"""``selectools.knowledge_sanitizers``: hooks for ``pre_save=``."""

from retain import dedupe_against, defang_delimiters, strip_surrogates

__all__ = ["dedupe_against", "defang_delimiters", "strip_surrogates"]
