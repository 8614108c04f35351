"""What the throughput sampler costs: fio's bytes per second with it on and off, and the CPU time it takes.

One guest, one fio that transfers as fast as it can (no disk of the rig has a rate), and windows of a few seconds in
which the sampler runs at 10 Hz or does not, in pairs, in random order within each pair. A window is bounded by two
samples, so its bytes and its length come from the same counters and the same clock in both cases; in between, a
sampler that is "off" is stopped. The kernel log and the uevents are watched throughout: while nothing is logged their
threads sleep in poll(), and that costs nothing.

First witness: the mean of the paired differences relative to the throughput without sampling, with its 95 %
confidence interval (Student's t). It is compared with the limit by its upper end.

Second witness: the same for bytes per CPU second of the whole QEMU process (/proc/PID/schedstat). The guest is emulated
and fio takes what CPU there is, so this is its throughput less what other processes on this machine do to it.

Third witness, an upper bound: what the sampler adds to QEMU's CPU time, per second, while the guest is idle. Most of it
is waking idle CPUs, of the guest and of this machine; under load they are awake already.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from rich.table import Table

from benchmarks.measure import QUICK_RIG, Interval, against, begin, console, scratch, t_interval, table, tell
from plugpull.dut.stage import Stage
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.load.load import FioRunner, moved_bytes
from plugpull.run import Options, begin_run

LIMIT = 0.01
"""Of fio's throughput."""
RATE = 10.0
"""Samples per second."""
BLOCK = 64 << 10
DEPTH = 4

T = TypeVar("T")


@dataclass(frozen=True)
class Window:
    """Bytes per second of the loaded disk and CPU seconds of QEMU per second, over one window."""

    rate: float
    cpu: float


def cpu_seconds() -> float:
    """CPU time of all threads of the QEMU that is our child (Documentation/scheduler/sched-stats.rst)."""
    children = [
        pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split() if is_qemu(pid)
    ]
    (qemu,) = children
    tasks = Path(f"/proc/{qemu}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


def is_qemu(pid: str) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().startswith("qemu-system")


def sampled_now(stage: Stage, kname: str) -> ev.Sampled:
    """Start the sampler anew; its first sample of this disk."""
    mark = stage.recorder.mark()
    stage.bench.link.call("sample", interval=1 / RATE)
    found = stage.wait_for(lambda event: isinstance(event, ev.Sampled) and kname in event.disks, 30, since=mark)
    assert isinstance(found, ev.Sampled)
    return found


def window(stage: Stage, kname: str, seconds: float, on: bool) -> Window:
    """One window with the sampler on or off."""
    first = sampled_now(stage, kname)
    if not on:
        stage.bench.link.call("sample_stop")
    cpu, begun = cpu_seconds(), time.monotonic()
    stage.pause(seconds)
    cpu, took = cpu_seconds() - cpu, time.monotonic() - begun
    last = sampled_now(stage, kname)
    length = (last.at or 0.0) - (first.at or 0.0)
    return Window((moved_bytes(last, kname) - moved_bytes(first, kname)) / length, cpu / took)


def pairs(count: int, generator: random.Random, take: Callable[[bool], T]) -> list[tuple[T, T]]:
    """(off, on) pairs, each in random order."""
    taken = []
    for _ in range(count):
        if generator.random() < 0.5:
            off, on = take(False), take(True)
        else:
            on, off = take(True), take(False)
        taken.append((off, on))
    return taken


def rig_without_rates(folder: Path) -> Path:
    """rigs/quick.toml with disks as fast as they can be."""
    file = folder / "rig.toml"
    lines = QUICK_RIG.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("rate", "rows"))))
    return file


def measure(
    folder: Path, mode: str, count: int, seconds: float, seed: int
) -> tuple[list[tuple[Window, Window]], list[tuple[Window, Window]]]:
    """Pairs of windows with the guest idle, then under load."""
    run = begin_run(Options(rig=rig_without_rates(folder), out=folder, seed=seed), tell)
    generator = random.Random(seed)
    try:
        with run.scenario("sampling") as opened:
            stage = opened.open().stage
            disk = stage.rig.disk[0]

            def take(on: bool) -> Window:
                return window(stage, job.kname, seconds, on)

            fio = FioRunner(stage)
            shape = [f"--rw={mode}", f"--bs={BLOCK}", f"--iodepth={DEPTH}", f"--size={disk.size}"]
            arguments = ["--name=load", "--filename={file}", "--ioengine=libaio", "--direct=1", "--thread", *shape]
            # Run once to its end: after that its pages are in the guest's memory and the whole disk has been written.
            job = fio.start(disk.name, arguments, disk.size, kind="warm")
            fio.finish([job], 120)
            if job.status != 0:
                raise RigError(f"fio ended with status {job.status}: {job.report.message}")
            idle = pairs(max(3, count // 6), generator, take)
            job = fio.start(disk.name, [*arguments, "--time_based", "--runtime=31536000"], disk.size, kind="load")
            take(False)
            loaded = pairs(count, generator, take)
            fio.stop([job])
    finally:
        run.finish()
    return idle, loaded


def row(shown: Table, name: str, taken: Sequence[tuple[float, float]], digits: int, base: float) -> Interval:
    """One witness as a row: means without and with, and the difference relative to ``base``. Returns the latter."""
    difference = t_interval([(on - off) / base for off, on in taken])
    off, on = (sum(pair[place] for pair in taken) / len(taken) for place in (0, 1))
    interval = f"{difference.low:+.2%} .. {difference.high:+.2%}"
    shown.add_row(name, f"{off:.{digits}f}", f"{on:.{digits}f}", f"{difference.mean:+.2%}", interval, str(len(taken)))
    return difference


def print_result(idle: Sequence[tuple[Window, Window]], loaded: Sequence[tuple[Window, Window]]) -> None:
    rates = [(off.rate / 1e6, on.rate / 1e6) for off, on in loaded]
    worths = [(off.rate / off.cpu / 1e6, on.rate / on.cpu / 1e6) for off, on in loaded]
    cpus = [(off.cpu, on.cpu) for off, on in idle]
    shown = table("Sampling at 10 Hz", "witness", "without", "with", "difference", "95 % interval", "pairs")
    rate = row(shown, "fio, MB/s", rates, 2, fmean(off for off, _ in rates))
    worth = row(shown, "fio, MB per CPU second", worths, 2, fmean(off for off, _ in worths))
    cpu = row(shown, "idle guest, CPU s/s", cpus, 4, 1.0)
    console.print(shown)
    for name, found in (("throughput lost", rate), ("bytes per CPU second lost", worth)):
        console.print(f"{name}: {decided(Interval(-found.mean, found.half))}")
    console.print(f"of one CPU, idle and woken for it, at most: {100 * cpu.high:.2g} %")


def decided(lost: Interval) -> str:
    """The loss against the limit: kept or missed only if the whole interval is on one side of it."""
    if lost.low <= LIMIT < lost.high:
        return (
            f"{100 * lost.mean:.2g} % +- {100 * lost.half:.2g} %, limit {100 * LIMIT:g} %: UNDECIDED, "
            "the interval is too wide; take more or longer pairs, or a quieter machine"
        )
    return against(100 * (lost.high if lost.high <= LIMIT else lost.low), 100 * LIMIT, "%")


def main() -> None:
    options = begin(
        __doc__,
        pairs=(int, 60, "pairs of windows under load"),
        seconds=(float, 2.0, "length of a window"),
        mode=(str, "read", "what fio does: read or write"),
        seed=(int, 1, "for the order within pairs"),
    )
    begun = time.monotonic()
    with scratch() as folder:
        idle, loaded = measure(folder, options.mode, options.pairs, options.seconds, options.seed)
    print_result(idle, loaded)
    console.print(f"took {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
