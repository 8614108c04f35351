"""Reading a history back, whatever became of the run that wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec

from plugpull.errors import UsageError
from plugpull.history.events import (
    AnyEvent,
    DiskAttached,
    DiskDetached,
    DutReady,
    Event,
    RunBegun,
    RunEnded,
    ScenarioBegun,
    ScenarioEnded,
)
from plugpull.history.story import Rate, Reading, Silence, Story

__all__ = ["History", "Rate", "Reading", "Silence", "Story", "read_history"]

HISTORY_FILE = "history.jsonl"

_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyEvent))
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


@dataclass(frozen=True)
class History:
    """A whole run.

    ``lost_lines`` counts lines that are damaged, so that events are missing; ``skipped_lines`` those of a kind this
    version does not know, which is harmless; ``torn`` tells that the last line was cut off by a crash. ``stray`` are
    events that belong to no scenario.
    """

    begun: RunBegun | None = None
    ended: RunEnded | None = None
    stories: tuple[Story, ...] = ()
    stray: tuple[Event, ...] = ()
    lost_lines: int = 0
    skipped_lines: int = 0
    torn: bool = False

    @property
    def complete(self) -> bool:
        """Whether the run came to its end, and every scenario too."""
        whole = self.ended is not None and not self.torn
        return whole and all(story.ended is not None for story in self.stories)


@dataclass
class _Sorter:
    """Deals lines out to stories."""

    begun: RunBegun | None = None
    ended: RunEnded | None = None
    stories: list[Story] = field(default_factory=list)
    stray: list[Event] = field(default_factory=list)
    lost_lines: int = 0
    skipped_lines: int = 0
    opened: ScenarioBegun | None = None
    events: list[Event] = field(default_factory=list)
    lost_in_story: int = 0
    ready: DutReady | None = None
    attached: dict[tuple[str, int], DiskAttached] = field(default_factory=dict)
    before: tuple[Event, ...] = ()

    def take(self, event: Event) -> None:
        if isinstance(event, RunBegun):
            self.begun = self.begun or event
            return
        if isinstance(event, RunEnded):
            self._close()
            self.ended = event
            return
        if isinstance(event, ScenarioBegun):
            self._close()
            self.opened = event
            ready = () if self.ready is None else (self.ready,)
            self.before = (*ready, *self.attached.values())
        self._carry(event)
        (self.stray if self.opened is None else self.events).append(event)
        if isinstance(event, ScenarioEnded):
            self._close()

    def lose(self) -> None:
        self.lost_lines += 1
        self.lost_in_story += self.opened is not None

    def finish(self, torn: bool) -> History:
        self._close()
        return History(
            begun=self.begun,
            ended=self.ended,
            stories=tuple(self.stories),
            stray=tuple(self.stray),
            lost_lines=self.lost_lines,
            skipped_lines=self.skipped_lines,
            torn=torn,
        )

    def _carry(self, event: Event) -> None:
        """What a running DUT takes along into the next scenario; nothing, if it starts afresh."""
        if isinstance(event, DutReady):
            self.ready = event
            if event.how in {"restored", "booted"}:
                self.attached.clear()
                self.before = ()
        elif isinstance(event, DiskAttached):
            self.attached[event.kname, event.diskseq] = event
        elif isinstance(event, DiskDetached):
            self.attached.pop((event.kname, event.diskseq), None)

    def _close(self) -> None:
        if self.opened is not None:
            rig: dict[str, Any] = self.begun.rig if self.begun else {}
            self.stories.append(Story(self.opened, tuple(self.events), self.before, rig, self.lost_in_story))
        self.opened, self.events, self.lost_in_story, self.before = None, [], 0, ()


def read_history(path: Path) -> History:
    """Reads a history, given its file or its run directory.

    Accepts a torn last line (the writer was killed), events of unknown kinds (a newer version wrote them) and damaged
    lines, which it counts. Raises ``UsageError`` when there is no such file or nothing in it is a history.
    """
    file = path / HISTORY_FILE if path.is_dir() else path
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the history {file}: {error.strerror or error}",
            mend="name a run directory, such as runs/latest, or its history.jsonl",
        ) from error
    history = _parse(content)
    if content and not (history.begun or history.stories or history.stray or history.skipped_lines):
        raise UsageError(f"{file} is not a history", mend="name a run directory, such as runs/latest")
    return history


def _parse(content: bytes) -> History:
    sorter = _Sorter()
    *lines, last = content.split(b"\n")
    for line in lines:
        if line:
            _take_line(sorter, line)
    torn = False
    if last:  # no newline after it: whole only if it is whole JSON, which a piece of an object never is
        event = _decode(last)
        torn = event is None
        if event is not None and event is not _SKIPPED:
            sorter.take(event)
    return sorter.finish(torn)


_SKIPPED = Event()


def _take_line(sorter: _Sorter, line: bytes) -> None:
    event = _decode(line)
    if event is None:
        sorter.lose()
    elif event is _SKIPPED:
        sorter.skipped_lines += 1
    else:
        sorter.take(event)


def _decode(line: bytes) -> Event | None:
    """The event; ``_SKIPPED`` if it is of a kind unknown here; ``None`` if the line is damaged."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        kind = msgspec.json.decode(line).get("type")
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        return None
    return _SKIPPED if isinstance(kind, str) and kind not in _KNOWN else None
