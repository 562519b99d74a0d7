"""What is worth remembering of what was said: by rules, or by a model that answers in JSON."""

from .asking import ask
from .found import Finding, Turn
from .prompted import by_model
from .rules import by_rules

__all__ = ["Finding", "Turn", "ask", "by_model", "by_rules"]
