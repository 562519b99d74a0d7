"""The command ``retain``: presentation only, over ``KnowledgeMemory``."""

from .carrying import export, import_
from .demo import demo
from .entry import main
from .keeping import backup, check, prune, stats
from .reading import context, facts, listing, log, recall, show
from .remembering import forget, remember, restore, update

__all__ = ["main"]

for _each in (
    *(remember, recall, update, forget, restore),
    *(listing, show, facts, log, context),
    *(prune, stats, check, backup, export, import_, demo),
):
    main.add_command(_each)
