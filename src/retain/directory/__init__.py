"""The readable files of a memory directory: ``MEMORY.md`` and the daily logs, as pure code."""
