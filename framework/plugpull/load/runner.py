"""Starts and ends fio on the DUT, one process per disk."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

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
    """One fio process on one disk."""

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
        names = [job.name for job in jobs]
        if not names:
            return {}
        answers = self._context.bench.link.call("jobs.stop", 4 * STOP_GRACE + 10, jobs=names, grace=STOP_GRACE)
        return {name: answer["process"] for name, answer in answers.items() if answer["stuck"]}
