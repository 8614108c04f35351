"""Is the record of each witness possible: are times in order, and are counts plausible?

The agent reads samples and the kernel log in order, so later lines happened later. If they did not, the record has
lines of another run, or clocks were set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from plugpull.history.events import (
    Acted,
    AgentLost,
    ArrayActed,
    DiskAttached,
    DiskDetached,
    DutDied,
    DutReady,
    Event,
    FileRoundBegun,
    FioRan,
    Judged,
    KernelMessage,
    LedgerBegun,
    LedgerEnded,
    LoadBegun,
    LoadEnded,
    Phase,
    ReadBackBegun,
    Uevent,
    Verified,
)
from plugpull.history.readings import Reading, Readings
from plugpull.history.story import Story

BACK = 2.0
"""Seconds by which times may go back: the agent's threads stamp events before they pass them on."""
STAMPS_BACK = 0.2
"""Seconds by which a kernel message may be stamped earlier than the one before it. The CPUs' clocks differ by
microseconds, and their offset to CLOCK_MONOTONIC is measured once: 0.004 s at most in 28 recorded runs."""
AFTER_THE_END = 1.0
"""Seconds by which what the agent sent may be stamped later than the end of its scenario. That is recorded after it."""
ATTACHED_LATE = 1.0
"""Seconds by which the record may have a disk attached later than it was used: two threads record the two."""
FILLING = frozenset({"fill", "load"})
"""Phases in which disks are written although no load is on record yet."""
OTHERWISE = frozenset({"array", "measure", "mkfs", "scan", "soak"})
"""Phases in which more than loads may write."""
WRITTEN_LATE = 1.0
"""Seconds after the end of the last load in which its last writes may still be counted."""
STAMPED = 1.0
"""The largest allowed error of the kernel log's times, seconds: times decide whether a cut explains a message."""


def disorder(story: Story) -> Iterator[str]:
    """Why the record is impossible, one clause per reason."""
    yield from _samples(story)
    yield from _log(story)
    yield from _after_the_end(story)
    yield from _negative(story)
    yield from _restarts(story)
    yield from _serials(story)
    yield from _sequence(story)
    yield from _uevents(story)
    yield from _writers(story)
    yield from _doubled(story)
    yield from _without_disk(story)


def _without_disk(story: Story) -> Iterator[str]:
    """Disks that were written or read back while they were not attached."""
    uses: tuple[tuple[str, ReadBackBegun | LoadBegun | LedgerBegun], ...] = (
        *(("read back", event) for event in story.of(ReadBackBegun) if not event.error),
        *(("written by stamps", event) for event in story.of(LedgerBegun)),
        *(("given a load", event) for event in story.of(LoadBegun)),
    )
    for what, event in uses:
        at = event.at
        if at is None or not story.attachments(event.disk):
            continue
        if story.attachment_at(event.disk, at) is None and story.attachment_at(event.disk, at + ATTACHED_LATE) is None:
            yield f"{event.disk} was {what} at {at:.2f} s, when it was not attached"


def _doubled(story: Story) -> Iterator[str]:
    """Nothing happens twice at one microsecond: of 407,037 recorded lines no two of a scenario were the same. To ask
    the same twice does no harm."""
    events = [*_twice_sampled(story), *(event for event in story.others if not isinstance(event, Judged))]
    events = [event for event in events if event.at is not None]
    keys = [(event.at, type(event)) for event in events]
    if len(set(keys)) == len(keys):
        return
    often = {key for key, count in Counter(keys).items() if count > 1}
    seen: Counter[bytes] = Counter()
    for event in events:
        if (event.at, type(event)) in often:
            line = msgspec.json.encode(event)
            seen[line] += 1
            if seen[line] == 2:
                what = event.__struct_config__.tag
                yield f"one {what} of {event.at or 0.0:.2f} s is on record more than once"


def _twice_sampled(story: Story) -> Iterator[Event]:
    """The samples whose times more than one sample has."""
    table = story.samples
    if not table.rises:
        often = {at for at, count in Counter(table.at).items() if count > 1}
        for row in (row for row, at in enumerate(table.at) if at in often):
            yield from table.samples(range(row, row + 1))


def _samples(story: Story) -> Iterator[str]:
    times = () if story.samples.ordered else story.sample_times
    back = next((two for one, two in pairwise(times) if two < one - BACK), None)
    if back is not None:
        yield f"samples go back in time, to {back:.2f} s"


def log_goes_back(story: Story) -> str:
    """A clause if the times of the kernel log contradict the numbers of its messages; otherwise empty."""
    return story.once(_log_goes_back)


def _log_goes_back(story: Story) -> str:
    known = [event for event in story.of(KernelMessage) if event.seq >= 0 and event.at is not None]
    for one, two in pairwise(sorted(known, key=lambda event: event.seq)):
        if (two.at or 0.0) < (one.at or 0.0) - STAMPS_BACK and two.source == one.source:
            return f"the kernel log goes back in time, from {one.at or 0.0:.2f} s to {two.at or 0.0:.2f} s"
    return ""


def _log(story: Story) -> Iterator[str]:
    """Kernel messages whose times are in another order than their numbers, or of an unknown clock."""
    back = log_goes_back(story)
    if back:
        yield back
    readies = story.readies
    error = max((event.log_clock_error or 0.0 for event in readies), default=0.0)
    if error > STAMPED:
        yield f"the kernel log is stamped by a clock that is known to {error:.2f} s only"


def _after_the_end(story: Story) -> Iterator[str]:
    end = story.ended.at if story.ended is not None else None
    if end is not None and story.heard_until is not None and story.heard_until > end + AFTER_THE_END:
        after = story.heard_until - end
        yield f"the agent reported for {after:.2f} s after the end of the scenario, which was recorded after them"


def _negative(story: Story) -> Iterator[str]:
    below: list[tuple[int, str]] = []
    for stream in story.samples.streams.values():
        columns = [column.numbers for column in stream.columns if column.negative]
        negative = (i for i in range(len(stream)) if any(column[i] < 0 for column in columns))
        index = 0 if stream.diskseq < 0 else next(negative, None) if columns else None
        if index is not None:
            below.append((stream.row(index), stream.kname))
    if below:
        row, kname = min(below, key=lambda one: one[0])
        yield f"a counter of {kname} is negative at {story.samples.time(row) or 0.0:.2f} s"


def _restarts(story: Story) -> Iterator[str]:
    """A DUT that was booted, or an agent that was started, in the middle of a scenario without a loss on record."""
    ready = False
    for event in story.among(AgentLost, DutDied, DutReady):
        if isinstance(event, AgentLost | DutDied):
            ready = False
        elif isinstance(event, DutReady):
            if ready:
                what = "the DUT was booted" if event.how == "booted" else "another agent answered"
                yield f"{what} at {event.at or 0.0:.2f} s, in the middle of the scenario"
            ready = True


def _serials(story: Story) -> Iterator[str]:
    """Disks that are announced with another serial number than in the rig file, by which they are found."""
    for disk in story.rig.get("disk", ()):
        name, serial = str(disk.get("name")), disk.get("serial")
        first = next(iter(story.attachments(name)), None)
        if first is not None and serial and first.serial and first.serial != serial:
            yield f"{name} was announced with serial {first.serial}, and the rig file says {serial}"


def _sequence(story: Story) -> Iterator[str]:
    """Disks whose sequence number is lower than before. The kernel never gives one twice (block/genhd.c, inc_diskseq);
    after a restart it begins at 1. A disk has number 0 on record if it left while the agent read its sysfs."""
    last: dict[str, int] = {}
    for event in story.among(DutReady, DutDied, DiskAttached):
        if isinstance(event, DutReady | DutDied):
            last = {}
        elif isinstance(event, DiskAttached) and event.disk and event.diskseq:
            before = last.setdefault(event.disk, event.diskseq)
            if event.diskseq < before:
                yield (
                    f"{event.disk} was announced at {event.at or 0.0:.2f} s as disk number {event.diskseq}"
                    f" of this kernel, after number {before}"
                )
            last[event.disk] = max(before, event.diskseq)


def _uevents(story: Story) -> Iterator[str]:
    """Disks that were attached or removed without a uevent (``dut/agent/uevents.py``)."""
    virtual = any(ready.kind == "virtual" for ready in story.of(DutReady))
    if virtual and story.of(DiskDetached) and not story.of(Uevent):
        yield "disks came and went, but no uevent is on record"
    for event in story.of(Uevent):
        if event.at is None or (event.subsystem, event.devtype) != ("block", "disk"):
            continue
        if event.action == "add" and (came := _unannounced(story, event, event.at)):
            yield came
        if event.action != "remove":
            continue
        for stay in story.all_attachments:
            here = stay.sysfs == f"/sys{event.devpath}" and (stay.at is None or stay.at <= event.at)
            if here and stay.disk and story.detached_at(stay) is None:
                left = f"{stay.disk} ({stay.kname}) left at {event.at:.2f} s"
                yield f"an uevent says that {left}, and it is not on record"


def _unannounced(story: Story, added: Uevent, at: float) -> str:
    """A clause if a uevent says that a disk of the rig came, and nothing else does. One that left at once was not
    announced, because there was nothing to read."""
    own = [stay for stay in story.all_attachments if stay.disk and stay.sysfs == f"/sys{added.devpath}"]
    if not own or any(stay.at is None or abs(stay.at - at) <= ATTACHED_LATE for stay in own):
        return ""
    for event in story.of(Uevent):
        if (event.action, event.devpath) == ("remove", added.devpath) and at <= (event.at or 0.0) <= at + BACK:
            return ""
    return f"an uevent says that {own[0].disk} ({own[0].kname}) came at {at:.2f} s, and it is not on record"


def _writers(story: Story) -> Iterator[str]:
    """Disks that were written without a load on record."""
    users = {event.disk for event in story.of(LoadBegun)} | {event.disk for event in story.of(LedgerBegun)}
    users |= {event.disk for event in story.of(Verified)} | {event.disk for event in story.of(Acted)}
    users |= {disk for event in story.of(ArrayActed) for disk in event.disks}
    users |= {disk for event in story.of(FioRan) for disk in event.disks}
    scratch = [str(disk.get("name")) for disk in story.rig.get("disk", ()) if disk.get("scratch") is True]
    for disk in (disk for disk in scratch if disk not in users):
        yield from _written(disk, story.readings(disk))
    for disk in scratch:
        yield from _written_between(story, disk)


def _written(disk: str, readings: Readings) -> Iterator[str]:
    """A clause if anything was written in these readings."""
    written: dict[tuple[str, int], int] = {}
    for reading in _beyond_the_first(readings):
        before = written.setdefault((reading.kname, reading.diskseq), reading.written)
        if reading.written > before:
            more = reading.written - before
            yield f"{more} bytes were written to {disk} by {reading.at:.2f} s, and nothing on record wrote to it"
            return


def _written_between(story: Story, disk: str) -> Iterator[str]:
    """Writes to a disk when the loads and stamps that wrote to it had ended. A disk that was written in other ways too,
    by a filesystem, an array or a study, is left out."""
    if any((story.of(FioRan), story.of(ArrayActed), story.of(FileRoundBegun))):
        return
    if any(event.disk == disk for event in story.of(Acted)) or any(one.name in OTHERWISE for one in story.of(Phase)):
        return
    until = _written_until(story, disk)
    parts = story.readings(disk).parts
    begun: dict[int, float] = {}  # when each attachment began to be sampled: samples may be missing since then
    for part in parts:
        first = begun.setdefault(id(part.stream), part.at[0])
        again = part.stream is not parts[0].stream
        if again and first > until and part[len(part) - 1].written:
            at, written = part.at[len(part) - 1], part[len(part) - 1].written
            yield f"{written} bytes were written to {disk} by {at:.2f} s, after its return, and nothing wrote to it"
            return
    if any(end.at == until for end in (*story.of(LoadEnded), *story.of(LedgerEnded))):
        yield from _written(disk, story.readings(disk).between(until + WRITTEN_LATE, float("inf")))


def _written_until(story: Story, disk: str) -> float:
    """When the last writer of a disk ended, DUT seconds: infinity if that is not on record or its writes may be
    buffered, minus infinity if nothing but the filling before a load wrote to it."""
    loads = [load for load in story.of(LoadBegun) if load.disk == disk]
    writers = [event for event in story.of(LedgerBegun) if event.disk == disk]
    over = [event for event in story.of(LedgerEnded) if event.disk == disk]
    ends = [story.load_end(load) for load in loads]
    times = [None if end is None else end.at for end in (*ends, *over)]
    known = [at for at in times if at is not None]
    buffered = any(load.argv and "--direct=1" not in load.argv for load in loads)
    if buffered or len(over) != len(writers) or len(known) != len(times):
        return float("inf")
    filled = [phase.at for phase in story.of(Phase) if phase.name in FILLING and phase.at is not None]
    return max([*known, *filled], default=float("-inf"))


def _beyond_the_first(readings: Readings) -> Iterator[Reading]:
    """The readings, of a part in which nothing was written the first one only."""
    for part in readings.parts:
        yield from (part[place] for place in range(1 if part.stream.columns[1].constant else len(part)))
