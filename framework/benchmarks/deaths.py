"""Deaths of the kernel at random moments: each must fail its scenario with its headline, and the next one must run.

A stock scenario of a stock virtual rig, a kind of death and a moment (uniform over the scenario's usual length) are
drawn. The guest's kernel crashes itself at that moment (`tests/modules/plugpull_dies.c`), so that the controller's
timing does not matter. Good is a verdict of FAIL, a finding that names this kind of death, and a next scenario that
passes. A death after the scenario's last check of the DUT proves nothing: it is counted as "after the end", and another
is drawn.

    oops        a kernel thread follows a bad pointer
    interrupt   the same in an interrupt, at which the kernel panics
    bug, warn   BUG() and WARN_ON() in a kernel thread
    lockup      all CPUs, or one of them (lockup1), run a kernel thread that never yields
    deaf        the same with interrupts off (deaf, deaf1)
    stall       one CPU stays in an RCU read-side section, while the soft lockup watchdog is kept quiet
    block       a kernel thread waits in state D for good
    reset       the machine is reset without a word; reboot: orderly, by the kernel

Results are appended to DIR/deaths.jsonl; where that has some already, the numbers go on from there. The usual lengths
are in DIR/seconds.json, made by a healthy run of all scenarios if they are not there. Exit status 1 after a miss.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "framework"), str(TOP / "framework" / "tests")]

import module_build  # noqa: E402

from benchmarks.deaths_plugin import ARMED, PLAN, dying, following  # noqa: E402
from plugpull.history import events as ev  # noqa: E402
from plugpull.history.reader import read_history  # noqa: E402
from plugpull.history.story import Story  # noqa: E402
from plugpull.judging.outcome import HISTORY_FILE  # noqa: E402
from plugpull.judging.results import ScenarioResult, Verdict  # noqa: E402
from plugpull.judging.results_io import read_results  # noqa: E402

RIGS = ("quick", "volatile-caches")
LONGEST = 600.0
"""Seconds per death that a run gets before it counts as one that hangs."""
_STOPS = r"soft lockup|detected (?:expedited )?stall|the DUT hung"
KINDS: dict[str, tuple[str, str]] = {
    "oops": ("astray", r"NULL pointer dereference.* in write_astray"),
    "interrupt": ("interrupt", r"NULL pointer dereference.* in write_astray"),
    "bug": ("bug", r"kernel BUG at .*plugpull_dies\.c:\d+"),
    "warn": ("warn", r"WARNING: .*warn\+0x\w+/0x\w+ \[plugpull_dies\]"),
    "lockup": ("lockup", rf"(?:{_STOPS}).*(?:spin_for_ever|plugpull/\d)"),
    "lockup1": ("lockup1", _STOPS),
    "deaf": ("deaf", r"the DUT hung: .*spin_for_ever"),
    "deaf1": ("deaf1", _STOPS),
    "stall": ("stall", r"rcu: .*detected (?:expedited )?stall|the DUT hung.*stall"),
    "block": ("block", r"kernel thread plugpull-block \(\d+\) is blocked|task plugpull-block:\d+ blocked"),
    "reset": ("reset", r"the guest reset itself"),
    "reboot": ("reboot", r"the guest restarted: reboot: Restarting system"),
}
"""Each kind's way (as the module takes it), and what a finding has to say."""
SLOW = frozenset({"lockup1", "deaf1", "stall", "block"})
"""Kinds that leave a guest half alive, in which a scenario takes minutes to give up: drawn a third as often."""


@dataclass(frozen=True)
class Death:
    """``after`` is milliseconds from the beginning of the scenario."""

    number: int
    rig: str
    scenario: str
    kind: str
    way: str
    after: int
    cpu: int


@dataclass(frozen=True)
class Outcome:
    """``came`` is when it came, in seconds from its arming; ``end`` when the last look at the DUT was over, None if
    that was never begun. ``headline`` is the finding that names it, ``first`` whether the scenario's sentence does."""

    death: Death
    came: float | None
    end: float | None
    verdict: str
    sentence: str
    headline: str
    first: bool
    after: str
    run: str

    @property
    def late(self) -> bool:
        return self.came is None or (self.end is not None and self.came > self.end)

    @property
    def good(self) -> bool:
        return self.late or (self.verdict == Verdict.FAIL and bool(self.headline) and self.after == Verdict.PASS)


# --- drawing ----------------------------------------------------------------------------------------------------------


def draw(number: int, seed: int, seconds: dict[str, dict[str, float]], rig: str) -> Death:
    generator = random.Random(f"{seed}:{number}")
    scenario = generator.choice(sorted(seconds[rig]))
    kind = generator.choice([kind for kind in KINDS for _ in range(1 if kind in SLOW else 3)])
    after = max(1, int(1000 * generator.uniform(0.0, seconds[rig][scenario])))
    return Death(number, rig, scenario, kind, KINDS[kind][0], after, generator.randrange(2))


def usual_seconds(folder: Path, rig: str) -> dict[str, dict[str, float]]:
    """How long each scenario takes on a rig while nothing happens, by its name."""
    file = folder / "seconds.json"
    known: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.exists() else {}
    if rig not in known:
        print(f"measuring how long the scenarios take on {rig}", flush=True)
        directory = run(rig, folder / "healthy", [], 60 * LONGEST)
        known[rig] = {one.id.partition("::")[2]: one.seconds for one in read_results(directory).scenarios}
        file.write_text(json.dumps(known, indent=1))
    return known


# --- running ----------------------------------------------------------------------------------------------------------


def run(rig: str, out: Path, arguments: Sequence[str], timeout: float, **environment: str) -> Path:
    """The directory of a run of the stock scenarios, which is interrupted after ``timeout`` seconds."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "plugpull", "run", str(TOP / "scenarios"), "--rig", str(TOP / f"rigs/{rig}.toml")]
    with (out / "said.txt").open("ab") as said:
        running = subprocess.Popen(
            [*command, "--out", str(out), *arguments],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": str(TOP / "framework"), **environment},
        )
        try:
            running.wait(timeout)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.wait(LONGEST)
    if not (out / "latest").is_dir():
        raise SystemExit(f"nothing was run, see {out}/said.txt")
    return (out / "latest").resolve()


def bring_down(deaths: Sequence[Death], module: Path, out: Path, seed: int, within: float) -> list[Outcome]:
    """What became of each death that there was time for."""
    out.mkdir(parents=True, exist_ok=True)
    plan = out / "plan.json"
    plan.write_text(json.dumps([asdict(death) for death in deaths]))
    directory = run(
        deaths[0].rig,
        out,
        ["--module", str(module), "--seed", str(seed)],
        within,
        PYTEST_PLUGINS="benchmarks.deaths_plugin",
        **{PLAN: str(plan)},
    )
    return judge(deaths, directory)


# --- judging ----------------------------------------------------------------------------------------------------------


def judge(deaths: Sequence[Death], directory: Path) -> list[Outcome]:
    """The outcomes of a run. One that was interrupted says nothing about what it had no time for."""
    results = {one.id.partition("::")[2]: one for one in read_results(directory).scenarios}
    history = read_history(directory / HISTORY_FILE)
    stories = {one.id.partition("::")[2]: one for one in history.stories}
    if history.ended is None or history.ended.interrupted:
        over = {name for name, story in stories.items() if story.ended and not _interrupted(story)}
        deaths = [one for one in deaths if {dying(one.number, one.scenario), following(one.number)} <= over]
    return [outcome(death, results, stories, directory) for death in deaths]


def _interrupted(story: Story) -> bool:
    return any(error.fault == "interrupt" for error in story.of(ev.ScenarioError))


def outcome(death: Death, results: dict[str, ScenarioResult], stories: dict[str, Story], directory: Path) -> Outcome:
    name = dying(death.number, death.scenario)
    result, after = results.get(name), results.get(following(death.number))
    came, end = moments(stories[name], death) if name in stories else (0.0, None)
    said = re.compile(KINDS[death.kind][1])
    findings = result.findings if result else ()
    headline = next((finding.summary for finding in findings if said.search(finding.summary)), "")
    return Outcome(
        death,
        came,
        end,
        str(result.verdict) if result else "not run",
        result.sentence if result else "",
        headline,
        bool(result and said.search(result.sentence)),
        str(after.verdict) if after else "not run",
        str(directory),
    )


def moments(story: Story, death: Death) -> tuple[float | None, float | None]:
    """When it came, and when the last look at the DUT was over, both in seconds from its arming. The module says so as
    it begins, in the log, or on the console if that is the last that is heard: what lived to the last look without
    having said so was to come after it. A timer of half a minute may be two seconds late (kernel/time/timer.c)."""
    armed = next((note.at for note in story.of(ev.Note) if note.text.startswith(ARMED)), None)
    if armed is None:
        return None, None
    lines: list[ev.KernelMessage | ev.ConsoleLine] = [*story.of(ev.KernelMessage), *story.of(ev.ConsoleLine)]
    said = [one.at for one in lines if one.text.endswith(f"plugpull_dies: {death.way}") and one.at is not None]
    looked = [state.at for state in story.of(ev.DutState) if state.moment == "end" and state.at is not None]
    if not said and looked:
        return None, looked[-1] - armed
    came = said[0] - armed if said else death.after / 1000
    return came, looked[-1] - armed if looked else None


def judge_again(lines: Iterable[str]) -> list[Outcome]:
    """What was found before, from the results' file."""
    return [Outcome(**{**data, "death": Death(**data["death"])}) for data in map(json.loads, lines)]


def show(outcomes: Sequence[Outcome]) -> None:
    late = [one for one in outcomes if one.late]
    count, good, first = Counter[str](), Counter[str](), Counter[str]()
    for one in outcomes:
        if not one.late:
            count[one.death.kind] += 1
            good[one.death.kind] += one.good
            first[one.death.kind] += one.first
    print(f"{'kind':<10} {'deaths':>6} {'good':>5} {'headline first':>14}")
    for kind in KINDS:
        print(f"{kind:<10} {count[kind]:>6} {good[kind]:>5} {first[kind]:>14}")
    print(f"{'all':<10} {count.total():>6} {good.total():>5} {first.total():>14}")
    print(f"{len(late)} more came after the end")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=8, help="deaths in this turn, all on one rig (default: 8)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default: 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="results, and the runs themselves")
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    parser.add_argument("--within", type=float, default=3600.0, help="seconds for this turn (default: 3600)")
    parser.add_argument("--longest", type=float, default=600.0, help="leave out scenarios that take longer (seconds)")
    parser.add_argument("--show", action="store_true", help="only show what is in the results' file")
    arguments = parser.parse_args(argv)
    file = arguments.out / "deaths.jsonl"
    known = judge_again(file.read_text().splitlines()) if file.exists() else []
    if not arguments.show:
        arguments.out.mkdir(parents=True, exist_ok=True)
        begin = max((one.death.number for one in known), default=-1) + 1
        rig = random.Random(f"{arguments.seed}:{begin}").choice(RIGS)
        known += turn(arguments, rig, begin, file)
    show(known)
    return 1 if any(not one.good for one in known) else 0


def turn(arguments: argparse.Namespace, rig: str, begin: int, file: Path) -> list[Outcome]:
    seconds = usual_seconds(arguments.out, rig)
    deaths: list[Death] = []
    number = begin
    while len(deaths) < arguments.n:
        death = draw(number, arguments.seed, seconds, rig)
        number += 1
        known = not arguments.only or death.kind in arguments.only.split(",")
        if known and seconds[rig][death.scenario] <= arguments.longest:
            deaths.append(death)
    module, folder = module_build.build("plugpull_dies"), arguments.out / f"runs-{begin}"
    found = bring_down(deaths, module, folder, arguments.seed, arguments.within)
    with file.open("a") as results:
        results.writelines(json.dumps(asdict(one)) + "\n" for one in found)
    for one in found:
        state = "after the end" if one.late else "good" if one.good else "MISS"
        print(f"{one.death.number} {one.death.kind} in {one.death.scenario} at {one.death.after / 1000:.1f} s: {state}")
        if not one.good:
            print(f"  {one.sentence}\n  next: {one.after}; {one.run}")
    return found


if __name__ == "__main__":
    sys.exit(main())
