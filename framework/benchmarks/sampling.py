"""The cost of the throughput sampler: fio's bytes per second with it on and off, and the CPU time it takes.

One guest and one fio, started once, that writes as fast as its disk takes it. ``--disks rated`` are those of
rigs/quick.toml, as the scenarios use them; ``--disks fast`` have no rate, so that fio takes all the CPU an emulated
guest has and every instruction of anything else is lost to it: the worst case. The sampler is turned on and off inside
that one job, in short windows, in pairs, in random order within each pair. The bytes are QEMU's own count of what the
disk was asked to write (``query-blockstats``), so both kinds of window are measured from outside the guest in the
same way. The kernel log and the uevents are watched throughout: while nothing is logged their threads sleep in
poll(), and that costs nothing.

Witnesses: bytes per second; and bytes per CPU second of the whole QEMU process (/proc/PID/task/*/schedstat), which is
the throughput less what other processes on this machine do to it. For each the mean of the paired differences relative
to the throughput without sampling, with its 95 % confidence interval (Student's t). It is compared with the limit by
its upper end.

``--hz 100`` samples ten times as often as plugpull does. What is lost is then printed per 10 samples a second as well,
with an interval a tenth as wide; it is a hint and no proof, since waking often costs less each time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.progress import track

from benchmarks.measure import QUICK_RIG, Interval, against, begin, console, notify, scratch, t_interval, table
from plugpull.errors import RigError
from plugpull.load.runner import FioRunner
from plugpull.run import Options, begin_run
from plugpull.targets.disk import RigDisk
from plugpull.virtual.bench import VirtualBench

LIMIT = 0.01
"""Of fio's throughput."""
RATE = 10.0
"""Samples per second that plugpull takes."""
BLOCK = 64 << 10
DEPTH = 4
SETTLING = 0.1
"""Seconds after the sampler was turned on or off: the request is answered by a thread that has to be made first."""


@dataclass(frozen=True)
class Window:
    """Bytes written and CPU seconds of QEMU, over one window of so many seconds."""

    bytes: int
    cpu: float
    seconds: float

    @property
    def rate(self) -> float:
        """MB/s."""
        return self.bytes / self.seconds / 1e6

    @property
    def worth(self) -> float:
        """MB per CPU second."""
        return self.bytes / self.cpu / 1e6


Pair = tuple[Window, Window]
"""Without and with the sampler."""


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


def written(bench: VirtualBench, disk: str) -> int:
    """Bytes the guest has had written to a disk, as QEMU counts them when a write is complete."""
    for entry in bench._machine.qmp.run("query-blockstats"):
        if entry.get("qdev", "").split("/")[3:4] == [disk]:
            return int(entry["stats"]["wr_bytes"])
    raise RigError(f"QEMU has no statistics of {disk}")


def window(bench: VirtualBench, disk: str, seconds: float, hz: float) -> Window:
    """One window with the sampler at this rate; 0 for off."""
    if hz:
        bench.link.call("sample", interval=1 / hz)
    else:
        bench.link.call("sample.stop")
    time.sleep(SETTLING)
    cpu, moved, begun = cpu_seconds(), written(bench, disk), time.monotonic()
    time.sleep(seconds)  # the length of a measurement: there is no event to wait for
    now, moved = time.monotonic(), written(bench, disk) - moved
    return Window(moved, cpu_seconds() - cpu, now - begun)


def pairs(bench: VirtualBench, disk: str, count: int, seconds: float, hz: float, seed: int) -> list[Pair]:
    """(off, on) pairs, each in random order."""
    taken = []
    generator = random.Random(seed)
    for _ in track(range(count), "pairs", console=console, transient=True):
        if generator.random() < 0.5:
            off = window(bench, disk, seconds, 0)
            on = window(bench, disk, seconds, hz)
        else:
            on = window(bench, disk, seconds, hz)
            off = window(bench, disk, seconds, 0)
        taken.append((off, on))
    return taken


def rig_of(folder: Path, disks: str) -> Path:
    """rigs/quick.toml, with its disks' rates or with disks as fast as they can be."""
    file = folder / "rig.toml"
    left_out = ("rows",) if disks == "rated" else ("rows", "rate")
    lines = QUICK_RIG.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(left_out)))
    return file


def measure(folder: Path, disks: str, count: int, seconds: float, hz: float, seed: int) -> list[Pair]:
    """Pairs of windows under load."""
    run = begin_run(Options(rig=rig_of(folder, disks), out=folder, seed=seed), notify)
    try:
        with run.scenario("sampling") as opened:
            context = opened.open().context
            disk = context.rig.disk[0]
            assert isinstance(context.bench, VirtualBench)
            fio, target = FioRunner(context), RigDisk(disk.name, context.topology)
            shape = ["--rw=write", f"--bs={BLOCK}", f"--iodepth={DEPTH}", f"--size={disk.size}"]
            arguments = ["--name=load", "--filename={file}", "--ioengine=libaio", "--direct=1", "--thread", *shape]
            # Run once to its end: after that its pages are in the guest's memory and the whole disk has been written.
            job = fio.start(target, arguments, disk.size, kind="warm")
            fio.finish([job], 120)
            if job.status != 0:
                raise RigError(f"fio ended with status {job.status}: {job.report.message}")
            job = fio.start(target, [*arguments, "--time_based", "--runtime=31536000"], disk.size, kind="load")
            context.pause(3)  # fio lays itself out first
            taken = pairs(context.bench, disk.name, count, seconds, hz, seed)
            fio.stop([job])
    finally:
        run.finish()
    return taken


def print_result(taken: Sequence[Pair], hz: float, disks: str) -> None:
    shown = table(
        f"Sampling at {hz:g} Hz, {disks} disks", "witness", "without", "with", "difference", "95 % interval", "pairs"
    )
    intervals = []
    for name, values in (
        ("fio, MB/s", [(off.rate, on.rate) for off, on in taken]),
        ("fio, MB per CPU second", [(off.worth, on.worth) for off, on in taken]),
    ):
        base = fmean(off for off, _ in values)
        found = t_interval([(on - off) / base for off, on in values])
        interval = f"{found.low:+.2%} .. {found.high:+.2%}"
        shown.add_row(
            name, f"{base:.2f}", f"{fmean(on for _, on in values):.2f}", f"{found.mean:+.2%}", interval, str(len(taken))
        )
        intervals.append((name, Interval(-found.mean * RATE / hz, found.half * RATE / hz)))
    console.print(shown)
    for name, lost in intervals if disks == "fast" else intervals[:1]:
        console.print(f"lost at {RATE:g} Hz, {name}: {decided(lost)}")


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
        disks=(str, "rated", "rated: as in rigs/quick.toml; fast: without a rate, the worst case"),
        pairs=(int, 120, "pairs of windows"),
        seconds=(float, 1.0, "length of a window"),
        hz=(float, RATE, "samples per second while the sampler is on"),
        seed=(int, 1, "for the order within pairs"),
    )
    begun = time.monotonic()
    with scratch() as folder:
        taken = measure(folder, options.disks, options.pairs, options.seconds, options.hz, options.seed)
    print_result(taken, options.hz, options.disks)
    console.print(f"took {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
