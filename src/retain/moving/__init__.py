"""Moving in and out: export, import of one's own and of other programs' memories, backup."""

from .backup import back_up
from .export import EXPORTS, export_array, export_jsonl, export_path
from .importing import FORMATS, ImportReport, Trouble, import_path
from .rescue import mend

__all__ = [
    "EXPORTS",
    "FORMATS",
    "ImportReport",
    "Trouble",
    "back_up",
    "export_array",
    "export_jsonl",
    "export_path",
    "import_path",
    "mend",
]
