"""What the bench gets wrong on purpose, when the rig file asks for it: the defects that checks exist to find.

``at_cut`` and ``at_restore`` are called as a disk or hub is cut and restored; they act on the bench as a real fault
would, from outside the guest.
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
"""Told (text, subject) of every defect as it happens, so that no history hides that it was made."""


FLIPPED_AT = 64 * 1024 + 4000
"""Byte of the medium that ``bit-flip`` hits: in the second block of every load's span."""
QUIET_NS = 60_000_000
CROSSED = 1024
"""Sectors that ``crossed`` copies from another disk."""


@dataclass(frozen=True)
class Targets:
    """What a defect can act on."""

    rig: Rig
    plugs: Plugs
    firmware: Mapping[str, Firmware]
    link: AgentLink


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
        """Does the switch only claim to cut these?"""
        affected = set(names)
        lies = any(defect.disk is None or defect.disk in affected for defect in self._of("switch-lies"))
        if lies:
            self._note("the switch says off and cuts nothing", "")
        return lies

    def never_returns(self, disk: str) -> bool:
        return any(defect.disk == disk for defect in self._of("never-returns"))

    def serial_of(self, disk: str, declared: str, *, again: bool) -> str:
        """The serial number the disk shows; another one once it was unplugged, if it is to have that defect."""
        if again and any(defect.disk == disk for defect in self._of("serial-changes")):
            return "CHANGED-" + declared
        return declared

    def at_start(self) -> None:
        """The disks have been made, some of them with defects in their firmware."""
        for defect in self._defects:
            if defect.kind in KINDS:
                self._note(f"defect made on purpose: {defect.kind}", defect.disk or "")

    def power_lost(self, firmware: Firmware) -> None:
        """A firmware died with its cache. What was in it, and what its defects had done by then, is noted."""
        if firmware.model.plain:
            return
        counted = firmware.counters()
        fired = f"; its defects had done something {counted['fired']} times" if firmware.model.defects else ""
        if counted["dirty_bytes"] or fired:
            self._note(f"{counted['dirty_bytes']} bytes were lost with the disk's cache{fired}", firmware.name)

    def at_cut(self) -> None:
        """Something is about to be cut."""
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

    # --- one method a kind ----------------------------------------------------------------------------------------

    def _slows(self, defect: Defect) -> None:
        disk = next(d for d in self._targets.rig.disk if d.name == defect.disk)
        if disk.rate is None:
            raise RigError(f"{disk.name} has no rate that could be slowed", mend="give it a rate in the rig file")
        self._targets.plugs.set_rate(disk.name, int(disk.rate * defect.factor))

    def _stalls(self, defect: Defect) -> None:
        firmware = self._targets.firmware[str(defect.disk)]
        firmware.hang()
        timer = threading.Timer(defect.seconds, firmware.resume)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _bit_flip(self, defect: Defect) -> None:
        firmware = self._targets.firmware[str(defect.disk)]
        self._when_quiet(firmware, lambda: firmware.flip_bit(FLIPPED_AT))

    def _crossed(self, defect: Defect) -> None:
        """What was meant for another disk lands here: a bridge with two disks that mixes them up."""
        firmware = self._targets.firmware[str(defect.disk)]
        others = [disk.name for disk in self._targets.rig.disk if disk.scratch and disk.name != defect.disk]
        if not others:
            raise RigError("there is no other scratch disk whose data could go astray", mend="declare another one")
        other = self._targets.firmware[others[0]]
        self._when_quiet(firmware, lambda: _copy(other, firmware, CROSSED * SECTOR))

    def _when_quiet(self, firmware: Firmware, act: Callable[[], None]) -> None:
        """Act once the medium has not been written for a while, and again if it is written over: what is spoilt in the
        middle of a load that rewrites the same span would be put right by the load."""

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
    """The beginning of one medium over that of another."""
    with source.medium.open("rb") as file:
        data = file.read(length)
    with target.medium.open("r+b") as file:
        file.write(data)
