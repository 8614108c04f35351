"""Reads a history, also of a run that crashed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from plugpull.errors import UsageError
from plugpull.history.events import (
    DiskAttached,
    DiskDetached,
    DutReady,
    Event,
    Judged,
    RunBegun,
    RunEnded,
    RunResumed,
    Sampled,
    ScenarioBegun,
    ScenarioEnded,
    Seal,
)
from plugpull.history.line_blocks import LineGroup, blocks_of_lines, groups_of
from plugpull.history.open_values import SKIPPED, decode_event
from plugpull.history.packed_text import PackedText, texts_of
from plugpull.history.readings import Reading
from plugpull.history.rig_tables import readable
from plugpull.history.sample_lines import SampleDecoder
from plugpull.history.samples import Rate, SampleTable
from plugpull.history.seals import Audit, label_of
from plugpull.history.segments import HistoryLines
from plugpull.history.story import Silence, Story
from plugpull.history.tape import Tape
from plugpull.uncollected import uncollected

__all__ = ["History", "Rate", "Reading", "Silence", "Story", "read_history"]

HISTORY_FILE = "history.jsonl"
LONGEST_LINE = 16 << 20
"""Bytes of a line that are read at most; a longer line counts as damaged. The recorder's longest have 100 kB."""


@dataclass(frozen=True)
class History:
    """A whole run.

    ``lost_lines`` counts lines that are damaged, so that events are missing; ``skipped_lines`` those of a kind this
    version does not know, which is harmless; ``torn``: the last line was cut off by a crash. ``stray`` are
    events that belong to no scenario. ``flaws`` are sentences on what is wrong with lines of no scenario: missing,
    doubled, out of order, altered, after the end. ``edited``: numbers and digests were not compared. ``running``: a
    living process on this machine is writing it.

    A run with several parts (``merging/``) has their names and histories in ``parts``. ``sources`` then has, for each
    scenario, the one that ran before it on the same bench, and the name of its part.
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
    running: bool = False
    parts: tuple[tuple[str, History], ...] = ()
    sources: tuple[tuple[Story | None, str], ...] = ()

    def in_turn(self) -> Iterator[tuple[Story, Story | None, str]]:
        """Each scenario, the one that ran before it on the same bench, and the name of its part (empty: one part)."""
        if self.parts:
            yield from ((story, *source) for story, source in zip(self.stories, self.sources, strict=True))
        else:
            yield from ((story, before, "") for story, before in zip(self.stories, (None, *self.stories), strict=False))

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
    samples: SampleTable = field(default_factory=SampleTable)
    before_sample: array[int] = field(default_factory=lambda: array("L"))
    after: list[Event] = field(default_factory=list)
    after_end: int = 0
    unbegun: list[str] = field(default_factory=list)
    unreadable: tuple[str, ...] = ()
    lost_in_story: int = 0
    ready: DutReady | None = None
    attached: dict[tuple[str, int], DiskAttached] = field(default_factory=dict)
    before: tuple[Event, ...] = ()
    reduce: Callable[[Story], Story] | None = None
    reduced: int = 0

    @property
    def scope(self) -> int | None:
        """The index of the scenario that is open."""
        return None if self.opened is None else len(self.stories)

    @property
    def inside(self) -> bool:
        """Whether a scenario is open."""
        return self.opened is not None and self.ended is None

    @property
    def next_scope(self) -> int:
        """The index of the scenario that would be opened now."""
        return len(self.stories) + (self.opened is not None)

    def take(self, event: Event) -> None:
        self.after_end += self.ended is not None
        if isinstance(event, RunBegun):
            if self.begun is None:
                rig, self.unreadable = readable(event.rig)
                self.begun = event if not self.unreadable else msgspec.structs.replace(event, rig=rig)
            return
        if isinstance(event, RunEnded):
            self._close()
            self.ended = event
            return
        if isinstance(event, RunResumed):
            self._close()
            self.after_end -= self.ended is not None
            self.ended = None
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
        elif isinstance(event, Sampled):
            self.before_sample.append(len(self.events))
            self.samples.extend((event,))
        else:
            self.events.append(event)
        if isinstance(event, ScenarioEnded):
            self._close()

    def take_group(self, group: LineGroup) -> None:
        """Take lines of the scenario that is open, none of which begins or ends anything."""
        so_far = len(self.events)
        for event in group.others:
            self._carry(event)
        self.events.extend(group.others)
        self.before_sample.extend(array("L", [so_far + before for before in group.before]))
        for part in group.samples:
            self.samples.add(part)

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
            replace(story, flaws=(*story.flaws, *flaws[index])) if index in flaws else story
            for index, story in enumerate(self.stories)
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
        if self.unreadable:
            yield f"the rig file on record has something else as {', '.join(self.unreadable)}"
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
            gone = self.attached.pop((event.kname, event.diskseq), None)
            if gone is None:  # its number was not read when it was attached
                self.attached.pop((event.kname, 0), None)

    def _announced_again(self) -> None:
        """A new agent on a DUT that kept running announces all its disks: those are the ones that are there."""
        if len(self.samples) or any(isinstance(event, DutReady) for event in self.events):
            return  # connected again in the middle: what was there at the beginning still counts
        there = {(event.kname, event.diskseq): event for event in self.events if isinstance(event, DiskAttached)}
        if there:
            self.attached, self.before = there, ()

    def _close(self) -> None:
        if self.opened is not None:
            self.samples.close()
            self.stories.append(
                Story(
                    self.opened,
                    Tape(tuple(self.events), self.samples, self.before_sample),
                    self.before,
                    rig=_without(self.begun.rig if self.begun else {}, self.opened.without),
                    lost_lines=self.lost_in_story,
                    flaws=tuple(self._gaps(self.opened)),
                )
            )
            self.after.clear()
        self.opened, self.events, self.lost_in_story, self.before = None, [], 0, ()
        self.samples, self.before_sample = SampleTable(), array("L")

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
        if self.reduce is not None and len(self.stories) > self.reduced:
            self.stories[-1], self.reduced = self.reduce(self.stories[-1]), len(self.stories)


def _without(rig: dict[str, Any], disks: Sequence[str]) -> dict[str, Any]:
    """The rig file as data, without disks that were set aside."""
    if not disks:
        return rig
    return {**rig, "disk": [disk for disk in rig.get("disk", ()) if disk.get("name") not in disks]}


def read_history(path: Path, *, edited: bool = False, reduce: Callable[[Story], Story] | None = None) -> History:
    """Reads a history, given its file or its run directory.

    Accepts a torn last line (the writer was killed), events of unknown kinds (a newer version wrote them) and damaged
    lines, which it counts. Compares the lines with their numbers and digests, unless the history was ``edited`` on
    purpose. ``reduce`` gets each scenario once all of it has been read, and returns what is to be kept of it; whether
    lines are missing is not known by then. Raises ``UsageError`` when there is no such file, it is a link or a device,
    or nothing in it is a history.
    """
    file = path / HISTORY_FILE if path.is_dir() else path
    try:
        with HistoryLines(file, LONGEST_LINE) as lines, uncollected():
            history = replace(_parse(texts_of(lines), edited, reduce), running=lines.written)
    except OSError as error:
        raise UsageError(
            f"cannot read the history {file}: {error.strerror or error}",
            hint="name a run directory, such as runs/latest, or its history.jsonl",
        ) from error
    if not lines.empty and not (history.begun or history.stories or history.stray or history.skipped_lines):
        raise UsageError(f"{file} is not a history", hint="name a run directory, such as runs/latest")
    return history


def _parse(texts: Iterable[list[bytes] | PackedText], edited: bool, reduce: Callable[[Story], Story] | None) -> History:
    sorter, audit, samples, torn = _Sorter(reduce=reduce), Audit(), SampleDecoder(), False
    for block in _blocks_of(texts, sorter, audit, edited):
        if block[0].endswith(b"\n"):
            for group in groups_of(block, samples, decode_event):
                _take_group(sorter, audit, group, edited)
        elif len(block[0]) == LONGEST_LINE:
            _take_line(sorter, audit, block[0], edited)
        else:  # no newline after it: whole only if it is whole JSON, which a piece of an object never is
            torn = decode_event(block[0]) is None
            if not torn:
                _take_line(sorter, audit, block[0] + b"\n", edited)
    return sorter.finish(torn, audit, edited)


def _blocks_of(
    texts: Iterable[list[bytes] | PackedText], sorter: _Sorter, audit: Audit, edited: bool
) -> Iterator[Sequence[bytes]]:
    """The lines that have to be decoded, in blocks. Samples are taken from packs instead where they fit the lines, but
    not of a history that was edited: there the lines are what counts."""
    for packed, run in groupby(texts, lambda text: isinstance(text, PackedText)):
        if not packed:
            yield from blocks_of_lines(text for text in run if not isinstance(text, PackedText))
            continue
        for text in run:
            if isinstance(text, PackedText) and (edited or not _take_packed(sorter, audit, text)):
                yield from blocks_of_lines([text.lines()])


def _take_packed(sorter: _Sorter, audit: Audit, text: PackedText) -> bool:
    """Take lines of the scenario that is open with the samples of their pack. Returns whether it was their pack."""
    group, pack = text.group(decode_event) if sorter.inside else None, text.pack
    if group is None or not audit.sealed(text.text, pack.first, pack.sections, sorter.scope):
        return False
    sorter.take_group(group)
    return True


def _take_group(sorter: _Sorter, audit: Audit, group: LineGroup | bytes, edited: bool) -> None:
    """Take consecutive lines of a scenario; one by one if anything is wrong with their numbers."""
    if isinstance(group, bytes):
        _take_line(sorter, audit, group, edited)
    elif sorter.inside and audit.lines(group.lines, group.numbers, sorter.scope):
        sorter.take_group(group)
    else:
        for raw in group.lines:
            _take_line(sorter, audit, raw, edited)


def _take_line(sorter: _Sorter, audit: Audit, raw: bytes, edited: bool) -> None:
    if raw == b"\n":
        audit.blank(raw)
        return
    event = decode_event(raw)
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
    if event is SKIPPED:
        sorter.skipped_lines += 1
    elif edited or not doubled:
        sorter.take(event)
