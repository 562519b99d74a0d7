"""What may be written: hooks, sanitizers, and near duplicates."""
