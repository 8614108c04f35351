"""JUnit XML: the counts CI servers read, the reasons, and validity whatever the strings hold."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import report_stories as made
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.finding import Finding
from plugpull.judging.results import CheckResult, Verdict
from plugpull.report.junit import render_junit


def properties(element: ET.Element) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in element.iterfind("properties/property")}


def test_one_suite_with_a_case_per_scenario_and_true_counts() -> None:
    root = ET.fromstring(render_junit(made.run().results))
    suite = root.find("testsuite")
    assert suite is not None
    for element in (root, suite):
        counts = {name: element.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    passed, failed, unknown = suite.findall("testcase")
    assert passed.attrib["classname"] == "scenarios.test_cable"
    assert passed.attrib["name"] == "test_temporary_cable_cut_while_writing[disk1]"
    assert (passed.find("failure"), passed.find("error")) == (None, None)
    assert failed.find("error") is None
    assert unknown.find("failure") is None


def test_a_failure_carries_the_findings_and_an_error_the_reasons() -> None:
    root = ET.fromstring(render_junit(made.run().results))
    failure, error = root.find(".//failure"), root.find(".//error")
    assert failure is not None
    assert error is not None
    assert failure.attrib["message"] == made.failing().sentence
    assert "stalled for 3.05 s after cut 1" in (failure.text or "")
    assert "    113.320   0.0 MB/s  (31 samples)" in (failure.text or "")
    assert "armed but never commanded" in (error.text or "")


def test_properties_tell_the_verdict_and_the_cuts() -> None:
    root = ET.fromstring(render_junit(made.run().results))
    suite = root.find("testsuite")
    assert suite is not None
    assert properties(suite)["verdict"] == "FAIL"
    assert properties(suite)["cuts"] == "2 of 3 cuts executed"
    cases = [properties(case) for case in suite.findall("testcase")]
    assert [case["verdict"] for case in cases] == ["PASS", "FAIL", "UNKNOWN"]
    assert [case["cuts"] for case in cases] == ["1 of 1 cut executed"] * 2 + ["0 of 1 cut executed"]


@given(st.text(st.characters(), max_size=40))
@settings(deadline=None)
def test_the_xml_is_valid_whatever_the_strings_hold(text: str) -> None:
    scenario = made.changed(
        made.failing(),
        id=text,
        sentence=text,
        unknowns=(text,),
        findings=(Finding(check=text, subject=text, summary=text, evidence=(text,)),),
        checks=(CheckResult(check=text, verdict=Verdict.FAIL, worst=text),),
    )
    results = made.changed(made.results_of(scenario), rig=text, sentence=text, started=text)
    root = ET.fromstring(render_junit(results).encode())
    assert len(root.findall(".//failure")) == 1
