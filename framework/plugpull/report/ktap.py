"""KTAP version 1, as the kernel's test tools read it (Documentation/dev-tools/ktap.rst).

One test per scenario; its checks are its subtests. UNKNOWN is ``not ok`` with the directive ``ERROR``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plugpull.finding import Finding
from plugpull.judging.results import CheckResult, Measurement, Results, ScenarioResult, Verdict
from plugpull.plain import clean_line
from plugpull.report.text import one_line, stamp

HEADER = "KTAP version 1"
LONGEST = 200
"""Characters of a diagnostic line's text at most."""


def render_ktap(results: Results) -> str:
    """The run as KTAP. A run that is UNKNOWN whatever its scenarios are has a last test of its own."""
    unknowns = results.unknowns or (() if results.scenarios or results.skipped else ("no scenario was run",))
    count = len(results.scenarios) + len(results.skipped) + bool(unknowns)
    lines = [HEADER, f"1..{count}", f"# plugpull: rig={_text(results.rig)} kernel={_text(results.dut.kernel)}"]
    for number, scenario in enumerate(results.scenarios, start=1):
        lines += _scenario(number, scenario)
    for number, skipped in enumerate(results.skipped, start=len(results.scenarios) + 1):
        lines.append(f"ok {number} - {_text(skipped.id)} # SKIP {_text(skipped.reason)}")
    if unknowns:
        lines += [f"# plugpull: unknown: {_text(reason)}" for reason in unknowns]
        lines.append(f"not ok {count} - the run as a whole # ERROR {_text(unknowns[0])}")
    return "\n".join(lines) + "\n"


def _scenario(number: int, scenario: ScenarioResult) -> Iterator[str]:
    if scenario.checks:
        yield f"  {HEADER}"
        # Older parsers know the end of the subtests by this name.
        yield f"  # Subtest: {_text(scenario.id)}"
        yield f"  1..{len(scenario.checks)}"
        yield from (f"  {line}" for line in _checks(scenario.checks))
    yield from (f"# plugpull: {_measured(one)}" for one in scenario.measurements)
    yield from (f"# plugpull: finding: {_finding(one)}" for one in scenario.findings)
    yield from (f"# plugpull: unknown: {_text(reason)}" for reason in scenario.unknowns)
    yield _line(number, scenario.id, scenario.verdict, scenario.unknowns)


def _checks(checks: Sequence[CheckResult]) -> Iterator[str]:
    for number, check in enumerate(checks, start=1):
        name = f"{check.check} {check.subject}".strip()
        yield _line(number, name, check.verdict, (check.worst,) if check.worst else ())


def _line(number: int, name: str, verdict: Verdict, reasons: Sequence[str]) -> str:
    if verdict is Verdict.UNKNOWN:
        return f"not ok {number} - {_text(name)} # ERROR {_text(reasons[0]) if reasons else 'unknown'}"
    return f"{'ok' if verdict is Verdict.PASS else 'not ok'} {number} - {_text(name)}"


def _finding(finding: Finding) -> str:
    at = f" at {stamp(finding.at)} s" if finding.at is not None else ""
    return f"{_text(finding.check)}: {_text(finding.subject)}: {_text(finding.summary)}{at}"


def _measured(one: Measurement) -> str:
    return f"{_text(one.name)} {_text(one.subject)}={one.value:g} {_text(one.unit)}".rstrip()


def _text(text: str) -> str:
    """Foreign text on one line without ``#``, which begins a directive."""
    return one_line(clean_line(text).replace("#", "No."), LONGEST)
