"""An fio load that reads the stamped disks, or leaves them idle."""

from __future__ import annotations

import time
from collections.abc import Iterable

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.integrity.patterns import extents_for, steady
from plugpull.integrity.writing.load import fill_block, record_ended, wait_filled
from plugpull.integrity.writing.reading import ReadBacks
from plugpull.integrity.writing.session import StampRunner, StreamJob
from plugpull.load.load import RunningLoad
from plugpull.load.patterns import Pattern
from plugpull.targets.target import Target

ENDED_WITHIN = 20.0
"""Seconds within which writers that have filled their spans must end: they have nothing left to do."""


class RunningReads(RunningLoad):
    """fio reads the disks or does nothing. The disks are stamped once before, and read back after."""

    def __init__(self, context: ScenarioContext, targets: Iterable[Target], pattern: Pattern) -> None:
        super().__init__(context, targets, pattern)
        self._runner = StampRunner(context)
        self._run = context.random.getrandbits(64)
        self._reads = ReadBacks(context, self._runner, self._run)

    def _fill(self) -> None:
        """Stamp the spans once and make them durable."""
        self._context.phase("fill", f"stamping {len(self._targets)} disks")
        self._reads.planned(1, self._targets)
        jobs = [self._fill_one(target) for target in self._targets]
        for job in jobs:
            wait_filled(self._context, job)
        deadline = time.monotonic() + ENDED_WITHIN
        for job in jobs:
            job.ended.wait(max(0.0, deadline - time.monotonic()))
        self._runner.stop([job for job in jobs if not job.ended.is_set()])
        for job in jobs:
            record_ended(self._context, job)

    def _fill_one(self, target: Target) -> StreamJob:
        how = steady(self.pattern)
        extents = extents_for(target, how)
        job = self._runner.write(
            target,
            extents,
            how.writing,
            run=self._run,
            session=1,
            seed=1,
            fill=fill_block(how.writing.block),
            only_fill=True,
        )
        self._reads.wrote(target, job, extents, blank=False)
        return job

    def verify(self) -> None:
        """Read back the stamps of every attached disk; the checks judge them later, from the history."""
        self._context.phase("verify", "reading back")
        self._reads.read()
        self._reads.over()
