"""The parts of the time of a temporary cable cut, from the start of its guest to its verdict.

Runs scenarios/test_temporary_cable_cut.py::test_while_writing on rigs/quick.toml and splits each run by its
history. Every part below but the last is a stretch of the DUT's clock between two events; none overlap.

enumeration  phase ``plug`` begins (everything gets its power) to the last of the declared disks is attached. It
             includes the few milliseconds per device for the commands to QEMU
load         phases ``load`` and ``settle``: fio's start on every disk and the seconds of steady load to compare with;
             and ``armed``: until the load has moved what the trigger asks for
removal      the switch acknowledged "off" to the victims are off the kernel's list; nothing if they were before
hold         phase ``hold``: as long as the scenario keeps the cable out
return       the switch acknowledged "on" to the victims are attached again
recovery     phase ``recover``: the survivors and the victim are watched
stopping     fio was asked to end to the last fio has ended
reading back phase ``verify``: fio reads what was written and compares
ours         everything else: restoring the guest, the first answer of the agent, the switches' commands and
             read-backs, the bookkeeping between the parts, healing, ending the guest, and judging

The total is wall time from before the guest is restored until the verdict is there. Judging is its part after the
history's last event.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import QUICK_RIG, ROOT, against, begin, console, notify, scratch, spread, table
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.history.story import Story
from plugpull.judging.results import Verdict
from plugpull.run import Options, Run, begin_run
from plugpull.scenario import ScenarioRig

SCENARIO = ROOT / "scenarios" / "test_temporary_cable_cut.py"
FUNCTION = "test_while_writing"
TOTAL_LIMIT = 10.0
OURS_LIMIT = 1.0
"""Seconds."""
PHASES = {
    "load": "load",
    "settle": "load",
    "armed": "load",
    "hold": "hold",
    "recover": "recovery",
    "verify": "reading back",
}
"""Phases that are not ours from beginning to end."""

E = TypeVar("E", bound=ev.Event)


@dataclass(frozen=True)
class Timing:
    """One run, in seconds. ``parts`` add up to ``total``; ``inside`` says what is known of ours."""

    verdict: Verdict
    total: float
    parts: dict[str, float]
    inside: dict[str, float]


def scenario() -> Callable[[ScenarioRig], None]:
    """The scenario's function, from its file."""
    spec = importlib.util.spec_from_file_location(SCENARIO.stem, SCENARIO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[ScenarioRig], None] = getattr(module, FUNCTION)
    return function


def last(events: Sequence[E]) -> float:
    return max((event.at or 0.0 for event in events), default=0.0)


def acknowledged(story: Story, state: str) -> float:
    return last([edge for edge in story.of(ev.Edge) if edge.state == state and edge.phase == "acknowledged"])


def stretches(story: Story, ended: float) -> list[tuple[str, float, float]]:
    """(part, begin, end) on the DUT's clock of everything that is not ours."""
    phases = [(phase.name, phase.at or 0.0) for phase in story.of(ev.Phase)]
    begins = dict(phases)
    ends = [at for _, at in phases[1:]] + [ended]
    victims = {victim for armed in story.of(ev.CutArmed) for victim in armed.victims}
    off, on = acknowledged(story, "off"), acknowledged(story, "on")
    detached = [event for event in story.of(ev.DiskDetached) if event.disk in victims]
    attached = story.of(ev.DiskAttached)
    back = [event for event in attached if event.disk in victims and (event.at or 0.0) >= begins["return"]]
    first = [event for event in attached if (event.at or 0.0) < begins["load"]]
    loads = story.of(ev.LoadEnded)
    asked = min((load.asked_at for load in loads if load.asked_at is not None), default=begins["stop"])
    return [
        ("enumeration", begins["plug"], last(first)),
        ("removal", off, last(detached)),
        ("return", on, last(back)),
        ("stopping", asked, max(asked, last([load for load in loads if load.asked]))),
        *((PHASES[name], at, end) for (name, at), end in zip(phases, ends, strict=True) if name in PHASES),
    ]


def split(story: Story, total: float, verdict: Verdict) -> Timing:
    ended = story.of(ev.ScenarioEnded)[-1]
    parts: dict[str, float] = {}
    for name, start, end in stretches(story, ended.at or 0.0):
        parts[name] = parts.get(name, 0.0) + max(0.0, end - start)
    parts["ours"] = total - sum(parts.values())
    inside = {name: ended.split.get(name, 0.0) for name in ("wake", "heal", "close")}
    # Healing is the first thing of closing, and counted there too.
    inside["close"] -= inside["heal"]
    inside["judging"] = total - ended.seconds
    begun = (ended.at or 0.0) - ended.seconds
    plug = next(phase.at or 0.0 for phase in story.of(ev.Phase) if phase.name == "plug")
    inside["what the agent runs on"] = plug - begun - inside["wake"]
    inside["edges and bookkeeping"] = parts["ours"] - sum(inside.values())
    return Timing(verdict, total, parts, inside)


def timed(run: Run, function: Callable[[ScenarioRig], None]) -> tuple[float, Verdict]:
    """Run the scenario once, as the plugin does; seconds until its verdict."""
    begun = time.monotonic()
    with run.scenario(f"{SCENARIO.name}::{FUNCTION}") as opened:
        function(opened.open())
        result = opened.close()
        return time.monotonic() - begun, result.verdict


def measure(count: int, out: Path) -> list[Timing]:
    run = begin_run(Options(rig=QUICK_RIG, out=out, seed=1), notify)
    taken: list[tuple[float, Verdict]] = []
    try:
        for number in range(count):
            taken.append(timed(run, scenario()))
            notify(f"run {number + 1}: {taken[-1][0]:.2f} s, {taken[-1][1].value}")
    finally:
        run.finish()
    stories = read_history(run.directory).stories
    return [split(story, total, verdict) for story, (total, verdict) in zip(stories, taken, strict=True)]


def main() -> None:
    options = begin(__doc__, n=(int, 5, "times the scenario is run"))
    with scratch() as folder:
        timings = measure(options.n, folder)
    total = statistics.median([timing.total for timing in timings])
    shown = table(f"{FUNCTION} on rigs/quick.toml, {options.n} runs", "part", "median s", "min", "max", "of total")
    for name in timings[0].parts:
        values = [timing.parts[name] for timing in timings]
        shown.add_row(name, *spread(values), f"{statistics.median(values) / total:.1%}")
    for name in timings[0].inside:
        shown.add_row(f"  {name}", *spread([timing.inside[name] for timing in timings]), "")
    shown.add_row("total", *spread([timing.total for timing in timings]), "")
    console.print(shown)
    verdicts = [timing.verdict.value for timing in timings]
    console.print("verdicts: " + ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts))))
    console.print(f"total: {against(total, TOTAL_LIMIT, 's')}")
    ours = statistics.median([timing.parts["ours"] for timing in timings])
    console.print(f"ours: {against(ours, OURS_LIMIT, 's')}")


if __name__ == "__main__":
    main()
