"""Are the lines of the record in the order in which they were written, and does each step come before what it led to?

Most lines are stamped when they are written. Those with a time long before that of earlier lines are of another moment
than they say, or the earlier ones are. Steps come in turn, too: what was planned is begun, arrives in pieces and ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from plugpull.checks.limits import bench_kind
from plugpull.history.events import (
    Acted,
    Activity,
    AgentLost,
    ArrayActed,
    ArrayMade,
    ArrayState,
    Census,
    CountedOutside,
    CutArmed,
    CutSwitched,
    DiskDetached,
    DiskProperties,
    DutDied,
    DutState,
    Edge,
    Event,
    FaultInjected,
    FileLedgerPart,
    FileRoundBegun,
    FileRoundEnded,
    FileRoundPlanned,
    FileScanBegun,
    FileScanEnded,
    FileScanPart,
    FilesOver,
    FilesystemChecked,
    FioRan,
    GracePeriod,
    LedgerBegun,
    LedgerEnded,
    LedgerPart,
    LegReadBegun,
    LegReadEnded,
    LegReadPart,
    LoadBegun,
    LoadEnded,
    LoadSettled,
    Measured,
    Phase,
    ReadBackBegun,
    ReadBackEnded,
    ReadBackPart,
    Residue,
    RunResumed,
    StampingOver,
    StampingPlanned,
    StepBegun,
    TaskBlocked,
    TimersSet,
    Uevent,
)
from plugpull.history.story import Story
from plugpull.history.suspensions import asleep_within

FILED = 3.0
"""Seconds by which a line that is stamped when it is written may be earlier than one before it: 1.1 s at most in 1,256
recorded scenarios, in which the DUT was starved at times. What was stamped before a sleep may be written after it."""
OVER_A_NETWORK = 20.0
"""The same on other benches: what an agent says over a network may arrive late."""
AT_ONCE = (
    *(Acted, StepBegun, Activity, ArrayActed, ArrayMade, ArrayState, CountedOutside, CutArmed, CutSwitched),
    *(DiskDetached, DutState, Edge, FaultInjected, FileRoundPlanned, FileRoundBegun, FileLedgerPart, FileScanBegun),
    *(FileScanPart, FileScanEnded, FilesOver, FilesystemChecked, FioRan, GracePeriod, LedgerBegun, LedgerPart),
    *(LegReadBegun, LegReadPart, LoadBegun, LoadSettled, Measured, Phase, ReadBackBegun, ReadBackPart, Residue),
    *(StampingPlanned, StampingOver, TaskBlocked, TimersSet, Uevent),
)
"""Events that are stamped when they are written."""
SLOWLY = (Census, DiskProperties, FileRoundEnded, LedgerEnded, LegReadEnded, LoadEnded, ReadBackEnded)
"""Events that are stamped when something began that takes its time."""
STEPS = (
    *(ArrayActed, ArrayMade, CutArmed, Edge, FaultInjected, FileLedgerPart, FileRoundBegun, FileRoundPlanned),
    *(FileScanBegun, FilesOver, FilesystemChecked, LedgerBegun, LoadBegun, LoadSettled, Measured),
    *(ReadBackBegun, StampingOver, StampingPlanned),
)
"""Steps of a scenario: after the first look at the DUT, before the last one."""
Place = tuple[tuple[Hashable, ...], int, str]
"""Of which row an event is, its rank in it, and its name there."""


def lines_out_of_order(story: Story) -> Iterator[str]:
    """Why the lines cannot have been written in this order, a clause each."""
    if len(story.readies) != 1 or any(story.of(kind) for kind in (AgentLost, DutDied, RunResumed)):
        return
    yield from _filed_late(story)
    yield from _out_of_turn(story)


def _filed_late(story: Story) -> Iterator[str]:
    """The first line that is stamped long before one that was written before it."""
    latest: Event | None = None
    most = FILED if bench_kind(story) in ("virtual", "") else OVER_A_NETWORK
    for event in story.among(*AT_ONCE, *SLOWLY):
        if event.at is None:
            continue
        if latest is None or event.at > (latest.at or 0.0):
            latest = event
        elif isinstance(event, AT_ONCE) and _late(story, event.at, latest.at or 0.0) > most:
            one, two = latest.__struct_config__.tag, event.__struct_config__.tag
            yield f"the {two} of {event.at:.2f} s is on record after the {one} of {latest.at or 0.0:.2f} s"
            return


def _late(story: Story, at: float, latest: float) -> float:
    """Seconds for which a line was kept back while the DUT was awake."""
    return max(0.0, latest - at) - asleep_within(story, at, latest)


def _out_of_turn(story: Story) -> Iterator[str]:
    """The first step that comes before what it follows from. A row that has reached its end may begin again."""
    reached: dict[Hashable, tuple[int, str]] = {}
    for event in story.among(*RANKED):
        for row, rank, name in places(event):
            top, what = reached.get(row, (-1, ""))
            if rank < top and not (rank == 0 and top >= ENDS[str(row[0])]):
                yield f"{name} comes after {what}, at {event.at or 0.0:.2f} s"
                return
            reached[row] = (rank, name)


ENDS = {"job": 2, "session": 3, "round": 2, "over": 1, "fault": 9, "cut": 9, "port": 1, "switched": 9, "scenario": 9}
"""The ranks that end a row of a kind. Rows with 9 begin only once."""


def places(event: Event) -> Iterator[Place]:
    """The rows in which an event has a place."""
    if (part := _PARTS.get(type(event))) is not None:
        job = event.job  # type: ignore[attr-defined]
        yield ("job", part.what, job), part.rank, f"the {_WORDS[part.rank]} of {part.what} {job}"
    if (stage := _stage(event)) is not None:
        yield ("scenario",), *stage
    yield from _of_cuts(event)
    yield from _of_stamps(event)
    yield from _of_files(event)


class _Part(NamedTuple):
    rank: int
    what: str


_PARTS: dict[type[Event], _Part] = {
    LedgerBegun: _Part(0, "ledger"),
    LedgerPart: _Part(0, "ledger"),
    LedgerEnded: _Part(2, "ledger"),
    ReadBackBegun: _Part(0, "reading back"),
    ReadBackPart: _Part(0, "reading back"),
    ReadBackEnded: _Part(2, "reading back"),
    FileRoundBegun: _Part(0, "writing files"),
    FileLedgerPart: _Part(0, "writing files"),
    FileRoundEnded: _Part(2, "writing files"),
    FileScanBegun: _Part(0, "scan"),
    FileScanPart: _Part(0, "scan"),
    FileScanEnded: _Part(2, "scan"),
    LegReadBegun: _Part(0, "reading a member"),
    LegReadPart: _Part(0, "reading a member"),
    LegReadEnded: _Part(2, "reading a member"),
    LoadBegun: _Part(0, "load"),
    LoadEnded: _Part(2, "load"),
}
RANKED: tuple[type[Event], ...] = (
    *(*_PARTS, *(kind for kind in STEPS if kind not in _PARTS)),
    *(Census, CutSwitched, DiskProperties, DutState, GracePeriod, Residue),
)
"""Kinds of events that have a place in some row."""
_WORDS = ("beginning", "result", "end")
"""By rank. The first pieces may arrive before the beginning is written, so they have its rank."""


def _stage(event: Event) -> tuple[int, str] | None:
    """The stage of a scenario that an event belongs to, if it can be in no other."""
    if isinstance(event, Census | DutState | DiskProperties) and event.moment in ("begin", "end"):
        return (0, "the first look at the DUT") if event.moment == "begin" else (4, "the last look at the DUT")
    if isinstance(event, STEPS):
        return 1, f"a {event.__struct_config__.tag}"
    if isinstance(event, Residue):
        return 2, "the look for what is left over"
    return (3, "the grace period") if isinstance(event, GracePeriod) else None


def _of_cuts(event: Event) -> Iterator[Place]:
    if isinstance(event, FaultInjected):
        yield ("fault", event.number), 0, f"fault {event.number}"
    elif isinstance(event, CutArmed):
        yield ("cut", event.cut), 0, f"the arming of cut {event.cut}"
        if event.fault:
            yield ("fault", event.fault), 1, f"the arming of cut {event.cut}"
    elif isinstance(event, Edge):
        name = f"that {event.switch} port {event.port} {_PHASES.get(event.phase, '?')} {event.state}"
        yield ("cut", event.cut), 1, name
        yield ("port", event.cut, event.switch, event.port, event.state), _RANKS.get(event.phase, 0), name
        if event.phase == "acknowledged":
            yield ("switched", event.cut, event.state), 0, name
    elif isinstance(event, CutSwitched):
        for cut in event.cuts:
            yield ("switched", cut, event.state), 1, f"how far apart ports were switched {event.state}"


_RANKS = {"commanded": 0, "acknowledged": 1, "read-back": 2}
_PHASES = {"commanded": "was commanded", "acknowledged": "acknowledged", "read-back": "was read back as"}


def _of_stamps(event: Event) -> Iterator[Place]:
    if isinstance(event, StampingPlanned):
        for disk in event.disks:
            yield ("session", disk, event.session), 0, f"the plan of session {event.session} on {disk}"
    elif isinstance(event, LedgerBegun):
        yield ("session", event.disk, event.session), 1, f"the writing of session {event.session} on {event.disk}"
    elif isinstance(event, ReadBackBegun):
        yield ("session", event.disk, event.session), 2, f"the reading of session {event.session} on {event.disk}"
    elif isinstance(event, StampingOver):
        for disk, last in event.sessions.items():
            yield from ((("session", disk, n), 3, "the end of stamping") for n in range(1, last + 1))


def _of_files(event: Event) -> Iterator[Place]:
    if isinstance(event, FileRoundPlanned | FileRoundBegun | FileScanBegun):
        rank = 0 if isinstance(event, FileRoundPlanned) else 1 if isinstance(event, FileRoundBegun) else 2
        what = ("the plan", "the writing", "the scan")[rank]
        yield ("round", event.disk, event.round), rank, f"{what} of round {event.round} on {event.disk}"
        yield ("over", event.disk), 0, f"{what} of round {event.round} on {event.disk}"
    elif isinstance(event, FilesOver):
        yield ("over", event.disk), 1, f"the end of writing files on {event.disk}"
