"""The check ``nothing_lost``: what it makes of sessions on record, whole and broken."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from ledgers import RUN, Book, found_bytes, ledger_bytes, stamped, zeros
from stories import CUT, GONE, RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import Judgement, decode_check, encode_check, kept_while_powered, nothing_lost
from plugpull.history import events as ev
from plugpull.integrity.oracle.readback import Kind, Run
from plugpull.integrity.oracle.stamp import device_number

EXTENTS = ((0, 8),)


def on_record(
    bench: Bench,
    book: Book,
    *runs: Run,
    disk: str = VICTIM,
    fill: bool = False,
    chunk: int = 40,
    error: str = "",
    later: float = 0.0,
    start: float = 0.0,
    logical: int = 0,
) -> None:
    """Put a session and its read-back into the story: begun before the cut, read back after it, and all of that so
    many seconds ``later``. ``start`` is when the ledger says that it began, 0 if it does not say it."""
    session = book.session
    job, begin = f"stamp{session}-{disk}", 11.0 + session + later
    ledger, back = ledger_bytes(book.made, start=start, logical=logical), found_bytes(runs)
    bench.add(
        ev.LedgerBegun(
            at=begin,
            disk=disk,
            job=job,
            run=RUN,
            device=book.made.device,
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
    bench.add(ev.LedgerEnded(at=CUT + 1 + later, disk=disk, job=job, asked=False, received=len(ledger), status=1))
    reading = f"readback{session}-{disk}"
    read_at = RESTORED + 3 + later
    bench.add(ev.ReadBackBegun(at=read_at, disk=disk, job=reading, session=session, extents=EXTENTS, error=error))
    if not error:
        text = base64.b64encode(back).decode()
        bench.add(ev.ReadBackPart(at=RESTORED + 3.1 + later, disk=disk, job=reading, offset=0, data=text))
        bench.add(ev.ReadBackEnded(at=RESTORED + 3.2 + later, disk=disk, job=reading, received=len(back), status=0))


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
    on_record(bench, second, *[Run(Kind.STAMPED, 0, 1, second.made.writes[0].number), *runs[1:]])
    assert judged(bench).findings == ()
    bench = healthy()
    on_record(bench, book, *runs)
    on_record(bench, second, Run(Kind.STAMPED, 0, 1, second.made.writes[0].number), zeros(1), *runs[2:])
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


# --- a record that lacks something, or contradicts itself ------------------------------------------------------------


def three_rounds() -> Bench:
    """Sector 0 is rewritten and flushed in each round; every round is read back."""
    bench = healthy()
    book, runs = session(1)
    on_record(bench, book, *runs, fill=True)
    for number in (2, 3):
        book = Book(session=number)
        newest = book.write(0)
        book.flush()
        runs = [Run(Kind.STAMPED, 0, 1, newest.number), *runs[1:]]
        on_record(bench, book, *runs, later=10.0 * (number - 1))
    return bench


def rounds(number: int) -> tuple[str, str]:
    return f"stamp{number}-{VICTIM}", f"readback{number}-{VICTIM}"


def unknown(bench: Bench) -> str:
    """The reasons why it is not known; there is no finding."""
    judgement = judged(bench)
    assert judgement.findings == ()
    assert judgement.unknowns
    return "; ".join(judgement.unknowns)


def test_three_rounds_pass() -> None:
    judgement = judged(three_rounds())
    assert (judgement.findings, judgement.unknowns) == ((), ())


@pytest.mark.parametrize("gone", [1, 2, 3])
@pytest.mark.parametrize("kinds", ["ledger", "all"])
def test_a_round_that_is_not_on_record_is_noticed(gone: int, kinds: str) -> None:
    bench = three_rounds()
    for number in (1, 2, 3):
        bench.add(ev.StampingPlanned(at=11.0, run=RUN, session=number, disks=(VICTIM,)))
    assert judged(bench).unknowns != (), "the end is not on record yet"
    bench.add(ev.StampingOver(at=25.0, run=RUN, disks=(VICTIM,), sessions={VICTIM: 3}))
    drop = rounds(gone) if kinds == "all" else rounds(gone)[:1]
    bench.events = [event for event in bench.events if getattr(event, "job", "") not in drop]
    assert f"session {gone} of what was stamped on {VICTIM} is not on record" in unknown(bench)


def test_old_records_show_by_their_phases_that_the_last_round_is_missing() -> None:
    bench = three_rounds()
    bench.events = [event for event in bench.events if getattr(event, "job", "") not in rounds(3)]
    begun = ev.Phase(at=33.0, name="load", text="random 4 KiB writes on 1 disks")
    bench.add(begun, ev.Phase(at=46.0, name="heal"))
    assert "and that of 1 disks is not on record" in unknown(bench)
    bench.events.remove(begun)
    bench.add(ev.Phase(at=45.0, name="verify", text="reading back"))
    assert "reading back began at 45.00 s, and nothing of it is on record" in unknown(bench)


def test_a_plan_that_is_missing_is_noticed_where_the_end_is_on_record() -> None:
    bench = three_rounds()
    bench.add(ev.StampingOver(at=60.0, run=RUN, disks=(VICTIM,), sessions={VICTIM: 3}))
    for number in (1, 3):
        bench.add(ev.StampingPlanned(at=11.0, run=RUN, session=number, disks=(VICTIM,)))
    assert f"that {VICTIM} was to be stamped in session 2 is not on record" in unknown(bench)


@pytest.mark.parametrize("kind", [ev.LedgerBegun, ev.LedgerEnded, ev.ReadBackBegun, ev.ReadBackEnded])
def test_any_one_event_that_is_missing_is_noticed(kind: type[ev.Event]) -> None:
    bench = healthy()
    whole(bench)
    assert judged(bench).unknowns == ()
    bench.drop(kind)
    assert unknown(bench)


@pytest.mark.parametrize("kind", [ev.LedgerBegun, ev.LedgerPart, ev.LedgerEnded, ev.ReadBackBegun, ev.ReadBackPart])
def test_an_event_that_is_there_twice_is_noticed(kind: type[ev.Event]) -> None:
    bench = healthy()
    whole(bench)
    (doubled, *_) = [event for event in bench.events if isinstance(event, kind)]
    bench.events.append(msgspec.structs.replace(doubled))
    assert unknown(bench)


def test_pieces_out_of_order_are_noticed() -> None:
    bench = healthy()
    whole(bench)
    parts = [event for event in bench.events if isinstance(event, ev.LedgerPart)]
    one, two = bench.events.index(parts[1]), bench.events.index(parts[2])
    bench.events[one], bench.events[two] = bench.events[two], bench.events[one]
    assert "is out of order" in unknown(bench)


def test_pieces_that_leave_a_hole_or_were_not_all_received_are_noticed() -> None:
    bench = healthy()
    whole(bench)
    last = [event for event in bench.events if isinstance(event, ev.LedgerPart)][-1]
    bench.replace(ev.LedgerPart, lambda event: event == last, offset=last.offset + 7)
    assert "7 bytes are missing" in unknown(bench)
    bench = healthy()
    whole(bench)
    bench.replace(ev.LedgerEnded, received=5000)
    assert "5000 bytes of the ledger arrived" in unknown(bench)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"run": 5}, "another session, disk or run"),
        ({"device": 5}, "another session, disk or run"),
        ({"session": 2}, "session 1 of what was stamped"),
        ({"extents": ((0, 4),)}, "outside of what the session covers"),
        ({"block": 16}, "blocks of 1 sectors"),
        ({"at": 500.0}, "beginning"),
    ],
)
def test_a_beginning_that_does_not_fit_its_ledger_proves_nothing(changes: dict[str, Any], says: str) -> None:
    bench = healthy()
    book, runs = session()
    book.write(5)
    book.flush()
    on_record(bench, book, *runs, start=12.0)  # something is lost: even that proves nothing
    assert judged(bench).findings
    bench.replace(ev.LedgerBegun, **changes)
    assert unknown(bench)


@pytest.mark.parametrize("changes", [{"session": 4}, {"extents": ((0, 4),)}])
def test_a_read_back_of_another_session_or_extent_proves_nothing(changes: dict[str, Any]) -> None:
    bench = healthy()
    whole(bench)
    bench.replace(ev.ReadBackBegun, **changes)
    assert unknown(bench)


def test_read_backs_with_each_others_names_prove_nothing() -> None:
    bench = three_rounds()
    one, two = (rounds(number)[1] for number in (1, 2))
    sessions = {one: 2, two: 1}
    bench.events = [
        msgspec.structs.replace(event, session=sessions[event.job])
        if isinstance(event, ev.ReadBackBegun) and event.job in sessions
        else event
        for event in bench.events
    ]
    assert unknown(bench)


def test_a_read_back_that_ended_badly_or_short_is_noticed() -> None:
    for changes in ({"status": 1, "why": "Input/output error"}, {"status": None, "stuck": True}, {"received": 7}):
        bench = healthy()
        whole(bench)
        bench.replace(ev.ReadBackEnded, **changes)
        assert unknown(bench)


def test_two_disks_with_each_others_ledgers_prove_nothing() -> None:
    bench = healthy()
    other = SURVIVORS[0]
    for disk in (VICTIM, other):
        book, runs = session()
        book.made.device = device_number(f"S-{disk}")
        on_record(bench, book, *runs, disk=disk)
    assert judged(bench).unknowns == ()
    jobs = {f"stamp1-{VICTIM}": f"stamp1-{other}", f"stamp1-{other}": f"stamp1-{VICTIM}"}
    events = list(bench.events)
    bench.events = [
        msgspec.structs.replace(event, job=jobs[event.job]) if isinstance(event, ev.LedgerPart) else event
        for event in events
    ]
    assert "another session, disk or run" in unknown(bench)
    disks = {VICTIM: other, other: VICTIM}
    bench.events = [
        msgspec.structs.replace(event, disk=disks[event.disk]) if isinstance(event, ev.LedgerBegun) else event
        for event in events
    ]
    assert unknown(bench)


def test_a_ledger_whose_times_contradict_the_cut_proves_nothing() -> None:
    """The disk was gone for 6 s when it is said to have completed its last write."""
    bench = healthy()
    book, runs = session()
    late = book.write(5)
    late.completed_at = GONE + 6.0 - 12.0
    on_record(bench, book, *[run for run in runs if run.first != 5], stamped(late), start=12.0)
    said = unknown(bench)
    assert f"{VICTIM} was gone since" in said
    bench = healthy()
    on_record(bench, session()[0], *session()[1], start=500.0)
    assert "its ledger says that it began at 500.00 s" in unknown(bench)


def test_a_read_back_from_before_the_end_proves_nothing() -> None:
    """A cut that seems to come after it would not count, and a power loss would be held against the disk."""
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    story = bench.story()
    early = tuple(
        msgspec.structs.replace(event, at=CUT - 1.5) if isinstance(event, ev.ReadBackBegun) else event
        for event in story.events
    )
    for check in (nothing_lost(), kept_while_powered()):
        judgement = check.judge(replace(story, events=early))
        assert judgement.findings == ()
        assert any("was read back at 13.50 s, and its writer ended at 16.00 s" in why for why in judgement.unknowns)


# --- logical blocks, and what the kernel believed --------------------------------------------------------------------


@pytest.mark.parametrize("from_where", ["event", "kernel log", "rig file", "ledger"])
def test_a_mix_inside_a_logical_block_is_torn_wherever_its_size_is_known_from(from_where: str) -> None:
    bench = healthy()
    book = Book()
    old = book.write(0, 8)
    book.flush()
    new = book.write(0, 8)
    on_record(bench, book, stamped(new, 0, 3), stamped(old, 3, 5), logical=4096 if from_where == "ledger" else 0)
    story = bench.story()
    assert len(nothing_lost().judge(story).findings) == (from_where == "ledger")
    if from_where == "event":
        bench.replace(ev.ReadBackBegun, logical=4096)
    elif from_where == "kernel log":
        kname = next(event.kname for event in bench.events if isinstance(event, ev.DiskAttached))
        bench.add(ev.KernelMessage(at=10.39, text=f"sd 1:0:0:0: [{kname}] 8192 4096-byte logical blocks: (33.6 MB)"))
    story = bench.story()
    if from_where == "rig file":
        story = replace(story, rig={"disk": [{"name": VICTIM, "serial": f"S-{VICTIM}", "logical_block": 4096}]})
    (finding,) = nothing_lost().judge(story).findings
    assert "8 torn" in finding.summary
    assert "from sector 3 on write 1" in finding.summary


@pytest.mark.parametrize(("new_sectors", "torn"), [(3, True), (0, False), (8, False)])
def test_a_rig_file_that_declares_larger_blocks_than_the_disk_has_makes_a_mix_unknown(
    new_sectors: int, torn: bool
) -> None:
    bench = healthy()
    book = Book()
    old = book.write(0, 8)
    book.flush()
    new = book.write(0, 8)
    runs = [(new, 0, new_sectors), (old, new_sectors, 8 - new_sectors)]
    on_record(bench, book, *(stamped(*run) for run in runs if run[2]), logical=512)
    story = replace(bench.story(), rig={"disk": [{"name": VICTIM, "serial": f"S-{VICTIM}", "logical_block": 4096}]})
    judgement = nothing_lost().judge(story)
    assert judgement.findings == ()
    said = f"{VICTIM} holds old and new side by side inside of 4096 bytes, the logical block that the rig file declares"
    assert any(said in why for why in judgement.unknowns) == torn


def cache_line(bench: Bench, text: str) -> None:
    kname = next(event.kname for event in bench.events if isinstance(event, ev.DiskAttached))
    bench.add(ev.KernelMessage(at=10.39, text=f"sd 1:0:0:0: [{kname}] {text}"))


def test_a_write_through_disk_owes_what_it_completed_even_to_a_power_cut() -> None:
    for said, lost in (("Write cache: disabled, read cache: enabled", 1), ("Write cache: enabled, read cache", 0)):
        bench = healthy()
        book, runs = session()
        book.write(5)
        on_record(bench, book, *runs)
        bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
        cache_line(bench, f"{said}, doesn't support DPO or FUA")
        assert len(judged(bench).findings) == lost
    bench = healthy()
    whole(bench)
    cache_line(bench, "Write cache: disabled, read cache: enabled, doesn't support DPO or FUA")
    assert judged(bench).worst == f"nothing lost that was completed by {VICTIM}, said to be write-through (8 sectors)"


@pytest.mark.parametrize(
    ("supports", "says"),
    [
        ("supports DPO and", "nothing lost that was flushed or written with FUA (8 sectors)"),
        (
            "doesn't support DPO or",
            "nothing lost that was flushed or written with FUA, which the kernel sends as flushes (8 ",
        ),
    ],
)
def test_what_kind_of_promise_was_tested_is_said(supports: str, says: str) -> None:
    bench = healthy()
    whole(bench)
    bench.replace(ev.LedgerBegun, fua=25)
    cache_line(bench, f"Write cache: enabled, read cache: enabled, {supports} FUA")
    assert says in judged(bench).worst


def test_a_disk_that_said_nothing_of_its_cache_promised_nothing() -> None:
    """The kernel assumes that it writes through, and sends no flush."""
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    cache_line(bench, "Assuming drive cache: write through")
    judgement = judged(bench)
    assert judgement.findings == ()
    assert f"though the kernel assumed {VICTIM} to be write-through and sent no flush" in judgement.worst


# --- a second reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("same", "says"), [(True, "they were written wrong"), (False, "they were read wrong")])
def test_what_is_wrong_is_read_again_and_both_are_on_record(same: bool, says: str) -> None:
    bench = healthy()
    book, runs = session()
    newer = book.write(5)
    book.flush()
    on_record(bench, book, *runs)
    text = base64.b64encode(found_bytes([runs[5] if same else stamped(newer)])).decode()
    job = f"readback9-{VICTIM}"
    at = RESTORED + 4
    bench.add(
        ev.ReadBackBegun(at=at, disk=VICTIM, job=job, session=1, extents=((5, 1),), again=True),
        ev.ReadBackPart(at=at, disk=VICTIM, job=job, offset=0, data=text),
        ev.ReadBackEnded(at=at + 0.1, disk=VICTIM, job=job, received=len(base64.b64decode(text)), status=0),
    )
    (finding,) = judged(bench).findings
    assert any(says in line for line in finding.evidence)
