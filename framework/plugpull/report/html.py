"""The report of a run: one HTML file that needs no network, no JavaScript and no other file to be read or printed.

JavaScript, where it runs, adds zooming (uPlot, inlined). The page forbids itself every fetch by its own
Content-Security-Policy, and lets no script run but its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from plugpull.history.events import Event, RunBegun
from plugpull.history.reader import Story
from plugpull.history.tape import tape_of
from plugpull.judging.results import Results, RunPart, ScenarioResult, Verdict
from plugpull.plain import clean
from plugpull.report import hexdump, text
from plugpull.report.alike import Alike, alike, facts_of
from plugpull.report.compiled import CompiledTemplates
from plugpull.report.figures import figures
from plugpull.report.overview import Overview, overview, place
from plugpull.report.rerun import run_again, scenario_again
from plugpull.report.sections import EARLIER_SHAPES, Section, section, worst_case


def render_html(
    results: Results,
    stories: Mapping[str, Sequence[Event]] | Sequence[Sequence[Event]],
    sparkline: Sequence[tuple[str, Verdict]] | None = None,
    *,
    begun: RunBegun | None = None,
    kernel_log: str = "kernel.log",
) -> str:
    """The report as one HTML document.

    ``stories`` are the events of each scenario: by its id, or in the order of ``results.scenarios`` (which is needed
    where one id comes twice, as with several kernels). ``events_of`` makes them of a history. A scenario without
    events is reported without a chart.
    ``sparkline`` are the verdicts of earlier runs, oldest first, each with what to call it. ``begun`` gives the
    command line that made the run. ``kernel_log`` is where the whole kernel log is, relative to the report.
    """
    pairs = _paired(results, stories)
    sections = [section(number, *pair) for number, pair in enumerate(pairs, 1)]
    argv = begun.argv if begun is not None else ()
    script = _asset("vendor/uplot/uPlot.iife.min.js") + "\n" + _asset("templates/chart.js")
    template = _environment().get_template("report.html.j2")
    return template.render(
        results=results,
        sections=sections,
        figures=figures(results),
        alike=_alike(sections, pairs, begun),
        overview=_overview(sections, [events for _, events in pairs], one_bench=not results.parts),
        tally=_tally(results),
        under_test=_under_test(results, begun),
        cuts=text.cuts_executed(cut for scenario in results.scenarios for cut in scenario.cuts),
        earlier=[(name, verdict, EARLIER_SHAPES[verdict]) for name, verdict in sparkline or ()],
        environment=_facts(results, begun),
        command=run_again(argv, [scenario.id for scenario in results.scenarios], results.seed),
        again=lambda scenario: scenario_again(argv, scenario.id, scenario.seed or results.seed),
        kernel_log=kernel_log,
        style=Markup(_asset("vendor/uplot/uPlot.min.css") + "\n" + _asset("templates/report.css")),
        script=Markup(script),
        script_hash=_csp_hash(script),
        **_page_data({part.anchor: part.data for part in sections if part.data is not None}),
    )


def events_of(stories: Iterable[Story]) -> list[Sequence[Event]]:
    """The events of each of these scenarios, after the earlier ones that still hold, for ``render_html``."""
    return [tape_of(story.events).after(story.before) for story in stories]


def _alike(
    sections: Sequence[Section], pairs: Iterable[tuple[ScenarioResult, Sequence[Event]]], begun: RunBegun | None
) -> tuple[Alike, ...]:
    """The findings that several scenarios have."""
    rig = begun.rig if begun is not None else {}
    known = [
        (part.anchor, one, facts_of(one, events, rig)) for part, (one, events) in zip(sections, pairs, strict=True)
    ]
    return alike(known) if sum(bool(one.findings) for _, one, _ in known) > 1 else ()


def _overview(sections: Sequence[Section], stories: Sequence[Sequence[Event]], *, one_bench: bool) -> Overview | None:
    drawn = [
        (number, part.anchor, part.scenario, part.timeline, events)
        for number, (part, events) in enumerate(zip(sections, stories, strict=True), 1)
        if not part.timeline.empty
    ]
    return overview(place(drawn, one_bench=one_bench)) if drawn else None


def _paired(
    results: Results, stories: Mapping[str, Sequence[Event]] | Sequence[Sequence[Event]]
) -> list[tuple[ScenarioResult, Sequence[Event]]]:
    if isinstance(stories, Mapping):
        return [(scenario, stories.get(scenario.id, ())) for scenario in results.scenarios]
    return [(s, stories[index] if index < len(stories) else ()) for index, s in enumerate(results.scenarios)]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(
        loader=FunctionLoader(lambda name: _asset(f"templates/{name}")),
        undefined=StrictUndefined,
        finalize=_finalize,
        bytecode_cache=CompiledTemplates(Path(__file__).with_name("templates"), options),
        **options,
    )
    for function in (
        text.stamp,
        text.offset,
        text.duration,
        text.rate,
        text.size,
        text.ratio,
        text.measure,
        text.error_bound,
        text.skew,
        text.title_of,
    ):
        environment.filters[function.__name__] = function
    environment.filters["worst_case"] = worst_case
    environment.globals["hexdump"] = hexdump.rows
    environment.globals["ascii_of"] = hexdump.ascii_of
    return environment


def _finalize(value: Any) -> Any:
    """What every ``{{ ... }}`` goes through before it is escaped: control characters made visible."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return (files("plugpull.report") / name).read_text(encoding="utf-8")


def _csp_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _page_data(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the charts for the page: as JSON, or deflated and in base64 if they are many."""
    encoded = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    if len(encoded) <= INFLATED:
        return {"data": _inert(encoded), "packing": ""}
    packed = base64.b64encode(zlib.compress(encoded.encode(), LEVEL)).decode()
    return {"data": Markup(packed), "packing": "deflate", "keys": " ".join(data)}


LEVEL = 5
"""Of compression: a level of 9 takes seven times as long and makes the numbers of eight hours 6 % smaller."""
INFLATED = 500_000
"""Bytes of the charts' numbers that a page holds as they are. A browser without DecompressionStream (before Chrome 80,
Firefox 113, Safari 16.4) shows the drawings alone if there are more."""


def _inert(encoded: str) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or begin a comment."""
    return Markup(encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _tally(results: Results) -> str:
    verdicts = [scenario.verdict for scenario in results.scenarios]
    noun = "scenario" if len(verdicts) == 1 else "scenarios"
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts]
    skipped = f", {len(results.skipped)} skipped" if results.skipped else ""
    return f"{len(verdicts)} {noun}" + (f": {', '.join(parts)}" if parts else "") + skipped


def _under_test(results: Results, begun: RunBegun | None) -> str:
    dut = results.dut
    declared = begun.rig.get("dut", {}) if begun is not None else {}
    return text.under_test(dut.kernel, dut.kind, dut.accel, dut.modules, str(declared.get("host") or ""))


def _part(part: RunPart) -> str:
    shard = f" (shard {part.shard})" if part.shard else ""
    count = f"{part.scenarios} scenario{'s' * (part.scenarios != 1)}"
    return f"{part.name}{shard}: {count} in {text.duration(part.seconds)}{'' if part.complete else ', incomplete'}"


def _facts(results: Results, begun: RunBegun | None) -> list[tuple[str, str]]:
    dut = results.dut
    facts = [
        ("Rig", results.rig),
        ("Under test", _under_test(results, begun)),
        ("Kernel", dut.kernel),
        ("Kernels of scenarios", ", ".join(sorted({s.kernel for s in results.scenarios if s.kernel} - {dut.kernel}))),
        ("CPUs of the DUT", str(dut.cpus) if dut.cpus else ""),
        ("Memory of the DUT", text.size(dut.memory_bytes) if dut.memory_bytes else ""),
        ("fio", dut.fio),
        ("Modules under test", ", ".join(dut.modules)),
        ("plugpull", results.plugpull),
        ("Seed", str(results.seed)),
        ("Turn", str(begun.turn) if begun is not None and begun.turn is not None else ""),
        ("Begun", results.started),
        ("Took", text.duration(results.seconds)),
        ("Parts", "; ".join(map(_part, results.parts))),
    ]
    controller = results.controller or (begun.controller if begun else {})
    facts += [(f"Controller, {key}", value) for key, value in controller.items()]
    return [(name, value) for name, value in facts if value]
