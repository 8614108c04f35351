"""A run that lasts for a given time: how long, what it set aside, and where it was interrupted and resumed."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

LossCause = Literal[
    "cut",  # it did not come back after a cut
    "alone",  # it was gone when a turn began, although nothing had cut it since it was last there
    "unseen",  # it was gone when the run was resumed
]
"""How a disk was lost."""


class SoakBegun(Event, frozen=True, kw_only=True, tag="soak.begin"):
    """The run is to last for ``seconds`` of work, counted without the time in which no plugpull was running.

    ``directory`` is where it was started: the paths of its command line begin there."""

    seconds: float
    directory: str = ""


class RunResumed(Event, frozen=True, kw_only=True, tag="run.resume"):
    """The run goes on at ``wall``, after it had been killed or ended early. What happened since the line before is not
    on record. ``interrupted`` says what had ended it, if that is known. ``argv`` is the command that resumed it."""

    wall: str
    interrupted: str = ""
    argv: tuple[str, ...] = ()


class DiskSetAside(Event, frozen=True, kw_only=True, tag="disk.aside"):
    """A disk counts as dead from ``wall`` on, UTC in ISO 8601: later scenarios of the run go on without it."""

    disk: str
    wall: str
    cause: LossCause


class SamplingSet(Event, frozen=True, kw_only=True, tag="sampling"):
    """From here on, the agent samples every ``interval`` seconds. A history without this event has one interval
    throughout."""

    interval: float
