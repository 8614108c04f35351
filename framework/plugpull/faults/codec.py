"""Faults and triggers as JSON-ready data, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def encode(thing: object) -> dict[str, Any]:
    """A fault or trigger as data for the history. ``decode`` reads it back."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(thing))
    return data


def decode(data: object, base: type[T]) -> T:
    """The fault or trigger from its data. ``base`` is ``Fault`` or ``Trigger``.

    Knows every kind whose module was imported, those of a test suite too. Raises ``msgspec.ValidationError`` when there
    is no such kind or its fields do not fit, and ``UsageError`` for values that a kind refuses.
    """
    return msgspec.convert(data, base, dec_hook=_decode_kind)


def _decode_kind(base: type[Any], data: object) -> object:
    """Called for each field that is annotated with a base class: its tag names the kind."""
    for kind in _kinds(base):
        config = kind.__struct_config__
        if config.tag is not None and isinstance(data, dict) and data.get(config.tag_field) == config.tag:
            return msgspec.convert(data, kind, dec_hook=_decode_kind)
    raise ValueError(f"this version has no {base.__name__.lower()} {data!r}")


def _kinds(base: type[Any]) -> Iterator[type[msgspec.Struct]]:
    for child in base.__subclasses__():
        if issubclass(child, msgspec.Struct):
            yield child
        yield from _kinds(child)
