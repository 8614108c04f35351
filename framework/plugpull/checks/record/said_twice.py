"""Do the events that say the same thing of a scenario agree with each other?

A disk's name is in its announcement and in its properties, the job of a reader in each of its pieces, the filesystem in
each round, and what a load does in its command. Where two of them differ, one of them is wrong, and it is not known
which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plugpull.checks.limits import bench_kind
from plugpull.history.events import (
    Acted,
    AgentLost,
    ArrayActed,
    ArrayMade,
    ArrayState,
    CutArmed,
    CutSwitched,
    DiskProperties,
    DutDied,
    DutReady,
    DutState,
    DutSuspended,
    Edge,
    FileLedgerPart,
    FileRoundBegun,
    FileRoundEnded,
    FileScanBegun,
    FileScanEnded,
    FileScanPart,
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    LegReadBegun,
    LegReadEnded,
    LegReadPart,
    LoadBegun,
    LoadEnded,
    ReadBackBegun,
    ReadBackEnded,
    ReadBackPart,
    ScenarioError,
    StampingOver,
    StampingPlanned,
)
from plugpull.history.story import Story

SKEW = 1.0
"""Seconds by which the skew of several ports may differ from the times of their acknowledgements."""
SECTOR = 512
_READING, _WRITING = ("read", "randread"), ("write", "randwrite")
"""Modes of loads that move data in one direction."""
_JOBS = (
    (LedgerBegun, LedgerPart, LedgerEnded),
    (ReadBackBegun, ReadBackPart, ReadBackEnded),
    (LegReadBegun, LegReadPart, LegReadEnded),
    (FileRoundBegun, FileLedgerPart, FileRoundEnded),
    (FileScanBegun, FileScanPart, FileScanEnded),
    (LoadBegun, LoadEnded),
)
"""Kinds of events with one job, which is about one disk, or two if it copies."""


def said_otherwise(story: Story) -> Iterator[str]:
    """What two events say of one thing and differ in, a clause each."""
    yield from _jobs(story)
    yield from _disks(story)
    yield from _switched(story)
    yield from _sessions(story)
    yield from _stamping(story)
    yield from _writers(story)
    yield from _arrays(story)
    yield from _filesystems(story)
    yield from _loads(story)
    yield from _states(story)
    yield from _reports(story)


def _jobs(story: Story) -> Iterator[str]:
    """Jobs whose events are about more than one disk; a copy is of two."""
    copies = {begun.job for begun in story.of(LoadBegun) if begun.argv[:1] == ("copy",)}
    for kinds in _JOBS:
        disks: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for kind in kinds:
            for event in story.of(kind):
                disks[getattr(event, "job", "")][getattr(event, "disk", "")] = None
        for job, names in disks.items():
            if job and len(names) > (2 if job in copies else 1):
                yield f"the job {job} is of {' and of '.join(name or 'no disk' for name in names)}"


def _disks(story: Story) -> Iterator[str]:
    """Properties that were read of one disk and are on record as another's."""
    stays = {(one.kname, one.diskseq): one for one in story.all_attachments if one.diskseq}
    for read in story.of(DiskProperties):
        stay = stays.get((read.kname, read.diskseq))
        if stay is not None and stay.disk != read.disk:
            yield f"{stay.disk or stay.kname} ({stay.kname}) has its properties on record as {read.disk or 'no disk'}'s"
    blocks = {read.disk: read.values.get("logical_block_size", "") for read in story.of(DiskProperties)}
    for again in story.of(ReadBackBegun):
        if not again.error and blocks.get(again.disk) not in ("", None, str(again.logical)):
            has = f"and has those of {blocks[again.disk]}"
            yield f"{again.disk} was read back in blocks of {again.logical} bytes, {has}"
            return


def _switched(story: Story) -> Iterator[str]:
    """Ports that were switched at once, and are not those that acknowledged, or not as far apart."""
    groups: defaultdict[int, set[int]] = defaultdict(set)
    for armed in story.of(CutArmed):
        groups[armed.group].add(armed.cut)
    for one in story.of(CutSwitched):
        acks = [edge for edge in story.of(Edge) if edge.cut in one.cuts and edge.state == one.state]
        acks = [edge for edge in acks if edge.phase == "acknowledged"]
        if not acks:
            continue
        switches = {edge.switch for edge in acks}
        if switches != set(one.switches):
            said = ", ".join(one.switches) or "no switch"
            yield f"{said} switched {one.state} at once, and {', '.join(sorted(switches))} acknowledged"
        group = next((cuts for number, cuts in groups.items() if number and set(one.cuts) & cuts), set(one.cuts))
        if group != set(one.cuts) or len(one.cuts) != len(set(one.cuts)):
            armed_as = ", ".join(map(str, sorted(group)))
            yield f"cuts {', '.join(map(str, one.cuts))} were made at once, and {armed_as} were armed so"
        times = [edge.at for edge in acks if edge.at is not None]
        apart, error = max(times, default=0.0) - min(times, default=0.0), max(edge.error for edge in acks)
        if len(times) == len(acks) == one.ports and abs(apart - one.skew) > SKEW + error:
            yield f"ports were switched {one.state} within {one.skew:.2f} s, and acknowledged within {apart:.2f} s"


def _sessions(story: Story) -> Iterator[str]:
    """Stamping that was over after another session than the last one that was written."""
    last: dict[tuple[int, str], int] = {}
    for event in story.among(LedgerBegun, StampingOver):
        if isinstance(event, LedgerBegun):
            last[event.run, event.disk] = max(event.session, last.get((event.run, event.disk), 0))
        elif isinstance(event, StampingOver):
            for disk, session in event.sessions.items():
                written = last.get((event.run, disk))
                if written is not None and written != session:
                    yield f"stamping {disk} was over after session {session}, and session {written} was the last"


def _stamping(story: Story) -> Iterator[str]:
    """Disks that were stamped and are not in the plan, or not among those of which stamping is over."""
    planned: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for plan in story.of(StampingPlanned):
        planned[plan.run, plan.session] |= set(plan.disks)
    written: defaultdict[int, set[str]] = defaultdict(set)
    for begun in story.of(LedgerBegun):
        written[begun.run].add(begun.disk)
        if planned and begun.disk not in planned[begun.run, begun.session]:
            yield f"session {begun.session} on {begun.disk} was written, and was not planned"
            return
    for over in story.of(StampingOver):
        other = set(over.disks) ^ set(over.sessions) or written[over.run] ^ set(over.disks)
        if other:
            yield f"stamping was over at {over.at or 0.0:.2f} s, and {min(other)} is not in all that says so"
            return


def _writers(story: Story) -> Iterator[str]:
    """Writers whose load is on record with another size, depth or end. In 723 scenarios none was."""
    loads = {(load.job, load.disk): load for load in story.of(LoadBegun)}
    for begun in story.of(LedgerBegun):
        load = loads.get((begun.job, begun.disk))
        if load is not None and (load.block, load.depth) != (begun.block * SECTOR, begun.depth):
            wrote = f"{begun.block * SECTOR} bytes, depth {begun.depth}"
            yield f"{begun.disk} was written in blocks of {wrote}, and its load is of {load.block}, {load.depth}"
    ends = {(load.job, load.disk): load for load in story.of(LoadEnded)}
    for over in story.of(LedgerEnded):
        end = ends.get((over.job, over.disk))
        if end is None or end.stuck or over.stuck:
            continue
        if (end.exit_status, end.asked) != (over.status, over.asked):
            yield f"the writer of {over.disk} ended with status {over.status}, and its load with {end.exit_status}"
        elif (over.status == 1) != bool(end.errno):
            yield f"the writer of {over.disk} ended with status {over.status}, and its load with errno {end.errno}"


def _arrays(story: Story) -> Iterator[str]:
    """Arrays whose state is that of another device. One that is assembled again may be another one."""
    made: dict[str, str] = {}
    for event in story.among(ArrayActed, ArrayMade, ArrayState):
        if isinstance(event, ArrayMade):
            made[event.array] = event.kname
        elif isinstance(event, ArrayActed) and event.action in ("assemble", "stop"):
            made.pop(event.array, None)
        elif isinstance(event, ArrayState) and event.kname != made.get(event.array, event.kname):
            yield f"{event.array} was made as {made[event.array]}, and its state is of {event.kname or 'no device'}"
            return


def _filesystems(story: Story) -> Iterator[str]:
    """Rounds of files in another filesystem than the one before, though none was made in between."""
    known: dict[str, str] = {}
    for event in story.among(Acted, FileRoundBegun):
        if isinstance(event, Acted) and event.action == "mkfs":
            known.pop(event.disk, None)
        elif isinstance(event, FileRoundBegun):
            before = known.setdefault(event.disk, event.uuid)
            if before != event.uuid:
                now = f"files were written on {event.disk} in filesystem {event.uuid or '?'}"
                yield f"{now}, and before that in {before}"
                return


def _loads(story: Story) -> Iterator[str]:
    """Loads whose command is another than what is said of them."""
    for load in story.of(LoadBegun):
        options = dict(word.lstrip("-").split("=", 1) for word in load.argv if word.startswith("--") and "=" in word)
        for option, said in (("rw", load.mode), ("bs", str(load.block)), ("iodepth", str(load.depth))):
            given = options.get(option, said)
            if given != said and (option == "rw" or given.isdecimal()):
                yield f"the load on {load.disk} is on record with {option} {said}, and its command has {given}"
        ended = story.load_end(load)
        if ended is not None and ended.disk == load.disk:
            wrong = ended.written_bytes if load.mode in _READING else ended.read_bytes if load.mode in _WRITING else 0
            if wrong:
                did = "wrote" if load.mode in _READING else "read"
                yield f"the load on {load.disk} is on record as {load.mode}, and it {did} {wrong} bytes"
        here = None if load.at is None else story.attachment_at(load.disk, load.at)
        if here is not None and load.kname and here.kname != load.kname:
            yield f"a load was begun on {load.disk} as {load.kname}, and it was {here.kname}"


def _states(story: Story) -> Iterator[str]:
    """Counts since the boot that fell, and lines that only one end of the scenario has. Only of emulated DUTs that did
    not sleep: an interrupt that a driver gets again is counted from 0."""
    states = {state.moment: state for state in story.of(DutState)}
    begin, end = states.get("begin"), states.get("end")
    if begin is None or end is None or begin.boot_id != end.boot_id or story.of(DutSuspended):
        return
    if bench_kind(story) != "virtual":
        return
    for what, one, two in (("interrupts", begin.interrupts, end.interrupts), ("stalls", begin.pressure, end.pressure)):
        fell = [name for name in one if name in two and two[name] < one[name]]
        if fell:
            yield f"the DUT had {one[fell[0]]} {what} of {fell[0]} at the beginning and {two[fell[0]]} at the end"
    lacking = sorted(begin.memory.keys() ^ end.memory.keys())
    if lacking and begin.memory and end.memory:
        yield f"the memory of the DUT has {lacking[0]} at one end of the scenario only"


def _reports(story: Story) -> Iterator[str]:
    readies, last = story.of(DutReady), story.ended.reports if story.ended is not None else None
    before = readies[0].reports if len(readies) == 1 and not story.of(AgentLost) and not story.of(DutDied) else None
    if before is not None and last is None and story.ended is not None and not story.of(ScenarioError):
        yield "the agent numbered its reports, and the number of the last one is not on record"
    if before is not None and last is not None and before > last:
        yield f"the agent had made {before} reports when it was ready, and {last} at the end"
