"""A load on several disks at once, and the read-back of its data."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.load.patterns import Pattern, fill_arguments, load_arguments, span_of, verify_arguments
from plugpull.load.runner import FioRunner, Job
from plugpull.load.running import START_DEADLINE, RunningJobs
from plugpull.targets.on_bench import is_usable
from plugpull.targets.target import Target


class RunningLoad(RunningJobs):
    """A load that fio runs on one or several disks, for the length of its ``with`` block."""

    def __init__(self, context: ScenarioContext, targets: Iterable[Target], pattern: Pattern) -> None:
        super().__init__(context, targets)
        self.pattern = pattern
        self._devices = tuple(target for target in self._targets if not target.in_file)
        self._fio = FioRunner(context)

    def _begin(self) -> None:
        if self.pattern.mode in ("read", "randread", "idle") and self._devices:
            self._fill()
        self._mark = self._context.recorder.mark()
        if self.pattern.mode == "idle":
            return
        self._context.phase("load", f"{self.pattern.name} on {len(self._targets)} disks")
        for target in self._targets:
            span = span_of(target, self.pattern)
            arguments = load_arguments(self.pattern, span, in_file=target.in_file)
            job = self._fio.start(target, arguments, span, kind="load")
            self._jobs[target.name] = job
            self._context.recorder.record(
                ev.LoadBegun(
                    at=self._context.now(),
                    disk=job.disk,
                    job=job.name,
                    mode=self.pattern.mode,
                    block=self.pattern.block,
                    depth=self.pattern.depth,
                    span=span,
                    kname=job.kname,
                    argv=("fio", *arguments),
                )
            )

    def _fill(self) -> None:
        """Write the spans once, so that the load reads recognisable data."""
        self._context.phase("fill", f"stamping {len(self._devices)} disks")
        jobs = []
        for target in self._devices:
            span = span_of(target, self.pattern)
            jobs.append(self._fio.start(target, fill_arguments(self.pattern, span), span, kind="fill"))
        late = self._fio.finish(jobs, START_DEADLINE)
        broken = [job for job in jobs if job in late or job.status != 0]
        if broken:
            job = broken[0]
            raise RigError(
                f"{job.disk} could not be filled before the test: {job.report.message or 'fio did not end in time'}"
            )

    def _first_bytes(self, disk: str) -> int:
        return self.pattern.block * self.pattern.depth

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Message]:
        return self._fio.stop(running)

    # --- reading back ---------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Read the data back on every attached disk and compare each block with its stamp.

        Raw data below a filesystem is not compared: it belongs to the filesystem.
        """
        if not self._devices:
            return
        self._context.phase("verify", "reading back")
        jobs: list[Job] = []
        for target in self._devices:
            ranges, why_not = self._ranges(target)
            if why_not:
                self._context.recorder.record(
                    ev.Verified(at=self._context.now(), disk=target.name, checked=0, error=why_not)
                )
                continue
            length = sum(size for _, size in ranges)
            jobs.append(self._fio.start(target, verify_arguments(self.pattern, ranges), length, kind="verify"))
        late = self._fio.finish(jobs, START_DEADLINE * 2)
        for job in jobs:
            self._record_verified(job, job in late)

    def _ranges(self, target: Target) -> tuple[tuple[tuple[int, int], ...], str]:
        """The (offset, length) ranges that must hold the written data, or the reason why none are known."""
        if not is_usable(self._context, target):
            return (), f"{target.name} is not attached"
        span = span_of(target, self.pattern)
        job = self._jobs.get(target.name)
        if self.pattern.mode != "write" or job is None:
            return ((0, span),), ""
        if self._lost_power(target):
            return (), f"{target.name} lost its power, and fio does not record which of its writes were flushed"
        if not job.report.complete:
            return (), f"fio left no report of what it wrote to {target.name}"
        return certain_ranges(job.report.written_bytes, span, self.pattern, whole=job.asked)

    def _lost_power(self, target: Target) -> bool:
        """Whether a cut took the power of a disk below it since the load began."""
        points = self._context.topology.cut_points()
        edges = (event for event in self._context.recorder.since(self._mark) if isinstance(event, ev.Edge))
        cut = {edge.point for edge in edges if edge.state == "off"} & set(points)
        return any(disk in points[name].unpowered for name in cut for disk in target.disks)

    def _record_verified(self, job: Job, late: bool) -> None:
        report = job.report
        error = ""
        if late:
            error = f"reading back did not finish within {START_DEADLINE * 2:g} s"
        elif not report.bad and (
            report.errno or not report.complete or job.status != 0 or report.read_bytes != job.span
        ):
            error = (
                report.message or f"fio ended with status {job.status} after {report.read_bytes} of {job.span} bytes"
            )
        self._context.recorder.record(
            ev.Verified(
                at=self._context.now(),
                disk=job.disk,
                checked=report.read_bytes,
                bad=report.bad,
                error=error,
                method="fio verify=crc32c, read back after the load",
            )
        )


def certain_ranges(
    written: int, span: int, pattern: Pattern, *, whole: bool
) -> tuple[tuple[tuple[int, int], ...], str]:
    """The ranges with good blocks after a sequential load has written ``written`` bytes, wrapping around ``span``.

    A load that was asked to end has completed all its writes (``whole``). One that was cut off had up to ``depth``
    blocks in flight ahead of its position, and completions out of order can leave some behind it. Any part of these may
    have reached the disk, so they prove nothing and are left out.
    """
    block = pattern.block
    if whole:
        extent = min(written - written % block, span)
        return (((0, extent),), "") if extent else ((), "nothing was written")
    ahead, behind = pattern.depth * block, 2 * pattern.depth * block
    position = written % span
    # The blocks in flight ahead of the position may have wrapped to the beginning, in the first pass too.
    ranges = [(max(0, position + ahead - span), position - behind)]
    if written >= span:
        ranges.append((position + ahead, span - max(0, behind - position)))
    blocks = [(-(-begin // block) * block, end // block * block) for begin, end in ranges]
    certain = tuple((begin, end - begin) for begin, end in blocks if end > begin)
    return (certain, "") if certain else ((), "too little was written before the cut to be certain of any block")
