"""The names that programs import from ``codomyrmex`` for agentic memory."""
