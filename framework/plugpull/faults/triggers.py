"""Triggers of cuts: a number of bytes moved, a time, a message of the kernel, or a random moment within a range."""

from __future__ import annotations

import math
import re
import time

import msgspec

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError, UsageError
from plugpull.faults.watching import Sighting, Timer, Watch, wait_for_first
from plugpull.history import events as ev
from plugpull.rig.quantities import format_size
from plugpull.streams import TRIGGERS

TRIGGER_DEADLINE = 120.0
"""Seconds that a trigger may take. After that, the scenario ends with an error of the bench."""


class Trigger:
    """The moment to cut, as data: every kind is a frozen struct, which ``codec.py`` reads and writes."""

    __slots__ = ()

    def text(self) -> str:
        """When, as a clause such as "after 2 s"."""
        raise NotImplementedError

    def watch(self, context: ScenarioContext) -> Watch:
        """Begin to wait for it."""
        raise NotImplementedError

    def earliest(self) -> float:
        """Seconds that it takes at least, if known beforehand; otherwise 0."""
        return 0.0

    def wait(self, context: ScenarioContext) -> str:
        """Wait for it and return what happened, such as "after 1.37 s (at random within 1 to 3 s)".

        Raises RigError when it does not come.
        """
        (watch,) = wait_for_first(context, [self.watch(context)])
        return watch.happened


class Now(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="now"):
    """At once."""

    def text(self) -> str:
        return "at once"

    def watch(self, context: ScenarioContext) -> Watch:
        return Timer(context, 0.0, self.text())


class Moved(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="moved"):
    """When the load has read or written ``size`` bytes on a disk since it began, by the samples; without a load, since
    the trigger was armed."""

    disk: str
    size: int

    def text(self) -> str:
        return f"{format_size(self.size)} moved on {self.disk}"

    def watch(self, context: ScenarioContext) -> Watch:
        began = _load_began(context, self.disk)
        counting = began is None
        first: dict[tuple[str, int], int] = {}

        def enough(event: ev.Event) -> bool:
            nonlocal counting
            counting = counting or event is began
            attached = context.bench.disk_table.attached(self.disk)
            if not counting or not isinstance(event, ev.Sampled) or attached is None:
                return False
            counters = event.disks.get(attached.kname)
            if counters is None or counters.diskseq != attached.diskseq:
                return False
            before = first.setdefault((attached.kname, counters.diskseq), counters.moved)
            return counters.moved - before >= self.size

        amount, within = format_size(self.size), TRIGGER_DEADLINE
        missed = f"{self.disk} did not move {amount} within {within:g} s, so nothing was cut"
        return Sighting(context, enough, within, self.text(), missed, since=None if began is None else 0)


def _load_began(context: ScenarioContext, disk: str) -> ev.Event | None:
    """The event from which the bytes of the last load on a disk count: where its phase began, shortly before
    ``LoadBegun``. ``None`` if no load of this scenario is on record."""
    load: ev.Event | None = None
    for event in reversed(context.recorder.since(0)):
        if load is None and isinstance(event, ev.LoadBegun) and event.disk == disk:
            load = event
        if load is not None and isinstance(event, ev.Phase) and event.name == "load":
            return event
    return load


class After(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="after"):
    """When so much time has passed. Raises UsageError for a negative time."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf:
            raise UsageError(f"a cut cannot be made after {self.seconds:g} s", hint="give 0 or more seconds")

    def text(self) -> str:
        return f"after {self.seconds:g} s"

    def earliest(self) -> float:
        return self.seconds

    def watch(self, context: ScenarioContext) -> Watch:
        return Timer(context, self.seconds, self.text())


class AtRandom(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="at_random"):
    """At a moment drawn from the scenario's stream for triggers, so that the seed repeats it.

    Raises UsageError for limits that hold no moment.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise UsageError(
                f"no moment is within {self.low:g} to {self.high:g} s", hint="give the earlier limit first, 0 or more"
            )

    def text(self) -> str:
        return f"at random within {self.low:g} to {self.high:g} s"

    def earliest(self) -> float:
        return self.low

    def watch(self, context: ScenarioContext) -> Watch:
        seconds = context.streams.of(TRIGGERS).uniform(self.low, self.high)
        return Timer(context, seconds, f"after {seconds:.3f} s ({self.text()})")


class Promised(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="promised"):
    """When something that was written to a disk is durable, and a moment later. Something must write stamps to it."""

    disk: str
    later: AtRandom

    def text(self) -> str:
        return f"something is promised on {self.disk}, and {self.later.text()} after that"

    def earliest(self) -> float:
        return self.later.earliest()

    def watch(self, context: ScenarioContext) -> Watch:
        if self.disk not in context.promised:
            raise UsageError(
                f"nothing can be promised on {self.disk}: no stamps are written to it",
                hint=f"write to it with rig.stamp({self.disk}, ...) before the cut",
            )
        return _Promise(context, self)


class _Promise(Watch):
    """Waits for the promise, then for the moment later."""

    def __init__(self, context: ScenarioContext, wanted: Promised) -> None:
        self._missed = f"nothing was made durable on {wanted.disk} within {TRIGGER_DEADLINE:g} s: nothing was cut"
        super().__init__(context, time.monotonic() + TRIGGER_DEADLINE, "")
        self._context = context
        self._wanted = wanted
        self._is_promised = context.promised[wanted.disk]
        self._later: Watch | None = None

    def sees(self, event: ev.Event) -> bool:
        return self._later is None and self._is_promised()

    def come(self) -> bool:
        if self._later is None and self._is_promised():
            self._later = self._wanted.later.watch(self._context)
            self.until = self._later.until
            self.happened = f"something was promised on {self._wanted.disk}, and {self._later.happened}"
        if self._later is not None:
            return self._later.come()
        if super().come():
            raise RigError(self._missed)
        return False


class Flushing(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="flushing"):
    """At the instant at which a flush of a disk is under way. Something must write stamps to it, and flush."""

    disk: str

    def text(self) -> str:
        return f"a flush of {self.disk} is under way"

    def watch(self, context: ScenarioContext) -> Watch:
        if self.disk not in context.flushing:
            raise UsageError(
                f"no flush of {self.disk} can be seen: no stamps are written to it",
                hint=f"write to it with rig.stamp({self.disk}, ...) before the cut",
            )
        under_way = context.flushing[self.disk]
        missed = f"no flush of {self.disk} was seen under way within {TRIGGER_DEADLINE:g} s, so nothing was cut"
        return Sighting(context, lambda event: under_way(), TRIGGER_DEADLINE, self.text(), missed)


class StepBegins(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="step_begins"):
    """When the system call of a step (``StepBegun``) begins on a disk for the ``count``th time in the scenario, and a
    moment later."""

    disk: str
    step: ev.ActionName
    count: int
    later: AtRandom

    def text(self) -> str:
        return f"the {self.step} of {self.disk} begins, and {self.later.text()} after that"

    def earliest(self) -> float:
        return self.later.earliest()

    def watch(self, context: ScenarioContext) -> Watch:
        return _Step(context, self)


class _Step(Watch):
    """Waits for the step to begin, then for the moment later."""

    def __init__(self, context: ScenarioContext, wanted: StepBegins) -> None:
        self._missed = f"no {wanted.step} of {wanted.disk} began within {TRIGGER_DEADLINE:g} s: nothing was cut"
        super().__init__(context, time.monotonic() + TRIGGER_DEADLINE, "", since=0)
        self._context = context
        self._wanted = wanted
        self._begun: set[float | None] = set()
        self._later: Watch | None = None

    def sees(self, event: ev.Event) -> bool:
        wanted = self._wanted
        if isinstance(event, ev.StepBegun) and (event.disk, event.action) == (wanted.disk, wanted.step):
            self._begun.add(event.at)
        return self._later is None and len(self._begun) >= wanted.count

    def come(self) -> bool:
        if self._later is None and len(self._begun) >= self._wanted.count:
            self._later = self._wanted.later.watch(self._context)
            self.until = self._later.until
            self.happened = f"the {self._wanted.step} of {self._wanted.disk} began, and {self._later.happened}"
        if self._later is not None:
            return self._later.come()
        if super().come():
            raise RigError(self._missed)
        return False


class KernelSays(Trigger, msgspec.Struct, frozen=True, tag_field="kind", tag="kernel_says"):
    """When the kernel logs a line that matches a regular expression, from now on.

    Raises UsageError for an invalid expression."""

    pattern: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError(f"/{self.pattern}/ is not a regular expression: {error}") from error

    def text(self) -> str:
        return f"the kernel logs /{self.pattern}/"

    def watch(self, context: ScenarioContext) -> Watch:
        wanted = re.compile(self.pattern)
        return Sighting(
            context,
            lambda event: isinstance(event, ev.KernelMessage) and wanted.search(event.text) is not None,
            TRIGGER_DEADLINE,
            self.text(),
            f"the kernel did not log /{self.pattern}/ within {TRIGGER_DEADLINE:g} s, so nothing was cut",
        )


def after(seconds: float) -> After:
    """Cut after this many seconds."""
    return After(seconds)


def at_random(low: float, high: float) -> AtRandom:
    """Cut at a random moment between ``low`` and ``high`` seconds from now."""
    return AtRandom(low, high)


def kernel_says(pattern: str) -> KernelSays:
    """Cut when the kernel logs a line that matches this regular expression."""
    return KernelSays(pattern)
