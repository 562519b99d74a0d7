"""How memories are found: the index of one scope, and the order of what it finds."""
