"""The faces that callers use: thin, with no storage and no ranking of their own."""
