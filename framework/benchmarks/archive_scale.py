"""How long do the index, one more night, ``trend`` and the page of a large archive take?

1,000 nights of 60 scenarios with 10 measurements each, as ``results.json`` files. Each step is a process of its own, as
a timer would start it. Memory is the largest resident size of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.measure import ROOT, console, scratch, table

FIRST = datetime(2030, 1, 1, 2, tzinfo=UTC)
LIMITS = {"index from nothing": 60.0, "one more night": 1.0, "trend": 2.0, "page": 3.0}
MOST_PAGE = 1_000_000
INSIDE = """\
import resource, sys, time
from pathlib import Path
begun = time.perf_counter()
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
STEPS = {
    "index from nothing": "from plugpull.archive.trend import make_index; make_index(Path(sys.argv[1]))",
    "trend": "from plugpull.archive.trend import trend_of; from plugpull.archive.trend_show import as_json\n"
    "as_json(trend_of(Path(sys.argv[1])))",
}
STEPS["one more night"] = STEPS["trend"]
STEPS["page"] = "from plugpull.archive.page import write_page; write_page(Path(sys.argv[1]))"


def night(number: int, scenarios: int, values: int, draw: random.Random) -> dict[str, object]:
    """The results of one night: a few failures, and 2 % of noise."""
    return {
        "schema": 1,
        "plugpull": "0.1.0",
        "rig": "desk",
        "dut": {"kernel": "6.1.0-56-amd64", "kind": "virtual"},
        "verdict": "PASS",
        "started": (FIRST + timedelta(days=number)).isoformat(),
        "disks": [{"name": f"disk{each}", "serial": f"SERIAL{each}", "model": "Disk 2000"} for each in range(values)],
        "scenarios": [one_scenario(each, values, draw) for each in range(scenarios)],
    }


def one_scenario(number: int, values: int, draw: random.Random) -> dict[str, object]:
    failed = draw.random() < 0.01
    finding = {"check": "kept_pace", "subject": "disk2", "summary": "disk2 stood still for 3.9 s"}
    cut = {"point": "disk1.cable", "mechanism": "data", "victims": ["disk1"], "commanded_at": 10.0}
    return {
        "id": f"scenarios/test_{number // 4}.py::test_story[{number % 4}]",
        "verdict": "FAIL" if failed else "PASS",
        "seconds": 9.5,
        "cuts": [cut],
        "findings": [finding] if failed else [],
        "measurements": [one_value(each, draw) for each in range(values)],
    }


def one_value(number: int, draw: random.Random) -> dict[str, object]:
    mean = 10.0 ** (number % 7)
    samples = [draw.gauss(mean, 0.02 * mean) for _ in range(5)]
    name = ("write rate", "read rate", "removed after", "returned after", "longest stall")[number % 5]
    return {
        "name": name,
        "subject": f"disk{number}",
        "value": sorted(samples)[2],
        "unit": "B/s",
        "n": 5,
        "samples": samples,
        "better": "up",
    }


def put(directory: Path, number: int, scenarios: int, values: int, draw: random.Random) -> None:
    run = directory / ((FIRST + timedelta(days=number)).strftime("%Y%m%dT%H%M%SZ") + "-desk")
    run.mkdir()
    (run / "results.json").write_text(json.dumps(night(number, scenarios, values, draw)))


def step(name: str, directory: Path) -> tuple[float, float, float]:
    """Seconds of a whole process, seconds of CPU that it used, and bytes of memory."""
    code = INSIDE.format(code=STEPS[name])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "framework")}
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    _, used, memory = map(float, done.stdout.split())
    return time.perf_counter() - begun, used, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--scenarios", type=int, default=60)
    parser.add_argument("--values", type=int, default=10)
    arguments = parser.parse_args()
    draw = random.Random(1)
    with scratch() as directory:
        for number in range(arguments.nights):
            put(directory, number, arguments.scenarios, arguments.values, draw)
        shown = table(f"{arguments.nights} nights", "step", "seconds", "CPU", "limit", "MB")
        for name, limit in LIMITS.items():
            if name == "one more night":
                put(directory, arguments.nights, arguments.scenarios, arguments.values, draw)
            whole, used, memory = step(name, directory)
            shown.add_row(name, f"{whole:.2f}", f"{used:.2f}", f"{limit:g}", f"{memory / 1e6:.0f}")
        console.print(shown)
        page = (directory / "index.html").stat().st_size
        console.print(f"page: {page / 1e6:.3f} MB of {MOST_PAGE / 1e6:g} MB allowed")
        console.print(f"index: {(directory / 'index.db').stat().st_size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
