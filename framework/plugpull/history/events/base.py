"""The base of all events."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all events.

    ``report`` is the agent's running number of the report that became this event, from 1 since the agent was started;
    0 for events that are not reports of the agent or have no number."""

    at: float | None = None
    report: int = 0
