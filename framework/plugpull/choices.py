"""Choosing what a scenario cuts and moves, from what the rig has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plugpull.checks import Check
from plugpull.checks.survivors.survivors import that_apply
from plugpull.draw import (
    NO_METER,
    Draw,
    disks_behind_meters,
    hubs_to_choose,
    pairs_to_swap,
    tops_to_cut,
    victims_to_choose,
)
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed
from plugpull.history import events as ev
from plugpull.rig.part import Part
from plugpull.rig.topology import CutPoint, sockets_elsewhere
from plugpull.streams import VICTIMS
from plugpull.targets.disk import RigDisk
from plugpull.targets.target import reached_by


class Choices:
    """The disks and hubs of a rig, and which of them a scenario takes."""

    def __init__(self, context: ScenarioContext, draw: Draw | None = None) -> None:
        self.context = context
        self._draw = draw if draw is not None else Draw(context.streams.of(VICTIMS))
        topology = context.topology
        self.disks = tuple(RigDisk(disk.name, topology) for disk in context.rig.disk if disk.scratch)
        """The disks that may be written, in the order of the rig file."""
        self.bystanders = tuple(RigDisk(disk.name, topology) for disk in context.rig.disk if not disk.scratch)
        """The other disks: attached, and never written."""
        self.hubs = tuple(Part(hub.name, topology) for hub in context.rig.hub)
        """The hubs, in the order of the rig file."""

    def choose_victim(self, kind: str = "cable") -> tuple[RigDisk, tuple[RigDisk, ...]]:
        """Draw a disk whose ``"cable"`` or ``"power"`` can be cut: (victim, disks that survive its cut).

        The run's seed decides, so that the same seed repeats the choice. Raises ``NotServed`` if there is none.

            victim, survivors = rig.choose_victim("power")
        """
        names = victims_to_choose(self.context.topology, kind)
        if not names:
            raise NotServed(f"no scratch disk of this rig has a {kind} that can be cut")
        victim = self._draw.choose([disk for disk in self.disks if disk.name in names])
        return victim, self.survivors_of(victim.cable if kind == "cable" else victim.power)

    def choose_hub(self) -> tuple[Part, tuple[RigDisk, ...], tuple[RigDisk, ...]]:
        """Draw a hub whose cable can be cut and that has disks below it: (hub, victims, survivors).

        Raises ``NotServed`` if there is none.
        """
        names = hubs_to_choose(self.context.topology)
        if not names:
            raise NotServed("this rig has no hub whose cable can be cut", hint="give a [[hub]] a cable in the rig file")
        hub = self._draw.choose([hub for hub in self.hubs if hub.name in names])
        return hub, tuple(disk for disk in self.disks if disk.name in hub.cable.victims), self.survivors_of(hub.cable)

    def choose_hubs(self, count: int) -> tuple[Part, ...]:
        """Draw so many hubs whose cables can be cut and that have disks below them, in the order of the rig file.

        Raises ``NotServed`` if there are fewer.
        """
        left = [hub for hub in self.hubs if hub.name in hubs_to_choose(self.context.topology)]
        if len(left) < count:
            raise NotServed(f"this rig has {len(left)} hubs with disks whose cables can be cut, and {count} are needed")
        chosen = []
        for _ in range(count):
            chosen.append(self._draw.choose(left))
            left.remove(chosen[-1])
        return tuple(hub for hub in self.hubs if hub in chosen)

    def metered_disks(self) -> tuple[RigDisk, ...]:
        """The scratch disks behind the power meters of the rig, in the order of the rig file.

        Raises ``NotServed`` if there are none.

            rig.measure(power_design(rig.metered_disks()))
        """
        names = disks_behind_meters(self.context.rig)
        if not names:
            raise NotServed(NO_METER)
        return tuple(disk for disk in self.disks if disk.name in names)

    def survivors_of(self, *points: CutPoint) -> tuple[RigDisk, ...]:
        """The scratch disks outside the blast radius of these cuts."""
        return tuple(disk for disk in self.disks if not reached_by(disk, *points))

    def _without_survivors(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Those of the checks that can be judged on this rig, if nobody survives there what the scenario did to it. Why
        the others are not is recorded."""
        recorder = self.context.recorder
        apply, why = that_apply(checks, (disk.name for disk in self.disks), recorder.since())
        if why:
            recorder.record(ev.Note(text=why))
        return apply

    def whole_tree(self) -> tuple[CutPoint, ...]:
        """The fewest cables that together take every disk away: the top of each branch that can be cut.

        Raises ``NotServed`` if no cable can be cut.

            with rig.cut(*rig.whole_tree()):
                rig.wait(seconds=2)
        """
        return tops_to_cut(self.context.topology)

    def sockets_elsewhere(
        self, disks: Iterable[RigDisk], hub: Part, *, another_controller: bool = False
    ) -> dict[str, str]:
        """Free sockets that are not below this hub, for as many of these disks as there are: for ``move``.

        With ``another_controller``, only sockets of other controllers. Raises ``NotServed`` if there is none, or if
        nobody can move a disk on this rig.
        """
        found: dict[str, str] = {}
        if self.context.bench.can_move:
            names = (disk.name for disk in disks)
            found = sockets_elsewhere(self.context.rig, names, hub.name, another_controller=another_controller)
        if not found:
            where = "at another controller" if another_controller else f"beside {hub.name}"
            raise NotServed(
                f"no disk can be moved to a free socket {where}",
                hint="leave a port free in the rig file; on a real bench, declare a switch that is a person",
            )
        return found

    def choose_two(self) -> tuple[RigDisk, RigDisk, tuple[RigDisk, ...]]:
        """Draw two scratch disks, of which the cable of the second can be cut and leaves the first alone:
        (first, second, all others that survive). Raises ``NotServed`` if there are none.
        """
        second, survivors = self.choose_victim()
        if not survivors:
            raise NotServed(f"no other scratch disk survives when the cable of {second} is cut")
        first = self._draw.choose(survivors)
        return first, second, tuple(disk for disk in survivors if disk is not first)

    def choose_enclosure(self) -> tuple[tuple[RigDisk, ...], tuple[RigDisk, ...]]:
        """Draw a device that has several disks as logical units, and whose cable can be cut: (its disks, survivors).

        Raises ``NotServed`` if there is none.
        """
        topology = self.context.topology
        names = [name for name in victims_to_choose(topology, "cable") if len(topology.units_of(name)) > 1]
        if not names:
            raise NotServed("no device of this rig has several scratch disks and a cable that can be cut")
        one = self._draw.choose([disk for disk in self.disks if disk.name in names])
        units = topology.units_of(one.name)
        return tuple(disk for disk in self.disks if disk.name in units), self.survivors_of(one.cable)

    def choose_with_other_unit(self) -> tuple[RigDisk, tuple[RigDisk, ...]]:
        """Draw a disk whose device shows another unit that the rig file does not declare, such as a CD-ROM, and whose
        cable can be cut: (disk, survivors). Raises ``NotServed`` if there is none.
        """
        names = victims_to_choose(self.context.topology, "cable")
        shown = [disk for disk in self.disks if disk.name in names and self.context.bench.disk_table.beside(disk.name)]
        if not shown:
            raise NotServed("no scratch disk of this rig with a cable that can be cut shows another unit beside it")
        victim = self._draw.choose(shown)
        return victim, self.survivors_of(victim.cable)

    def choose_pair(self) -> tuple[RigDisk, RigDisk, tuple[RigDisk, ...]]:
        """Draw two disks of one controller that can be plugged into each other's sockets: (first, second, survivors).

        Raises ``NotServed`` if there are none, or if nobody can move a disk on this rig.
        """
        pairs = pairs_to_swap(self.context.topology) if self.context.bench.can_move else {}
        if not pairs:
            raise NotServed(
                "no two disks of this rig can be plugged into each other's sockets",
                hint="two scratch disks of one controller need cables that can be cut, and somebody who moves them",
            )
        names = {disk.name: disk for disk in self.disks}
        first = self._draw.choose([names[name] for name in pairs])
        second = self._draw.choose([names[name] for name in pairs[first.name]])
        return first, second, self.survivors_of(first.cable, second.cable)
