"""The check ``nothing_lost``: what it makes of sessions on record, whole and broken."""

from __future__ import annotations

import base64
from dataclasses import replace
from types import SimpleNamespace

import pytest
from array_stories import mirror
from ledgers import Book, found_bytes, stamped, zeros
from sessions_on_record import judged, on_record, session, whole
from stories import RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import decode_check, encode_check, nothing_lost
from plugpull.checks.data.data_sound import DataSound
from plugpull.checks.data.read_twice import read_twice
from plugpull.history import events as ev
from plugpull.integrity.oracle.agreement import Disagreement
from plugpull.integrity.oracle.readback import ContentKind, SectorRun


def test_what_was_promised_is_there() -> None:
    bench = healthy()
    whole(bench)
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "nothing lost that was flushed (8 sectors)"
    integrity = judgement.integrity
    assert integrity is not None
    assert (integrity.sectors_checked, integrity.cuts, integrity.cuts_lost) == (8, 1, 0)
    assert (integrity.trials, integrity.loss_bound) == (0, None), "a disk that keeps its power cannot lose anything"


def test_only_power_cuts_in_which_something_could_be_lost_are_trials() -> None:
    """A cut of the data lines is none, nor is one of the power before anything but the fill was durable."""
    bench = healthy()
    whole(bench)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    judgement = judged(bench)
    integrity = judgement.integrity
    assert integrity is not None
    assert (integrity.cuts, integrity.trials, integrity.trials_lost, integrity.loss_bound) == (1, 1, 0, 0.95)
    assert judgement.worst == ("nothing lost that was flushed, 1 of 1 power losses could have lost it (8 sectors)")
    bench = healthy()
    book, runs = session()
    for write in book.made.writes:
        write.fill = True
    book.write(5)
    on_record(bench, book, *runs)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "0 of 1 power losses could have lost it" in judgement.worst
    assert judgement.integrity is not None
    assert (judgement.integrity.trials, judgement.integrity.loss_bound) == (0, None)


@pytest.mark.parametrize("fed_by", ["self", "bus"])
def test_the_rig_file_says_who_loses_power_with_a_cable(fed_by: str) -> None:
    bench = healthy()
    whole(bench)
    bench.replace(ev.CutArmed, mechanism="data+vbus")
    story = bench.story()
    tables = [table | {"self_powered": fed_by == "self"} for table in story.rig["disk"]]
    integrity = nothing_lost().judge(replace(story, rig=story.rig | {"disk": tables})).integrity
    assert integrity is not None
    assert integrity.trials == (fed_by == "bus")


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
        "nothing lost that was flushed (8 sectors; 1 sectors are gone that were not flushed, which is legal; 1 of them "
        "though the disk had kept its power)"
    )
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    assert "kept its power" not in judged(bench).worst


def test_the_next_round_goes_on_from_what_the_last_one_found() -> None:
    bench = healthy()
    book, runs = session(1)
    on_record(bench, book, *runs)
    second = Book(session=2)
    second.write(0)
    on_record(bench, second, *[SectorRun(ContentKind.STAMPED, 0, 1, second.made.writes[0].number), *runs[1:]])
    assert judged(bench).findings == ()
    bench = healthy()
    on_record(bench, book, *runs)
    on_record(bench, second, SectorRun(ContentKind.STAMPED, 0, 1, second.made.writes[0].number), zeros(1), *runs[2:])
    (finding,) = judged(bench).findings
    assert "zeroed at sector 1: expected the content from before the session: write 2" in finding.summary
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


# --- a second reading ------------------------------------------------------------------------------------------------


def read_again(bench: Bench, held: SectorRun) -> None:
    """Sector 5 is read a second time."""
    found, job, at = found_bytes([held]), f"readback9-{VICTIM}", RESTORED + 4
    text = base64.b64encode(found).decode()
    bench.add(
        ev.ReadBackBegun(at=at, disk=VICTIM, job=job, session=1, extents=((5, 1),), again=True),
        ev.ReadBackPart(at=at, disk=VICTIM, job=job, offset=0, data=text),
        ev.ReadBackEnded(at=at + 0.1, disk=VICTIM, job=job, received=len(found), status=0),
    )


@pytest.mark.parametrize(("same", "says"), [(True, "they were written wrong"), (False, "they were read wrong")])
def test_what_is_wrong_is_read_again_and_both_are_on_record(same: bool, says: str) -> None:
    bench = healthy()
    book, runs = session()
    newer = book.write(5)
    book.flush()
    on_record(bench, book, *runs)
    read_again(bench, runs[5] if same else stamped(newer))
    (finding,) = judged(bench).findings
    assert any(says in line for line in finding.evidence)
    assert DataSound().judge(bench.story()).findings == ()


@pytest.mark.parametrize("same", [True, False])
def test_a_right_sector_that_changes_between_two_readings_is_accused(same: bool) -> None:
    """Either of two versions may be there after the power was cut, but not first the one and then the other."""
    bench = healthy()
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    book, runs = session()
    newer = book.write(5)  # not flushed any more
    on_record(bench, book, *runs)
    read_again(bench, runs[5] if same else stamped(newer))
    assert judged(bench).findings == ()
    said = DataSound().judge(bench.story())
    what = f"1 sectors of {VICTIM} changed between two readings: sector 5 held write "
    sentences = [finding.summary for finding in said.findings]
    assert [one.startswith(what) and "and then write" in one for one in sentences] == ([] if same else [True])
    assert said.unknowns == ()


def test_an_array_is_not_accused_of_what_its_members_may_disagree_about(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = healthy()
    mirror(bench)
    kept, newer = (SectorRun(ContentKind.STAMPED, 5, 1, number=number) for number in (7, 8))
    one = SimpleNamespace(round=SimpleNamespace(disk="array1", at=20.0), unlike=(Disagreement(5, 1, kept, newer),))
    monkeypatch.setattr("plugpull.checks.data.read_twice.every_round", lambda story: (one,))
    (said,) = read_twice(bench.story())
    assert isinstance(said, str)
    assert said.startswith("1 sectors of array1 changed between two readings")
