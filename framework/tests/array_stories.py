"""Makes up stories of a mirror that loses a member and gets it back, for the tests of the checks of arrays."""

from __future__ import annotations

import base64
from collections.abc import Collection

from ledgers import DEVICE, RUN, Book, found_bytes, ledger_bytes, stamped
from stories import BACK, GONE, SURVIVORS, VICTIM, Bench

from plugpull.history import events as ev
from plugpull.integrity.oracle.readback import ContentKind, SectorRun

ARRAY, OFFSET = "array1", 2048
MEMBERS = (VICTIM, SURVIVORS[0])
SESSION = ((0, 8),)
NOTICED, READDED, SYNCED, CHECKED, STOPPED = GONE + 0.3, BACK + 0.5, BACK + 2.0, BACK + 3.5, 25.0
SYNC = {VICTIM: "in_sync", SURVIVORS[0]: "in_sync"}


def state(at: float, action: str = "idle", degraded: int = 0, word: str = "active", **members: str) -> ev.ArrayState:
    values = {"array_state": word, "degraded": str(degraded), "sync_action": action, "mismatch_cnt": "0"}
    values["resync_start"] = "none"
    said = {
        disk: ("none" if "faulty" in says else str(slot), says)
        for slot, (disk, says) in enumerate((SYNC | members).items())
    }
    return ev.ArrayState(at=at, array=ARRAY, kname="md127", values=values, members=said)


def act(at: float, action: ev.ArrayAction, *disks: str, ok: bool = True, detail: str = "") -> ev.ArrayActed:
    return ev.ArrayActed(at=at, array=ARRAY, action=action, disks=disks, ok=ok, seconds=0.1, detail=detail)


def mirror(bench: Bench, level: str = "raid1", members: tuple[str, ...] = MEMBERS) -> None:
    """A mirror that loses a member, gets it back and is checked and stopped."""
    offsets = dict.fromkeys(members, OFFSET)
    size = 8 << 20
    bench.add(
        ev.ArrayMade(
            at=9.0, array=ARRAY, kname="md127", uuid="u", level=level, members=members, spare=1, size=size,
            component=size, chunk=0 if level == "raid1" else 65536, layout=2, offsets=offsets, bitmap=65536,
        ),
        state(9.1),
        state(NOTICED, degraded=1, disk1="faulty"),
        act(READDED, "readd", VICTIM),
        state(READDED, "recover", degraded=1, disk1="spare"),
        state(SYNCED),
        act(CHECKED, "check"),
        state(CHECKED, "check"),
        state(CHECKED + 0.5),
        act(STOPPED, "stop"),
        ev.ArrayState(at=STOPPED, array=ARRAY, kname="md127", values={}, members={}),
    )  # fmt: skip


def stamps(
    bench: Bench,
    *,
    unflushed: bool = False,
    pending: bool = False,
    spoiled: Collection[int] = (),
    **legs: list[SectorRun],
) -> Book:
    """Stamps on the array, read back from it and from its members; ``legs`` are members that hold something else.
    ``unflushed``: one more write was completed, and is nowhere. ``pending``: one more write never ended. In the sectors
    ``spoiled`` the array reads zeros."""
    book = Book()
    for sector in range(8):
        book.write(sector)
    book.flush()
    runs = [stamped(write) for write in book.made.writes]
    if unflushed:
        book.write(0)
    if pending:
        book.issue(0)
    runs = [SectorRun(ContentKind.ZEROED, run.first, 1) if run.first in spoiled else run for run in runs]
    job, ledger = f"stamp1-{ARRAY}", ledger_bytes(book.made)
    back = found_bytes(runs)
    bench.add(
        ev.LedgerBegun(
            at=12.0, disk=ARRAY, job=job, run=RUN, device=DEVICE, session=1, extents=SESSION, block=1, depth=4,
            order="random", fill=True, bound=1000,
        ),
        ev.LedgerPart(at=12.1, disk=ARRAY, job=job, offset=0, data=base64.b64encode(ledger).decode()),
        ev.LedgerEnded(at=23.0, disk=ARRAY, job=job, asked=True, received=len(ledger), status=0),
        ev.ReadBackBegun(at=23.5, disk=ARRAY, job=f"readback2-{ARRAY}", session=1, extents=SESSION),
        ev.ReadBackPart(at=23.6, disk=ARRAY, job=f"readback2-{ARRAY}", offset=0, data=base64.b64encode(back).decode()),
        ev.ReadBackEnded(at=23.7, disk=ARRAY, job=f"readback2-{ARRAY}", received=len(back), status=0),
    )  # fmt: skip
    for disk in MEMBERS:
        leg(bench, disk, legs.get(disk, [on_leg(run) for run in runs]))
    return book


def on_leg(run: SectorRun) -> SectorRun:
    """A stamp of the array as the reader sees it on a member: it belongs elsewhere."""
    kind, at = ContentKind.ELSEWHERE, run.first + OFFSET
    return SectorRun(kind, at, run.sectors, run.number, run=RUN, device=DEVICE, origin=run.first)


def leg(bench: Bench, disk: str, runs: list[SectorRun], session: int = 1) -> None:
    job, data = f"leg1-{disk}", found_bytes(runs)
    begun = ev.LegReadBegun(
        at=25.1, array=ARRAY, disk=disk, job=job, session=session, run=RUN, device=DEVICE, offset=OFFSET,
        extents=((OFFSET, 8),),
    )  # fmt: skip
    # The reader begins with what it looks for, as the oracle compares it.
    head = b"\x0f" + bytes(3) + session.to_bytes(4, "little") + RUN.to_bytes(8, "little") + DEVICE.to_bytes(8, "little")
    text = base64.b64encode(head + data).decode()
    bench.add(
        begun,
        ev.LegReadPart(at=25.2, disk=disk, job=job, offset=0, data=text),
        ev.LegReadEnded(at=25.3, disk=disk, job=job, received=len(head + data), status=0),
    )
