"""Values as TOML text (TOML 1.0), for rig files that are drafted from what a machine reports.

JSON's strings are not TOML's: JSON writes characters beyond U+FFFF as two surrogates and leaves DEL as it is, both of
which TOML forbids. A draft contains names that devices report about themselves, and a name that ended its string
early could begin a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_string(text: str) -> str:
    """A basic string. Unprintable characters are escaped; half of a surrogate pair, impossible in TOML, is replaced."""
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    if "\ud800" <= letter <= "\udfff":
        return "\ufffd"
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


def toml_value(value: object) -> str:
    """A string, number, boolean, array or inline table. Raises TypeError for anything else."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return toml_string(value)
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case Mapping():
            inner = ", ".join(f"{toml_key(str(key))} = {toml_value(one)}" for key, one in value.items())
            return f"{{{inner}}}"
    raise TypeError(f"TOML has no {type(value).__name__} such as {value!r:.40}")


def toml_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_string(name)
