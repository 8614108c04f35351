"""Reads a history, also of a run that crashed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from plugpull.errors import UsageError
from plugpull.history.events import (
    AnyEvent,
    DiskAttached,
    DiskDetached,
    DutReady,
    Event,
    Judged,
    RunBegun,
    RunEnded,
    Sampled,
    ScenarioBegun,
    ScenarioEnded,
    Seal,
)
from plugpull.history.open_values import KINDS, with_open_values
from plugpull.history.samples import Rate, Reading
from plugpull.history.seals import Audit, label_of
from plugpull.history.story import Silence, Story

__all__ = ["History", "Rate", "Reading", "Silence", "Story", "read_history"]

HISTORY_FILE = "history.jsonl"
LONGEST_LINE = 16 << 20
"""Bytes of a line that are read at most; a longer line counts as damaged. The recorder's longest have 100 kB."""

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


@dataclass(frozen=True)
class History:
    """A whole run.

    ``lost_lines`` counts lines that are damaged, so that events are missing; ``skipped_lines`` those of a kind this
    version does not know, which is harmless; ``torn``: the last line was cut off by a crash. ``stray`` are
    events that belong to no scenario. ``flaws`` are sentences on what is wrong with lines of no scenario: missing,
    doubled, out of order, altered, after the end. ``edited``: numbers and digests were not compared.
    """

    begun: RunBegun | None = None
    ended: RunEnded | None = None
    stories: tuple[Story, ...] = ()
    stray: tuple[Event, ...] = ()
    lost_lines: int = 0
    skipped_lines: int = 0
    torn: bool = False
    flaws: tuple[str, ...] = ()
    edited: bool = False

    @property
    def complete(self) -> bool:
        """Whether the run came to its end, and every scenario too."""
        whole = self.ended is not None and not self.torn
        return whole and all(story.ended is not None for story in self.stories)

    @property
    def flawed(self) -> bool:
        """Whether lines of this history are missing, doubled, out of order or altered."""
        return bool(self.flaws) or any(story.flaws for story in self.stories)


@dataclass
class _Sorter:
    """Sorts lines into stories."""

    begun: RunBegun | None = None
    ended: RunEnded | None = None
    stories: list[Story] = field(default_factory=list)
    stray: list[Event] = field(default_factory=list)
    lost_lines: int = 0
    skipped_lines: int = 0
    opened: ScenarioBegun | None = None
    events: list[Event] = field(default_factory=list)
    after: list[Event] = field(default_factory=list)
    after_end: int = 0
    unbegun: list[str] = field(default_factory=list)
    lost_in_story: int = 0
    ready: DutReady | None = None
    attached: dict[tuple[str, int], DiskAttached] = field(default_factory=dict)
    before: tuple[Event, ...] = ()

    @property
    def scope(self) -> int | None:
        """The index of the scenario that is open."""
        return None if self.opened is None else len(self.stories)

    @property
    def next_scope(self) -> int:
        """The index of the scenario that would be opened now."""
        return len(self.stories) + (self.opened is not None)

    def take(self, event: Event) -> None:
        self.after_end += self.ended is not None
        if isinstance(event, RunBegun):
            self.begun = self.begun or event
            return
        if isinstance(event, RunEnded):
            self._close()
            self.ended = event
            return
        if isinstance(event, ScenarioBegun):
            self._close()
            self._end_after()
            self.opened = event
            ready = () if self.ready is None else (self.ready,)
            self.before = (*ready, *self.attached.values())
        self._carry(event)
        if self.opened is None:
            self.stray.append(event)
            self.after.append(event)
            if isinstance(event, ScenarioEnded):
                self.unbegun.append(event.id)
        else:
            self.events.append(event)
        if isinstance(event, ScenarioEnded):
            self._close()

    def lose(self) -> None:
        self.lost_lines += 1
        self.lost_in_story += self.opened is not None

    def finish(self, torn: bool, audit: Audit, edited: bool) -> History:
        self._close()
        self._end_after()
        audit.numbered = audit.numbered or bool(self.begun and self.begun.numbered)
        cut_short: set[int | None] = {index for index, story in enumerate(self.stories) if story.ended is None}
        if self.ended is None:
            cut_short.add(None)
        flaws = {} if edited else audit.finish(cut_short)
        stories = [
            replace(story, flaws=(*story.flaws, *flaws.get(index, ()))) for index, story in enumerate(self.stories)
        ]
        return History(
            begun=self.begun,
            ended=self.ended,
            stories=tuple(stories),
            stray=tuple(self.stray),
            lost_lines=self.lost_lines,
            skipped_lines=self.skipped_lines,
            torn=torn,
            flaws=(*flaws.get(None, ()), *self._disorder()),
            edited=edited,
        )

    def _disorder(self) -> Iterator[str]:
        """What cannot be in a history that was recorded from beginning to end, numbered or not."""
        if self.after_end:
            yield f"the history goes on after the end of the run: {self.after_end} more events"
        for name in dict.fromkeys(self.unbegun):
            yield f"the beginning of a scenario is missing: {name}"

    def _carry(self, event: Event) -> None:
        """Keep what still holds in the next scenario: nothing, if the DUT starts again before it."""
        if isinstance(event, DutReady):
            self.ready = event
            if event.how in {"restored", "booted"}:
                self.attached.clear()
                self.before = ()
            elif event.how == "connected":
                self._announced_again()
        elif isinstance(event, DiskAttached):
            self.attached[event.kname, event.diskseq] = event
        elif isinstance(event, DiskDetached):
            self.attached.pop((event.kname, event.diskseq), None)

    def _announced_again(self) -> None:
        """A new agent on a DUT that kept running announces all its disks: those are the ones that are there."""
        if any(isinstance(event, DutReady | Sampled) for event in self.events):
            return  # connected again in the middle: what was there at the beginning still counts
        there = {(event.kname, event.diskseq): event for event in self.events if isinstance(event, DiskAttached)}
        if there:
            self.attached, self.before = there, ()

    def _close(self) -> None:
        if self.opened is not None:
            self.stories.append(
                Story(
                    self.opened,
                    tuple(self.events),
                    self.before,
                    rig=self.begun.rig if self.begun else {},
                    lost_lines=self.lost_in_story,
                    flaws=tuple(self._gaps(self.opened)),
                )
            )
            self.after.clear()
        self.opened, self.events, self.lost_in_story, self.before = None, [], 0, ()

    def _gaps(self, opened: ScenarioBegun) -> Iterator[str]:
        """What is missing of a scenario that ended, numbered or not."""
        last = self.events[-1]
        if not isinstance(last, ScenarioEnded):
            return
        if last.id != opened.id:
            yield f"the history has the end of another scenario here: {last.id}"
        judged = [event for event in self.events if isinstance(event, Judged)]
        found = sum(len(event.checks) for event in judged)
        if last.asked is not None and found != last.asked:
            yield f"the scenario asked for {last.asked} checks, and the history has {found}"
        if judged and not any(isinstance(event, DutReady) for event in self.events):
            yield "what the DUT was is missing from the history"

    def _end_after(self) -> None:
        """What came after a scenario's end is kept with it."""
        if self.after and self.stories:
            self.stories[-1] = replace(self.stories[-1], after=tuple(self.after))
        self.after.clear()


def read_history(path: Path, *, edited: bool = False) -> History:
    """Reads a history, given its file or its run directory.

    Accepts a torn last line (the writer was killed), events of unknown kinds (a newer version wrote them) and damaged
    lines, which it counts. Compares the lines with their numbers and digests, unless the history was ``edited`` on
    purpose. Raises ``UsageError`` when there is no such file, it is a link or a device, or nothing in it is a history.
    """
    file = path / HISTORY_FILE if path.is_dir() else path
    try:
        with _open(file) as stream:
            history, empty = _parse(stream, edited)
    except OSError as error:
        raise UsageError(
            f"cannot read the history {file}: {error.strerror or error}",
            hint="name a run directory, such as runs/latest, or its history.jsonl",
        ) from error
    if not empty and not (history.begun or history.stories or history.stray or history.skipped_lines):
        raise UsageError(f"{file} is not a history", hint="name a run directory, such as runs/latest")
    return history


def _open(file: Path) -> BinaryIO:
    """Opens a regular file: a run directory from elsewhere may hold a link, a device or a FIFO by this name."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _parse(stream: BinaryIO, edited: bool) -> tuple[History, bool]:
    """The history, and whether nothing at all was in the file."""
    sorter, audit = _Sorter(), Audit()
    torn, raw = False, b""
    while raw := stream.readline(LONGEST_LINE):
        if raw.endswith(b"\n") or len(raw) == LONGEST_LINE:
            _take_line(sorter, audit, raw, edited)
        else:  # no newline after it: whole only if it is whole JSON, which a piece of an object never is
            torn = _decode(raw) is None
            if not torn:
                _take_line(sorter, audit, raw + b"\n", edited)
    return sorter.finish(torn, audit, edited), stream.tell() == 0


_SKIPPED = Event()


def _take_line(sorter: _Sorter, audit: Audit, raw: bytes, edited: bool) -> None:
    if raw == b"\n":
        audit.blank(raw)
        return
    event = _decode(raw)
    if event is None:
        audit.damaged(raw)
        sorter.lose()
        return
    number, before = label_of(raw).n, sorter.scope
    if isinstance(event, Seal):
        audit.seal(raw, event, number, before)
        return
    inside = sorter.next_scope if isinstance(event, ScenarioBegun) else before
    doubled = audit.line(raw, number, before, inside)
    if event is _SKIPPED:
        sorter.skipped_lines += 1
    elif edited or not doubled:
        sorter.take(event)


def _decode(line: bytes) -> Event | None:
    """The event; ``_SKIPPED`` if it is of a kind unknown here; ``None`` if the line is damaged."""
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
    return with_open_values(kind, fields) if kind in KINDS else _SKIPPED
