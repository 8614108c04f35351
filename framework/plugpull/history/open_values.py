"""Decodes events that hold values which this version does not list.

A history of a newer version, or of somebody else's program, may name a phase or a moment that is in no ``Literal`` of
ours. Such an event is kept, with the value as it was written.
"""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from plugpull.history.events import AnyEvent, Event

KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}
"""Every kind of event by its tag, the JSON field ``type``."""


def _closed(kind: type[Event]) -> dict[str, tuple[str, ...]]:
    """The fields of a kind that take listed values only, with those values."""
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


CLOSED: dict[str, dict[str, tuple[str, ...]]] = {tag: _closed(kind) for tag, kind in KINDS.items()}


def with_open_values(tag: str, fields: dict[str, Any]) -> Event | None:
    """The event of a decoded line, with its unlisted values as they are; ``None`` if anything else is wrong with it."""
    unlisted = {
        name: fields[name]
        for name, listed in CLOSED[tag].items()
        if isinstance(fields.get(name), str) and fields[name] not in listed
    }
    listed = {name: CLOSED[tag][name][0] for name in unlisted}
    try:
        event = msgspec.convert(fields | listed, KINDS[tag])
    except (msgspec.ValidationError, RecursionError):
        return None
    return msgspec.structs.replace(event, **unlisted) if unlisted else None
