"""What turns texts into vectors: the protocol, and the embedder that comes with the install.

Whatever has the four members of :class:`Embedder` is one: ``docs/embeddings.md`` wraps a model in
a few lines. Those for models and services stand in ``model_embedders.py``, since what they need
takes its time to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .static import StaticEmbedder, default_embedder

__all__ = ["Embedder", "StaticEmbedder", "default_embedder"]

Floats = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """What turns texts into vectors that lie near each other where the texts mean the same.

    Methods may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """Identifies the vectors: two embedders of one name give the same ones."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """The texts' vectors, ``(len(texts), dimensions)``, each of unit length or zero."""

    def embed_query(self, text: str) -> Floats:
        """A question's vector, ``(dimensions,)``. For most models ``embed([text])[0]``."""
