"""Starts and ends fio on the DUT: one process per disk, or one for several."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history.events import FioFigures
from plugpull.load.fio_figures import parse_figures
from plugpull.load.fio_report import FioReport, parse_report
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

STOP_GRACE = 5.0
"""Seconds that each signal gets to end a job."""
_numbers = itertools.count(1)


@dataclass
class Job:
    """fio on one disk. ``process`` is the agent's name for the process, if that works on several."""

    name: str
    disk: str
    kname: str
    span: int
    ended: threading.Event = field(default_factory=threading.Event)
    status: int | None = None
    asked: bool = False
    asked_at: float | None = None
    ended_at: float | None = None
    report: FioReport = field(default_factory=FioReport)
    figures: FioFigures = field(default_factory=FioFigures)
    process: str = ""


class Work(NamedTuple):
    """What one of several disks gets: its target, fio's arguments, and the bytes that it covers."""

    target: Target
    arguments: list[str]
    span: int


class FioRunner:
    """Starts and ends fio on the DUT, and waits for it with deadlines."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context

    def start(self, target: Target, arguments: list[str], span: int, *, kind: str, log: str = "") -> Job:
        """Start fio. ``log`` is an iolog that it replays, as ``{log}`` in the arguments.

        Raises GuardRefused when the scratch guard refuses the disk, UsageError for a disk not declared scratch.
        """
        claim = claim_of(self._context, target)
        job = Job(f"{kind}{next(_numbers)}-{target.name}", target.name, claim.kname, span)
        self._context.listener.expect(job.name, lambda message: self._ended(job, message))
        replayed = {"log": log} if log else {}
        self._context.bench.link.call("fio", 60.0, job=job.name, argv=arguments, **replayed, **claim.arguments)
        return job

    @staticmethod
    def _ended(job: Job, message: Message) -> None:
        job.status = message["status"]
        job.asked = message["asked"]
        job.ended_at = message["at"]
        job.report = parse_report(message["output"])
        job.figures = parse_figures(message["output"])
        job.ended.set()

    def start_together(self, works: Sequence[Work], *, kind: str) -> list[Job]:
        """Start one fio for all of these, which are described by the names of their targets. Raises as ``start``."""
        claims = [claim_of(self._context, work.target) for work in works]
        process = f"{kind}{next(_numbers)}"
        jobs = [
            Job(f"{process}-{work.target.name}", work.target.name, claim.kname, work.span, process=process)
            for work, claim in zip(works, claims, strict=True)
        ]
        self._context.listener.expect(process, lambda message: self._all_ended(jobs, message))
        each = [{"argv": work.arguments, **claim.arguments} for work, claim in zip(works, claims, strict=True)]
        self._context.bench.link.call("fio_together", 50.0 + 10.0 * len(each), job=process, each=each)
        return jobs

    @staticmethod
    def _all_ended(jobs: Sequence[Job], message: Message) -> None:
        """Each gets its part of the report. The exit status belongs to those that failed, if any did."""
        for job in jobs:
            job.status, job.asked, job.ended_at = message["status"], message["asked"], message["at"]
            job.report = parse_report(message["output"], job.disk)
        failed = ", ".join(job.disk for job in jobs if job.report.errno)
        for job in jobs:
            if failed and job.report.complete and not job.report.errno:
                job.status = None
                if not job.asked:
                    job.report = replace(job.report, message=f"fio ended because of its error on {failed}")
        for job in jobs:
            job.ended.set()

    def finish(self, jobs: Iterable[Job], timeout: float) -> list[Job]:
        """Wait for jobs that end by themselves. Those that take longer are ended and returned."""
        deadline = time.monotonic() + timeout
        late = [job for job in jobs if not self._wait(job, deadline)]
        self.stop(late)
        return late

    def _wait(self, job: Job, deadline: float) -> bool:
        while not job.ended.wait(max(0.0, min(0.2, deadline - time.monotonic()))):
            if self._context.listener.lost:
                raise RigError(f"{job.disk}: the agent with its job was lost: {self._context.listener.lost}")
            if time.monotonic() >= deadline:
                return False
        return True

    def stop(self, jobs: Iterable[Job]) -> dict[str, Message]:
        """End jobs. Returns, by name, what each job that could not be ended is stuck in."""
        processes = {job.name: job.process or job.name for job in jobs}
        if not processes:
            return {}
        names = list(dict.fromkeys(processes.values()))
        answers = self._context.bench.link.call("jobs.stop", 4 * STOP_GRACE + 10, jobs=names, grace=STOP_GRACE)
        stuck = {name: answer["process"] for name, answer in answers.items() if answer["stuck"]}
        return {job: stuck[process] for job, process in processes.items() if process in stuck}
