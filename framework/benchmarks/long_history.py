"""Measures what judging and reporting a run of many hours costs: see ``long_story.py`` for its history.

``python framework/benchmarks/long_history.py make DIR --hours 8`` writes the history. ``measure`` makes and judges
histories of 1, 2, 4 and 8 hours, each in a process of its own, and prints the CPU seconds, the peak memory and the size
of the report beside their limits. The cost is linear if the seconds per hour stay the same.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.long_shape import Shape
from benchmarks.long_story import make

LIMITS = {"seconds": 3.0, "megabytes": 300.0, "html": 1_000_000}
"""Of 8 hours with 8 disks: CPU seconds and memory of each command, bytes of the report."""


@dataclass(frozen=True)
class Cost:
    """What one command took: CPU seconds, seconds, megabytes of memory at most; and its exit status."""

    cpu: float
    seconds: float
    megabytes: float
    status: int
    said: str


def cost_of(bytecode: Path, *words: str) -> Cost:
    """Run ``plugpull`` with these words in a process of its own. ``bytecode``: where its modules are kept compiled, as
    those of an installed package are."""
    command = [sys.executable, "-m", "plugpull", *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        said = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    took = time.monotonic() - begin
    return Cost(cpu, took, usage.ru_maxrss / 1e3, process.returncode, said)


def _measure(arguments: argparse.Namespace) -> None:
    print(f"{'hours':>5} {'command':8} {'CPU s':>7} {'s':>7} {'CPU s/h':>8} {'MB':>6} {'report':>9}  verdict")
    with TemporaryDirectory(dir=arguments.dir) as place:
        bytecode = Path(place) / "bytecode"
        short = make(Path(place) / "short", Shape(hours=0.05, disks=2, cuts=1))
        cost_of(bytecode, "report", str(short))  # compiles all modules
        for hours in arguments.hours:
            cuts = max(1, round(arguments.cuts * hours / 8))
            shape = Shape(hours=hours, disks=arguments.disks, cuts=cuts, virtual=arguments.virtual)
            run = make(Path(place) / f"{hours:g}", shape)
            for name in ("check", "report"):
                cost = cost_of(bytecode, name, str(run))
                page = run / "report.html"
                size = f"{page.stat().st_size:9}" if name == "report" and page.exists() else " " * 9
                verdict = cost.said.strip().splitlines()[-1][:60] if name == "check" else ""
                figures = f"{cost.cpu:7.2f} {cost.seconds:7.2f} {cost.cpu / hours:8.2f} {cost.megabytes:6.0f}"
                print(f"{hours:5g} {name:8} {figures} {size}  {verdict}", flush=True)
    print(f"limits for 8 hours and 8 disks: {LIMITS}")
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(f"making them took {own.ru_utime + own.ru_stime:.0f} s of CPU")


def _make(given: argparse.Namespace) -> None:
    make(given.run, Shape(hours=given.hours, disks=given.disks, cuts=given.cuts, virtual=given.virtual))


def main() -> None:
    """Make a history, or measure several."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("make", help="write one history into a directory")
    one.add_argument("run", type=Path)
    one.add_argument("--hours", type=float, default=8.0)
    one.set_defaults(action=_make)
    many = commands.add_parser("measure", help="make histories, and measure check and report on each")
    many.add_argument("--hours", type=float, nargs="+", default=[1.0, 2.0, 4.0, 8.0])
    many.add_argument("--dir", type=Path, default=None, help="where to put the histories: 200 MB")
    many.set_defaults(action=_measure)
    for each in (one, many):
        each.add_argument("--disks", type=int, default=8)
        each.add_argument("--cuts", type=int, default=100, help="in 8 hours")
        each.add_argument("--virtual", action="store_true", help="of an emulated bench")
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
