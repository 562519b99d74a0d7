"""Moving in and out: export, and import of one's own and of other programs' memories."""

from .export import EXPORTS, export_array, export_jsonl, export_path
from .importing import FORMATS, ImportReport, Trouble, import_path

__all__ = [
    "EXPORTS",
    "FORMATS",
    "ImportReport",
    "Trouble",
    "export_array",
    "export_jsonl",
    "export_path",
    "import_path",
]
