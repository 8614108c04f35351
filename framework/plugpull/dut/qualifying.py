"""Measuring for ``plugpull switch qualify``: cycle a port, and watch through an agent what goes and comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from plugpull import __version__
from plugpull.dut.hands import connected, hands
from plugpull.dut.hello import ANSWER
from plugpull.dut.link import Message
from plugpull.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, RigError, UsageError
from plugpull.kernel.classify import classify
from plugpull.rig.lease import Lease
from plugpull.rig.model import Rig
from plugpull.rig.qualification import VERSION, Device, Qualification
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches import qualify as judging
from plugpull.switches.base import Acknowledged, Switch
from plugpull.switches.host import Person
from plugpull.switches.qualify import Cycle, Edge, Measured, Vbus

SEEN_WITHIN = 10.0
"""Seconds the kernel gets to take a disk off its list, or to have it back: usb-storage waits one before it looks."""
BACK_WITHIN = 30.0
SETTLING = 1.0
"""Seconds between two edges: what is disturbed shows within them."""
ERRORS = frozenset(
    {"block.error", "scsi.error", "scsi.offline", "usb.enumeration-error", "usb.overcurrent", "usb.reset"}
)
"""Kernel messages that a neighbour of a good port never has."""
PATIENCE = 300.0
"""Seconds a person gets to look."""


@dataclass(frozen=True)
class Plan:
    """What is to be found out. ``hold`` is in seconds."""

    rig: Rig
    file: Path
    point: str
    cycles: int = 10
    hold: float = 30.0
    ask: bool = False
    vbus_command: str | None = None


class Sight:
    """The disks of the DUT as its agent tells of them, and what else it tells. ``hear`` runs in the link's thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._present: dict[str, dict[str, Any]] = {}
        self._removed: list[tuple[float, dict[str, Any]]] = []
        self._kernel: list[tuple[float, str]] = []

    def hear(self, message: Message) -> None:
        with self._changed:
            if message.get("ev") == "disk.add":
                self._present[message["disk"]["kname"]] = message["disk"]
            elif message.get("ev") == "disk.remove":
                gone = self._present.pop(message["kname"], None)
                if gone is not None:
                    self._removed.append((time.monotonic(), gone))
            elif message.get("ev") == "kmsg":
                self._kernel.append((time.monotonic(), message["text"]))
            self._changed.notify_all()

    def wait(self, serials: frozenset[str], there: bool, timeout: float) -> float | None:
        """When all of these disks were there, or none of them; None at the deadline."""
        with self._changed:
            reached = self._changed.wait_for(lambda: self._are(serials, there), timeout)
            return time.monotonic() if reached else None

    def _are(self, serials: frozenset[str], there: bool) -> bool:
        present = {disk["serial"] for disk in self._present.values()}
        return serials <= present if there else not serials & present

    def others(self, serials: frozenset[str], since: float) -> tuple[str, ...]:
        """Disks other than these that went away since."""
        with self._changed:
            gone = [disk for at, disk in self._removed if at >= since and disk["serial"] not in serials]
        return tuple(f"{disk['kname']} ({disk['serial'] or 'no serial'} at {disk['place']})" for disk in gone)

    def errors(self, serials: frozenset[str], since: float) -> tuple[str, ...]:
        """Kernel messages about other disks."""
        with self._changed:
            neighbours = {k for k, disk in self._present.items() if disk["serial"] not in serials}
            said = [text for at, text in self._kernel if at >= since]
        found = ((event, text) for text in said if (event := classify(text)) is not None)
        return tuple(text for event, text in found if event.kind in ERRORS and event.subject in neighbours)


def qualify(plan: Plan, person: Person, out: Path, tell: Callable[[str], None]) -> int:
    """Measure, judge, write the file; the exit status. Raises UsageError and RigError. The port is on at the end."""
    point = Topology(plan.rig).cut_point(plan.point)
    if point.device == "dut":
        raise UsageError("the DUT's own power cannot be qualified: nobody would be left to watch it")
    if out.parent != Path() and not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", mend="name another file with --out")
    sight = Sight()
    with Lease(plan.rig, plan.file), connected(plan.rig, sight.hear) as link:
        kernel = str(link.call("hello", ANSWER)["kernel"])
        for disk in link.call("disks", ANSWER):
            sight.hear({"ev": "disk.add", "disk": disk})
        with hands(plan.rig, plan.file.parent, person, link) as held:
            switch = held.switch(point.switch)
            try:
                measured = _measure(plan, point, switch, sight, person, tell)
            finally:
                switch.set(point.port, True)
            result = _result(plan, point, switch, measured, kernel)
    out.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    _tell_result(result, tell)
    tell(f"written: {out}")
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL}.get(result.verdict, EXIT_UNKNOWN)


def _measure(
    plan: Plan, point: CutPoint, switch: Switch, sight: Sight, person: Person, tell: Callable[[str], None]
) -> Measured:
    serials = frozenset(disk.serial for disk in plan.rig.disk if disk.name in point.victims)
    if switch.read(point.port) is not True:
        switch.set(point.port, True)
    if serials and sight.wait(serials, True, BACK_WITHIN) is None:
        raise RigError(
            f"{', '.join(point.victims)} cannot be seen though {point.outlet} is on",
            mend="is it plugged in there, is it powered, and are the serial numbers right?",
        )
    cycles = []
    for number in range(plan.cycles):
        cycles.append(_cycle(point, switch, sight, serials))
        last = cycles[-1]
        tell(
            f"cycle {number + 1} of {plan.cycles}: off seen after {_s(last.off.seen)}, on seen after {_s(last.on.seen)}"
        )
        if last.off.seen is None or last.on.seen is None:
            break  # it would only be the same again
    volts_on = _volts(plan)
    vbus, came_back = None, None
    off_since = time.monotonic()
    switch.set(point.port, False)
    if plan.ask or plan.vbus_command:
        vbus = _vbus(plan, person, volts_on)
    if plan.hold > 0:
        tell(f"left off for {plan.hold:g} s, to see whether power comes back by itself")
        came_back = _came_back(plan, point, switch, sight, serials, off_since)
    return Measured(point.name, point.mechanism, point.victims, tuple(cycles), plan.hold, came_back, vbus)


def _cycle(point: CutPoint, switch: Switch, sight: Sight, serials: frozenset[str]) -> Cycle:
    begun = time.monotonic()
    off = _edge(switch, point.port, False, lambda: sight.wait(serials, False, SEEN_WITHIN))
    time.sleep(SETTLING)  # for what is disturbed to show: nothing happens where nothing is
    on = _edge(switch, point.port, True, lambda: sight.wait(serials, True, BACK_WITHIN))
    time.sleep(SETTLING)  # likewise
    return Cycle(off, on, sight.others(serials, begun), sight.errors(serials, begun))


def _edge(switch: Switch, port: str, on: bool, wait: Callable[[], float | None]) -> Edge:
    done: Acknowledged = switch.set(port, on)
    seen = wait()
    # The kernel may have been quicker than the acknowledgement.
    return Edge(
        acknowledged=done.acknowledged - done.commanded,
        seen=None if seen is None else max(0.0, seen - done.commanded),
        reads=switch.read(port),
    )


def _came_back(
    plan: Plan, point: CutPoint, switch: Switch, sight: Sight, serials: frozenset[str], since: float
) -> float | None:
    """After how many seconds there was power again, if there was."""
    if sight.wait(serials, False, SEEN_WITHIN) is None:
        return None  # it never went: that is a finding of its own
    back = sight.wait(serials, True, plan.hold)
    if back is not None:
        return back - since
    return time.monotonic() - since if switch.read(point.port) is True else None


def _vbus(plan: Plan, person: Person, volts_on: float | None) -> Vbus:
    if plan.vbus_command is not None:
        return Vbus(volts_off=_volts(plan), volts_on=volts_on)
    said = person.ask(
        "Has the device behind it still power (a lamp, a motor, a meter)?", ("yes", "no", "unsure"), PATIENCE
    )
    return Vbus(powered_off={"yes": True, "no": False}.get(said))


def _volts(plan: Plan) -> float | None:
    if plan.vbus_command is None:
        return None
    from plugpull.switches.host_local import LocalHost

    done = LocalHost().run(["sh", "-c", plan.vbus_command], 30.0)
    with suppress(ValueError, IndexError):
        if done.status == 0:
            return float(done.stdout.split()[-1].removesuffix("V"))
    raise RigError(
        f"{plan.vbus_command!r} prints no volts (status {done.status}): {(done.stdout or done.stderr).strip()[:80]!r}",
        mend="have it print a number as its last word",
    )


def _result(plan: Plan, point: CutPoint, switch: Switch, measured: Measured, kernel: str) -> Qualification:
    identity = switch.identity
    return Qualification(
        qualification=VERSION,
        switch=Device(
            driver=identity.driver,
            model=identity.model,
            serial=identity.serial,
            firmware=identity.firmware,
            place=identity.place,
        ),
        port=point.port,
        point=point.name,
        mechanism=point.mechanism.value,
        verdict=judging.verdict(measured),  # type: ignore[arg-type]
        findings=tuple(judging.findings(measured)),
        unknowns=tuple(judging.unknowns(measured)),
        cycles=len(measured.cycles),
        held=measured.held,
        vbus=measured.vbus.text() if measured.vbus else "",
        latencies=judging.latencies(measured),
        kernel=kernel,
        plugpull=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _tell_result(result: Qualification, tell: Callable[[str], None]) -> None:
    for name, found in result.latencies.items():
        numbers = " / ".join(f"{1000 * value:.1f}" for value in (found.least, found.median, found.p95, found.most))
        tell(f"{name}: {numbers} ms (least / median / 95th of 100 / most of {found.count})")
    for text in result.findings:
        tell(f"finding: {text}")
    for text in result.unknowns:
        tell(f"not known: {text}")
    tell(f"{result.verdict}: {result.point} ({result.mechanism}), port {result.port} of {result.switch.driver}")


def _s(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f} s"
