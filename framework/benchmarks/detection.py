"""The detection matrix: every defect of the emulated disks, under every kind of cut, over usb-storage and UAS.

Each cell is a scenario on its own bench: stamped writes (or another load that shows the defect) on a disk with the
defect and on a healthy one, one or more cuts, everything read back and judged. The responsible check must find each
defect, with the damage named and placed. Legal losses must not be reported, and a healthy disk must pass. ``--write``
puts the table into framework/plugpull/integrity/DETECTION.md; with ``--only`` its rows alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from benchmarks.measure import ROOT, begin, console, scratch
from plugpull.checks import Check, kept_pace, kernel_clean, no_errors, nothing_lost
from plugpull.faults import at_random
from plugpull.integrity.patterns import Stamped, Writing, flushed_writes
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.run import Options, begin_run
from plugpull.scenario import ScenarioRig

TABLE = ROOT / "framework" / "plugpull" / "integrity" / "DETECTION.md"
CUTS = ("data", "power", "hub")
PROTOCOLS = ("usb-storage", "uas")
SPAN = 2 << 20
SMALL = Stamped("random 4 KiB writes, a flush every 64", flushed_writes.writing, span=SPAN)
LARGE = Stamped("sequential 120 KiB writes", Writing(block=240, depth=2, order="sequential", flush_ms=500), span=SPAN)
UNFLUSHED = Stamped("random 32 KiB writes, never flushed", Writing(block=64, depth=4), span=12 << 20)
EVERYWHERE = Stamped("random 4 KiB writes everywhere", flushed_writes.writing, span=16 << 20)


@dataclass(frozen=True)
class Case:
    """A defect. ``shows`` are the cuts under which it must be found, ``words`` of which one has to be in the finding. A
    defect of ``pace`` is given to the disk that is not cut. ``keys`` go into its ``[[defect]]`` table."""

    kind: str
    shows: tuple[str, ...]
    words: tuple[str, ...]
    why_not: str = ""
    pattern: Stamped = SMALL
    pace: bool = False
    keys: str = ""
    cache: str = "1 MiB"
    rate: str = ""
    rounds: int = 3


_POWER = "the disk keeps its power, and with it its cache"
CASES = (
    Case("healthy", (), ()),
    Case("flush-lost", ("power",), ("durable lost", "stale", "zeroed"), _POWER),
    Case("cache-lied", ("power",), ("durable lost", "stale", "zeroed"), _POWER),
    Case("reordered", ("power",), ("durable lost", "stale"), _POWER),
    Case("torn-sector", ("power",), ("torn", "corrupt"), _POWER),
    Case("stale", ("power",), ("durable lost", "stale", "zeroed"), _POWER),
    Case("misdirected", CUTS, ("misdirected", "durable lost", "stale"), pattern=EVERYWHERE, rounds=1),
    Case("wraps", CUTS, ("misdirected",), pattern=EVERYWHERE, rounds=1),
    Case("capacity-off-by-one", CUTS, ("the last of the disk",), rounds=1),
    Case("bit-flips", CUTS, ("corrupt", "flipped"), rounds=1),
    Case("errors-at", CUTS, ("failed to write",), keys="sector = 1000", rounds=1),
    Case("long-transfer-stall", CUTS, ("stood still",), pattern=LARGE, pace=True, keys="every = 300", rounds=1),
    Case("command-timeout", CUTS, ("stood still", "error"), pattern=SMALL, pace=True, keys="every = 300", rounds=1),
    Case(
        "cache-collapse",
        CUTS,
        ("pace", "baseline", "%"),
        pattern=UNFLUSHED,
        pace=True,
        cache="4 MiB",
        rate="6 MiB/s",
        rounds=1,
    ),
)

RIG = """
[rig]
name = "detection"
[dut]
kind = "virtual"
[[switch]]
name = "cables"
driver = "virtual"
ports = 3
mechanism = "data"
[[switch]]
name = "mains"
driver = "virtual"
ports = 2
mechanism = "mains"
[[controller]]
name = "usb"
model = "qemu-xhci"
ports = 4
{hub}
[[disk]]
name = "disk1"
at = "{at1}"
serial = "DETECT-1"
size = "16 MiB"
cache = "{cache}"
{rate}
protocol = "{protocol}"
scratch = true
cable = "cables.1"
power = "mains.1"
[[disk]]
name = "disk2"
at = "usb.3"
serial = "DETECT-2"
size = "16 MiB"
cache = "{cache}"
{rate}
protocol = "{protocol}"
scratch = true
cable = "cables.2"
power = "mains.2"
"""
HUB = '[[hub]]\nname = "hub1"\nat = "usb.2"\nports = 4\ncable = "cables.3"'


@dataclass(frozen=True)
class Cell:
    """What came of one case under one cut. ``text`` is what the table says."""

    case: Case
    cut: str
    protocol: str
    right: bool
    text: str
    seconds: float


def rig_text(case: Case, cut: str, protocol: str) -> str:
    # An emulated hub is full speed only, which UAS is not made for: there a hub's cut is that of all its ports at once.
    behind = cut == "hub" and protocol == "usb-storage"
    rate = f'rate = "{case.rate}"' if case.rate else ""
    text = RIG.format(
        hub=HUB if behind else "", at1="hub1.1" if behind else "usb.1", cache=case.cache, rate=rate, protocol=protocol
    )
    if case.kind == "healthy":
        return text
    return f'{text}\n[[defect]]\nkind = "{case.kind}"\ndisk = "disk{2 if case.pace else 1}"\n{case.keys}\n'


def story(rig: ScenarioRig, case: Case, cut: str) -> tuple[Check, ...]:
    """Run the loads and the cuts; the checks that are to be judged."""
    victim, other = rig.disks
    points = (
        (victim.power,) if cut == "power" else (rig.hubs[0].cable,) if cut == "hub" and rig.hubs else (victim.cable,)
    )
    disks = (victim, other)
    with rig.stamp(disks, case.pattern) as load:
        load.settle()
        for number in range(case.rounds):
            with rig.cut(*points, when=at_random(0.2, 0.8)):
                rig.wait(seconds=0.2)
            if case.pace:
                rig.wait(seconds=3)
                load.regain_pace()
            if number + 1 < case.rounds:
                load.next_round()
    cut_too = {name for point in points for name in point.victims}
    survivors = [disk for disk in disks if disk.name not in cut_too]
    pace = (kept_pace(survivors),) if case.pace else ()
    return (nothing_lost(), kernel_clean(), no_errors(survivors), *pace)


ATTEMPTS = 4
"""What could not be measured (UNKNOWN: a disk that stood still when its pace was taken) is measured again, so often."""


def run_cell(case: Case, cut: str, protocol: str, folder: Path, notify: Callable[[str], None]) -> Cell:
    begun = time.monotonic()
    for attempt in range(ATTEMPTS):
        result = attempted(case, cut, protocol, folder, notify, seed=11 + attempt)
        if result.verdict is not Verdict.UNKNOWN:
            break
    right, text = verdict_on(case, cut, result)
    return Cell(case, cut, protocol, right, text, time.monotonic() - begun)


def attempted(
    case: Case, cut: str, protocol: str, folder: Path, notify: Callable[[str], None], *, seed: int
) -> ScenarioResult:
    file = folder / f"{case.kind}-{cut}-{protocol}.toml"
    file.write_text(rig_text(case, cut, protocol))
    run = begin_run(Options(rig=file, out=folder, seed=seed), notify)
    try:
        with run.scenario(f"{case.kind}-{cut}-{protocol}") as opened:
            try:
                rig = opened.open()
                rig.judge(*story(rig, case, cut))
            except Exception as error:
                opened.failed(error)
    finally:
        run.finish()
    return run.results[-1]


def verdict_on(case: Case, cut: str, result: ScenarioResult) -> tuple[bool, str]:
    """Is this what had to come out, and how the table says it."""
    said = [f"{finding.summary} {' '.join(finding.evidence)}" for finding in result.findings]
    if cut not in case.shows:
        legal = f", {result.integrity.unflushed} legal" if result.integrity.unflushed else ""
        return (
            result.verdict is Verdict.PASS,
            f"nothing wrong{legal}" if result.verdict is Verdict.PASS else result.sentence,
        )
    named = [text for text in said if any(word in text for word in case.words)]
    if result.verdict is not Verdict.FAIL or not named:
        return False, f"MISSED ({result.sentence})"
    counts: dict[str, int] = {}
    for disk in result.integrity.disks:
        for kind, sectors in disk.counts.items():
            counts[kind] = counts.get(kind, 0) + sectors
    counted = ", ".join(f"{sectors} {kind}" for kind, sectors in counts.items())
    checks = ", ".join(dict.fromkeys(finding.check for finding in result.findings))
    return True, f"**found** by {checks}{f': {counted}' if counted else ''}"


def cells(only: str, folder: Path) -> Iterator[tuple[Case, str, str]]:
    for case in CASES:
        if only in ("", case.kind):
            for protocol in PROTOCOLS:
                for cut in CUTS:
                    yield case, cut, protocol


HEAD = """\
# What is detected

Made by `python framework/benchmarks/detection.py --write yes`, which runs every cell on the virtual bench: stamped
writes on a disk with the defect, cuts at random moments, read back and judged. A cell says what was found, in sectors,
and by which check; *nothing wrong* is what a disk that keeps its power, or a healthy one, has to get. *Legal* are
sectors whose last write was completed, never flushed, and is gone. Defects that slow a disk down are given to the one
that is not cut.

A hub's cut over UAS is that of the disk's own cable: QEMU's hub is a full-speed device, and its UAS is not.

| defect | over | data cut | power cut | hub cut |
|---|---|---|---|---|
"""


def table_of(made: list[Cell], earlier: str) -> str:
    """The table; rows that were not made now are taken from the one before."""
    rows = {line.rsplit(" | ", 3)[0]: line for line in earlier.splitlines() if line.count("|") == 6}
    for case in CASES:
        for protocol in PROTOCOLS:
            row = {cell.cut: cell for cell in made if cell.case is case and cell.protocol == protocol}
            if row:
                name = f"| {case.kind} | {protocol}"
                texts = (row[cut].text if row[cut].right else f"WRONG: {row[cut].text}" for cut in CUTS)
                rows[name] = f"{name} | {' | '.join(texts)} |"
    lines = [rows[name] for case in CASES for p in PROTOCOLS if (name := f"| {case.kind} | {p}") in rows]
    cells = len(lines) * len(CUTS)
    wrong = sum(line.count("WRONG") for line in lines)
    return f"{HEAD}{chr(10).join(lines)}\n\n{cells - wrong} of {cells} cells are as they have to be.\n"


def main() -> None:
    options = begin(
        __doc__,
        only=(str, "", "one kind of defect, or healthy"),
        write=(str, "", "anything: write the table into the documents"),
    )
    progress: list[str] = []
    with scratch() as folder:
        todo = list(cells(options.only, folder))
        made = []
        for case, cut, protocol in track(todo, "cells", console=console, transient=True):
            cell = run_cell(case, cut, protocol, folder, progress.append)
            made.append(cell)
            mark = "ok   " if cell.right else "WRONG"
            console.print(
                f"{mark} {case.kind:20} {protocol:12} {cut:6} {cell.seconds:5.1f} s  {cell.text}", markup=False
            )
    text = table_of(made, TABLE.read_text() if TABLE.exists() else "")
    if options.write:
        TABLE.write_text(text)
    console.print(text.splitlines()[-1])
    sys.exit(any(not cell.right for cell in made))


if __name__ == "__main__":
    main()
