"""A disk that was cut for good and does not come back when the scenario restores it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stories import CUT, GONE, VICTIM, Bench, healthy
from test_pace_excused import slow_host
from watched import real

from plugpull.checks import same_properties
from plugpull.checks.accusation import Accusation
from plugpull.checks.victims.healed import not_back
from plugpull.history import events as ev

HEALED = 20.0


def story(until: float, back: float | None = None, *, ok: bool = True, ports: tuple[str, ...] = ("cables.1",)) -> Bench:
    """The victim is cut for good and restored at ``HEALED``. The record ends at ``until``."""
    bench = healthy(until=until)
    bench.replace(ev.CutArmed, permanent=True)
    bench.drop(ev.Edge, keep=lambda event: event.state == "off")
    bench.drop(ev.DiskAttached, keep=lambda event: event.disk != VICTIM or event.at < CUT)
    bench._attached[VICTIM] = [(0.0, GONE, "sdb", 1)]
    bench.add(ev.Healed(at=HEALED, ports=ports, ok=ok))
    if back is not None:
        bench.attach(VICTIM, back)
    return bench


def said(bench: Bench) -> list[str]:
    found = list(not_back(bench.story()))
    return ["finding" if isinstance(one, Accusation) else "doubt" for one in found]


def test_a_disk_that_comes_back() -> None:
    assert said(story(30.0, HEALED + 2.0)) == []


def test_a_disk_that_does_not_come_back_is_a_finding() -> None:
    (found,) = not_back(story(30.0).story())
    assert isinstance(found, Accusation)
    assert found.subject == VICTIM
    assert found.summary.startswith(f"{VICTIM} was restored at 20.00 s and did not come back within 9.")


def test_a_record_that_ends_soon_says_nothing() -> None:
    assert said(story(HEALED + 1.4)) == []


@pytest.mark.parametrize(("kind", "wanted"), [("virtual", ["finding"]), ("ssh", [])])
def test_an_emulated_disk_is_back_when_the_record_ends(kind: str, wanted: list[str]) -> None:
    """The bench waits for it: a scenario that ends without it has waited in vain."""
    bench = story(HEALED + 2.0)
    assert said(bench if kind == "virtual" else real(bench)) == wanted


def test_a_scenario_that_was_stopped_does_not_wait_for_it() -> None:
    bench = story(HEALED + 2.0)
    bench.add(ev.ScenarioError(at=HEALED + 1.0, fault="interrupt", summary="ended by SIGINT"))
    assert said(bench) == ["doubt"]


@pytest.mark.parametrize(("sectors", "many"), [("120", 0), ("64", 1)])
def test_a_disk_that_comes_back_as_it_heals_is_driven_as_before(sectors: str, many: int) -> None:
    bench = story(30.0, HEALED + 2.0)
    first, last = (one for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == VICTIM)
    for stay, value in ((first, "120"), (last, sectors)):
        read = ev.DiskProperties(
            at=(stay.at or 0.0) + 0.1,
            disk=VICTIM,
            kname=stay.kname,
            diskseq=stay.diskseq,
            moment="attached",
            values={"max_sectors_kb": value},
        )
        bench.add(read)
    bench.add(
        *(
            replace(edge, at=HEALED, state="on")
            for edge in bench.events
            if isinstance(edge, ev.Edge) and edge.state == "off"
        )
    )
    assert len(bench.judge(same_properties()).findings) == many


def test_on_a_slow_host_it_is_a_doubt() -> None:
    bench = story(HEALED + 9.0)
    slow_host(bench, 0.5)
    assert said(bench) == ["doubt"]


@pytest.mark.parametrize(
    "bench", [story(30.0, ok=False), story(30.0, ports=("cables.2",))], ids=["not restored", "another outlet"]
)
def test_a_disk_without_its_cable_need_not_come_back(bench: Bench) -> None:
    assert said(bench) == []


def test_a_disk_that_was_plugged_in_elsewhere_is_not_missed() -> None:
    bench = story(30.0)
    bench.add(ev.DiskMoved(at=18.0, disk=VICTIM, socket="hub1.4", place="", until=18.1))
    assert said(bench) == []
