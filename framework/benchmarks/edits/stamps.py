"""Edits of stamped data: sectors that hold what they should not."""

from __future__ import annotations

import base64
from collections.abc import Callable

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.sessions import Session, encode_found, round_of
from benchmarks.edits.tape import Tape
from plugpull.integrity.oracle.decode import decode_found
from plugpull.integrity.oracle.ledger import Write
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.integrity.oracle.stamp import SECTOR

POWER = ("power_fails_between_flushes",)
DATA = ("a_cable_comes_loose_between_flushes",)
FIVE = ("five_power_cuts_in_a_row",)
STAMPED = (*POWER, *DATA, *FIVE)
Damage = Callable[["Session", Write], list[SectorRun]]


# --- damage -----------------------------------------------------------------------------------------------------------


def _lost(session: Session, write: Write) -> list[SectorRun]:
    return [SectorRun(ContentKind.STAMPED, write.sector, write.sectors, session.older(write))]


DAMAGE: dict[str, tuple[str, Damage]] = {
    "lost": ("A flushed write is gone, and the version before it is there.", _lost),
    "zeroed": (
        "A flushed write is gone, and zeros are there.",
        lambda session, write: [SectorRun(ContentKind.ZEROED, write.sector, write.sectors)],
    ),
    "of another disk": (
        "Another disk's data is in place of a flushed write.",
        lambda session, write: [
            SectorRun(
                ContentKind.ELSEWHERE,
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
            SectorRun(
                ContentKind.ELSEWHERE,
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
            SectorRun(
                ContentKind.ELSEWHERE,
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
            SectorRun(ContentKind.DAMAGED, write.sector, 1, raw=b"\xa5" * SECTOR),
            SectorRun(ContentKind.STAMPED, write.sector + 1, write.sectors - 1, write.number),
        ],
    ),
    "unreadable": (
        "A flushed sector cannot be read.",
        lambda session, write: [SectorRun(ContentKind.UNREADABLE, write.sector, write.sectors, errno=5)],
    ),
    "never written": (
        "A stamp of a write that a whole ledger does not have.",
        lambda session, write: [SectorRun(ContentKind.STAMPED, write.sector, write.sectors, write.number + 100000)],
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
        [
            SectorRun(ContentKind.STAMPED, write.sector, half, write.number),
            SectorRun(ContentKind.STAMPED, write.sector + half, half, old),
        ],
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


@edit("stamps", FAIL, POWER, "survivor")
def survivors_writer_met_an_error(tape: Tape) -> Tape:
    """The writer on a disk outside the blast radius had an I/O error."""

    def failed(event: Event) -> Event:
        return event | {"errno": 5, "exit_status": 1, "asked": False, "message": "a write failed: Input/output error"}

    return tape.map(of("load.end", disk=tape.survivor), failed)


@edit("stamps", FAIL, POWER)
def data_of_two_disks_exchanged(tape: Tape) -> Tape:
    """What was read back from one disk is another disk's data, and the other way round."""
    jobs = [round_of(tape, disk, -1)[1] for disk in (tape.victim, tape.survivor)]
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
    return encode_found(
        [
            SectorRun(
                ContentKind.ELSEWHERE,
                run.first,
                run.sectors,
                run.number,
                run=begun["run"],
                device=begun["device"],
                origin=run.first,
            )
            if run.kind is ContentKind.STAMPED
            else run
            for run in runs
        ]
    )
