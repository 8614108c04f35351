"""Findings that look alike are said once, with what they have in common and what the scenarios that passed lack."""

from __future__ import annotations

import report_stories as made
from msgspec.structs import replace

from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.report.alike import Alike, ScenarioFacts, alike, facts_of
from plugpull.report.html import render_html

RIG = {
    "controller": [{"name": "usb"}, {"name": "other"}],
    "hub": [{"name": "hub1", "at": "usb.1"}],
    "disk": [
        {"name": "disk1", "at": "hub1.1"},
        {"name": "disk2", "at": "hub1.2"},
        {"name": "disk3", "at": "hub1.3"},
        {"name": "disk9", "at": "other.1"},
    ],
}


def scenario(*findings: Finding, mechanism: str = "data", victim: str = "disk1") -> ScenarioResult:
    one = made.failing() if findings else made.passing()
    cuts = (made.changed(one.cuts[0], mechanism=mechanism, victims=(victim,)),)
    verdict = Verdict.FAIL if findings else Verdict.PASS
    return replace(one, verdict=verdict, findings=findings, cuts=cuts, survivors=())


def stall(disk: str, seconds: float) -> Finding:
    return Finding(check="kept_pace", subject=disk, summary=f"{disk} stood still for {seconds:g} s (limit 2 s)")


def facts(one: ScenarioResult, driver: str = "usb-storage", mode: ev.LoadMode = "read") -> ScenarioFacts:
    attached = [
        ev.DiskAttached(
            at=1.0, disk=disk, kname="sda", diskseq=1, devt="8:0", serial="", place="", size=1, driver=driver
        )
        for disk in ("disk1", "disk2", "disk3")
    ]
    load = ev.LoadBegun(at=2.0, disk="disk2", job="x", mode=mode, block=1, depth=1, span=1)
    return facts_of(one, (*attached, load), RIG)


def groups(*scenarios: tuple[ScenarioResult, ScenarioFacts]) -> tuple[Alike, ...]:
    return alike([(f"s{number}", *one) for number, one in enumerate(scenarios, 1)])


def test_alike_findings_are_said_once_with_the_range_of_their_numbers() -> None:
    one, two, passed = scenario(stall("disk2", 3.9)), scenario(stall("disk3", 4.1)), scenario(mechanism="mains")
    (found,) = groups((one, facts(one)), (passed, facts(passed, "uas", "write")), (two, facts(two)))
    assert found.text == "survivors stood still for 3.9 to 4.1 s (limit 2 s)"
    assert found.scenarios == (("s1", 1), ("s3", 3))
    assert found.of == 3
    assert found.common == ("driver usb-storage", "controller usb", "hub hub1", "mechanism data", "load read")


def test_what_the_passing_scenarios_lack_is_said() -> None:
    one, two, passed = scenario(stall("disk2", 3.9)), scenario(stall("disk2", 4.1)), scenario(mechanism="mains")
    (found,) = groups((one, facts(one)), (two, facts(two)), (passed, facts(passed, "usb-storage", "read")))
    assert found.text == "disk2 stood still for 3.9 to 4.1 s (limit 2 s)"
    assert found.lacking == ("mechanism data",)
    (alone,) = groups((one, facts(one)), (two, facts(two)))
    assert alone.lacking == (), "nothing passed"


def test_what_is_different_is_not_said_together() -> None:
    other = Finding(check="kept_pace", subject="disk2", summary="disk2 ended at 10% of its baseline")
    another_check = replace(stall("disk2", 4.0), check="answered")
    one, two, three = scenario(stall("disk2", 3.9)), scenario(other), scenario(another_check)
    assert groups(*((each, facts(each)) for each in (one, two, three))) == ()


def test_a_finding_of_one_scenario_is_not_repeated() -> None:
    one, two = scenario(stall("disk2", 3.9), stall("disk3", 4.0)), scenario()
    assert groups((one, facts(one)), (two, facts(two))) == ()


def test_victims_and_survivors_together_are_disks() -> None:
    one, two = scenario(stall("disk1", 3.0)), scenario(stall("disk2", 3.0))
    (found,) = groups((one, facts(one)), (two, facts(two)))
    assert found.text == "disks stood still for 3 s (limit 2 s)"


def test_names_that_hold_numbers_and_other_names_are_whole() -> None:
    finding = Finding(check="x", subject="disk10", summary="disk10 on usb 1-1.2 and disk1: 5 errors")
    again = Finding(check="x", subject="disk1", summary="disk1 on usb 1-1.2 and disk10: 7 errors")
    one, two = scenario(finding, victim="disk10"), scenario(again, victim="disk10")
    (found,) = groups((one, facts(one)), (two, facts(two)))
    assert found.text == "disks on usb 1-1.2 and a disk: 5 to 7 errors"


def test_the_report_says_it_above_the_scenarios() -> None:
    hostile = "<script>alert(1)</script>\x1b"
    findings = [Finding(check="c", subject="disk2", summary=f"{hostile} took {n} s") for n in (3, 4)]
    one, two = (scenario(finding) for finding in findings)
    results = replace(made.run().results, scenarios=(one, two), verdict=Verdict.FAIL)
    page = render_html(results, [(), ()])
    assert "2 of 2 scenarios" in page
    assert "took 3 to 4 s" in page
    assert "<script>alert" not in page
    assert "2 of 2 scenarios" not in render_html(replace(results, scenarios=(one,)), [()])
