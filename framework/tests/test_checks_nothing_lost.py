"""The check ``nothing_lost``: what it makes of sessions on record, whole and broken."""

from __future__ import annotations

import base64

import pytest
from ledgers import DEVICE, RUN, Book, found_bytes, ledger_bytes, stamped, zeros
from stories import CUT, RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import Judgement, decode_check, encode_check, nothing_lost
from plugpull.history import events as ev
from plugpull.integrity.readback import Kind, Run

EXTENTS = ((0, 8),)


def on_record(
    bench: Bench, book: Book, *runs: Run, disk: str = VICTIM, fill: bool = False, chunk: int = 40, error: str = ""
) -> None:
    """Put a session and its read-back into the story: begun before the cut, read back after it."""
    session = book.session
    job, begin = f"stamp{session}-{disk}", 11.0 + session
    ledger, back = ledger_bytes(book.made), found_bytes(runs)
    bench.add(
        ev.LedgerBegun(
            at=begin,
            disk=disk,
            job=job,
            run=RUN,
            device=DEVICE,
            session=session,
            extents=EXTENTS,
            block=1,
            depth=4,
            order="random",
            fill=fill,
            bound=1000,
        )
    )
    for at in range(0, len(ledger), chunk):
        data = base64.b64encode(ledger[at : at + chunk]).decode()
        bench.add(ev.LedgerPart(at=begin + 0.1, disk=disk, job=job, offset=at, data=data))
    bench.add(ev.LedgerEnded(at=CUT + 1, disk=disk, job=job, asked=False, received=len(ledger), status=1))
    reading = f"readback{session}-{disk}"
    bench.add(ev.ReadBackBegun(at=RESTORED + 3, disk=disk, job=reading, session=session, extents=EXTENTS, error=error))
    if not error:
        text = base64.b64encode(back).decode()
        bench.add(ev.ReadBackPart(at=RESTORED + 3.1, disk=disk, job=reading, offset=0, data=text))
        bench.add(ev.ReadBackEnded(at=RESTORED + 3.2, disk=disk, job=reading, received=len(back), status=0))


def session(number: int = 1) -> tuple[Book, list[Run]]:
    """Everything written, flushed, and there."""
    book = Book(session=number)
    for sector in range(8):
        book.write(sector)
    book.flush()
    return book, [stamped(write) for write in book.made.writes]


def whole(bench: Bench, *, error: str = "") -> None:
    book, runs = session()
    on_record(bench, book, *runs, error=error)


def judged(bench: Bench) -> Judgement:
    return bench.judge(nothing_lost())


def test_what_was_promised_is_there() -> None:
    bench = healthy()
    whole(bench)
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "nothing lost (8 sectors)"
    integrity = judgement.integrity
    assert integrity is not None
    assert (integrity.sectors_checked, integrity.cuts, integrity.cuts_lost, integrity.loss_bound) == (8, 1, 0, 0.95)


def test_what_was_promised_and_is_gone_is_a_finding_with_its_place() -> None:
    bench = healthy()
    book, runs = session()
    newer = book.write(5)
    book.flush()
    on_record(bench, book, *runs)
    (finding,) = judged(bench).findings
    assert (finding.check, finding.subject) == ("nothing_lost", VICTIM)
    assert "1 durable lost" in finding.summary
    assert "at sector 5: expected write 9, completed at" in finding.summary
    integrity = judged(bench).integrity
    assert integrity is not None
    assert (integrity.durable_lost, integrity.cuts_lost) == (1, 1)
    (disk,) = integrity.disks
    assert disk.first is not None
    assert disk.first.expected_hex.startswith(b"plugpull".hex())
    assert int.from_bytes(bytes.fromhex(disk.first.expected_hex)[32:40], "little") == newer.number


def test_what_was_not_flushed_may_be_gone_and_is_counted() -> None:
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs)
    judgement = judged(bench)
    assert judgement.findings == ()
    assert judgement.worst == (
        "nothing lost (8 sectors; 1 unflushed sectors are gone, which is legal, 1 of them though the disk had kept its "
        "power)"
    )
    bench.replace(ev.CutArmed, mechanism="mains")
    assert "kept its power" not in judged(bench).worst


def test_the_next_round_goes_on_from_what_the_last_one_found() -> None:
    bench = healthy()
    book, runs = session(1)
    on_record(bench, book, *runs)
    second = Book(session=2)
    second.write(0)
    on_record(bench, second, *[Run(Kind.STAMPED, 0, 1, second.made.writes[0].number), *runs[1:]])
    assert judged(bench).findings == ()
    bench = healthy()
    on_record(bench, book, *runs)
    on_record(bench, second, Run(Kind.STAMPED, 0, 1, second.made.writes[0].number), zeros(1), *runs[2:])
    (finding,) = judged(bench).findings
    assert "zeroed at sector 1: expected what was there before: write 2" in finding.summary
    integrity = judged(bench).integrity
    assert integrity is not None
    assert (integrity.disks[0].rounds, integrity.disks[0].rounds_lost) == (2, 1)


def test_a_reset_before_the_loss_is_named() -> None:
    bench = healthy()
    book, runs = session()
    book.write(5)
    book.flush()
    on_record(bench, book, *runs)
    usb = next(event.sysfs for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk == VICTIM)
    port = usb.split("/usb")[1].split("/")[2] if "/usb" in usb else "1-1.1"
    bench.add(ev.KernelMessage(at=13.0, text=f"usb {port}: reset SuperSpeed USB device number 2 using xhci_hcd"))
    (finding,) = judged(bench).findings
    assert any("perhaps lost in a reset" in line for line in finding.evidence)


# --- evidence that is missing ----------------------------------------------------------------------------------------


def test_a_disk_that_was_not_read_back_is_unknown() -> None:
    bench = healthy()
    whole(bench, error="disk1 is not attached")
    judgement = judged(bench)
    assert judgement.findings == ()
    assert "could not be compared: disk1 is not attached" in judgement.unknowns[0]


def test_nothing_stamped_is_unknown() -> None:
    assert judged(healthy()).unknowns == ("nothing was stamped",)
    bench = healthy()
    whole(bench)
    assert bench.judge(nothing_lost(SURVIVORS)).unknowns == tuple(f"{disk} was not stamped" for disk in SURVIVORS)


@pytest.mark.parametrize("lost", [0, 1, 5, -1])
def test_a_ledger_that_lost_a_piece_is_unknown(lost: int) -> None:
    bench = healthy()
    whole(bench)
    parts = [event for event in bench.events if isinstance(event, ev.LedgerPart)]
    bench.events.remove(parts[lost])
    judgement = judged(bench)
    assert judgement.findings == ()
    assert judgement.unknowns


def test_a_read_back_that_ended_early_is_unknown() -> None:
    bench = healthy()
    book, runs = session()
    on_record(bench, book, *runs[:4])
    judgement = judged(bench)
    assert judgement.findings == ()
    assert any("4 sectors were not read back" in sentence for sentence in judgement.unknowns)


def test_a_loss_is_a_finding_even_if_the_end_of_the_ledger_is_missing() -> None:
    bench = healthy()
    book, runs = session()
    on_record(bench, book, zeros(0), *runs[1:])
    last = [event for event in bench.events if isinstance(event, ev.LedgerPart)][-1]
    bench.events.remove(last)
    (finding,) = judged(bench).findings
    assert "zeroed at sector 0" in finding.summary


def test_what_can_be_missing_of_a_ledger_that_was_cut_off_is_said() -> None:
    bench = healthy()
    book, runs = session()
    on_record(bench, book, *runs, chunk=32)  # the last piece is the record of the end, and nothing else
    assert judged(bench).unknowns == ()
    bench.drop(ev.LedgerEnded)
    bench.events.remove([event for event in bench.events if isinstance(event, ev.LedgerPart)][-1])
    assert f"{VICTIM}: ledger: at most 1000 bytes of it are missing at its end" in judged(bench).unknowns


def test_it_can_be_judged_again() -> None:
    for check in (nothing_lost(), nothing_lost("disk1")):
        assert decode_check(encode_check(check)) == check
