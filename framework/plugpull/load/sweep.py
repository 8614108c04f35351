"""A sweep of the transfer size: larger and larger requests, until a disk stalls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.counters import NOTHING, Counters
from plugpull.load.patterns import Pattern, sequential_read, sequential_write
from plugpull.load.running import START_DEADLINE
from plugpull.load.timed import PARTITION_SCAN, TimedLoad
from plugpull.studies.transfer import stall_limit
from plugpull.targets.target import Target

SMALLEST = 4 << 10
"""Bytes: a page."""
REQUESTS = 48
"""Requests of each size to wait for: a disk may stall at one in many."""
LEAST_SECONDS, MOST_SECONDS = 1.0, 5.0
"""How long a size is tried, at least and at most."""
SAFE, FAILING = 3, 2
"""So many times a size is tried again: the largest that was safe, and the first that was not."""
MODES = (sequential_read, sequential_write)


class SweptSize(NamedTuple):
    """The times of the first and the last sample, the disks that stalled or whose load failed, and the rates of the
    others, bytes per second."""

    begin: float
    end: float
    failed: frozenset[str]
    rates: dict[str, float]


@dataclass
class _Progress:
    """How far one disk is. ``since`` is when its oldest request in flight was first seen."""

    first: Counters
    last: Counters
    since: float | None = None

    def look(self, at: float, now: Counters) -> float:
        """Take the next counters. Returns for how long no request has completed although one is in flight."""
        if now.completed != self.last.completed or not now.in_flight:
            self.since = at if now.in_flight else None
        elif self.since is None:
            self.since = at
        self.last = now
        return 0.0 if self.since is None else at - self.since

    @property
    def done(self) -> int:
        return self.last.completed - self.first.completed

    @property
    def moved(self) -> int:
        return self.last.moved - self.first.moved


class SweepLoad(TimedLoad):
    """Requests of one size, one at a time, that are watched for stalls."""

    def watch_for_stall(self, expected: float) -> SweptSize:
        """Wait until every disk has completed enough requests, or one has stalled. ``expected`` is about how long a
        request takes, in seconds. Raises RigError if a load does not start."""
        sample = self._next_sample()
        still = {name: sample.disks.get(job.kname, NOTHING) for name, job in self._jobs.items()}
        each = {name: _Progress(counters, counters) for name, counters in still.items()}
        begin, deadline = 0.0, time.monotonic() + START_DEADLINE
        while True:
            sample = self._next_sample()
            at = sample.at or 0.0
            held = {name: each[name].look(at, sample.disks.get(job.kname, NOTHING)) for name, job in self._jobs.items()}
            over = {name for name, job in self._jobs.items() if job.ended.is_set()}
            failed = frozenset(over | {name for name, seconds in held.items() if seconds > stall_limit(expected)})
            # Opening a disk for writing makes the kernel read its partition table: that does not count.
            if not begin and all(one.moved >= PARTITION_SCAN + 2 * self._pattern.block for one in each.values()):
                begin, each = at, {name: replace(one, first=one.last) for name, one in each.items()}
            if failed:
                return SweptSize(begin or at - max(held.values()), at, failed, {})
            if begin and self._enough(at - begin, [one.done for one in each.values()]):
                rates = {name: one.moved / (at - begin) for name, one in each.items()}
                return SweptSize(begin, at, failed, rates)
            if not begin and time.monotonic() > deadline:
                raise RigError(f"{', '.join(self.disks)} moved nothing within {START_DEADLINE:g} s of starting a load")

    @staticmethod
    def _enough(passed: float, done: Sequence[int]) -> bool:
        return passed >= LEAST_SECONDS and (passed >= MOST_SECONDS or min(done) >= REQUESTS)


class Sweep:
    """Tries larger and larger requests on several disks at once, and then confirms what it found on each alone."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._number = 0
        self._rates: dict[str, float] = {}

    def run(self, targets: Sequence[Target]) -> None:
        """Sweep up to the largest request that the kernel makes for each disk, and then between the largest safe one
        and the first that was not. Raises RigError."""
        limits = {target.name: self._limit(target.name) for target in targets}
        safe: dict[str, int] = {}
        failed: dict[str, tuple[int, Pattern]] = {}
        for size in sizes(limits.values()):
            for pattern in MODES:
                trying = [one for one in targets if one.name not in failed and size <= limits[one.name]]
                failed |= dict.fromkeys(self._try(trying, pattern, size, 1), (size, pattern))
            safe |= {name: size for name, most in limits.items() if name not in failed and size <= most}
        for target in targets:
            if target.name in failed and target.name in safe:
                self._narrow(target, safe[target.name], *failed[target.name])

    def _narrow(self, target: Target, safe: int, failing: int, pattern: Pattern) -> None:
        """Find the largest safe size between two that were tried, and confirm it."""
        while size := between(safe, failing):
            how = next((each for each in MODES if self._try([target], each, size, 1)), None)
            if how is None:
                safe = size
            else:
                failing, pattern = size, how
        self._confirm(target, safe, failing, pattern)

    def _confirm(self, target: Target, safe: int, failing: int, pattern: Pattern) -> None:
        for again in range(SAFE):
            self._try([target], pattern, safe, again + 2)
        for again in range(FAILING):
            self._try([target], pattern, failing, again + 2)

    def _limit(self, disk: str) -> int:
        """Bytes of the largest request that the kernel makes for a disk. Raises RigError if that is not known."""
        for event in reversed(self._context.recorder.since(0)):
            if isinstance(event, ev.DiskProperties) and event.disk == disk and "max_sectors_kb" in event.values:
                return int(event.values["max_sectors_kb"]) << 10
        raise RigError(f"the DUT did not report max_sectors_kb of {disk}, the largest request that it makes")

    def _try(self, targets: Sequence[Target], pattern: Pattern, size: int, repeat: int) -> frozenset[str]:
        """Try one size once, and record it. Returns the disks that stalled or failed."""
        if not targets:
            return frozenset()
        names = tuple(target.name for target in targets)
        self._context.phase("measure", f"{pattern.name} in requests of {size >> 10} KiB on {', '.join(names)}")
        expected = max((size / self._rates[name] for name in names if self._rates.get(name)), default=0.0)
        with SweepLoad(self._context, targets, replace(pattern, block=size, depth=1)) as load:
            seen = load.watch_for_stall(expected)
            self._number += 1
            self._context.recorder.record(
                ev.Measured(
                    at=seen.end,
                    begin=seen.begin,
                    disks=names,
                    mode="read" if pattern is sequential_read else "write",
                    block=size,
                    depth=1,
                    number=self._number,
                    # How many there will be is known only at the end.
                    planned=self._number,
                    repeat=repeat,
                    repeats=1 + SAFE,
                )
            )
        self._rates |= seen.rates
        return seen.failed


def between(safe: int, failing: int) -> int:
    """The size to try next, in bytes: a whole number of pages in the middle of a safe size and one that is not. 0 if
    there are none between them.

    >>> between(32 << 10, 64 << 10) >> 10, between(60 << 10, 64 << 10)
    (48, 0)
    """
    middle = (safe + failing) // 2 // SMALLEST * SMALLEST
    return middle if safe < middle < failing else 0


def sizes(limits: Iterable[int]) -> list[int]:
    """The sizes to try first, in bytes: powers of two, and the limits themselves.

    >>> [size >> 10 for size in sizes([122880])]
    [4, 8, 16, 32, 64, 120]
    """
    largest = sorted(set(limits))
    powers = [SMALLEST << step for step in range(40) if SMALLEST << step <= largest[-1]]
    return sorted({*powers, *largest})
