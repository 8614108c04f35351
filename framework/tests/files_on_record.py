"""Puts rounds of written files into made-up stories: ledger, mounts, scan and check, as ``rig.files`` records them."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from file_books import RUN, FileBook, file, synced
from stories import CUT, RESTORED, VICTIM, Bench, healthy

from plugpull.checks import Judgement, files_kept
from plugpull.history import events as ev
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, encode_found_tree
from plugpull.integrity.oracle.files.ledger import decode_file_ledger

BEGUN = 12.5
SCANNED = RESTORED + 3.0
CACHE = "[sdb] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA"
"""What the kernel says of the victim's disk when it attaches it."""
UUID = "6b0f5c1e-0000-4000-8000-000000000001"


def lines_of(book: FileBook, start: float = BEGUN + 0.5) -> bytes:
    """The lines of a ledger whose first call came at ``start``."""
    made = b""
    for line in book.lines():
        data = msgspec.json.decode(line)
        made += msgspec.json.encode(
            {name: value + start if name in ("submitted", "at") else value for name, value in data.items()}
        )
        made += b"\n"
    assert decode_file_ledger(made).problems == []
    return made


def pieces(data: bytes, chunk: int) -> list[tuple[int, str]]:
    return [(at, base64.b64encode(data[at : at + chunk]).decode()) for at in range(0, len(data), chunk)]


def on_record(
    bench: Bench,
    book: FileBook,
    *entries: FoundEntry,
    fstype: str = "ext4",
    number: int = 1,
    mount_errno: int | None = 0,
    lost: bool = False,
    later: float = 0.0,
    found: FoundTree | None = None,
    **check: Any,
) -> None:
    """A round that was cut, recovered, scanned and checked. ``check`` are fields of what the checker said."""
    write(bench, book, fstype, number, later)
    if mount_errno == 0 and not lost:
        scan(bench, found or FoundTree(entries=entries, removal_tried=True), number, later)
        known: dict[str, Any] = {
            "command": "e2fsck -f -n",
            "status": 0,
            "seconds": 0.2,
            "output": "clean, 11/16384 files",
        }
        bench.add(ev.FilesystemChecked(at=SCANNED + 0.6 + later, disk=VICTIM, fstype=fstype, **(known | check)))
        remove(bench, found or FoundTree(entries=entries, removal_tried=True), number, later)
        return
    scanned, why = SCANNED + later, "no filesystem" if lost else "it could not be mounted"
    if mount_errno:
        bench.add(ev.Acted(at=scanned - 0.2, action="mount", disk=VICTIM, ok=False, seconds=0.3))
    begun = ev.FileScanBegun(at=scanned, disk=VICTIM, job="", round=number, directory=f"round{number}")
    bench.add(msgspec.structs.replace(begun, mount_errno=mount_errno, error=why, lost=lost))


def write(bench: Bench, book: FileBook, fstype: str, number: int, later: float) -> None:
    """A writer, up to its end and the unmounting."""
    begun, ledger = BEGUN + later, lines_of(book, BEGUN + 0.5 + later)
    status = int(any(operation.errno for operation in decode_file_ledger(ledger).operations))
    common: dict[str, Any] = {"disk": VICTIM, "job": f"files{number}-{VICTIM}"}
    what: dict[str, Any] = {"run": RUN, "round": number, "directory": f"round{number}", "fstype": fstype, "uuid": UUID}
    bench.add(
        ev.FileRoundPlanned(at=begun - 0.1, disk=VICTIM, run=RUN, round=number),
        ev.FileRoundBegun(at=begun, pattern="storm", **common, **what),
        *(ev.FileLedgerPart(at=begun + 0.6, offset=at, data=text, **common) for at, text in pieces(ledger, 300)),
        ev.FileRoundEnded(at=CUT + 0.5 + later, asked=False, received=len(ledger), status=status, **common),
        ev.Acted(at=CUT + 1 + later, action="umount", disk=VICTIM, ok=True, seconds=0.1),
    )


def scan(bench: Bench, found: FoundTree, number: int, later: float) -> None:
    """A mount, a scan and the unmounting."""
    at, data = SCANNED + later, encode_found_tree(found)
    common: dict[str, Any] = {"disk": VICTIM, "job": f"scan{number}-{VICTIM}"}
    bench.add(
        ev.Acted(at=at - 0.2, action="mount", disk=VICTIM, ok=True, seconds=0.3),
        ev.FileScanBegun(at=at, round=number, directory=f"round{number}", **common),
        *(ev.FileScanPart(at=at + 0.1, offset=offset, data=text, **common) for offset, text in pieces(data, 200)),
        ev.FileScanEnded(at=at + 0.2, received=len(data), status=0, **common),
        ev.Acted(at=at + 0.3, action="umount", disk=VICTIM, ok=True, seconds=0.1),
    )


def remove(bench: Bench, found: FoundTree, number: int, later: float) -> None:
    """A mount, the removal of everything and the unmounting."""
    at, data = SCANNED + 1.0 + later, encode_found_tree(found)
    common: dict[str, Any] = {"disk": VICTIM, "job": f"scan{100 + number}-{VICTIM}"}
    bench.add(
        ev.Acted(at=at - 0.2, action="mount", disk=VICTIM, ok=True, seconds=0.1),
        ev.FileScanBegun(at=at, round=number, directory=f"round{number}", removing=True, **common),
        *(ev.FileScanPart(at=at + 0.1, offset=offset, data=text, **common) for offset, text in pieces(data, 200)),
        ev.FileScanEnded(at=at + 0.2, received=len(data), status=0, **common),
        ev.Acted(at=at + 0.3, action="umount", disk=VICTIM, ok=True, seconds=0.1),
    )


def bench_with_files(*, power: bool = True, rounds: int = 1) -> Bench:
    """The healthy bench, whose victim's filesystem is mounted; a cut of its power by default."""
    bench = healthy()
    bench.add(
        ev.KernelMessage(at=10.35, text=f"sd 1:0:0:0: {CACHE}"),
        ev.Acted(at=12.0, action="mkfs", disk=VICTIM, ok=True, seconds=0.5),
        ev.Acted(at=12.3, action="mount", disk=VICTIM, ok=True, seconds=0.1),
        ev.FilesOver(at=24.9, disk=VICTIM, run=RUN, rounds=rounds),
    )
    if power:
        bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    return bench


def whole() -> Bench:
    """One file with data, synced with its name, and there."""
    bench = bench_with_files()
    book, made, wrote = synced(blocks=3)
    on_record(bench, book, file("a", made, wrote, wrote, wrote))
    return bench


def judged(bench: Bench) -> Judgement:
    return bench.judge(files_kept())


def unknown(bench: Bench) -> str:
    """The reasons why it is not known; there is no finding."""
    judgement = judged(bench)
    assert judgement.findings == ()
    assert judgement.unknowns
    return "; ".join(judgement.unknowns)
