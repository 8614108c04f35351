"""Injects a fault on the bench, and heals it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import assert_never

from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed
from plugpull.faults.breaker import Breaker, Planned
from plugpull.faults.codec import encode
from plugpull.faults.compose import Fault
from plugpull.faults.expected import points_cut
from plugpull.faults.script import (
    NOTHING,
    Arm,
    Back,
    Gone,
    Here,
    MovedAway,
    Opening,
    Over,
    Relocate,
    Script,
    ScriptRun,
    Step,
    SwitchPorts,
    Until,
    Wait,
    heal,
)
from plugpull.faults.triggers import Trigger
from plugpull.faults.watching import Attachment, Watch, wait_for_first
from plugpull.history import events as ev

FORGETFUL = ("virtio_scsi",)
"""Drivers that learn only from events which disks come and go, and lose the events of a time in which the DUT slept
(drivers/scsi/virtio_scsi.c, ``virtscsi_restore``)."""
SEEN_WITHIN = 5.0
"""Seconds to wait after a cut for the kernel to take the victims off its list. The checks judge a longer time."""
BACK_WITHIN = 20.0
"""Seconds to wait after a restoration for the victims to be back. The checks judge a longer time."""


class Injection:
    """A fault that is injected on the bench and healed.

    As a context manager it is injected at the beginning of the ``with`` block and healed at its end. ``inject`` and
    ``heal`` do the same apart, so that several can overlap in any order: a port stays off until the last of them is
    healed. Whatever is not healed is healed when the scenario ends.
    """

    def __init__(self, context: ScenarioContext, breaker: Breaker, fault: Fault) -> None:
        self.fault = fault
        self._context = context
        self._breaker = breaker
        self._points = context.topology.cut_points()
        self._held: list[Opening | MovedAway] = []
        self._planned: dict[Opening, tuple[Planned, ...]] = {}
        self._number = 0
        self._watches: dict[Wait, Watch] = {}

    def inject(self) -> Injection:
        """Record the fault and make it.

        Raises RigError when a switch fails or a trigger does not fire. Raises UsageError, before anything is done, for
        a cut point that the rig does not have, and NotServed for one that nobody would notice."""
        for name in points_cut(self.fault):
            self._context.topology.cut_point(name)
        self._refuse_asleep()
        self._number = self._breaker.announce(encode(self.fault))
        self._carry_out(self.fault.inject(self._held))
        return self

    def _refuse_asleep(self) -> None:
        """Raise NotServed if the DUT sleeps, and the driver of a disk to be cut does not look for it as it wakes."""
        if not self._context.listener.asleep:
            return
        for name in points_cut(self.fault):
            for disk in self._context.topology.blast_radius(name):
                attached = self._context.bench.disk_table.attached(disk)
                if attached is not None and attached.driver in FORGETFUL:
                    raise NotServed(
                        f"{attached.driver} does not look which disks are there as the DUT wakes, so it would not"
                        f" notice that {disk} was cut while the DUT slept",
                        hint="wait until it is awake, or cut a disk on USB",
                    )

    def heal(self) -> None:
        """Restore what is still off, apart from permanent cuts, and wait for the disks. Raises RigError."""
        self._carry_out(heal(self._held))

    def __enter__(self) -> Injection:
        return self.inject()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if kind is None:  # else what is still off is healed when the scenario ends
            self.heal()

    # --- steps ----------------------------------------------------------------------------------------------------

    def _carry_out(self, script: Script) -> None:
        run = ScriptRun(script)
        try:
            while run.step is not None:
                run.advance(self._do(run.step))
        except BaseException as error:
            self._context.leaving(error)
            raise

    def _do(self, step: Step) -> Over:
        """Do one step. Returns those of its waits that are over."""
        match step:
            case Arm(openings):
                self._arm(openings)
            case SwitchPorts(off, on):
                self._switch(off, False)
                self._switch(on, True)
            case Relocate(sockets):
                self._relocate(dict(sockets))
            case Until(waits):
                return self._wait(waits)
            case _:
                assert_never(step)
        return NOTHING

    def _arm(self, openings: Sequence[Opening]) -> None:
        """Record cuts, one group at a time."""
        groups: dict[object, list[Opening]] = {}
        for opening in openings:
            groups.setdefault(opening.group, []).append(opening)
        for group in groups.values():
            one = group[0]
            points = [self._points[name] for opening in group for name in opening.points]
            numbers = self._breaker.arm(points, one.when, one.permanent, self._number)
            planned = iter(zip(numbers, points, strict=True))
            for opening in group:
                self._planned[opening] = tuple(islice(planned, len(opening.points)))
            names = ", ".join(dict.fromkeys(point.name for point in points))
            self._context.phase("armed", f"cut {names}: {one.when.text()}")

    def _switch(self, openings: Sequence[Opening], on: bool) -> None:
        planned = tuple(planned for opening in openings for planned in self._planned[opening])
        if planned:
            self._context.phase("return" if on else "cut")
            self._breaker.switch_all(planned, on)

    def _relocate(self, sockets: Mapping[str, str]) -> None:
        """Plug disks into other sockets, and record it. Raises NotServed if nobody can do that."""
        context = self._context
        if not context.bench.can_move:
            raise NotServed("nobody can plug a disk of this rig into another socket", hint="declare a human switch")
        own = {disk.name: disk.at for disk in context.rig.disk}
        wanted = {disk: socket or own[disk] for disk, socket in sockets.items()}
        at = context.now()
        places = context.bench.move(wanted)
        until = context.now()
        for disk, place in places.items():
            context.recorder.record(ev.DiskMoved(at=at, disk=disk, socket=wanted[disk], place=place, until=until))

    def _wait(self, waits: Sequence[Wait]) -> Over:
        """Wait until one of these is over. Returns all that are."""
        for wait in waits:
            if wait not in self._watches:
                self._watches[wait] = self._watch(wait.until)
        came = wait_for_first(self._context, [self._watches[wait] for wait in waits])
        over = frozenset(wait for wait in waits if self._watches[wait] in came)
        for wait in waits:
            if wait in over:
                self._is_over(wait, self._watches.pop(wait).happened)
        return over

    def _watch(self, wanted: Trigger | Gone | Back | Here) -> Watch:
        match wanted:
            case Gone(points):
                return Attachment(self._context, self._victims(points), False, SEEN_WITHIN)
            case Back(points):
                off = self._breaker.victims_off()
                victims = [disk for disk in self._victims(points) if disk not in off]
                return Attachment(self._context, victims, True, BACK_WITHIN)
            case Here(disks):
                return Attachment(self._context, disks, True, BACK_WITHIN)
            case _:
                return wanted.watch(self._context)

    def _victims(self, points: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(disk for name in points for disk in self._points[name].victims))

    def _is_over(self, wait: Wait, happened: str) -> None:
        """Record which wait ended, where that was not known beforehand."""
        context = self._context
        if isinstance(wait.until, Gone):
            if self._breaker.victims_off() & set(self._victims(wait.until.points)):
                context.phase("hold")
        elif isinstance(wait.until, Trigger) and happened != wait.until.text():
            context.recorder.record(ev.Note(at=context.now(), text=f"trigger: {happened}", subject=wait.subject))
