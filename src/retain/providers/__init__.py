"""Who answers for a model: a protocol of two methods, and the services that are spoken to."""

from .base import Offered, Prompt, Provider
from .local import LocalProvider

__all__ = ["LocalProvider", "Offered", "Prompt", "Provider"]
