"""Steps of a fault that were made at another time than it says."""

from __future__ import annotations

import pytest
from stories import BACK, CUT, GONE, RESTORED, VICTIM, Bench, healthy

from plugpull.checks import returned
from plugpull.checks.record.cuts_made import cuts_made
from plugpull.checks.record.fault_times import fault_times_doubted
from plugpull.faults.bouncing import bounce
from plugpull.faults.codec import encode
from plugpull.faults.compose import Fault, cut, held
from plugpull.faults.triggers import AtRandom, after
from plugpull.history import events as ev

POINT = f"{VICTIM}.cable"
OFF = RESTORED - CUT - 0.01
"""Seconds from the acknowledgement of off to the command on."""


def recorded(fault: Fault) -> Bench:
    bench = healthy()
    bench.replace(ev.CutArmed, fault=1)
    bench.add(ev.FaultInjected(at=CUT - 0.2, number=1, fault=encode(fault)))
    return bench


def bouncing(*gaps: float, on: float = CUT + 0.05, off: float = CUT + 0.1) -> Bench:
    """The contact is lost, made at ``on``, lost again at ``off``, and made for good."""
    bench = recorded(bounce(POINT, gaps=gaps))
    bench.arm(CUT - 0.1, cut=2)
    bench.replace(ev.CutArmed, group=1, fault=1)
    bench.drop(ev.Edge)
    for number, (begin, end) in enumerate(((CUT, on), (off, RESTORED)), 1):
        bench.switch("off", begin, cut=number)
        bench.switch("on", end, cut=number)
    return bench


@pytest.mark.parametrize(
    ("fault", "doubted"),
    [
        (cut(POINT), False),
        (cut(POINT, when=after(0.1)), False),
        (cut(POINT, when=after(1.0)), True),
        (cut(POINT, when=AtRandom(0.0, 0.2)), False),
        (cut(POINT, when=AtRandom(0.5, 0.6)), True),
        (held(cut(POINT), seconds=OFF - 0.5), False),
        (held(cut(POINT), seconds=OFF + 1.0), True),
    ],
)
def test_a_cut_is_made_and_held_when_its_fault_says(fault: Fault, doubted: bool) -> None:
    bench = recorded(fault)
    bench.replace(ev.CutArmed, at=CUT - 0.1)
    assert bool(list(fault_times_doubted(bench.story()))) is doubted
    assert bool(bench.judge(cuts_made()).unknowns) is doubted


def test_a_cut_that_is_made_much_later_than_its_trigger() -> None:
    bench = recorded(cut(POINT, when=after(0.1)))
    bench.replace(ev.CutArmed, at=CUT - 8.0)
    assert list(fault_times_doubted(bench.story())) == [f"{POINT} was to be cut after 0.1 s, and was after 8.00 s"]


@pytest.mark.parametrize(
    ("gaps", "doubt"),
    [
        ((0.04, 0.04, RESTORED - CUT - 0.11), []),
        ((0.04, 0.5, RESTORED - CUT - 0.11), [f"{POINT} was to be on for 0.5 s, and was for 0.04 s"]),
        ((3.0, 0.04, RESTORED - CUT - 0.11), [f"{POINT} was to be off for 3 s, and was for 0.04 s"]),
    ],
)
def test_a_contact_bounces_as_its_fault_says(gaps: tuple[float, ...], doubt: list[str]) -> None:
    assert list(fault_times_doubted(bouncing(*gaps).story())) == doubt


def away_while_closed(within: float) -> Bench:
    """The contact is lost for a second and made for three, in which the disk stays away, and is lost once more."""
    bench = bouncing(1.0, 3.0, 0.1, on=CUT + 1.0, off=CUT + 4.0)
    bench.drop(ev.Edge, keep=lambda edge: not (edge.cut == 2 and edge.state == "on"))
    bench.switch("on", CUT + 4.1, cut=2)
    bench.drop(ev.DiskAttached, keep=lambda event: event.disk != VICTIM or event.at < CUT)
    bench._attached[VICTIM] = [(0.0, GONE, "sdb", 1)]
    bench.attach(VICTIM, CUT + 1.0 + within)
    bench.detach(VICTIM, CUT + 4.05)
    bench.attach(VICTIM, CUT + 4.5)
    return bench


@pytest.mark.parametrize(("took", "found"), [(2.5, True), (1.0, False)])
def test_a_disk_must_come_back_while_its_contact_is_made_for_long(took: float, found: bool) -> None:
    judgement = away_while_closed(took).judge(returned(VICTIM, within=2.0))
    said = [finding.summary for finding in judgement.findings if "while" in finding.summary]
    assert bool(said) is found, judgement


def test_a_contact_that_is_made_for_a_moment_brings_nothing_back() -> None:
    assert bouncing(0.04, 0.04, RESTORED - CUT - 0.11).judge(returned(VICTIM, within=2.0)).findings == ()
    assert BACK > RESTORED
