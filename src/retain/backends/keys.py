"""Names of what is kept: which keys a back end takes, and a key as the name of a file."""

from __future__ import annotations

import hashlib
from string import ascii_uppercase
from urllib.parse import quote

from ..errors import InvalidType, InvalidValue

__all__ = ["checked_key", "file_name", "quoted"]

_LONGEST = 512  # characters
_LONGEST_NAME = 200  # bytes of a file's name, which end at 255


def checked_key(key: object) -> str:
    """``key`` if it can name a memory: text of 1 to 512 characters without NUL."""
    if not isinstance(key, str):
        raise InvalidType(f"key is a {type(key).__name__}; give text")
    if not 1 <= len(key) <= _LONGEST:
        raise InvalidValue(f"key has {len(key)} characters; give 1 to {_LONGEST}")
    if "\0" in key:
        raise InvalidValue(f"key={key[:99]!r} holds NUL; leave it out")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"key={key[:99]!r} holds a lone surrogate; leave it out") from None
    return key


def quoted(text: str) -> str:
    """``text`` as a part of a file name, another one for any other text on any system."""
    # Capitals too: Ann and ann are one file where case doesn't count.
    return "".join(
        f"%{ord(char):02X}" if char in ascii_uppercase else quote(char, safe=" @") for char in text
    )


def file_name(key: str) -> str:
    """The name of the file for ``key``.

    >>> file_name("user/Ann")
    'user%2F%41nn.json'
    """
    name = quoted(key)
    if len(name) > _LONGEST_NAME:
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        name = f"{name[:150]}+{digest}"  # quote() leaves no plus
    return f"{name}.json"
