"""Cuts that overlap: the first one removes a disk, and it returns when the last one is healed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from stories import DISKS, RATE, SETTLED, Bench

from plugpull.checks import Check, removed, returned
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

FIRST, SECOND = (15.0, 20.0), (17.0, 24.0)
"""When each cut is made and healed, DUT seconds."""
GONE, BACK = 15.07, 25.2
VICTIM, OTHER = "disk1", "disk2"
END = 45.0


def cut(
    bench: Bench,
    number: int,
    times: tuple[float, float | None],
    *,
    point: str = "disk1.cable",
    victims: tuple[str, ...] = (VICTIM,),
    permanent: bool = False,
) -> None:
    """Add a cut whose switch obeys."""
    begin, end = times
    kept = len(bench.events)
    bench.arm(begin - 0.1, cut=number, victims=victims, permanent=permanent)
    bench.switch("off", begin, cut=number)
    if end is not None:
        bench.switch("on", end, cut=number)
    port = {"point": point, "switch": point.replace(".", "-")}
    for index, event in enumerate(bench.events[kept:], kept):
        if isinstance(event, ev.Edge):
            bench.events[index] = msgspec.structs.replace(event, **port)
        elif isinstance(event, ev.CutArmed):
            bench.events[index] = msgspec.structs.replace(event, point=point)


def bench_with(
    *cuts: tuple[tuple[float, float | None], str, tuple[str, ...]],
    gone: float | None = GONE,
    back: Iterable[float] = (BACK,),
    checks: tuple[Check, ...] = (removed(VICTIM), returned(VICTIM)),
) -> Bench:
    """disk1 is under load when it is cut; it goes at ``gone`` and is attached again at each of ``back``."""
    bench = Bench(pace=lambda disk, at: 0.0 if disk == VICTIM and at >= FIRST[0] else RATE, until=END, checks=checks)
    bench.add(ev.DutReady(at=10.0, kernel="6.12.1", kind="virtual", how="restored", took=1.0, fio="fio-3.33"))
    for number, disk in enumerate(DISKS):
        bench.attach(disk, 10.4 + number / 10)
    if gone is None:
        bench.load(VICTIM, 11.0, END - 2.0)
    else:
        bench.load(VICTIM, 11.0, gone + 0.02, asked=False, asked_at=None, exit_status=1, errno=19, message="gone")
    bench.add(ev.LoadSettled(at=SETTLED, disks=(VICTIM,)))
    for number, (times, point, victims) in enumerate(cuts, 1):
        cut(bench, number, times, point=point, victims=victims)
    if gone is not None:
        bench.detach(VICTIM, gone)
        for at in back:
            bench.attach(VICTIM, at)
    bench.add(ev.Residue(at=END - 0.5))
    return bench


CABLE, POWER = "disk1.cable", "disk1.power"
ORDERS = [
    ((FIRST, SECOND), BACK),  # crossed
    (((15.0, 24.0), (17.0, 20.0)), BACK),  # the second within the first
    (((15.0, 24.0), (17.0, 24.0)), BACK),  # one port that both held
    (((15.0, 20.0), (15.2, 24.0)), BACK),  # the second one before the kernel noticed the first
]


@pytest.mark.parametrize(("cuts", "back"), ORDERS)
def test_a_disk_that_two_cuts_hold_off_goes_once_and_returns_after_the_last(
    cuts: tuple[tuple[float, float], tuple[float, float]], back: float
) -> None:
    bench = bench_with((cuts[0], CABLE, (VICTIM,)), (cuts[1], POWER, (VICTIM,)), gone=15.3, back=[back])
    for check in (removed(VICTIM, within=5), returned(VICTIM, within=10)):
        judged = bench.judge(check)
        assert (judged.findings, judged.unknowns) == ((), ())
    (measured,) = bench.judge(returned(VICTIM, within=10)).measurements
    assert measured.value == pytest.approx(back - 24.0)
    (measured,) = bench.judge(removed(VICTIM, within=5)).measurements
    assert measured.value == pytest.approx(0.3)


def test_a_chain_of_cuts_is_one_to_the_disk() -> None:
    times, points = ((15.0, 18.0), (17.0, 22.0), (21.0, 24.0)), (CABLE, POWER, "hub1.cable")
    bench = bench_with(*((time, point, (VICTIM,)) for time, point in zip(times, points, strict=True)))
    assert bench.judge(removed(VICTIM, within=5)).unknowns == ()
    (measured,) = bench.judge(returned(VICTIM, within=10)).measurements
    assert measured.n == 1
    assert measured.value == pytest.approx(BACK - 24.0)


def test_the_standing_checks_judge_it_too() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, POWER, (VICTIM,)))
    result = judge_story(bench.story())
    assert (result.verdict, result.unknowns) == (Verdict.PASS, ())
    first, second = result.cuts
    assert [times.removed_at for times in first.disks] == [GONE]
    assert [times.returned_at for times in first.disks] == [None]
    assert [(times.removed_at, times.returned_at) for times in second.disks] == [(None, BACK)]


def test_each_disk_of_the_second_cut_is_judged_by_itself() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, "hub1.cable", DISKS))
    for disk in DISKS[1:]:
        bench.detach(disk, SECOND[0] + 0.1)
        bench.attach(disk, SECOND[1] + 1.0)
    judged = bench.judge(removed(DISKS, within=5))
    assert (judged.findings, judged.unknowns) == ((), ())
    took = {one.subject: one.value for one in judged.measurements}
    assert took == pytest.approx({"disk1": 0.07, "disk2": 0.1, "disk3": 0.1})
    judged = bench.judge(returned(DISKS, within=10))
    assert (judged.findings, judged.unknowns) == ((), ())


# --- defects ----------------------------------------------------------------------------------------------------------


def test_a_disk_that_does_not_return_after_the_last_cut_is_a_finding() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, POWER, (VICTIM,)), back=[])
    (finding,) = bench.judge(returned(VICTIM, within=10)).findings
    assert finding.summary == "disk1 did not come back within 10 s of disk1.power being restored"


def test_a_disk_that_returns_too_late_after_the_last_cut_is_a_finding() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, POWER, (VICTIM,)), back=[SECOND[1] + 12.0])
    (finding,) = bench.judge(returned(VICTIM, within=10)).findings
    assert "came back only after 11.99 s (limit 10 s)" in finding.summary


def test_a_disk_that_both_cuts_leave_on_the_list_is_a_finding() -> None:
    """Its load hangs, so that the cuts are known to have cut something."""
    bench = bench_with(((15.0, 30.0), CABLE, (VICTIM,)), ((15.5, 32.0), POWER, (VICTIM,)), gone=None)
    (finding,) = bench.judge(removed(VICTIM, within=5)).findings
    assert finding.summary == "disk1 was still on the kernel's list 5 s after disk1.cable was cut (limit 5 s)"


# --- the bench's fault ------------------------------------------------------------------------------------------------


def test_a_disk_that_returns_while_the_second_cut_still_holds_accuses_the_bench() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, POWER, (VICTIM,)), back=[FIRST[1] + 1.0])
    judged = bench.judge(returned(VICTIM, within=10))
    assert judged.findings == ()
    assert judged.unknowns == ("disk1 came back at 21.00 s though disk1.power was still off",)
    assert judge_story(bench.story()).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("between", "doubts"), [(18.5, 0), (16.0, 1), (22.0, 1)])
def test_a_disk_may_return_only_while_a_contact_that_bounces_is_made(between: float, doubts: int) -> None:
    """The contact is lost from 15 to 17 s and from 20 to 24 s. The disk also shows up in between, for half a second."""
    bench = bench_with(((15.0, 17.0), CABLE, (VICTIM,)), ((20.0, 24.0), CABLE, (VICTIM,)), back=[between])
    bench.replace(ev.CutArmed, group=1)
    bench.detach(VICTIM, between + 0.5)
    bench.attach(VICTIM, BACK)
    judged = bench.judge(returned(VICTIM, within=10))
    assert judged.findings == ()
    assert [one.split(" though ")[1] for one in judged.unknowns] == ["disk1.cable was still off"] * doubts


def test_a_second_cut_that_may_not_have_been_made_explains_nothing() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), (SECOND, POWER, (VICTIM,)), back=[FIRST[1] + 1.0])
    bench.drop(ev.Edge, lambda edge: not (edge.cut == 2 and edge.phase == "acknowledged" and edge.state == "off"))
    judged = judge_story(bench.story())
    assert judged.verdict is Verdict.UNKNOWN
    assert judged.findings == ()


def test_a_first_cut_that_did_nothing_is_not_the_disks_fault() -> None:
    """The disk works on, and goes only with the second cut: the first switch cut nothing."""
    bench = bench_with(((15.0, 30.0), CABLE, (VICTIM,)), ((25.0, 32.0), POWER, (VICTIM,)), gone=25.1, back=[33.0])
    bench.pace = lambda disk, at: RATE
    judged = bench.judge(removed(VICTIM, within=5))
    assert judged.findings == ()
    assert "the switch cut nothing" in judged.unknowns[0]


def test_cuts_one_after_the_other_are_two() -> None:
    bench = bench_with(((15.0, 18.0), CABLE, (VICTIM,)), back=[19.0])
    cut(bench, 2, (25.0, 28.0), point=POWER)
    bench.detach(VICTIM, 25.2)
    bench.attach(VICTIM, 29.5)
    (measured,) = bench.judge(returned(VICTIM, within=10)).measurements
    assert measured.samples == pytest.approx((1.0, 1.5))
    (measured,) = bench.judge(removed(VICTIM, within=5)).measurements
    assert measured.samples == pytest.approx((0.07, 0.2))


def test_a_cut_for_good_beside_a_healed_one_keeps_the_disk_away() -> None:
    bench = bench_with((FIRST, CABLE, (VICTIM,)), back=[])
    cut(bench, 2, (SECOND[0], None), point=POWER, permanent=True)
    assert bench.judge(removed(None)).unknowns == ()
    judged = bench.judge(returned(None))
    assert (judged.findings, judged.unknowns) == ((), ())
