"""What the throughput sampler costs: fio's bytes per second with it on and off, and the CPU time it takes.

One guest, one fio that transfers as fast as it can (no disk of the rig has a rate), and windows of a few seconds in
which the sampler runs at 10 Hz or does not, in pairs, in random order within each pair. A window is bounded by two
samples, so its bytes and its length come from the same counters and the same clock in both cases; in between, a
sampler that is "off" is stopped. The kernel log and the uevents are watched throughout: while nothing is logged their
threads sleep in poll(), and that costs nothing.

First witness: the mean of the paired differences relative to the throughput without sampling, with its 95 %
confidence interval (Student's t). It is compared with the limit by its upper end.

Second witness: the CPU time of the whole QEMU process (/proc/PID/schedstat) while the guest is otherwise idle, in the
same windows. What the sampler adds, per second, bounds what it can take away from one CPU: the guest's kernel, the
channel and QEMU's own threads are in it, and so is waking an idle CPU, which under load costs nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

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
            idle = pairs(max(3, count // 3), generator, take)
            job = fio.start(disk.name, [*arguments, "--time_based", "--runtime=31536000"], disk.size, kind="load")
            take(False)
            loaded = pairs(count, generator, take)
            fio.stop([job])
    finally:
        run.finish()
    return idle, loaded


def print_result(idle: Sequence[tuple[Window, Window]], loaded: Sequence[tuple[Window, Window]]) -> None:
    base = sum(off.rate for off, _ in loaded) / len(loaded)
    lost = t_interval([(off.rate - on.rate) / base for off, on in loaded])
    spent = t_interval([on.cpu - off.cpu for off, on in idle])
    shown = table("Sampling at 10 Hz", "witness", "without", "with", "difference", "95 % interval", "pairs")
    with_it = sum(on.rate for _, on in loaded) / len(loaded)
    throughput = ("fio's throughput, MB/s", f"{base / 1e6:.2f}", f"{with_it / 1e6:.2f}")
    shown.add_row(*throughput, f"{-lost.mean:+.2%}", percent(-lost.high, -lost.low), str(len(loaded)))
    before, after = (sum(pair[place].cpu for pair in idle) / len(idle) for place in (0, 1))
    cpu = ("QEMU's CPU, idle guest, s/s", f"{before:.4f}", f"{after:.4f}")
    shown.add_row(*cpu, f"{spent.mean:+.2%}", percent(spent.low, spent.high), str(len(idle)))
    console.print(shown)
    console.print(f"throughput lost, at most: {against(100 * lost.high, 100 * LIMIT, '%')}{too_wide(lost)}")
    console.print(f"of one CPU taken, at most: {against(100 * spent.high, 100 * LIMIT, '%')}")


def percent(low: float, high: float) -> str:
    return f"{low:+.2%} .. {high:+.2%}"


def too_wide(interval: Interval) -> str:
    if interval.low <= LIMIT < interval.high:
        return " (the interval holds the limit: more or longer pairs would tell)"
    return ""


def main() -> None:
    options = begin(
        __doc__,
        pairs=(int, 24, "pairs of windows under load"),
        seconds=(float, 3.0, "length of a window"),
        mode=(str, "write", "what fio does: write or read"),
        seed=(int, 1, "for the order within pairs"),
    )
    begun = time.monotonic()
    with scratch() as folder:
        idle, loaded = measure(folder, options.mode, options.pairs, options.seconds, options.seed)
    print_result(idle, loaded)
    console.print(f"took {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
