"""The cost of a guest that checks its kernel's memory: a cable cut with and without ``memory_debugging``, in turn.

The time is from before the guest is restored until the verdict is there; booting, which is cached, is printed apart.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.cable_cut import scenario, timed
from benchmarks.measure import QUICK_RIG, against, begin, console, notify, scratch, spread, table
from plugpull.run import Options, Run, begin_run

LIMIT = 1.5
"""The longest time with the checks, as a ratio."""


def begun(folder: Path, *, debugging: bool) -> Run:
    """A run on the quick rig, or on a copy of it that checks its kernel's memory."""
    rig = folder / f"{'with' if debugging else 'without'}.toml"
    extra = "\nmemory_debugging = true #" if debugging else ""
    text = QUICK_RIG.read_text().replace('kind = "virtual"', f'kind = "virtual"{extra}', 1)
    # There are two runs at a time, and each leases its disks by their serial numbers.
    rig.write_text(text.replace('serial = "', f'serial = "{rig.stem}-'))
    start = time.monotonic()
    run = begin_run(Options(rig=rig, out=folder, seed=1), notify)
    notify(f"{rig.stem}: prepared in {time.monotonic() - start:.1f} s")
    return run


def main() -> None:
    options = begin(__doc__, n=(int, 3, "times the scenario is run each way"))
    took: dict[bool, list[float]] = {False: [], True: []}
    with scratch() as folder, ExitStack() as open_runs:
        runs = {debugging: begun(folder, debugging=debugging) for debugging in took}
        for run in runs.values():
            open_runs.callback(run.finish)
        for _ in range(options.n):
            for debugging, run in runs.items():
                seconds, verdict = timed(run, scenario())
                took[debugging].append(seconds)
                notify(f"{'with' if debugging else 'without'}: {seconds:.2f} s, {verdict.value}")
    shown = table("a cable cut while writing", "memory_debugging", "median s", "min", "max")
    for debugging, values in took.items():
        shown.add_row(str(debugging).lower(), *spread(values))
    console.print(shown)
    ratio = statistics.median(took[True]) / statistics.median(took[False])
    console.print(f"with the checks: {against(ratio, LIMIT, 'times as long')}")


if __name__ == "__main__":
    main()
