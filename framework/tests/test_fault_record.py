"""Faults and cuts that do not belong together."""

from __future__ import annotations

from typing import Any

import pytest
from stories import CUT, RESTORED, VICTIM, Bench, healthy

from plugpull.checks.record.cuts_made import cuts_made
from plugpull.checks.record.fault_record import fault_doubts, points_of
from plugpull.faults.codec import encode
from plugpull.faults.compose import cut, held, in_sequence, pause, repeated, together
from plugpull.history import events as ev

POINT = f"{VICTIM}.cable"


def recorded(fault: dict[str, Any] | None, *, number: int = 1) -> Bench:
    """The healthy story, whose cut belongs to fault 1. ``fault`` is what the history says of fault ``number``."""
    bench = healthy()
    bench.replace(ev.CutArmed, fault=1)
    if fault is not None:
        bench.add(ev.FaultInjected(at=CUT - 0.1, number=number, fault=fault))
    return bench


def said(bench: Bench) -> list[str]:
    return list(fault_doubts(bench.story()))


@pytest.mark.parametrize(
    "fault",
    [
        cut(POINT),
        held(cut(POINT), seconds=0.5),
        in_sequence(pause(1.0), repeated(held(cut(POINT), seconds=0.5), times=1)),
        together(cut(POINT)),
    ],
)
def test_a_cut_that_belongs_to_its_fault(fault: object) -> None:
    assert said(recorded(encode(fault))) == []
    assert cuts_made().judge(recorded(encode(fault)).story()).unknowns == ()


def test_histories_of_earlier_versions_have_no_faults() -> None:
    assert said(healthy()) == []


def test_a_fault_that_is_not_on_record() -> None:
    missing = [f"fault 1, to which the cut of {POINT} belongs, is not on record"]
    assert said(recorded(None)) == missing
    assert list(cuts_made().judge(recorded(None).story()).unknowns) == missing
    assert said(recorded(encode(pause(1.0)), number=2)) == missing


def test_a_fault_that_was_to_last_otherwise() -> None:
    assert said(recorded(encode(cut(POINT)) | {"permanent": True})) == [
        f"fault 1 was to cut for good, and {POINT} was cut for a while"
    ]


@pytest.mark.parametrize(("permanent", "healed", "doubts"), [(True, 3.0, 1), (True, 0.1, 0), (False, 3.0, 0)])
def test_a_cut_for_good_lasts_until_the_bench_is_healed(permanent: bool, healed: float, doubts: int) -> None:
    bench = recorded(encode(cut(POINT, permanent=permanent)))
    bench.replace(ev.CutArmed, permanent=permanent)
    bench.add(ev.Phase(at=RESTORED + healed, name="heal"))
    assert len([one for one in said(bench) if "was to last until the end" in one]) == doubts


def test_a_fault_of_another_cut_point() -> None:
    assert said(recorded(encode(cut("disk2.cable")))) == [
        f"fault 1 was to cut disk2.cable, and {POINT} was cut",
        "fault 1 was to cut disk2.cable, and no such cut is on record",
    ]


def test_a_point_that_was_never_cut_unless_the_scenario_stopped() -> None:
    bench = recorded(encode(in_sequence(cut(POINT), cut("hub1.cable"))))
    assert said(bench) == ["fault 1 was to cut hub1.cable, and no such cut is on record"]
    bench.add(ev.ScenarioError(at=20.0, fault="rig", summary="the switch did not answer"))
    assert said(bench) == []


def test_a_fault_of_a_test_suites_own_kind_names_its_points_as_it_likes() -> None:
    own = {"kind": "wobble", "socket": POINT}
    assert points_of(own) is None
    assert points_of({"kind": "together", "faults": [own]}) is None
    assert said(recorded(own)) == []


def triggered(size: int) -> Bench:
    """A cut of the victim when it had moved so many bytes. Its load moves 20 MB a second from 11 s on."""
    when = {"kind": "moved", "disk": VICTIM, "size": size}
    bench = recorded({"kind": "cut", "points": [POINT], "when": when, "permanent": False})
    bench.add(ev.Phase(at=10.95, name="load"))
    return bench


def test_a_cut_whose_trigger_was_met() -> None:
    assert said(triggered(60_000_000)) == []
    assert said(recorded({"kind": "cut", "points": [POINT], "when": {"kind": "now"}, "permanent": False})) == []


def test_a_cut_whose_trigger_was_not_met() -> None:
    (doubt,) = said(triggered(100_000_000))
    assert doubt.startswith(f"fault 1 was to cut when 100000000 bytes had been moved on {VICTIM}, and {VICTIM} had ")
    bench = triggered(60_000_000)
    again = ev.LoadBegun(at=14.1, disk=VICTIM, job="b", mode="write", block=8, depth=1, span=8)
    bench.add(ev.Phase(at=14.0, name="load"), again)
    assert len(said(bench)) == 1, "bytes count from the last load on"
