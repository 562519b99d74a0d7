"""Hooks: functions that see every text before it is stored, and may change or refuse it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..errors import InvalidType, Rejected

__all__ = ["Hook", "HookChain"]

log = logging.getLogger("retain")

Hook = Callable[[str], str | None]
"""Takes a text; returns the text to store instead, or ``None`` to refuse it."""


def _name(hook: Hook) -> str:
    name = getattr(hook, "__name__", None)
    return name if isinstance(name, str) and name else type(hook).__name__


class HookChain:
    """Hooks applied in order, each to what the one before it returned.

    ``hooks``: ``None``, one callable, or a sequence of callables; ``InvalidType`` for anything
    else. A chain without hooks returns every text as it is. A chain is a hook itself.

    >>> HookChain([str.strip, str.casefold])("  Straße ")
    'strasse'
    """

    __slots__ = ("hooks",)

    hooks: tuple[Hook, ...]

    def __init__(self, hooks: Hook | Sequence[Hook] | None = None) -> None:
        given: object = hooks
        if given is None:
            found: Sequence[object] = ()
        elif callable(given):
            found = (given,)
        elif isinstance(given, Sequence) and not isinstance(given, (str, bytes, bytearray)):
            found = given
        else:
            raise InvalidType(
                f"pre_save is a {type(given).__name__}; give a function that takes a text, "
                "a list of such functions, or None"
            )
        checked: list[Hook] = []
        for place, hook in enumerate(found):
            if not callable(hook):
                raise InvalidType(
                    f"pre_save[{place}] is a {type(hook).__name__}; give a function that takes a "
                    "text and returns the text to store, or None to refuse it"
                )
            checked.append(hook)
        self.hooks = tuple(checked)

    def __call__(self, text: str) -> str:
        """``text`` as the hooks leave it.

        Raises ``Rejected``, with the hook's name, when a hook returns ``None``: the hooks after
        it are not called, and a debug record on the logger ``retain`` says which one it was.
        A hook that raises ``Rejected`` itself gives a reason of its own. Raises ``InvalidType``
        when a hook returns anything but a text or ``None``; whatever else a hook raises passes
        through.
        """
        if not isinstance(text, str):
            raise InvalidType(f"a {type(text).__name__} is no text that hooks can be applied to")
        for hook in self.hooks:
            name = _name(hook)
            try:
                result: object = hook(text)
            except Rejected as refusal:
                if not refusal.hook:  # else an inner chain has named and logged it
                    refusal.hook = name
                    _log(name, text)
                raise
            if result is None:
                _log(name, text)
                raise Rejected(f"the hook {name} refused the text", hook=name)
            if not isinstance(result, str):
                raise InvalidType(
                    f"the hook {name} returned a {type(result).__name__}; a hook returns the "
                    "text to store, or None to refuse it"
                )
            text = result
        return text

    def __len__(self) -> int:
        return len(self.hooks)

    def __repr__(self) -> str:
        return f"HookChain([{', '.join(map(_name, self.hooks))}])"


def _log(name: str, text: str) -> None:
    # not the text itself: a log is read by more people than a memory
    log.debug("hook %s rejected a text of %d characters; nothing is written", name, len(text))
