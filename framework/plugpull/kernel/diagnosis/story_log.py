"""The kernel log of one scenario, each line of it classified at most once."""

from __future__ import annotations

from functools import cached_property

from plugpull.history.events import ConsoleLine, KernelMessage
from plugpull.history.story import Story
from plugpull.history.time_index import TimeIndex
from plugpull.kernel.catalogue.line import LogLine

KERNEL_FACILITY = 0
"""The syslog facility of the kernel itself. What processes write to /dev/kmsg has another one and is not evidence."""
NO_LEVEL = 8
"""The level of a console line: beyond KERN_DEBUG (7, include/linux/kern_levels.h), since a console shows no levels."""


class RecordedLine(LogLine):
    """A line of a recorded kernel log. ``at`` is its time, DUT seconds; ``level`` the kernel's, 0 is the worst."""

    at: float | None = None

    def __init__(self, recorded: KernelMessage | ConsoleLine) -> None:
        super().__init__(recorded.text)
        self.level = recorded.level if isinstance(recorded, KernelMessage) else NO_LEVEL


class TimedLine(RecordedLine):
    """A recorded line with a time."""

    at: float

    def __init__(self, recorded: KernelMessage | ConsoleLine, at: float) -> None:
        super().__init__(recorded)
        self.at = at


def _shared_line(story: Story, event: KernelMessage) -> RecordedLine:
    line = story.by_event.get(event)
    if not isinstance(line, RecordedLine):
        line = story.by_event[event] = _line(event)
    return line


def _line(recorded: KernelMessage | ConsoleLine) -> RecordedLine:
    return RecordedLine(recorded) if recorded.at is None else TimedLine(recorded, recorded.at)


class StoryLog:
    """The kernel log of a story. Use ``log_of(story)``, which makes one for each story."""

    def __init__(self, story: Story) -> None:
        self._story = story
        kernels = (event for event in story.of(KernelMessage) if event.facility == KERNEL_FACILITY)
        self._lines = {id(event): _shared_line(story, event) for event in kernels}

    @cached_property
    def timed(self) -> tuple[TimedLine, ...]:
        """The kernel's own messages that have a time, also those from before the scenario."""
        return tuple(line for line in self._lines.values() if isinstance(line, TimedLine))

    @cached_property
    def own(self) -> tuple[RecordedLine, ...]:
        """The kernel's own messages of this scenario. What was logged before it began is an earlier scenario's."""
        begun = self._story.begun.at
        return tuple(line for line in self._lines.values() if line.at is None or begun is None or line.at >= begun)

    @cached_property
    def own_timed(self) -> tuple[TimedLine, ...]:
        """Those of ``own`` that have a time."""
        return tuple(line for line in self.own if isinstance(line, TimedLine))

    @cached_property
    def _own_index(self) -> TimeIndex:
        return TimeIndex([line.at for line in self.own_timed])

    def own_between(self, begin: float, end: float) -> list[TimedLine]:
        """Those of ``own_timed`` with begin <= at <= end, in the order in which they were recorded."""
        places = self._own_index.places(begin, end)
        return [line for line in self.own_timed[places.start : places.stop] if begin <= line.at <= end]

    @cached_property
    def with_console(self) -> tuple[RecordedLine, ...]:
        """``own`` and the lines of the console of this scenario, in the order in which they were recorded."""
        own = {id(line) for line in self.own}
        begun = self._story.begun.at or 0.0
        found: list[RecordedLine] = []
        for event in self._story.among(KernelMessage, ConsoleLine):
            line = self._lines.get(id(event))
            if line is not None and id(line) in own:
                found.append(line)
            elif isinstance(event, ConsoleLine) and (not event.at or event.at >= begun):
                found.append(_line(event))
        return tuple(found)


def log_of(story: Story) -> StoryLog:
    """The kernel log of ``story``; the same object at each call."""
    return story.once(StoryLog)
