"""A run as Markdown, for a pull request, an issue or a chat: short, and nothing in it can format, link or mention."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from plugpull.judging.results import Results, ScenarioResult, Verdict
from plugpull.plain import clean_line
from plugpull.report.alike import alike, facts_of
from plugpull.report.bisecting import bisection
from plugpull.report.text import duration, one_line, stamp, title_of, under_test

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&$^=])")
MOST = 20
"""Findings of one scenario at most."""
LONGEST = 300
"""Characters of a foreign text at most."""


def render_markdown(results: Results) -> str:
    """The run as Markdown."""
    dut = results.dut
    tested = escaped(under_test(dut.kernel, dut.kind, dut.accel, dut.modules))
    when = f"seed {results.seed}, begun {escaped(results.started)}, took {duration(results.seconds)}"
    lines = [
        f"## {results.verdict}: {escaped(results.rig)}",
        "",
        escaped(results.sentence),
        "",
        f"{tested}, plugpull {escaped(results.plugpull)}, {when}",
        "",
        *_table(results),
        *_alike(results),
    ]
    for scenario in results.scenarios:
        lines += _reasons(scenario)
    if results.unknowns:
        lines += ["", "### The run as a whole is UNKNOWN", ""]
        lines += [f"- {escaped(reason)}" for reason in results.unknowns]
    lines += _between_kernels(results)
    return "\n".join(lines) + "\n"


def _table(results: Results) -> Iterator[str]:
    yield "| verdict | scenario | cuts | took |"
    yield "|---|---|---:|---:|"
    for one in results.scenarios:
        yield f"| {one.verdict} | {escaped(title_of(one.id))} | {len(one.cuts)} | {duration(one.seconds)} |"
    for skipped in results.skipped:
        yield f"| skipped | {escaped(title_of(skipped.id))}: {escaped(skipped.reason)} | | |"


def _alike(results: Results) -> Iterator[str]:
    """What several scenarios have, said once."""
    groups = alike([("", one, facts_of(one, (), {})) for one in results.scenarios])
    if groups:
        yield from ("", "### Findings of several scenarios", "")
    for one in groups:
        common = f"\\. In common: {escaped(', '.join(one.common))}" if one.common else ""
        lacking = f"\\. No scenario that passed has {escaped(' or '.join(one.lacking))}" if one.lacking else ""
        yield f"- {escaped(one.text)}: {len(one.scenarios)} of {one.of} scenarios{common}{lacking}"


def _reasons(scenario: ScenarioResult) -> Iterator[str]:
    if not scenario.findings and not scenario.unknowns:
        return
    yield from ("", f"### {scenario.verdict}: {escaped(title_of(scenario.id))}", "", escaped(scenario.id), "")
    for finding in scenario.findings[:MOST]:
        at = f", at {stamp(finding.at)} s" if finding.at is not None else ""
        yield f"- **{escaped(finding.subject)}** {escaped(finding.summary)} ({escaped(finding.check)}{escaped(at)})"
    yield from (f"- unknown: {escaped(reason)}" for reason in scenario.unknowns[:MOST])
    more = max(0, len(scenario.findings) - MOST) + max(0, len(scenario.unknowns) - MOST)
    if more:
        yield f"- and {more} more in results\\.json"


def _between_kernels(results: Results) -> Iterator[str]:
    """A hint for a bisection where one scenario passed on one kernel and failed on another."""
    verdicts: defaultdict[str, dict[str, Verdict]] = defaultdict(dict)
    for one in results.scenarios:
        verdicts[one.id][one.kernel] = one.verdict
    for scenario, by_kernel in verdicts.items():
        good = [kernel for kernel, verdict in by_kernel.items() if verdict is Verdict.PASS and kernel]
        bad = [kernel for kernel, verdict in by_kernel.items() if verdict is Verdict.FAIL and kernel]
        if good and bad:
            yield from ("", f"### {escaped(title_of(scenario))} differs between kernels", "")
            yield f"It passes on {escaped(good[-1])} and fails on {escaped(bad[0])}. To find the commit:"
            yield from ("", *(f"    {command}" for command in bisection(scenario, good[-1], bad[0])))


def escaped(text: str) -> str:
    """Foreign text on one line, with what Markdown or HTML would take as markup made plain, mentions included."""
    line = one_line(clean_line(text), LONGEST)
    marked = _SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\&", "&amp;")
    return marked.replace("@", "@\u200b").replace("://", ":\u200b//")
