"""JUnit XML, as CI servers read it: one testsuite a run, one testcase a scenario.

FAIL is a ``failure`` (the DUT did something wrong), UNKNOWN an ``error`` (the rig did, or evidence is missing).
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from plugpull.finding import Finding
from plugpull.judging.results import Results, ScenarioResult, Skipped, Verdict
from plugpull.plain import clean
from plugpull.report.text import cuts_executed, stamp


def render_junit(results: Results) -> str:
    """The run as JUnit XML, one document. Valid XML 1.0 for any strings in ``results``."""
    root = ET.Element("testsuites", _counts(results) | {"name": "plugpull"})
    suite = ET.SubElement(root, "testsuite", _counts(results) | {"name": clean(f"plugpull.{results.rig}")})
    suite.set("timestamp", clean(results.started))
    _properties(suite, _run_properties(results))
    for scenario in results.scenarios:
        _case(suite, scenario)
    for skipped in results.skipped:
        _skipped(suite, skipped)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(results: Results) -> dict[str, str]:
    verdicts = [scenario.verdict for scenario in results.scenarios]
    return {
        "tests": str(len(verdicts) + len(results.skipped)),
        "failures": str(verdicts.count(Verdict.FAIL)),
        "errors": str(verdicts.count(Verdict.UNKNOWN)),
        "skipped": str(len(results.skipped)),
        "time": f"{results.seconds:.3f}",
    }


def _run_properties(results: Results) -> dict[str, str]:
    cuts = [cut for scenario in results.scenarios for cut in scenario.cuts]
    return {
        "verdict": results.verdict,
        "sentence": results.sentence,
        "cuts": cuts_executed(cuts),
        "complete": str(results.complete).lower(),
        "edited": str(results.edited).lower(),
        "unknowns": "; ".join(results.unknowns),
        "rig": results.rig,
        "kernel": results.dut.kernel,
        "dut": results.dut.kind,
        "accel": results.dut.accel,
        "fio": results.dut.fio,
        "seed": str(results.seed),
        "plugpull": results.plugpull,
    }


def _properties(parent: ET.Element, values: dict[str, str]) -> None:
    block = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(block, "property", {"name": name, "value": clean(value)})


def _case(suite: ET.Element, scenario: ScenarioResult) -> None:
    case = ET.SubElement(suite, "testcase", _name(scenario.id) | {"time": f"{scenario.seconds:.3f}"})
    properties = {"verdict": str(scenario.verdict), "cuts": cuts_executed(scenario.cuts), "seed": str(scenario.seed)}
    if scenario.row:
        properties["row"] = scenario.row
    for number, cut in enumerate(scenario.cuts, start=1):
        properties[f"cut.{number}"] = f"{cut.point} ({cut.mechanism}), {cut.trigger}"
    _properties(case, properties)
    if scenario.verdict is Verdict.FAIL:
        _outcome(case, "failure", "finding", scenario.sentence, _findings(scenario.findings) + _unknowns(scenario))
    elif scenario.verdict is Verdict.UNKNOWN:
        _outcome(case, "error", "unknown", scenario.sentence, _unknowns(scenario) + _findings(scenario.findings))
    if scenario.checks:
        lines = [f"{c.verdict:8}{c.check}{f' {c.subject}' if c.subject else ''}: {c.worst}" for c in scenario.checks]
        ET.SubElement(case, "system-out").text = clean("\n".join(lines))


def _name(scenario_id: str) -> dict[str, str]:
    path, separator, name = clean(scenario_id).partition("::")
    return {
        "classname": path.removesuffix(".py").replace("/", ".") if separator else "plugpull",
        "name": name or path,
    }


def _skipped(suite: ET.Element, skipped: Skipped) -> None:
    case = ET.SubElement(suite, "testcase", _name(skipped.id) | {"time": "0.000"})
    ET.SubElement(case, "skipped", {"message": clean(skipped.reason)})


def _outcome(case: ET.Element, tag: str, kind: str, message: str, lines: list[str]) -> None:
    outcome = ET.SubElement(case, tag, {"type": kind, "message": clean(message)})
    outcome.text = clean("\n".join(lines) or message)


def _findings(findings: tuple[Finding, ...]) -> list[str]:
    lines = []
    for finding in findings:
        at = f" at {stamp(finding.at)} s" if finding.at is not None else ""
        lines.append(f"{finding.check}: {finding.subject}: {finding.summary}{at}")
        lines += [f"    {line}" for line in finding.evidence]
    return lines


def _unknowns(scenario: ScenarioResult) -> list[str]:
    return [f"unknown: {reason}" for reason in scenario.unknowns]
