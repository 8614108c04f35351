"""Are the reports of the loads believable: one end each, on the right disk, with the bytes that the disk counted?

A load is a witness like the samples and the kernel log. What it says against itself or against the disk's counters
shows that something of the record is wrong: evidence that is missing, which is a doubt and accuses nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plugpull.history.events import LedgerBegun, LoadBegun, LoadEnded
from plugpull.history.readings import Reading
from plugpull.history.story import Story

ENDED = (0, 128)
"""Exit status of a load that ended when it was asked to: the writer's, and fio's (``exit_value = 128`` in its
``sig_int``). 645 of 645 loads on healthy benches had one of them."""
SAID_BY_FIO = "terminating on signal"
"""What fio says when it is asked to end. Any other message is one of an error."""
AROUND = 0.3
"""Seconds before and after a load in which samples still belong to it."""
LITTLE = 4 << 20
"""Bytes below which a load is not compared with its disk's counters."""


def load_doubts(story: Story) -> Iterator[str]:
    """Why the ends of the loads prove nothing, a sentence each."""
    ends = Counter((ended.disk, ended.job) for ended in story.of(LoadEnded))
    yield from (f"the load on {disk} ended {count} times" for (disk, _), count in ends.items() if count > 1)
    for writer in story.of(LedgerBegun):
        yield from _wrong_disk(story, writer)
    for load in story.of(LoadBegun):
        yield from _wrong_disk(story, load)
        ended = story.load_end(load)
        if ended is not None:
            if load.at is not None and ended.at is not None and ended.at < load.at:
                yield f"the load on {load.disk} ended at {ended.at:.2f} s, before it began at {load.at:.2f} s"
            yield from _odd_end(ended)
            yield from _other_bytes(story, load, ended)


def _wrong_disk(story: Story, load: LoadBegun | LedgerBegun) -> Iterator[str]:
    """A load that was begun under a kernel name that was another disk's."""
    if load.kname and load.at is not None:
        owner = story.disk_at(load.kname, load.at)
        if owner is not None and owner != load.disk:
            yield f"the load on {load.disk} was begun on {load.kname}, which was {owner or 'a disk not of the rig'}"


def _odd_end(ended: LoadEnded) -> Iterator[str]:
    """An end without an error that is not that of a load which was asked to end."""
    if not ended.asked or ended.errno or ended.stuck:
        return
    if ended.exit_status is not None and ended.exit_status not in ENDED:
        status = ended.exit_status
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        yield f"the load on {ended.disk} {how}, and reported no error"
    elif ended.message and SAID_BY_FIO not in ended.message:
        yield f"the load on {ended.disk} ended without an error, and reported one: {ended.message}"


def _other_bytes(story: Story, load: LoadBegun, ended: LoadEnded) -> Iterator[str]:
    """Less than half of what the disk counted while the load had it to itself, or twice as much without a cache."""
    stamps = [one.at for one in story.of(LedgerBegun) if (one.disk, one.job) == (load.disk, load.job)]
    begin = stamps[0] if stamps else load.at  # the writer counts from its own beginning
    if (ended.longest is None and not stamps) or begin is None or ended.at is None:
        return  # what an older agent's fio moved was not always recorded
    inside = story.readings(load.disk).between(begin - AROUND, ended.at + AROUND)
    if len(inside) < 2 or (inside[0].kname, inside[0].diskseq) != (inside[-1].kname, inside[-1].diskseq):
        return
    counted = _bytes(inside[-1], load) - _bytes(inside[0], load)
    said = ended.written_bytes if "write" in load.mode else ended.read_bytes
    if counted > LITTLE and said < counted / 2:
        yield f"the load on {load.disk} reported {said} bytes, and its disk counted {counted}"
    elif counted > LITTLE and said > 2 * counted and (stamps or "--direct=1" in load.argv):
        yield f"the load on {load.disk} reported {said} bytes, and its disk counted only {counted}"


def _bytes(reading: Reading, load: LoadBegun) -> int:
    return reading.written if "write" in load.mode else reading.moved - reading.written
