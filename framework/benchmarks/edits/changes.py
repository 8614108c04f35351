"""The changes of a recorded run that concern events of any type, and messages of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

from benchmarks.edits.events import Event, RecordedEvents, Which, time_of


@dataclass(frozen=True)
class ChangedEvents(RecordedEvents):
    """Immutable: every change returns a new one. Kernel messages are numbered again after a change, so that only a
    change that means to leaves a gap in ``seq``."""

    def drop(self, which: Which) -> Self:
        return replace(self, events=tuple(event for event in self.events if not which(event)))._numbered(self)

    def lose(self, which: Which) -> Self:
        """Like ``drop``, with gaps where kernel messages were."""
        return replace(self, events=tuple(event for event in self.events if not which(event)))

    def change(self, which: Which, **fields: Any) -> Self:
        return self.map(which, lambda event: event | fields)

    def map(self, which: Which, edit: Callable[[Event], Event]) -> Self:
        return replace(self, events=tuple(edit(dict(event)) if which(event) else event for event in self.events))

    def double(self, which: Which) -> Self:
        events: list[Event] = []
        for event in self.events:
            events += [event, dict(event)] if which(event) else [event]
        return replace(self, events=tuple(events))

    def insert(self, *events: Event) -> Self:
        """Each behind the last event that is not later, inside the first scenario."""
        tape = list(self.events)
        for event in events:
            begin = next(i for i, one in enumerate(tape) if one["type"] == "scenario.begin") + 1
            end = next((i for i, one in enumerate(tape) if one["type"] == "scenario.end"), len(tape))
            at = float(event["at"])
            place = next((i for i in range(begin, end) if (time_of(tape[i]) or -1.0) > at), end)
            tape.insert(place, event)
        return replace(self, events=tuple(tape))._numbered(self)

    def append(self, *events: Event, before: str = "run.end") -> Self:
        """Between two scenarios, or behind the last: before the last event of a type."""
        place = max(i for i, event in enumerate(self.events) if event["type"] == before)
        return replace(self, events=(*self.events[:place], *events, *self.events[place:]))

    def retime(self, which: Which, by: float) -> Self:
        """Moves events in time and to their new place."""
        moved = [event | {"at": event["at"] + by} for event in self.events if which(event)]
        return (
            replace(self, events=tuple(event for event in self.events if not which(event)))
            .insert(*moved)
            ._numbered(self)
        )

    def end_at(self, at: float) -> Self:
        """Nothing the agent sent is on record after ``at``; what the controller did is."""
        sent = ("sample", "kernel", "uevent", "disk.attached", "disk.detached", "clock")
        return self.drop(lambda event: event["type"] in sent and (time_of(event) or 0.0) > at)

    def _numbered(self, before: RecordedEvents) -> Self:
        """Kernel messages numbered without a gap, if they were before."""
        seqs = [event["seq"] for event in before.events if event["type"] == "kernel" and "seq" in event]
        whole = all(two - one in (1, 0) or two < one for one, two in pairwise(seqs))
        if not seqs or not whole:
            return self
        events, last, restart = [], None, None
        for event in self.events:
            if event["type"] == "scenario.begin":
                last, restart = None, None
            if event["type"] == "kernel" and "seq" in event:
                restart = event["seq"] if restart is None else restart
                last = restart if last is None else last + 1
                event = event | {"seq": last}
            events.append(event)
        return replace(self, events=tuple(events))

    # --- the kernel log -----------------------------------------------------------------------------------------------

    def say(self, at: float, *texts: str, level: int = 6, **fields: Any) -> Self:
        """The kernel prints these lines, a tenth of a millisecond apart."""
        lines = [
            {"type": "kernel", "at": round(at + i / 1e4, 6), "text": text, "level": level, "seq": 0} | fields
            for i, text in enumerate(texts)
        ]
        return self.insert(*lines)

    def hush(self, text: str, begin: float = float("-inf"), end: float = float("inf")) -> Self:
        """The kernel did not print the lines with ``text`` in them."""
        return self.drop(
            lambda event: event["type"] == "kernel" and text in event["text"] and begin <= event["at"] < end
        )
