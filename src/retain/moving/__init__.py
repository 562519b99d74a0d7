"""Moving in and out: export, import of one's own and of other programs' memories, copy, backup."""

from .backup import back_up
from .copying import CopyReport, ScopeReport, copy_store
from .export import EXPORTS, export_array, export_jsonl, export_path
from .importing import ImportReport, Trouble, import_path
from .rescue import mend
from .sources import FORMATS

__all__ = [
    "EXPORTS",
    "FORMATS",
    "CopyReport",
    "ImportReport",
    "ScopeReport",
    "Trouble",
    "back_up",
    "copy_store",
    "export_array",
    "export_jsonl",
    "export_path",
    "import_path",
    "mend",
]
