"""Defects that the bench makes on purpose when the rig file requests them, so that checks can be tested.

``at_cut`` and ``at_restore`` are called when a disk or hub is cut or restored. They act on the bench from outside the
guest, as a real fault would.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from plugpull.dut.conversation.link import AgentLink
from plugpull.errors import RigError
from plugpull.rig.model import Defect, Rig
from plugpull.virtual.firmware import Firmware
from plugpull.virtual.firmware_defects import KINDS
from plugpull.virtual.firmware_drive import SECTOR
from plugpull.virtual.plugs import Plugs

Note = Callable[[str, str], None]
"""Called with (text, subject) for every defect that is made, so that the history records it."""


UNPLUGGED = 0.3
"""Seconds after the command in which QEMU has unplugged a device. Version 10 stops the whole guest until the requests
of every disk are done, so that a stall must not begin before."""
FLIPPED_AT = 64 * 1024 + 4000
"""Offset of the byte of the medium that ``bit-flip`` changes: in the second block of every load's span."""
QUIET_NS = 60_000_000
CROSSED = 1024
"""Sectors that ``crossed`` copies from another disk."""


@dataclass(frozen=True)
class Targets:
    """The parts of the bench that a defect can act on."""

    rig: Rig
    plugs: Plugs
    firmware: Mapping[str, Firmware]
    link: AgentLink


class BitFlip:
    """Flips one bit of a medium, once for each content that its sector has: a second flip would repair the first."""

    def __init__(self, firmware: Firmware) -> None:
        self._firmware = firmware
        self._flipped = b""

    def __call__(self) -> None:
        if self._sector() != self._flipped:
            self._firmware.flip_bit(FLIPPED_AT)
            self._flipped = self._sector()

    def _sector(self) -> bytes:
        with self._firmware.medium.open("rb") as file:
            file.seek(FLIPPED_AT // SECTOR * SECTOR)
            return file.read(SECTOR)


class Defects:
    """The defects of one scenario."""

    def __init__(self, defects: Iterable[Defect], targets: Targets, note: Note) -> None:
        self._defects = tuple(defects)
        self._targets = targets
        self._note = note
        self._timers: list[threading.Timer] = []
        self._happened: set[Defect] = set()
        self._closed = threading.Event()

    def _of(self, kind: str) -> list[Defect]:
        return [defect for defect in self._defects if defect.kind == kind]

    def switch_lies(self, names: Iterable[str]) -> bool:
        """True if the switch only claims to cut one of these devices."""
        affected = set(names)
        lies = any(defect.disk is None or defect.disk in affected for defect in self._of("switch-lies"))
        if lies:
            self._note("the switch reports off but cuts nothing", "")
        return lies

    def never_returns(self, disk: str) -> bool:
        return any(defect.disk == disk for defect in self._of("never-returns"))

    def needs_power_cycle(self, disk: str) -> bool:
        """True if the disk stays invisible after a cut of its data lines until its power is cycled."""
        return any(defect.disk == disk for defect in self._of("needs-power-cycle"))

    def unit_changes(self, disk: str) -> bool:
        """True if the device shows a CD-ROM from its first return on only, or until then only."""
        return any(defect.disk == disk for defect in self._of("unit-changes"))

    def serial_of(self, disk: str, declared: str, *, again: bool) -> str:
        """The serial number that the disk shows; with ``serial-changes``, a different one after the first unplug."""
        if again and any(defect.disk == disk for defect in self._of("serial-changes")):
            return "CHANGED-" + declared
        return declared

    def at_start(self) -> None:
        """Record the defects in the disks' firmware, once the disks exist."""
        for defect in self._defects:
            if defect.kind in KINDS:
                self._note(f"defect made on purpose: {defect.kind}", defect.disk or "")

    def power_lost(self, firmware: Firmware) -> None:
        """Record what was lost with the cache of a firmware that died, and how often its defects acted before."""
        if firmware.model.plain:
            return
        counted = firmware.counters()
        fired = f"; its defects acted {counted['fired']} times before" if firmware.model.defects else ""
        if counted["dirty_bytes"] or fired:
            self._note(f"{counted['dirty_bytes']} bytes were lost with the disk's cache{fired}", firmware.name)

    def at_cut(self) -> None:
        """Apply the defects that wait for a cut. Call it before the cut."""
        for defect in self._defects:
            act = getattr(self, "_" + defect.kind.replace("-", "_"), None)
            if act is not None and defect not in self._happened:
                self._happened.add(defect)
                self._note(f"defect made on purpose: {defect.kind}", defect.disk or "")
                act(defect)

    def close(self) -> None:
        self._closed.set()
        for timer in self._timers:
            timer.cancel()

    # --- one method per kind ----------------------------------------------------------------------------------------

    def _slows(self, defect: Defect) -> None:
        disk = next(d for d in self._targets.rig.disk if d.name == defect.disk)
        if disk.rate is None:
            raise RigError(f"{disk.name} has no rate to slow down", hint="give it a rate in the rig file")
        self._targets.plugs.set_rate(disk.name, int(disk.rate * defect.factor))

    def _stalls(self, defect: Defect) -> None:
        firmware = self._targets.firmware[str(defect.disk)]
        self._later(UNPLUGGED, firmware.hang)
        self._later(UNPLUGGED + defect.seconds, firmware.resume)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _bit_flip(self, defect: Defect) -> None:
        firmware = self._targets.firmware[str(defect.disk)]
        self._when_quiet(firmware, BitFlip(firmware))

    def _crossed(self, defect: Defect) -> None:
        """Copy data of another disk onto this one, as a bridge does that mixes up its two disks."""
        firmware = self._targets.firmware[str(defect.disk)]
        others = [disk.name for disk in self._targets.rig.disk if disk.scratch and disk.name != defect.disk]
        if not others:
            raise RigError(
                "there is no other scratch disk for data to go astray to", hint="declare another one in the rig file"
            )
        other = self._targets.firmware[others[0]]
        self._when_quiet(firmware, lambda: _copy(other, firmware, CROSSED * SECTOR))

    def _when_quiet(self, firmware: Firmware, act: Callable[[], None]) -> None:
        """Act when the medium has not been written for a while, and again after each later write.

        Damage in the middle of a load that rewrites the same span would be repaired by that load.
        """

        def watch() -> None:
            acted = 0
            while not self._closed.wait(0.02):
                written = firmware.medium.stat().st_mtime_ns
                if written != acted and time.time_ns() - written > QUIET_NS:
                    act()
                    acted = firmware.medium.stat().st_mtime_ns

        threading.Thread(target=watch, name="when-quiet", daemon=True).start()

    def _kernel_panic(self, _: Defect) -> None:
        self._timers.append(threading.Timer(0.1, self._panic))
        self._timers[-1].daemon = True
        self._timers[-1].start()

    def _panic(self) -> None:
        with suppress(RigError):  # a kernel that panics does not answer
            self._targets.link.call("sysrq", 1.0, key="c")

    def _agent_silent(self, _: Defect) -> None:
        with suppress(RigError):  # an agent that fell silent does not answer
            self._targets.link.call("mute", 0.2)


def _copy(source: Firmware, target: Firmware, length: int) -> None:
    """Copy the beginning of one medium over that of another."""
    with source.medium.open("rb") as file:
        data = file.read(length)
    with target.medium.open("r+b") as file:
        file.write(data)
