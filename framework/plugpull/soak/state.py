"""How far a soak has come, from its history: what is needed to go on with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from plugpull.errors import UsageError
from plugpull.history import events as ev
from plugpull.history.reader import HISTORY_FILE, LONGEST_LINE
from plugpull.history.segments import HistoryLines

_NEEDED = (
    ev.RunBegun | ev.RunEnded | ev.RunResumed | ev.SoakBegun | ev.ScenarioBegun | ev.ScenarioEnded | ev.DiskSetAside
)
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_NEEDED | ev.ClockMapped)
_NAMES = ("run.begin", "run.end", "run.resume", "soak.begin", "scenario.begin", "scenario.end", "disk.aside", "clock")
_TAGS = tuple(f'{{"type":"{name}"'.encode() for name in _NAMES)


@dataclass
class SoakState:
    """What the history of a soak says: its length and the seconds it has worked so far, the number of turns that were
    begun, the disks that were set aside, what it was started with, and what ended it last."""

    begun: ev.RunBegun | None = None
    soak: ev.SoakBegun | None = None
    worked: float = 0.0
    turns: int = 0
    aside: dict[str, ev.DiskSetAside] = field(default_factory=dict)
    ended: bool = False
    interrupted: str = ""
    running: bool = False

    @property
    def left(self) -> float:
        """Seconds of work that are left."""
        return max(0.0, self.soak.seconds - self.worked) if self.soak is not None else 0.0


def read_state(run: Path) -> SoakState:
    """The state of the soak in a run directory. Raises UsageError if there is none."""
    try:
        with HistoryLines(run / HISTORY_FILE, LONGEST_LINE) as lines:
            state = _state(line for line in lines if line.startswith(_TAGS))
            state.running = lines.written
    except OSError as error:
        raise UsageError(
            f"cannot read the history of {run}: {error.strerror or error}",
            hint="name the directory of a run, such as runs/latest",
        ) from error
    if state.begun is None or state.soak is None:
        raise UsageError(f"{run} was not started with --for", hint="only a run of plugpull run --for can be resumed")
    return state


def _state(lines: Iterable[bytes]) -> SoakState:
    state, time = SoakState(), _Time()
    for line in lines:
        try:
            event = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # a torn line
        time.take(event)
        match event:
            case ev.RunBegun():
                state.begun = state.begun or event
            case ev.SoakBegun():
                state.soak = event
            case ev.ScenarioBegun():
                state.turns += 1
            case ev.DiskSetAside():
                state.aside[event.disk] = event
            case ev.RunEnded():
                state.ended, state.interrupted = True, event.interrupted
            case ev.RunResumed():
                state.ended, state.interrupted = False, ""
    state.worked = time.total()
    return state


@dataclass
class _Time:
    """Adds up the time in which plugpull was running, from the wall times of each stretch. In a turn that did not end,
    the controller's clock counts on."""

    _done: float = 0.0
    _since: datetime | None = None
    _until: datetime | None = None
    _clocks: list[float] = field(default_factory=list)

    def take(self, event: ev.Event) -> None:
        if isinstance(event, ev.ClockMapped):
            self._clocks = [*self._clocks[:1], event.controller]
            return
        wall = _parsed(getattr(event, "wall", ""))
        if wall is None:
            return
        if isinstance(event, ev.RunBegun | ev.RunResumed):
            self._done, self._since = self.total(), wall
        self._until, self._clocks = wall, []

    def total(self) -> float:
        """Seconds so far."""
        if self._since is None or self._until is None:
            return self._done
        clocks = self._clocks[-1] - self._clocks[0] if self._clocks else 0.0
        return self._done + max(0.0, (self._until - self._since).total_seconds()) + max(0.0, clocks)


def _parsed(wall: str) -> datetime | None:
    try:
        return datetime.fromisoformat(wall)
    except ValueError:
        return None
