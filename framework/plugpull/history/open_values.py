"""Decodes events, also those that hold values which this version does not list.

A history of a newer version, or of somebody else's program, may name a phase or a moment that is in no ``Literal`` of
ours. Such an event is kept, with the value as it was written.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from plugpull.history.events import AnyEvent, Event

KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}
"""Every kind of event by its tag, the JSON field ``type``."""


@cache
def closed_values(kind: type[Event]) -> dict[str, tuple[str, ...]]:
    """The fields of a kind that take listed values only, with those values."""
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def with_open_values(tag: str, fields: dict[str, Any]) -> Event | None:
    """The event of a decoded line, with its unlisted values as they are; ``None`` if anything else is wrong with it."""
    closed = closed_values(KINDS[tag])
    unlisted = {
        name: fields[name]
        for name, listed in closed.items()
        if isinstance(fields.get(name), str) and fields[name] not in listed
    }
    listed = {name: closed[name][0] for name in unlisted}
    try:
        event = msgspec.convert(fields | listed, KINDS[tag])
    except (msgspec.ValidationError, RecursionError):
        return None
    return msgspec.structs.replace(event, **unlisted) if unlisted else None


_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
SKIPPED = Event()
"""Stands for an event of a kind that this version does not know."""


def decode_event(line: bytes) -> Event | None:
    """The event of a line; ``SKIPPED`` if it is of a kind unknown here; ``None`` if the line is damaged."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    kind = fields.get("type") if isinstance(fields, dict) else None
    if not isinstance(kind, str):
        return None
    return with_open_values(kind, fields) if kind in KINDS else SKIPPED
