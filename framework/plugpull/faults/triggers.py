"""When a cut is made: after so many bytes, at a time, when the kernel says something, or at random within a range."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.rig.quantities import format_size
from plugpull.streams import TRIGGERS

TRIGGER_DEADLINE = 120.0
"""Seconds a trigger may take; then the bench did not do what the scenario needs."""


class Trigger(Protocol):
    """Waits for the moment to cut. Raises RigError when it does not come."""

    def text(self) -> str: ...

    def wait(self, context: ScenarioContext) -> str:
        """Returns what happened, such as "after 1.37 s (at random within 1 to 3 s)"."""
        ...


@dataclass(frozen=True)
class Now:
    def text(self) -> str:
        return "at once"

    def wait(self, context: ScenarioContext) -> str:
        return self.text()


@dataclass(frozen=True)
class Moved:
    """When ``size`` bytes were read or written on a disk since history position ``since``, by the samples."""

    disk: str
    size: int
    since: int

    def text(self) -> str:
        return f"{format_size(self.size)} moved on {self.disk}"

    def wait(self, context: ScenarioContext) -> str:
        first: dict[tuple[str, int], int] = {}

        def enough(event: ev.Event) -> bool:
            attached = context.bench.disk_table.attached(self.disk)
            if not isinstance(event, ev.Sampled) or attached is None:
                return False
            counters = event.disks.get(attached.kname)
            if counters is None or counters[0] != attached.diskseq:
                return False
            total = counters[1] + counters[2]
            return total - first.setdefault((attached.kname, counters[0]), total) >= self.size

        if context.wait_for(enough, TRIGGER_DEADLINE, since=self.since) is None:
            raise RigError(
                f"{self.disk} did not move {format_size(self.size)} within {TRIGGER_DEADLINE:g} s, so nothing was cut"
            )
        return self.text()


@dataclass(frozen=True)
class After:
    """Raises UsageError for a time that has passed already."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf:
            raise UsageError(f"a cut cannot be made after {self.seconds:g} s", mend="give 0 or more seconds")

    def text(self) -> str:
        return f"after {self.seconds:g} s"

    def wait(self, context: ScenarioContext) -> str:
        context.pause(self.seconds)
        return self.text()


@dataclass(frozen=True)
class AtRandom:
    """At a moment drawn from the scenario's seeded generator, so that the seed repeats it. Raises UsageError for limits
    that hold no moment."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise UsageError(
                f"no moment is within {self.low:g} to {self.high:g} s", mend="give the earlier limit first, 0 or more"
            )

    def text(self) -> str:
        return f"at random within {self.low:g} to {self.high:g} s"

    def wait(self, context: ScenarioContext) -> str:
        seconds = context.streams.of(TRIGGERS).uniform(self.low, self.high)
        context.pause(seconds)
        return f"after {seconds:.3f} s ({self.text()})"


@dataclass(frozen=True)
class Promised:
    """When something that was written to a disk is durable, and a moment later."""

    disk: str
    is_promised: Callable[[], bool]
    later: AtRandom

    def text(self) -> str:
        return f"something is promised on {self.disk}, and {self.later.text()} after that"

    def wait(self, context: ScenarioContext) -> str:
        if context.wait_for(lambda event: self.is_promised(), TRIGGER_DEADLINE) is None:
            raise RigError(f"nothing was made durable on {self.disk} within {TRIGGER_DEADLINE:g} s: nothing was cut")
        return f"something was promised on {self.disk}, and {self.later.wait(context)}"


@dataclass(frozen=True)
class KernelSays:
    """When the kernel logs a line that matches a regular expression, from now on. Raises UsageError if it is none."""

    pattern: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"/{self.pattern}/ is no regular expression: {error}") from error

    def text(self) -> str:
        return f"the kernel logs /{self.pattern}/"

    def wait(self, context: ScenarioContext) -> str:
        wanted = re.compile(self.pattern)
        found = context.wait_for(
            lambda event: isinstance(event, ev.KernelMessage) and wanted.search(event.text) is not None,
            TRIGGER_DEADLINE,
        )
        if found is None:
            raise RigError(f"the kernel did not log /{self.pattern}/ within {TRIGGER_DEADLINE:g} s, so nothing was cut")
        return self.text()


def after(seconds: float) -> After:
    """Cut after this many seconds."""
    return After(seconds)


def at_random(low: float, high: float) -> AtRandom:
    """Cut at a random moment between ``low`` and ``high`` seconds from now."""
    return AtRandom(low, high)


def kernel_says(pattern: str) -> KernelSays:
    """Cut when the kernel logs a line that matches this regular expression."""
    return KernelSays(pattern)
