"""``selectools.toolbox``: ready-made tools."""
