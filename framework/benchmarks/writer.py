"""The writer of stamps against fio with crc32c verification: the same pattern on the same emulated disk, in one run.

Writing: both write the same span of a disk without a rate, in windows taken in turn, in random order within each pair;
bytes are QEMU's own count (``query-blockstats``). fio stamps its blocks with a crc32c (``verify=crc32c``), the writer
every sector, and the writer's ledger travels to this machine meanwhile; bytes of ledger per write are printed. Reading
back: the span is filled, and read and compared once by fio's verify pass and once by ours, from start to end of the
process; ours until it is judged.
"""

from __future__ import annotations

import random
import time
from base64 import b64decode
from pathlib import Path
from statistics import fmean

from rich.table import Table

from benchmarks.measure import begin, console, notify, scratch, t_interval, table
from benchmarks.sampling import rig_of, written
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.rules import judge
from plugpull.integrity.oracle.stamp import SECTOR
from plugpull.integrity.patterns import Writing
from plugpull.integrity.writing.session import StampRunner, StreamJob
from plugpull.load.runner import FioRunner, Job
from plugpull.run import Options, begin_run
from plugpull.targets.disk import RigDisk
from plugpull.virtual.bench import VirtualBench

PATTERNS: tuple[tuple[str, int, int, ev.WriteOrder, float], ...] = (
    ("128 KiB, sequential", 256, 4, "sequential", 0.9),
    ("4 KiB, random", 8, 16, "random", 0.5),
)
"""Name, sectors, depth, order, and the least share of fio's rate."""
SPAN = 32 << 20
COMMON = [
    "--filename={file}",
    "--ioengine=libaio",
    "--direct=1",
    "--thread",
    "--output-format=json",
    "--verify=crc32c",
    "--verify_state_save=0",
]
WARM = 0.5
"""Seconds until a load is steady."""


def shape(block: int, depth: int, order: str) -> list[str]:
    pattern = "write" if order == "sequential" else "randwrite"
    return [f"--rw={pattern}", f"--bs={block * SECTOR}", f"--iodepth={depth}", f"--size={SPAN}"]


def window(context: ScenarioContext, disk: str, seconds: float) -> float:
    """Bytes per second that QEMU writes for the guest."""
    assert isinstance(context.bench, VirtualBench)
    time.sleep(WARM)
    moved, begun = written(context.bench, disk), time.monotonic()
    time.sleep(seconds)  # the length of a measurement: there is no event to wait for
    return (written(context.bench, disk) - moved) / (time.monotonic() - begun)


def with_fio(context: ScenarioContext, disk: str, how: tuple[int, int, ev.WriteOrder], seconds: float) -> float:
    runner, target = FioRunner(context), RigDisk(disk, context.topology)
    endless = ["--time_based", "--runtime=31536000", "--do_verify=0"]
    job = runner.start(target, ["--name=load", *COMMON, *shape(*how), *endless], SPAN, kind="load")
    context.pause(2.0)  # fio lays itself out first
    rate = window(context, disk, seconds)
    runner.stop([job])
    job.ended.wait(30)
    return rate


def with_stamps(
    context: ScenarioContext, disk: str, how: tuple[int, int, ev.WriteOrder], seconds: float, session: int
) -> tuple[float, float]:
    """Bytes per second, and bytes of ledger per write."""
    block, depth, order = how
    runner = StampRunner(context)
    writing, target = Writing(block, depth, order), RigDisk(disk, context.topology)
    job = runner.write(target, ((0, SPAN // SECTOR),), writing, run=1, session=session, seed=session)
    rate = window(context, disk, seconds)
    runner.stop([job])
    job.ended.wait(30)
    return rate, job.received / max(1, job.tally.writes)


def reading(context: ScenarioContext, disk: str) -> tuple[float, float]:
    """Bytes per second of fio's verify pass, and of our read-back with its judgement."""
    fio, stamps, target = FioRunner(context), StampRunner(context), RigDisk(disk, context.topology)
    how = shape(256, 4, "sequential")
    filled = fio.start(target, ["--name=fill", *COMMON, *how, "--do_verify=0"], SPAN, kind="fill")
    fio.finish([filled], 120)
    begun = time.monotonic()
    verify: Job = fio.start(target, ["--name=verify", *COMMON, "--rw=read", *how[1:]], SPAN, kind="verify")
    fio.finish([verify], 120)
    theirs = SPAN / (time.monotonic() - begun)
    if verify.status != 0 or verify.report.read_bytes != SPAN:
        raise RigError(f"fio did not verify the span: {verify.report.message or verify.status}")
    writing = Writing(256, 4, "sequential")
    extents = ((0, SPAN // SECTOR),)
    job: StreamJob = stamps.write(target, extents, writing, run=1, session=99, seed=1, fill=256)
    while not job.tally.filled:
        context.pause(0.1)
    stamps.stop([job])
    begun = time.monotonic()
    back = stamps.read(target, extents, run=1, session=99)
    stamps.finish([back], 120)
    story = context.recorder.since()
    ledger = decode_ledger(pieces(story, ev.LedgerPart, job))
    opinion = judge(ledger, decode_found(pieces(story, ev.ReadBackPart, back)), extents, None)
    ours = SPAN / (time.monotonic() - begun)
    if not opinion.intact:
        raise RigError(f"a healthy disk is found fault with: {opinion.counts} {opinion.problems}")
    return theirs, ours


def pieces(
    story: tuple[ev.Event, ...], kind: type[ev.LedgerPart] | type[ev.ReadBackPart], job: StreamJob
) -> list[tuple[int, bytes]]:
    """The pieces of a job's stream, as they are on record."""
    return [
        (event.offset, b64decode(event.data)) for event in story if isinstance(event, kind) and event.job == job.name
    ]


def measure(folder: Path, count: int, seconds: float, seed: int) -> None:
    generator = random.Random(seed)
    run = begin_run(Options(rig=rig_of(folder, "fast"), out=folder, seed=seed), notify)
    try:
        with run.scenario("writer") as opened:
            context = opened.open().context
            disk = context.rig.disk[0].name
            shown = table(
                "Writer against fio", "what", "fio MB/s", "ours MB/s", "ratio", "95 % interval", "wanted", "ledger"
            )
            for name, block, depth, order, wanted in PATTERNS:
                pairs = []
                ledger = 0.0
                for number in range(count):
                    how = (block, depth, order)
                    first = generator.random() < 0.5
                    theirs = with_fio(context, disk, how, seconds) if first else 0.0
                    ours, ledger = with_stamps(context, disk, how, seconds, session=number + 1)
                    pairs.append((theirs or with_fio(context, disk, how, seconds), ours))
                row(shown, name, pairs, wanted, f"{ledger:.1f} B/write")
            row(shown, "reading back and judging", [reading(context, disk) for _ in range(count)], 1.0, "")
            console.print(shown)
    finally:
        run.finish()


def row(shown: Table, name: str, pairs: list[tuple[float, float]], wanted: float, ledger: str) -> None:
    theirs, ours = fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)
    found = t_interval([one[1] / one[0] for one in pairs])
    interval = f"{found.low:.2f} .. {found.high:.2f}"
    cells = (
        name,
        f"{theirs / 1e6:.1f}",
        f"{ours / 1e6:.1f}",
        f"{ours / theirs:.2f}x",
        interval,
        f"{wanted:g}x",
        ledger,
    )
    shown.add_row(*cells)


def main() -> None:
    options = begin(
        __doc__,
        pairs=(int, 5, "pairs of windows, and of reading back"),
        seconds=(float, 3.0, "length of a window"),
        seed=(int, 1, "for the order within pairs"),
    )
    with scratch() as folder:
        measure(folder, options.pairs, options.seconds, options.seed)


if __name__ == "__main__":
    main()
