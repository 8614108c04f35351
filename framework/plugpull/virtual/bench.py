"""The virtual bench: a guest restored from its snapshot, with the rig's hubs and disks plugged in."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plugpull.coordination.journal import Journal
from plugpull.dut.bench import PostMortem
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.hello import ANSWER, hello
from plugpull.dut.conversation.link import AgentLink
from plugpull.dut.listener import Listener
from plugpull.dut.post_mortem import LAST, QUIET, examine_console, from_last_words, restarted, unresponsive
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.model import Controller, Defect, Disk, Hub, Rig
from plugpull.rig.topology import with_disks_at
from plugpull.switches.base import Switch
from plugpull.virtual import bystanders, process
from plugpull.virtual.console import Console
from plugpull.virtual.defects import Defects, Targets
from plugpull.virtual.firmware import Firmware, model_of
from plugpull.virtual.machine import FIRST_CONTROLLER_SLOT, ControllerShape, HubShape, Machine, Shape
from plugpull.virtual.plugs import Enclosure, Plugs
from plugpull.virtual.sleeping import harmed_by_sleep
from plugpull.virtual.snapshot import Snapshot, scratch_directory
from plugpull.virtual.switch import VirtualSwitch
from plugpull.virtual.tree import DeviceTree


def shape_of(rig: Rig, accel: str, *, hubs: bool = True, one_thread: bool = False) -> Shape:
    """The machine that a rig file describes, without its disks. Without ``hubs``, they are plugged in like disks."""
    controllers = tuple(
        ControllerShape(controller.name, str(controller.model), FIRST_CONTROLLER_SLOT + number, controller.ports)
        for number, controller in enumerate(rig.controller)
    )
    dut = rig.dut
    return Shape(
        accel,
        dut.cpus,
        dut.memory,
        controllers,
        tuple(_hubs(rig, {one.name: one.slot for one in controllers})) if hubs else (),
        memory_debugging=dut.memory_debugging,
        one_thread=one_thread,
    )


def _hubs(rig: Rig, slots: Mapping[str, int]) -> Iterator[HubShape]:
    """A kernel needs up to a second to set up two hubs, one behind the other, before it sees what is plugged into
    them. Restored guests have done that."""
    tree = DeviceTree(rig, ())
    for thing in tree.outwards:
        if isinstance(thing, Hub):
            bus, port = tree.socket(thing.name)
            yield HubShape(thing.name, bus, slots[bus.removesuffix(".0")], port, thing.ports)


@dataclass(frozen=True)
class Setting:
    """The inputs of a virtual bench, the same for all scenarios of a run."""

    rig: Rig
    shape: Shape
    snapshot: Snapshot
    modules: tuple[str, ...] = ()


class VirtualBench:
    """One guest and everything plugged into it, created for each scenario."""

    def __init__(
        self, setting: Setting, recorder: Recorder, artefacts: Path, listener: Listener, scenario: str, journal: Journal
    ) -> None:
        self._rig = setting.rig
        self._setting = setting
        self._begun = time.monotonic()
        self._lock = threading.RLock()
        self._off: set[str] = set()
        self._tree = DeviceTree(setting.rig, self._off)
        self._seen: set[str] = set()
        self._firmware: dict[str, Firmware] = {}
        self._starter = ThreadPoolExecutor(1, "firmware")
        self._closed = False
        self._recorder = recorder
        need = sum(disk.size for disk in self._rig.disk)
        parents = (Path("/dev/shm"), Path(tempfile.gettempdir()))
        self._directory = journal.directory(scratch_directory(parents, need))
        wanted = [defect for defect in self._rig.defect if defect.scenario in scenario]
        try:
            self._wake(setting, artefacts, listener)
            self._make_disks(wanted)
        except BaseException:
            self.close()
            raise
        targets = Targets(self._rig, self._plugs, self._firmware, self.link)
        self._defects = Defects(wanted, targets, self._note)
        self._defects.at_start()

    def _wake(self, setting: Setting, artefacts: Path, listener: Listener) -> None:
        snapshot = setting.snapshot
        self._machine = Machine(
            setting.shape, snapshot.ram, ["-incoming", "defer"], artefacts / "qemu.log", share=False
        )
        self._console = Console(self._machine.console, artefacts / "console.log", lambda: self._machine.qmp)
        self._machine.wake(snapshot.state)
        self.link = AgentLink(self._machine.agent, listener.hear)
        serials = {disk.name: disk.serial for disk in self._rig.disk}
        self.disk_table = DiskTable(serials, {disk.name: self._place(disk.name) for disk in self._rig.disk})
        self.link.map_clock(ANSWER)
        self._took = time.monotonic() - self._begun
        self._plugs = Plugs(self._machine.qmp, (hub.name for hub in setting.shape.hubs))

    def _place(self, disk: str) -> str:
        return self._tree.place(disk, {one.name: one.pci for one in self._setting.shape.controllers})

    def _make_disks(self, defects: Sequence[Defect]) -> None:
        things: tuple[Controller | Hub, ...] = (*self._rig.controller, *self._rig.hub)
        shared = {thing.name: thing.rate for thing in things if thing.rate is not None}
        for name, rate in shared.items():
            self._plugs.share(name, rate)
        for disk in self._rig.disk:
            self._firmware[disk.name] = Firmware(disk.name, model_of(disk, defects), self._directory)
            if not disk.scratch:
                bystanders.fill(self._firmware[disk.name].medium, disk.name)
            above = self._tree.above(disk.name)
            self._plugs.insert(disk, self._firmware[disk.name], [name for name in above if name in shared])

    def _note(self, text: str, subject: str) -> None:
        at = self.link.clock.now()[0] if self.link.clock.mapped else None
        self._recorder.record(ev.Note(at=at, text=text, subject=subject))

    def _fault(
        self, summary: str, hint: str = "see qemu.log; was the machine out of memory?", subject: str = ""
    ) -> None:
        with suppress(RigError):  # the recorder keeps its failure and raises it where the run can handle it
            self._recorder.record(ev.RigFault(summary=summary, hint=hint, subject=subject))

    def firmware(self, disk: str) -> Firmware:
        """The firmware of a disk, for its counters and commands. Raises KeyError."""
        return self._firmware[disk]

    # --- the Bench protocol -----------------------------------------------------------------------------------------

    def ready(self) -> ev.DutReady:
        shape = self._setting.shape
        return hello(
            self.link,
            kind="virtual",
            how="restored",
            took=self._took,
            accel=shape.accel,
            threads=shape.threads,
            modules=self._setting.modules,
        )

    def switch(self, name: str) -> Switch:
        declared = next(switch for switch in self._rig.switch if switch.name == name)
        return VirtualSwitch(name, declared.mechanism, self)

    can_move = can_stall = True

    def stall(self, disk: str, on: bool) -> None:
        """QEMU waits for the answer when the guest cancels a command (``scsi_req_cancel`` in hw/scsi/scsi-bus.c)."""
        self._firmware[disk].stand_still(on)
        self._machine.qmp.run("query-status")

    def lift_rates(self, to: int | None) -> None:
        with self._lock:
            if self._machine.running:
                self._plugs.lift_rates(to)

    def harmed_by_sleep(self, kernel: str) -> str:
        return harmed_by_sleep(self._rig, kernel)

    def flushes(self) -> dict[str, int]:
        return {name: one.counters()["flushes"] for name, one in self._firmware.items() if not one.model.plain}

    def power_everything(self) -> None:
        with self._lock:
            self._off.clear()
            self._settle_plugs()

    def post_mortem(self, timeout: float) -> PostMortem:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._machine.running and not self._console.dying():
            if self._stopped():
                break
            self._console.wait_dying(0.1)
        if self._console.dying() or not self._machine.running:
            return self._ended(deadline)
        at = self.link.clock.at(self.link.heard)[0] if self.link.clock.mapped else None
        if status := self._stopped():
            headline = f"the DUT hung: its processors were stopped (QEMU says {status})"
            last = tuple(self._console.lines()[-LAST:])
            return PostMortem(ev.DutDied(at=at, headline=headline, evidence=(*self._processors(), *last)))
        found = examine_console(self._console, at)
        if not self._machine.running:
            return self._ended(time.monotonic() + 1.0)
        return found or unresponsive(self._console, at, self._by_nmi())

    def _ended(self, deadline: float) -> PostMortem:
        """Wait until the kernel has printed its last message or QEMU has exited."""
        self._console.pause(QUIET, max(1.0, deadline - time.monotonic()))
        words = self._console.last_words()
        if words:
            return from_last_words(words)
        status = self._machine.process.poll()
        if status == 0:
            # With -no-reboot QEMU exits when the guest resets itself. Any other exit is a failure of QEMU.
            at = self.link.clock.now()[0] if self.link.clock.mapped else None
            last = tuple(self._console.lines()[-5:])
            return PostMortem(ev.DutDied(at=at, headline=restarted(self._console), evidence=last))
        if status is not None:
            how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            self._fault(f"QEMU {how}, which ended the DUT: {self._machine.last_words() or 'no reason given'}")
        return PostMortem()

    def _stopped(self) -> str:
        """The status that QEMU gives for a guest that it has stopped; empty while the guest runs."""
        try:
            state = self._machine.qmp.run("query-status", 10.0)
        except RigError:
            return ""
        return "" if state["running"] else str(state["status"])

    def _processors(self) -> tuple[str, ...]:
        """The position of each vCPU and whether it takes interrupts (bit 9 of RFLAGS)."""
        try:
            listing = self._machine.qmp.run("human-monitor-command", 10.0, command_line="info registers -a")
        except RigError:
            return ()
        found = re.findall(r"CPU#(\d+).*?RIP=([0-9a-f]+) RFL=([0-9a-f]+)", listing, re.DOTALL)
        return tuple(
            f"vCPU {cpu} at {place}, interrupts {'on' if int(flags, 16) & 0x200 else 'off'}"
            for cpu, place, flags in found
        )

    def _by_nmi(self) -> tuple[str, ...]:
        """Inject an NMI: a guest that ignores interrupts panics and prints its position (``unknown_nmi_panic``)."""
        processors = self._processors()
        with suppress(RigError):
            self._machine.qmp.run("inject-nmi", 10.0)
            self._console.wait_dying(5.0)
            self._console.wait_closed(5.0)
        return (*processors, *self._console.last_words())

    def seen_from_outside(self) -> Iterator[ev.SeenFromOutside | ev.CountedOutside]:
        at = self.link.clock.now()[0] if self.link.clock.mapped else None
        for disk in self._rig.disk:
            if disk.scratch:
                continue
            firmware = self._firmware[disk.name]
            if not firmware.model.plain:
                with suppress(RigError):  # a disk without power has nothing left to write out
                    firmware.write_out()
            yield bystanders.look(firmware.medium, disk.name, at)
        if self._machine.running:
            for name, (read, written) in self._plugs.counted().items():
                yield ev.CountedOutside(at=at, disk=name, read_bytes=read, written_bytes=written)

    def cpu_seconds(self) -> float | None:
        return process.cpu_seconds(self._machine.process.pid)

    def bring_back(self) -> PostMortem:
        return PostMortem()  # the post-mortem read the console and the process: there is nothing more to learn

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for firmware in self._firmware.values():
            if firmware.died:
                self._fault(firmware.died, "was the machine out of memory or disk space?", firmware.name)
        for name in ("_defects", "link", "_machine"):
            part = getattr(self, name, None)
            if part is not None:
                with suppress(RigError):
                    part.close()
        for firmware in self._firmware.values():
            with suppress(RigError):
                firmware.close()
        self._starter.shutdown()
        shutil.rmtree(self._directory, ignore_errors=True)

    # --- ports --------------------------------------------------------------------------------------------------------

    def switch_port(self, outlet: str, on: bool) -> bool:
        """Turn one outlet off or on. Returns False when a defect makes the switch only pretend."""
        with self._lock:
            points = self._tree.points_at(outlet)
            if on and not self._machine.running:
                self._off.discard(outlet)  # the guest is gone, and its devices with it
                return True
            if not on:
                if self._defects.switch_lies(v for point in points for v in point.victims):
                    return False
                self._off.add(outlet)
                self._defects.at_cut()
            else:
                self._off.discard(outlet)
            self._settle_plugs()
        return True

    def port_is_on(self, outlet: str) -> bool:
        """QEMU's own state of the device behind an outlet; without a device, the state that was set."""
        with self._lock:
            if not self._machine.running:
                return outlet not in self._off
            names = [self._tree.device(point.device) for point in self._tree.points_at(outlet)]
            present = self._plugs.present()
        plugged = [name in present for name in names]
        return all(plugged) if plugged and outlet in self._off else outlet not in self._off

    def move(self, sockets: Mapping[str, str]) -> dict[str, str]:
        """Plug disks into other sockets, all at once. What a disk shares with others of its old hub stays as it was."""
        with self._lock:
            for disk in sockets:
                if self._plugs.plugged(disk):
                    self._plugs.unplug(disk)
            self._rig = with_disks_at(self._rig, sockets)
            self._tree = DeviceTree(self._rig, self._off)
            places = {disk: self._place(disk) for disk in sockets}
            self.disk_table.move(places)
            self._settle_plugs()
        return places

    def _settle_plugs(self) -> None:
        """Make QEMU's devices match the outlets, from the root outwards: a hub takes its subtree along."""
        # Disks that lose power lose it first, with their cache: QEMU or the guest could still flush an unplugged one.
        dead = [disk for disk in self._rig.disk if self._tree.loses_power(disk) and self._firmware[disk.name].powered]
        for disk in dead:
            self._firmware[disk.name].power_off()
        for thing in self._tree.outwards:
            if not self._tree.reachable(thing) and self._plugs.plugged(thing.name):
                self._take_out(thing)
        for disk in dead:
            self._plugs.disconnect(disk)
            self._defects.power_lost(self._firmware[disk.name])
        for thing in self._tree.outwards:
            if self._tree.reachable(thing) and not self._plugs.plugged(thing.name):
                self._put_in(thing)

    def _take_out(self, thing: Disk | Hub) -> None:
        device = self._tree.device(thing.name)
        self._plugs.unplug(device)
        for other in self._tree.outwards:
            if other.name != device and self._tree.below(device, other.name):
                self._plugs.clear_away(other.name)

    def _put_in(self, thing: Disk | Hub) -> None:
        bus, port = self._tree.socket(thing.name)
        if isinstance(thing, Hub):
            self._plugs.plug_hub(thing.name, thing.ports, bus, port)
            return
        first, *others = self._tree.units(thing.name)
        again = first.name in self._seen
        stays_away = again and self._firmware[first.name].powered and self._defects.needs_power_cycle(first.name)
        if thing.name != first.name or stays_away or (again and self._defects.never_returns(first.name)):
            return  # a further unit of a device is plugged in with the first
        shown = [first, *(unit for unit in others if not (again and self._defects.never_returns(unit.name)))]
        for unit in shown:
            self._power_on(unit)
        self._seen.add(first.name)
        serial = self._defects.serial_of(first.name, first.serial, again=again)
        through = frozenset(unit.name for unit in shown if self._firmware[unit.name].model.writes_through)
        cdrom = any(unit.cdrom for unit in shown) != (again and self._defects.unit_changes(first.name))
        self._plugs.plug_disk(Enclosure(tuple(shown), serial, through, cdrom), bus, port)

    def _power_on(self, disk: Disk) -> None:
        if not self._firmware[disk.name].powered:
            # A cut of several points switches from short-lived threads. A process that such a thread starts would be
            # killed together with the thread.
            self._starter.submit(self._firmware[disk.name].power_on).result()
            self._plugs.connect(disk, self._firmware[disk.name])
