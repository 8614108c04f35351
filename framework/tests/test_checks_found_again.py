"""The check ``found_again``: a disk that was plugged into another socket is found there as itself."""

from __future__ import annotations

from typing import Any

import pytest
from stories import CUT, GONE, LAST, RESTORED, VICTIM, Bench, healthy

from plugpull.checks import FoundAgain, found_again, returned, same_properties, undisturbed
from plugpull.checks.record.companions import _due
from plugpull.checks.standing import standing_checks
from plugpull.checks.victims.reconnected import CONTROL, asked_first
from plugpull.history import events as ev

MOVED, FOUND = CUT + 0.5, CUT + 1.25
THERE = "0000:00:05.0/3:0"


def moved(found: float | None = FOUND, **other: Any) -> Bench:
    """The victim is plugged into another socket while its cable is cut, and back before that is restored."""
    bench = healthy()
    bench.add(
        ev.DiskMoved(at=MOVED, disk=VICTIM, socket="usb.3", place=THERE, until=MOVED + 0.05),
        ev.DiskMoved(
            at=RESTORED - 0.1, disk=VICTIM, socket="hub1.1", place="0000:00:05.0/1.1:0", until=RESTORED - 0.05
        ),
    )
    if found is not None:
        bench.attach(VICTIM, found, **{"place": THERE, "speed": "12", **other})
        bench.detach(VICTIM, RESTORED - 0.08)
    return bench


def test_found_in_the_other_socket() -> None:
    judgement = moved().judge(found_again(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "found again after 0.70 s (limit 5 s)"
    assert moved().judge(returned(VICTIM)).findings == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"place": "0000:00:05.0/4:0"}, "disk1 was found at 0000:00:05.0/4:0 instead of 0000:00:05.0/3:0"),
        ({"size": 1 << 20}, "disk1 was found in usb.3 with size 1048576 instead of 67108864"),
        ({"model": "B"}, "disk1 was found in usb.3 as B instead of A"),
        ({"driver": "usb-storage"}, "disk1 was found in usb.3 on usb-storage instead of uas"),
    ],
)
def test_found_changed(change: dict[str, object], said: str) -> None:
    bench = moved(FOUND, **{"driver": "uas", "model": "A", **change})
    bench.replace(ev.DiskAttached, lambda event: event.at != FOUND, driver="uas", model="A")
    assert [finding.summary for finding in bench.judge(found_again(VICTIM)).findings] == [said]


def test_found_too_late() -> None:
    (finding,) = moved().judge(found_again(VICTIM, within=0.5)).findings
    assert finding.summary == "disk1 was found again only after 0.70 s (limit 0.5 s)"


def test_not_found() -> None:
    (finding,) = moved(None).judge(found_again(VICTIM, within=1)).findings
    assert finding.summary == "disk1 was not found within 1 s of being plugged into usb.3"


def test_found_with_another_serial() -> None:
    bench = moved(None)
    bench.attach("", FOUND, place=THERE, serial="X", kname="sdx")
    (finding,) = bench.judge(found_again(VICTIM, within=1)).findings
    assert finding.summary == "disk1 was found in usb.3 with serial X"


def test_every_move_is_judged_even_if_nobody_asks() -> None:
    assert FoundAgain(None) in standing_checks([])
    (finding,) = moved(None).judge(FoundAgain(None, within=1)).findings
    assert finding.subject == VICTIM
    judgement = healthy().judge(FoundAgain(None))
    assert (judgement.findings, judgement.unknowns, judgement.worst) == ((), (), "")


def test_nothing_is_concluded_without_evidence() -> None:
    assert "never plugged into another socket" in healthy().judge(found_again(VICTIM)).unknowns[0]
    judgement = moved(None).judge(found_again(VICTIM, within=10))
    assert not judgement.findings
    assert "disk1 was found again in usb.3 is not known" in judgement.unknowns[0]
    lost = moved(None)
    lost.add(ev.AgentLost(at=MOVED + 0.2, why="it fell silent"))
    judgement = lost.judge(found_again(VICTIM, within=1))
    assert (judgement.findings, len(judgement.unknowns)) == ((), 1)


def test_a_swapped_disk_returns_where_it_was_plugged_in() -> None:
    bench = healthy()
    bench.add(ev.DiskMoved(at=CUT + 0.01, disk=VICTIM, socket="usb.3", place=THERE, until=CUT + 0.02))
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert finding.summary == f"disk1 came back at 0000:00:05.0/1.1:0 instead of {THERE}"
    bench.replace(
        ev.DiskAttached, lambda event: (event.at or 0) > CUT and event.disk == VICTIM, place=THERE, speed="12"
    )
    assert bench.judge(returned(VICTIM)).findings == ()


def test_another_link_after_a_move_is_no_finding() -> None:
    bench = healthy()
    for at, limit, number in ((11.0, "1024", 1), (LAST - 1, "120", 9)):
        values = {"max_sectors_kb": limit, "driver": "uas"}
        bench.add(ev.DiskProperties(at=at, disk=VICTIM, kname="sdb", diskseq=number, moment="attached", values=values))
    assert len(bench.judge(same_properties()).findings) == 1
    bench.add(ev.DiskMoved(at=CUT + 0.01, disk=VICTIM, socket="usb.3", place=THERE, until=CUT + 0.02))
    assert bench.judge(same_properties()).findings == ()


@pytest.mark.parametrize("back", ["0000:00:05.0/1.1:0", "0000:00:05.0/4:0"])
def test_a_disk_that_is_back_in_its_first_socket_was_moved_back_by_somebody(back: str) -> None:
    """A kernel cannot move a disk, so a move that is not on record accuses nobody. Elsewhere it is a finding."""
    bench = healthy()
    bench.replace(ev.DiskDetached, lambda event: event.disk == VICTIM, at=10.9)
    bench.attach(VICTIM, 11.5, place=THERE)
    bench.detach(VICTIM, GONE)
    bench.add(ev.DiskMoved(at=11.0, disk=VICTIM, socket="usb.3", place=THERE, until=11.1))
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and (event.at or 0.0) > CUT, place=back)
    judgement = bench.judge(returned(VICTIM))
    moved_home = [doubt for doubt in judgement.unknowns if "who moved it back is not on record" in doubt]
    assert bool(moved_home) is not bool(judgement.findings)
    assert bool(judgement.findings) is (back != "0000:00:05.0/1.1:0")


# --- a socket that the kernel still takes for another disk's ----------------------------------------------------------


def occupied(speed: str = "5000", left: float = MOVED + 0.4) -> Bench:
    """Another disk was in that socket, and the kernel notices only after the swap that it is gone."""
    bench = moved()
    bench.attach("disk3", CUT - 2.0, place=THERE, speed=speed, kname="sdx")
    bench.detach("disk3", left)
    return bench


def test_the_kernel_asks_the_disk_that_it_knows_in_a_socket_first() -> None:
    judgement = occupied().judge(found_again(VICTIM, within=0.5))
    assert judgement.findings == ()
    assert judgement.worst == "found again after 0.70 s (limit 0.85 s)"


@pytest.mark.parametrize(
    "bench", [occupied(speed="480"), occupied(left=MOVED - 0.1)], ids=["not SuperSpeed", "it was gone by then"]
)
def test_a_socket_that_is_known_to_be_empty_grants_nothing(bench: Bench) -> None:
    (finding,) = bench.judge(found_again(VICTIM, within=0.5)).findings
    assert finding.summary == "disk1 was found again only after 0.70 s (limit 0.5 s)"


def test_a_cut_of_a_swapped_disk_grants_as_much() -> None:
    def patience(*events: ev.Event) -> float:
        bench = Bench()
        bench.attach(VICTIM, 11.0)
        bench.attach("disk2", 11.0, speed="5000")
        bench.arm(CUT - 0.1)
        bench.switch("off", CUT)
        bench.switch("on", CUT + 0.2)
        bench.detach(VICTIM, CUT + 0.05)
        bench.detach("disk2", CUT + 5.4)
        bench.add(*events)
        story = bench.story()
        return asked_first(story, story.cut_records[0], VICTIM)

    swap = ev.DiskMoved(at=CUT + 0.1, disk=VICTIM, socket="hub1.2", place="0000:00:05.0/1.2:0", until=CUT + 0.15)
    assert patience(swap) == CONTROL
    late = ev.DiskMoved(at=CUT + 0.1, disk=VICTIM, socket="hub1.2", place="0000:00:05.0/1.2:0", until=CUT + 3.4)
    assert patience(late) == pytest.approx(2.0)
    assert patience() == 0.0
    elsewhere = ev.DiskMoved(at=CUT + 0.1, disk=VICTIM, socket="usb.3", place=THERE, until=CUT + 0.15)
    assert patience(elsewhere) == 0.0


LEFT = RESTORED + 1.0


def found_early() -> Bench:
    """A swapped disk is found in the other socket before the kernel notices that it left its own."""
    bench = healthy()
    bench.replace(ev.DiskDetached, lambda one: one.disk == VICTIM, at=LEFT)
    bench.replace(ev.DiskAttached, lambda one: (one.at or 0) > CUT and one.disk == VICTIM, at=LEFT - 0.4, place=THERE)
    return bench


def swapped() -> Bench:
    bench = found_early()
    bench.add(ev.DiskMoved(at=CUT + 0.01, disk=VICTIM, socket="usb.3", place=THERE, until=CUT + 0.02))
    return bench


def test_a_disk_may_be_there_before_it_has_left() -> None:
    judgement = swapped().judge(returned(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "back after 0.60 s (limit 5 s)"
    assert swapped().judge(found_again(VICTIM)).findings == ()
    assert removals(swapped()) == []


def test_a_disk_that_nobody_moved_is_not_where_it_belongs() -> None:
    (finding,) = found_early().judge(returned(VICTIM)).findings
    assert finding.summary == f"disk1 came back at {THERE} instead of 0000:00:05.0/1.1:0"


def test_a_disk_that_goes_again_after_a_swap_is_accused() -> None:
    bench = swapped()
    bench.detach(VICTIM, LEFT + 2.0)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert finding.summary == "disk1 came back and was gone again 2.40 s later"
    assert removals(bench) == [f"disk1 left at {LEFT + 2:.2f} s though it was not cut"]


def removals(bench: Bench) -> list[str]:
    found = bench.judge(undisturbed()).findings
    return [one.summary.partition(",")[0] for one in found if " left at " in one.summary]


def test_what_a_disk_left_behind_is_waited_for_although_it_is_elsewhere_already() -> None:
    story = found_early().story()
    first, second = story.attachments(VICTIM)
    assert (second.at or 0.0) < LEFT
    begin, end = _due(story, first)["remove"]
    assert begin < LEFT < end
