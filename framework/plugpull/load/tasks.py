"""Tasks: jobs of fio that end by themselves, whose own figures a study compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.load.designs import in_rounds
from plugpull.load.patterns import UNKNOWN_RATE_SPAN
from plugpull.load.runner import FioRunner, Job
from plugpull.streams import ORDER
from plugpull.studies.tasks import tasks_to_repeat
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

T_co = TypeVar("T_co", covariant=True)

PATIENCE = 10.0
"""A task gets so many times its expected length."""
START = 60.0
"""And so many seconds in addition, to start and to end."""
AGAIN = 0.5
"""At most so many tasks are repeated, as a share of the planned ones. Otherwise the host is too busy."""
RAMP = 0.4
"""Seconds of a task of fixed length that do not count: a throttle grants a burst of 0.1 s. Of several requests at once
they count none: what is under way when they end counts in whole, though most of it was transferred before. For stripes
of 512 KiB, four at once on a controller of 1.28 MB/s, fio said 1.65 MB/s in 2 s; the burst adds at most 5 %."""
LEAST = 1 << 20
"""Bytes of a task of fixed size at least."""
UNKNOWN_RATE_AMOUNT = UNKNOWN_RATE_SPAN // 4


@dataclass(frozen=True)
class FioTask(Generic[T_co]):
    """A job of fio on ``disks`` at once, that ends by itself.

    ``mode``, ``block`` and ``depth`` are as in ``Pattern``, ``options`` more of fio's options. If it is ``sized``, the
    task transfers what a disk does in ``seconds`` by its declared rate; otherwise it takes ``seconds``. It is
    ``direct`` or goes through the page cache. ``drive_cache`` switches the drives' write caches on or off for it.
    ``rewrites``: each block is read and then written in its place.
    """

    name: str
    disks: tuple[T_co, ...]
    mode: ev.LoadMode
    block: int = 64 << 10
    depth: int = 1
    seconds: float = 2.0
    sized: bool = False
    direct: bool = True
    options: tuple[str, ...] = ()
    drive_cache: bool | None = None
    rewrites: bool = False


def run_tasks(
    context: ScenarioContext, design: Sequence[FioTask[Target]], repeats: int, *, virtual: bool, ordered: bool = False
) -> None:
    """Run every task in each of ``repeats`` rounds, in random order unless it is ``ordered``, and record fio's figures.

    Tasks that do not count, because the host starved the DUT, are repeated afterwards. A task that needs a drive's
    cache switched is left out on disks where that is not possible. Raises RigError if fio does not start.
    """
    runner = _Runner(context, virtual=virtual)
    design = tuple(runner.possible(design))
    planned, since = len(design) * repeats, len(_ran(context))
    draw = None if ordered else context.streams.of(ORDER)
    known: dict[int, tuple[int, FioTask[Target]]] = dict(enumerate(in_rounds(design, repeats, draw), 1))
    try:
        for number, (repeat, task) in known.items():
            runner.run(task, (number, planned), (repeat, repeats))
        left = 0 if ordered else max(1, int(AGAIN * planned))
        while left and (spoilt := tasks_to_repeat(context.recorder.since(), since)[:left]):
            for event in spoilt:
                repeat, task = known[event.number]
                known[max(known) + 1] = repeat, task
                runner.run(task, (max(known), planned), (repeat, repeats))
            left -= len(spoilt)
    finally:
        runner.restore()


def amount_of(target: Target, task: FioTask[Target]) -> int:
    """Bytes that a sized task transfers on a target: a whole number of blocks, at most half of what it holds."""
    rated = UNKNOWN_RATE_AMOUNT if target.rate is None else max(LEAST, int(target.rate * task.seconds))
    amount = min(rated, target.size // 2)
    return max(task.block, amount - amount % task.block)


def task_arguments(task: FioTask[Target], target: Target, *, virtual: bool) -> list[str]:
    """fio's arguments for a task on one target."""
    words = [f"--name={task.name.replace(' ', '-')}", "--thread", "--output-format=json", "--verify_state_save=0"]
    # psync is what dd and cp do: one request at a time, and libaio is only asynchronous with O_DIRECT.
    words += [f"--ioengine={'libaio' if task.direct and task.depth > 1 else 'psync'}", f"--iodepth={task.depth}"]
    words += [f"--direct={int(task.direct)}", *task.options]
    if task.rewrites:
        return [*words, "--read_iolog={log}"]
    words += ["--filename={file}", f"--rw={task.mode}", f"--bs={task.block}"]
    if not target.in_file:
        words.append("--allow_file_create=0")
    if task.sized:
        return [*words, f"--size={amount_of(target, task)}"]
    # A file is not made larger than the sized tasks before made it.
    span = amount_of(target, task) if target.in_file else target.size
    ramp = [] if virtual and task.depth > 1 else [f"--ramp_time={int(RAMP * 1000)}ms"]
    seconds = length_of_task(task, virtual=virtual)
    timed = ["--time_based", f"--runtime={int(seconds * 1000)}ms", *ramp]
    return [*words, f"--size={span - span % task.block}", *timed]


def rewriting_log(amount: int, block: int) -> str:
    """The iolog of a rewrite as bonnie++ does it: each block is read, and then written in its place. (fio's ``rw=rw``
    has a position of its own for each direction.) The format is that of fio's HOWTO, "Trace file format v2"."""
    lines = ["fio version 2 iolog", "{file} add", "{file} open"]
    for offset in range(0, min(amount - amount % block, MOST_REWRITTEN * block), block):
        lines += [f"{{file}} read {offset} {block}", f"{{file}} write {offset} {block}"]
    return "\n".join([*lines, "{file} close", ""])


def length_of_task(task: FioTask[object], *, virtual: bool) -> float:
    """Seconds of a task of fixed length, and about those of a sized one."""
    return task.seconds if virtual or task.sized else task.seconds * REAL


MOST_REWRITTEN = 16384
"""Blocks of a rewrite: the agent takes messages of 4 MiB (``dut/agent/wire.py``)."""
REAL = 3.0
"""A task of fixed length takes so many times as long on a real bench, whose rates are less steady."""


class _Runner:
    """Runs tasks one after the other."""

    def __init__(self, context: ScenarioContext, *, virtual: bool) -> None:
        self._context = context
        self._virtual = virtual
        self._fio = FioRunner(context)
        self._switched: dict[str, tuple[Target, bool]] = {}

    def possible(self, design: Iterable[FioTask[Target]]) -> Iterable[FioTask[Target]]:
        """The tasks with the disks on which they are possible."""
        design = tuple(design)
        needing = {target.name: target for task in design if task.drive_cache is not None for target in task.disks}
        able = {name for name, target in needing.items() if self._has_cache(target)}
        for task in design:
            disks = task.disks if task.drive_cache is None else tuple(one for one in task.disks if one.name in able)
            if disks:
                yield replace(task, disks=disks)

    def _has_cache(self, target: Target) -> bool:
        """Whether the cache is on, and can be switched: it is switched off and on again to see."""
        if self._context.bench.link.call("drive_cache", disk=claim_of(self._context, target).disk) != "write back":
            return False
        return self._switch(target, on=False) and self._switch(target, on=True)

    def _switch(self, target: Target, *, on: bool) -> bool:
        if self._switched.get(target.name, (target, True))[1] == on:
            return True
        context, begin = self._context, self._context.now()
        disk = claim_of(context, target).disk
        answer = context.bench.link.call("drive_cache_set", 60.0, disk=disk, on=on)
        ok = bool(answer["ok"])
        if ok:
            self._switched[target.name] = target, on
        context.recorder.record(
            ev.DriveCacheSwitched(
                at=begin, until=context.now(), disk=target.name, on=on, ok=ok, detail=answer["detail"]
            )
        )
        return ok

    def restore(self) -> None:
        """Give the drives their caches back."""
        if self._switched and not self._context.listener.lost:
            for target, _ in list(self._switched.values()):
                self._switch(target, on=True)
            self._context.bench.link.call("drive_cache_restore", 60.0)

    def run(self, task: FioTask[Target], number: tuple[int, int], repeat: tuple[int, int]) -> None:
        """Run a task once, and record its figures. Raises RigError."""
        context, names = self._context, tuple(target.name for target in task.disks)
        place = f"{number[0]} of {number[1]}" if number[0] <= number[1] else "again"
        context.phase("measure", f"{place}: {task.name} on {', '.join(names)}")
        for target in task.disks:
            if not self._switch(target, on=task.drive_cache is not False):
                raise RigError(f"the write cache of {target.name} could not be switched")
        begin = context.now()
        jobs = [self._start(task, target) for target in task.disks]
        late = self._fio.finish(jobs, PATIENCE * length_of_task(task, virtual=self._virtual) + START)
        figures = {job.disk: _late(job) if job in late else job.figures for job in jobs}
        context.recorder.record(
            ev.FioRan(
                at=max(job.ended_at or context.now() for job in jobs),
                begin=begin,
                task=task.name,
                disks=names,
                mode=task.mode,
                block=task.block,
                depth=task.depth,
                number=number[0],
                planned=number[1],
                repeat=repeat[0],
                repeats=repeat[1],
                figures=figures,
                argv=("fio", *task_arguments(task, task.disks[0], virtual=self._virtual)),
                drive_cache=task.drive_cache,
            )
        )

    def _start(self, task: FioTask[Target], target: Target) -> Job:
        arguments = task_arguments(task, target, virtual=self._virtual)
        amount = amount_of(target, task)
        log = rewriting_log(amount, task.block) if task.rewrites else ""
        return self._fio.start(target, arguments, amount, kind="task", log=log)


def _late(job: Job) -> ev.FioFigures:
    return ev.FioFigures(error=f"fio did not end in time on {job.disk}")


def _ran(context: ScenarioContext) -> tuple[ev.FioRan, ...]:
    return tuple(event for event in context.recorder.since() if isinstance(event, ev.FioRan))
