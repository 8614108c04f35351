"""Numbers on record that cannot be: counts, sizes and durations below zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter

import msgspec

from plugpull.history.events import (
    FileLedgerPart,
    FileScanPart,
    KernelMessage,
    LedgerPart,
    LegReadPart,
    PowerSampled,
    ReadBackPart,
)
from plugpull.history.events.base import Event
from plugpull.history.story import Story

MAY_BE_BELOW = frozenset(
    {
        "at",
        "asked_at",
        "begin",
        "controller",
        "exit_status",
        "last_heard",
        "layout",
        "log_clock_offset",
        "ran",
        "seq",
        "sent",
        "since",
        "status",
        "until",
    }
)
"""Times, exit statuses (a signal is below zero), numbers that are not known, and md's layout of levels without one."""
LEFT_OUT = (FileLedgerPart, FileScanPart, KernelMessage, LedgerPart, LegReadPart, PowerSampled, ReadBackPart)
"""Events without counts, or with such as are judged elsewhere. There are many of them."""


def negative_counts(story: Story) -> Iterator[str]:
    """A clause for the first number of each kind of event that is below zero."""
    seen: set[str] = set()
    kinds = [kind for kind, events in story.by_kind.items() if not issubclass(kind, LEFT_OUT) and _may_be_below(events)]
    for event in story.among(*kinds):
        for name in _numbers(type(event)):
            value = getattr(event, name)
            below = value if isinstance(value, int | float) else _least(value)
            what = f"{event.__struct_config__.tag} {name}"
            if below is not None and below < 0 and what not in seen:
                seen.add(what)
                yield f"{name} of a {event.__struct_config__.tag} at {event.at or 0.0:.2f} s is {below:g}"


def _may_be_below(events: Sequence[Event]) -> bool:
    """Whether some number of these events, all of one kind, is below zero, or has to be looked at by itself."""
    for name in _numbers(type(events[0])):
        values = list(map(attrgetter(name), events))
        if not set(map(type, values)) <= {int, float} or not min(values) >= 0:
            return True
    return False


@cache
def _numbers(kind: type[Event]) -> tuple[str, ...]:
    """The fields of an event that hold numbers, or tables of numbers."""
    found = []
    for field in msgspec.structs.fields(kind):
        words = str(field.type)
        numeric = field.type in (int, float) or "int" in words or "float" in words
        if numeric and "bool" not in words and field.name not in MAY_BE_BELOW:
            found.append(field.name)
    return tuple(found)


def _least(value: object) -> float | None:
    """The smallest number of a table of numbers."""
    if not isinstance(value, Mapping):
        return None
    return min((one for one in value.values() if isinstance(one, int | float)), default=None)
