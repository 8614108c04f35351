"""Are the reports of the loads believable: one end each, on the right disk, with the bytes that the disk counted?

A load is a witness like the samples and the kernel log. What it says against itself or against the disk's counters
shows that something of the record is wrong: evidence that is missing, which is a doubt and accuses nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

from plugpull.history.events import (
    AgentLost,
    ArrayMade,
    ArrayState,
    DiskProperties,
    DutDied,
    FileRoundBegun,
    LedgerBegun,
    LoadBegun,
    LoadEnded,
)
from plugpull.history.readings import Reading
from plugpull.history.story import Story

ENDED = (0, 128, -2)
"""Exit status of a load that ended when it was asked to: the writer's, and fio's (``exit_value = 128`` in its
``sig_int``). 645 of 645 loads on healthy benches had one of them. A fio that is asked before it can catch the signal
ends by it."""
STILL = 3
"""The last samples that show a request in flight: in 147 healthy scenarios no disk had one in all of them."""
SAID_BY_FIO = "terminating on signal"
"""What fio says when it is asked to end. Any other message is one of an error."""
AROUND = 0.3
"""Seconds before and after a load in which samples still belong to it."""
STOOD = 1.0
"""Seconds by which a request of a load with one at a time may be longer than the disk's counters stood still: they are
read every second where nothing happens, and others may read a little meanwhile."""
LITTLE = 1 << 20
"""Bytes by which a load and its disk's counters may differ: requests in flight, and what others read."""
WRITTEN = 0.9
"""Share of the larger count that the smaller one has at least, of writes of a load that was asked to end: in 319 of 319
loads on healthy benches both were the same."""
READ = 0.7
"""The same for reads, which others make as well, such as udev: 0.91 in 189 loads."""
TABLES = 1 / 8
"""Share of its disk that a new filesystem may write beside a load on a file of it: ext4 initialises its inode tables
in the background after the first mount (fs/ext4/super.c, ext4lazyinit), at most a sixteenth of a small disk (an inode
of 256 bytes for each 4 KiB, mke2fs.conf), and there are the journal and the other metadata."""
MUCH = 4 << 20
"""Bytes below which a load whose disk went away is not compared."""
UNASKED = 0.5
"""The same for a load whose disk went away: 0.82 in 28 loads."""


def load_doubts(story: Story) -> Iterator[str]:
    """Why the ends of the loads prove nothing, a sentence each."""
    ends = Counter((ended.disk, ended.job) for ended in story.of(LoadEnded))
    yield from (f"the load on {disk} ended {count} times" for (disk, _), count in ends.items() if count > 1)
    yield from _never_ended(story)
    writers: list[LedgerBegun | FileRoundBegun] = [*story.of(LedgerBegun), *story.of(FileRoundBegun)]
    for writer in writers:
        yield from _wrong_disk(story, writer)
    yield from _other_disks(story)
    for load in story.of(LoadBegun):
        yield from _wrong_disk(story, load)
        ended = story.load_end(load)
        if ended is not None:
            if load.at is not None and ended.at is not None and ended.at < load.at:
                yield f"the load on {load.disk} ended at {ended.at:.2f} s, before it began at {load.at:.2f} s"
            if ended.asked and (ended.asked_at or 0.0) > (ended.at or 0.0) + AROUND:
                yield f"the load on {load.disk} ended at {ended.at or 0.0:.2f} s, before it was asked to"
            yield from _odd_end(ended)
            yield from _by_itself(story, load, ended)
            yield from _too_slow(load, ended)
            yield from _never_stood(story, load, ended)
            yield from _other_bytes(story, load, ended)


def _never_ended(story: Story) -> Iterator[str]:
    """Requests that were in flight when the record ended, long after everybody had finished with the disk. The last
    look at the disks reads each of them, for a second if it is slow: what was in flight when that began counts."""
    times = story.sample_times
    if story.ended is None or bool(story.of(AgentLost)) or bool(story.of(DutDied)) or len(times) < STILL:
        return
    looks = {one.disk: one.at or inf for one in story.of(DiskProperties) if one.moment == "end"}
    for key, stream in story.samples.streams.items():
        disk = story.disk_at(key[0], times[-1])
        if not disk or len(stream) < STILL or story.samples.time(stream.row(len(stream) - 1)) != times[-1]:
            continue
        count = len(stream)
        while count > STILL and (story.samples.time(stream.row(count - 1)) or 0.0) > looks.get(disk, inf):
            count -= 1
        if all(stream.counters(index).in_flight > 0 for index in range(count - STILL, count)):
            yield f"a request to {disk} was still in flight when the record ended"


def _wrong_disk(story: Story, load: LoadBegun | LedgerBegun | FileRoundBegun) -> Iterator[str]:
    """A load that was begun under a kernel name that was another disk's, or that its disk or array did not have."""
    if not load.kname:
        return
    owner = story.disk_at(load.kname, load.at) if load.at is not None else None
    arrays: list[ArrayMade | ArrayState] = [*story.of(ArrayMade), *story.of(ArrayState)]
    names = {one.kname for one in story.attachments(load.disk)}
    names |= {one.kname for one in arrays if one.array == load.disk}
    if owner is not None and owner != load.disk:
        yield f"the load on {load.disk} was begun on {load.kname}, which was {owner or 'a disk not of the rig'}"
    elif names and load.kname not in names:
        yield f"the load on {load.disk} was begun on {load.kname}, which it was never called"


def _other_disks(story: Story) -> Iterator[str]:
    """Rounds of files that are said to rest on other disks than their own, or than all members of their array. 264 of
    264 rested on them."""
    members = {made.array: set(made.members) for made in story.of(ArrayMade)}
    for one in story.of(FileRoundBegun):
        if one.disks and set(one.disks) != members.get(one.disk, {one.disk}):
            yield f"the files on {one.disk} are said to be on {', '.join(one.disks)}"


def _odd_end(ended: LoadEnded) -> Iterator[str]:
    """An end without an error that is not that of a load which was asked to end."""
    if not ended.asked and ended.asked_at is not None:
        yield f"the load on {ended.disk} was asked to end at {ended.asked_at:.2f} s, and is said not to have been"
    if not ended.asked or ended.errno or ended.stuck:
        return
    if ended.exit_status is not None and ended.exit_status not in ENDED:
        status = ended.exit_status
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        yield f"the load on {ended.disk} {how}, and reported no error"
    elif ended.message and SAID_BY_FIO not in ended.message:
        yield f"the load on {ended.disk} ended without an error, and reported one: {ended.message}"


def _by_itself(story: Story, load: LoadBegun, ended: LoadEnded) -> Iterator[str]:
    """A load without an end of its own that ended without having been asked to, and without an error of a cut."""
    if ended.asked or ended.errno or ended.stuck or ended.exit_status != 0 or not endless(load):
        return
    begin, end = load.at, ended.at
    offs = [cut.off.commanded_at for cut in story.cut_records if load.disk in cut.armed.victims]
    if begin is None or end is None or any(at is None or begin - AROUND <= at <= end + AROUND for at in offs):
        return
    yield f"the load on {load.disk} ended by itself at {end:.2f} s, before it was asked to"


def endless(load: LoadBegun) -> bool:
    """Whether the load runs until it is asked to end. fio's arguments say so; plugpull's own loads always do."""
    return not load.argv or any(argument.startswith(("--time_based", "--loops")) for argument in load.argv)


def _too_slow(load: LoadBegun, ended: LoadEnded) -> Iterator[str]:
    """A request that took longer than the whole load did."""
    lasted, took = (ended.at or 0.0) - (load.at or 0.0), ended.longest
    if load.at is not None and ended.at is not None and took is not None and took > lasted + AROUND > AROUND:
        yield f"a request of the load on {load.disk} took {took:.2f} s, and the load {lasted:.2f} s"


def _never_stood(story: Story, load: LoadBegun, ended: LoadEnded) -> Iterator[str]:
    """A load of one direct request at a time of which one took seconds, while its disk went on completing some."""
    others = [one for one in story.of(LoadBegun) if one.disk == load.disk and one is not load]
    if load.depth != 1 or "--direct=1" not in load.argv or others or not ended.longest or load.at is None:
        return
    inside = story.readings(load.disk).between(load.at, ended.at or 0.0)
    if not inside or (inside[0].kname, inside[0].diskseq) != (inside[-1].kname, inside[-1].diskseq):
        return
    last, stood, moved = load.at, 0.0, inside[0].moved
    for reading in inside:
        if reading.moved != moved:
            stood, last, moved = max(stood, reading.at - last), reading.at, reading.moved
    stood = max(stood, (ended.at or 0.0) - last)
    if ended.longest > stood + STOOD:
        what = f"a request of the load on {load.disk}, which has one at a time, took {ended.longest:.2f} s"
        yield f"{what}, and its disk stood still for {stood:.2f} s at most"


def _other_bytes(story: Story, load: LoadBegun, ended: LoadEnded) -> Iterator[str]:
    """Other bytes than the disk counted while the load had it to itself. More may have gone to a cache."""
    stamps = [one.at for one in story.of(LedgerBegun) if (one.disk, one.job) == (load.disk, load.job)]
    begin = stamps[0] if stamps else load.at  # the writer counts from its own beginning
    if begin is None or ended.at is None:
        return
    inside = story.readings(load.disk).between(begin - AROUND, ended.at + AROUND)
    if len(inside) < 2 or (inside[0].kname, inside[0].diskseq) != (inside[-1].kname, inside[-1].diskseq):
        return
    counted = _bytes(inside[-1], load) - _bytes(inside[0], load)
    said = ended.written_bytes if "write" in load.mode else ended.read_bytes
    if not said and ended.longest is None and not stamps:
        return  # what an older agent's fio moved was not always recorded
    share = UNASKED if not ended.asked else WRITTEN if "write" in load.mode else READ
    if not ended.asked and counted <= MUCH:
        return  # its disk may have gone before the last samples, or lost its counters as it went
    if counted - said > LITTLE + _of_the_filesystem(story, load) and said < counted * share:
        yield f"the load on {load.disk} reported {said} bytes, and its disk counted {counted}"
    elif said - counted > LITTLE and counted < said * share and (stamps or "--direct=1" in load.argv):
        yield f"the load on {load.disk} reported {said} bytes, and its disk counted only {counted}"


def _of_the_filesystem(story: Story, load: LoadBegun) -> float:
    """Bytes that the filesystem may have written for itself, if the load writes to a file."""
    on_a_file = bool(load.argv) and "--allow_file_create=0" not in load.argv
    return max((one.size for one in story.attachments(load.disk)), default=0) * TABLES if on_a_file else 0.0


def _bytes(reading: Reading, load: LoadBegun) -> int:
    return reading.written if "write" in load.mode else reading.moved - reading.written
