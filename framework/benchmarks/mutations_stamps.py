"""Edits of stamped data: ledgers and read-backs that are missing, and sectors that hold what they must not hold."""

from __future__ import annotations

import base64
from collections.abc import Callable

from benchmarks.mutations_edits import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.mutations_tape import Event, Tape, both, either, of
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.ledger import Ledger, Write
from plugpull.integrity.oracle.readback import PLACE, RUN, Kind, Run
from plugpull.integrity.oracle.stamp import SECTOR

POWER = ("power_fails_between_flushes",)
DATA = ("a_cable_comes_loose_between_flushes",)
FIVE = ("five_power_cuts_in_a_row",)
STAMPED = (*POWER, *DATA, *FIVE)
Damage = Callable[["Session", Write], list[Run]]


class Session:
    """One disk's writing session and what was read back after it."""

    def __init__(self, tape: Tape, disk: str, nth: int = -1) -> None:
        self.tape, self.disk, self.nth = tape, disk, nth
        self.begun = tape.all(of("ledger.begin", disk=disk))[nth]
        self.read = tape.all(of("readback.begin", disk=disk, session=self.begun["session"]))[-1]
        self.ledger: Ledger = decode_ledger(_parts(tape, "ledger.part", self.begun["job"]))
        self.found = decode_found(_parts(tape, "readback.part", self.read["job"])).runs

    def durable(self) -> list[Write]:
        """Writes that a flush made durable and that nothing was written over, the newest first."""
        last = max(
            (flush.submitted for flush in self.ledger.flushes if flush.completed is not None and not flush.error),
            default=0,
        )
        kept = [w for w in self.ledger.writes if w.completed is not None and not w.error and w.completed < last]
        return [write for write in reversed(kept) if self._alone(write)]

    def unflushed(self) -> list[Write]:
        """Writes that completed, that no flush followed, and that are there, the newest first."""
        last = max(
            (flush.submitted for flush in self.ledger.flushes if flush.completed is not None and not flush.error),
            default=0,
        )
        kept = [w for w in self.ledger.writes if w.completed is not None and not w.error and w.completed > last]
        return [write for write in reversed(kept) if self._alone(write)]

    def _alone(self, write: Write) -> bool:
        over = [
            w for w in self.ledger.writes if w.issued > write.issued and w.sector < write.end and write.sector < w.end
        ]
        there = any(
            run.kind is Kind.STAMPED
            and run.number == write.number
            and run.first <= write.sector
            and run.end >= write.end
            for run in self.found
        )
        return not over and there

    def older(self, write: Write) -> int:
        """The number of the write that it was written over, in this session or the one before."""
        ours = [
            w for w in self.ledger.writes if w.issued < write.issued and w.sector <= write.sector and w.end >= write.end
        ]
        if ours:
            return ours[-1].number
        before = Session(self.tape, self.disk, self.nth - 1).found
        return next(run.number for run in before if run.first <= write.sector and run.end > write.sector)

    def replace(self, first: int, sectors: int, runs: list[Run]) -> Tape:
        """The read-back found these runs in place of what it found there."""
        kept: list[Run] = []
        for run in self.found:
            for begin, end in ((run.first, min(run.end, first)), (max(run.first, first + sectors), run.end)):
                if begin < end:
                    kept.append(
                        Run(
                            run.kind,
                            begin,
                            end - begin,
                            run.number,
                            run.errno,
                            run.run,
                            run.device,
                            run.origin + begin - run.first,
                            run.raw,
                        )
                    )
        return _with_stream(
            self.tape, "readback", self.read["job"], _encode(sorted([*kept, *runs], key=lambda run: run.first))
        )


def _parts(tape: Tape, kind: str, job: str) -> list[tuple[int, bytes]]:
    return [(part["offset"], base64.b64decode(part["data"])) for part in tape.all(of(kind, job=job))]


def _encode(runs: list[Run]) -> bytes:
    data = b""
    for run in runs:
        data += RUN.pack(run.kind, 0, run.errno, run.sectors, run.first, run.number)
        if run.kind is Kind.ELSEWHERE:
            data += PLACE.pack(run.run, run.device, run.origin)
        elif run.kind is Kind.DAMAGED:
            data += run.raw
    total = sum(run.sectors for run in runs)
    return data + RUN.pack(Kind.READ, 0, 0, 0, total, total)


def _with_stream(tape: Tape, name: str, job: str, data: bytes) -> Tape:
    """The stream of a job, in one piece."""
    parts = tape.all(of(f"{name}.part", job=job))
    first = parts[0] | {"offset": 0, "data": base64.b64encode(data).decode()}
    tape = Tape(
        tuple(
            first if event is parts[0] else event
            for event in tape.events
            if event is parts[0] or not any(event is part for part in parts)
        )
    )
    return tape.change(of(f"{name}.end", job=job), received=len(data))


# --- damage -----------------------------------------------------------------------------------------------------------


def _lost(session: Session, write: Write) -> list[Run]:
    return [Run(Kind.STAMPED, write.sector, write.sectors, session.older(write))]


DAMAGE: dict[str, tuple[str, Damage]] = {
    "lost": ("A flushed write is gone, and the version before it is there.", _lost),
    "zeroed": (
        "A flushed write is gone, and zeros are there.",
        lambda session, write: [Run(Kind.ZEROED, write.sector, write.sectors)],
    ),
    "of another disk": (
        "Another disk's data is in place of a flushed write.",
        lambda session, write: [
            Run(
                Kind.ELSEWHERE,
                write.sector,
                write.sectors,
                write.number,
                run=session.begun["run"],
                device=7,
                origin=write.sector,
            )
        ],
    ),
    "of another run": (
        "Data of an earlier run is in place of a flushed write.",
        lambda session, write: [
            Run(
                Kind.ELSEWHERE,
                write.sector,
                write.sectors,
                write.number,
                run=7,
                device=session.begun["device"],
                origin=write.sector,
            )
        ],
    ),
    "misdirected": (
        "Data that belongs elsewhere on the disk is in place of a flushed write.",
        lambda session, write: [
            Run(
                Kind.ELSEWHERE,
                write.sector,
                write.sectors,
                write.number,
                run=session.begun["run"],
                device=session.begun["device"],
                origin=write.sector + 64,
            )
        ],
    ),
    "corrupt": (
        "Neither a stamp nor a mix of stamps is in place of a flushed sector.",
        lambda session, write: [
            Run(Kind.DAMAGED, write.sector, 1, raw=b"\xa5" * SECTOR),
            Run(Kind.STAMPED, write.sector + 1, write.sectors - 1, write.number),
        ],
    ),
    "unreadable": (
        "A flushed sector cannot be read.",
        lambda session, write: [Run(Kind.UNREADABLE, write.sector, write.sectors, errno=5)],
    ),
    "never written": (
        "A stamp of a write that a whole ledger does not have.",
        lambda session, write: [Run(Kind.STAMPED, write.sector, write.sectors, write.number + 100000)],
    ),
}
for _name, (_why, _damage) in DAMAGE.items():
    for _disk, _on in (("victim", (*POWER, *DATA)), ("survivor", POWER)):

        def _apply(tape: Tape, disk: str = _disk, damage: Damage = _damage) -> Tape:
            session = Session(tape, getattr(tape, disk))
            write = session.durable()[0]
            return session.replace(write.sector, write.sectors, damage(session, write))

        add("stamps", f"{_disk}'s flushed write {_name}", FAIL, _why, _apply, _on, _disk)


@edit("stamps", FAIL, FIVE, "victim")
def lost_in_the_third_of_five_rounds(tape: Tape) -> Tape:
    """A flushed write of the third round is gone."""
    session = Session(tape, tape.victim, 2)
    write = session.durable()[0]
    return session.replace(write.sector, write.sectors, _lost(session, write))


@edit("stamps", PASS, POWER)
def unflushed_write_gone_with_the_power(tape: Tape) -> Tape:
    """What no flush followed may be gone when the power was."""
    session = Session(tape, tape.victim)
    write = session.unflushed()[0]
    return session.replace(write.sector, write.sectors, _lost(session, write))


@edit("stamps", FAIL, DATA, "victim")
def completed_write_gone_though_the_power_stayed(tape: Tape) -> Tape:
    """The kernel had completed it, the disk kept its power and its cache, and it is gone."""
    session = Session(tape, tape.victim)
    write = session.unflushed()[0]
    return session.replace(write.sector, write.sectors, _lost(session, write))


def _torn(tape: Tape) -> Tape:
    session = Session(tape, tape.victim)
    write = session.unflushed()[0]
    old = session.older(write)
    half = write.sectors // 2
    return session.replace(
        write.sector,
        write.sectors,
        [Run(Kind.STAMPED, write.sector, half, write.number), Run(Kind.STAMPED, write.sector + half, half, old)],
    )


def _with_blocks(tape: Tape, size: int) -> Tape:
    rig = dict(tape.rig)
    rig["disk"] = [disk | {"logical_block": size} for disk in rig["disk"]]
    return tape.change(of("run.begin"), rig=rig)


add(
    "stamps",
    "torn between blocks of 512 bytes",
    PASS,
    "A write that no flush followed may be there in part.",
    _torn,
    POWER,
)
add(
    "stamps",
    "torn inside a block of 4096 bytes",
    FAIL,
    "Half of a logical block is new and half old: blocks are written whole.",
    lambda tape: _with_blocks(_torn(tape), 4096).change(of("readback.begin"), logical=4096),
    POWER,
    "victim",
)
add(
    "stamps",
    "torn inside a block that the rig declares",
    (FAIL, UNKNOWN),
    "The rig says 4096 bytes and the read-back 512: torn, or not known whether torn.",
    lambda tape: _with_blocks(_torn(tape), 4096),
    POWER,
)
add(
    "stamps",
    "torn inside a block that the kernel names",
    (FAIL, UNKNOWN),
    "The kernel says 4096-byte logical blocks and the read-back 512: torn, or not known whether torn.",
    lambda tape: _torn(tape).map(
        both(of("kernel"), lambda e: "512-byte logical blocks" in e["text"]),
        lambda e: e | {"text": e["text"].replace("65536 512-byte", "8192 4096-byte")},
    ),
    POWER,
)


# --- missing ----------------------------------------------------------------------------------------------------------


def _round(tape: Tape, disk: str, nth: int) -> list[str]:
    """Jobs of one disk's round: its stamping and its read-back."""
    begun = tape.all(of("ledger.begin", disk=disk))[nth]
    read = tape.all(of("readback.begin", disk=disk, session=begun["session"]))[-1]
    return [begun["job"], read["job"]]


def _without(tape: Tape, kind: str, disk: str, nth: int = -1, piece: int | None = None) -> Tape:
    jobs = _round(tape, disk, nth)
    events = [event for event in tape.all(of(kind)) if event["job"] in jobs]
    lost = events if piece is None else [events[piece]]
    return tape.drop(lambda event: any(event is one for one in lost))


for _disk in ("victim", "survivor"):
    _bases = STAMPED if _disk == "victim" else (*POWER, *FIVE)
    for _kind, _what in (
        ("ledger.begin", "beginning of the ledger"),
        ("ledger.end", "end of the ledger"),
        ("ledger.part", "whole ledger"),
        ("readback.begin", "beginning of the read-back"),
        ("readback.part", "whole read-back"),
        ("readback.end", "end of the read-back"),
    ):
        add(
            "stamps missing",
            f"{_what} of the {_disk}",
            UNKNOWN,
            "Without it, it cannot be said what the disk had promised or holds.",
            lambda tape, k=_kind, d=_disk: _without(tape, k, getattr(tape, d)),
            _bases,
        )
    for _piece, _what in ((0, "first"), (3, "fourth"), (-1, "last")):
        add(
            "stamps missing",
            f"{_what} piece of the {_disk}'s ledger",
            UNKNOWN,
            "A piece of the ledger is missing.",
            lambda tape, p=_piece, d=_disk: _without(tape, "ledger.part", getattr(tape, d), piece=p),
            _bases,
        )
    for _nth, _what in ((0, "first"), (2, "third"), (-1, "last")):

        def _no_round(tape: Tape, disk: str = _disk, nth: int = _nth) -> Tape:
            jobs = _round(tape, getattr(tape, disk), nth)
            return tape.drop(lambda event: event.get("job") in jobs)

        add(
            "stamps missing",
            f"{_what} of five rounds of the {_disk}",
            UNKNOWN,
            "A round that was written and read back is missing.",
            _no_round,
            FIVE,
        )
add(
    "stamps missing",
    "last of five rounds of all disks",
    UNKNOWN,
    "Five cuts were made, and four rounds are on record.",
    lambda tape: _no_rounds(tape, -1),
    FIVE,
)
add(
    "stamps missing",
    "third of five rounds of all disks",
    UNKNOWN,
    "Five cuts were made, and four rounds are on record.",
    lambda tape: _no_rounds(tape, 2),
    FIVE,
)
add(
    "stamps missing",
    "no stamping at all",
    UNKNOWN,
    "Nothing was stamped, and it was asked whether anything was lost.",
    lambda tape: tape.drop(lambda e: e["type"].startswith(("ledger.", "readback."))),
    STAMPED,
)


def _no_rounds(tape: Tape, nth: int) -> Tape:
    jobs = [job for disk in tape.disks for job in _round(tape, disk, nth)]
    return tape.drop(lambda event: event.get("job") in jobs)


@edit("stamps missing", UNKNOWN, STAMPED)
def victim_could_not_be_read_back(tape: Tape) -> Tape:
    """The disk was never read back: the record says why."""
    job = _round(tape, tape.victim, -1)[1]
    tape = tape.drop(either(of("readback.part", job=job), of("readback.end", job=job)))
    return tape.change(of("readback.begin", job=job), error="the agent did not answer")


@edit("stamps missing", UNKNOWN, STAMPED)
def read_back_of_part_of_it(tape: Tape) -> Tape:
    """The read-back ends after half of what was to be read."""
    session = Session(tape, tape.victim)
    half = session.found[: len(session.found) // 2]
    return _with_stream(tape, "readback", session.read["job"], _encode(half))


@edit("stamps missing", UNKNOWN, STAMPED)
def ledger_of_another_session(tape: Tape) -> Tape:
    """The ledger's own first record names another session."""
    return tape.map(of("ledger.begin", disk=tape.victim), lambda event: event | {"session": event["session"] + 50})


@edit("stamps missing", (UNKNOWN, PASS), POWER)
def a_piece_came_twice(tape: Tape) -> Tape:
    """A piece of the ledger came twice, with the same bytes: it can never accuse the disk."""
    part = tape.all(of("ledger.part", disk=tape.victim))[3]
    return tape.double(lambda event: event is part)


@edit("stamps missing", UNKNOWN, POWER)
def a_piece_garbled(tape: Tape) -> Tape:
    """A piece of the ledger is not base64."""
    part = tape.all(of("ledger.part", disk=tape.victim))[3]
    return tape.map(lambda event: event is part, lambda event: event | {"data": "!!!!"})


@edit("stamps", FAIL, POWER, "survivor")
def survivors_writer_met_an_error(tape: Tape) -> Tape:
    """The writer on a disk outside the blast radius had an I/O error."""

    def failed(event: Event) -> Event:
        return event | {"errno": 5, "exit_status": 1, "asked": False, "message": "a write failed: Input/output error"}

    return tape.map(of("load.end", disk=tape.survivor), failed)


@edit("stamps", FAIL, POWER)
def data_of_two_disks_exchanged(tape: Tape) -> Tape:
    """What was read back from one disk is another disk's data, and the other way round."""
    jobs = [_round(tape, disk, -1)[1] for disk in (tape.victim, tape.survivor)]
    other = dict(zip(jobs, reversed(jobs), strict=True))
    streams = {job: tape.first(of("readback.part", job=job))["data"] for job in jobs}
    sizes = {job: tape.first(of("readback.end", job=job))["received"] for job in jobs}
    mixed = {
        job: _as_foreign(tape, streams[other[job]], job, tape.victim if job == jobs[1] else tape.survivor)
        for job in jobs
    }
    tape = tape.map(
        both(of("readback.part"), lambda e: e["job"] in jobs),
        lambda e: e | {"data": base64.b64encode(mixed[e["job"]]).decode()},
    )
    return tape.map(
        both(of("readback.end"), lambda e: e["job"] in jobs),
        lambda e: e | {"received": len(mixed[e["job"]]) or sizes[e["job"]]},
    )


def _as_foreign(tape: Tape, stream: str, job: str, owner: str) -> bytes:
    """What one disk holds, as the reader of another disk would report it."""
    begun = tape.all(of("ledger.begin", disk=owner))[-1]
    runs = decode_found([(0, base64.b64decode(stream))]).runs
    return _encode(
        [
            Run(
                Kind.ELSEWHERE,
                run.first,
                run.sectors,
                run.number,
                run=begun["run"],
                device=begun["device"],
                origin=run.first,
            )
            if run.kind is Kind.STAMPED
            else run
            for run in runs
        ]
    )
