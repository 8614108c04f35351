"""Measuring for ``plugpull switch qualify``: cycle a port, and watch through an agent what goes and comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from plugpull import __version__
from plugpull.coordination.journal import Journal
from plugpull.coordination.lease import Lease
from plugpull.dut.dut_host import DutHost
from plugpull.dut.hello import ANSWER
from plugpull.dut.link import AgentLink
from plugpull.dut.opened_switches import Hands, connected, hands
from plugpull.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, RigError, UsageError
from plugpull.interrupts import signals_held
from plugpull.qualify import judgement as judging
from plugpull.qualify.judgement import Cycle, Edge, Measured, Vbus
from plugpull.qualify.observer import Scope, Sight, device_at, tops_of
from plugpull.qualify.qualification import VERSION, Device, Qualification
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.base import Acknowledged, Identity, Switch
from plugpull.switches.host import Person
from plugpull.switches.usb_hub import halves_of

PATIENCE = 300.0
"""Seconds a person gets to look."""


@dataclass(frozen=True)
class Plan:
    """What is to be found out. All times are in seconds."""

    rig: Rig
    file: Path
    point: str
    cycles: int = 10
    hold: float = 30.0
    ask: bool = False
    vbus_command: str | None = None
    seen_within: float = 10.0
    """That the kernel gets to take the disks off its list."""
    back_within: float = 30.0
    """That the disks get to be on it again: some have to spin up."""
    settling: float = 1.0
    """Between two edges: what is disturbed shows within them."""


@dataclass(frozen=True)
class Bench:
    """What is measured with: the port in somebody's hands, and the sight of what it does."""

    plan: Plan
    point: CutPoint
    hands: Hands
    sight: Sight
    link: AgentLink
    person: Person
    tell: Callable[[str], None]

    @property
    def switch(self) -> Switch:
        return self.hands.switch(self.point.switch)

    def see(self, serials: frozenset[str], there: bool, timeout: float) -> float | None:
        """When the kernel had all of these disks on its list, or none; None at the deadline. Raises RigError when what
        the DUT told is not what its list of disks says."""
        seen = self.sight.wait(serials, there, timeout)
        if seen is None:
            listed = {disk["serial"] for disk in self.link.call("disks", ANSWER)}
            if serials <= listed if there else not serials & listed:
                raise RigError(
                    f"the DUT did not tell when {', '.join(self.point.victims)} {'came' if there else 'went'}",
                    mend="it may have been too busy; try again",
                )
        return seen


def qualify(plan: Plan, person: Person, out: Path, tell: Callable[[str], None], journal: Journal | None = None) -> int:
    """Measure, judge, write the file; the exit status. Raises UsageError and RigError. The port is on at the end,
    whatever ends it; the ``journal`` sees to that after a SIGKILL."""
    point = Topology(plan.rig).cut_point(plan.point)
    if point.device == "dut" or "dut.power" in point.shares_with:
        raise UsageError("the DUT's own power cannot be qualified: nobody would be left to watch it")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", mend="name another file with --out")
    sight = Sight()
    with Lease(plan.rig, plan.file), connected(plan.rig, sight.hear) as link:
        kernel = str(link.call("hello", ANSWER)["kernel"])
        for disk in link.call("disks", ANSWER):
            sight.hear({"ev": "disk.add", "disk": disk})
        with hands(plan.rig, plan.file.parent, person, link, journal) as held:
            held.refuse_unsafe(point.switch)
            identity = held.switch(point.switch).identity
            bench = Bench(plan, point, held, sight, link, person, tell)
            with signals_held() as signals:
                try:
                    with signals.interruptible():
                        measured = measure(bench)
                finally:
                    held.power(point.switch, (point.port,))
        result = _result(plan, point, identity, measured, kernel)
    try:
        out.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", mend="name another file with --out") from None
    _tell_result(result, tell)
    tell(f"written: {out}")
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL}.get(result.verdict, EXIT_UNKNOWN)


def measure(bench: Bench) -> Measured:
    """Cycle the port and watch. Raises RigError when the bench fails meanwhile: nothing was found out then."""
    plan, point, sight = bench.plan, bench.point, bench.sight
    serials = frozenset(disk.serial for disk in plan.rig.disk if disk.name in point.victims)
    bench.hands.power(point.switch, (point.port,))
    if bench.see(serials, True, plan.back_within) is None:
        raise RigError(
            f"{', '.join(point.victims)} cannot be seen though {point.outlet} is on",
            mend="is it plugged in there, is it powered, and are the serial numbers right?",
        )
    scope = _scope(bench, serials)
    cycles: list[Cycle] = []
    for number in range(plan.cycles if serials else 0):
        cycles.append(_cycle(bench, scope))
        last = cycles[-1]
        bench.tell(
            f"cycle {number + 1} of {plan.cycles}: off seen after {_s(last.off.seen)}, on seen after {_s(last.on.seen)}"
        )
        if last.off.seen is None or last.on.seen is None:
            break  # it would only be the same again
    left = _left_off(bench, scope, cuts=all(cycle.off.seen is not None for cycle in cycles))
    return Measured(
        point=point.name,
        mechanism=point.mechanism,
        victims=point.victims,
        cycles=tuple(cycles),
        held=plan.hold,
        came_back=left.came_back,
        vbus=left.vbus,
        went=left.went,
        returned=left.returned,
        lost=sight.lost,
    )


def _scope(bench: Bench, serials: frozenset[str]) -> Scope:
    """What the port may take away; both halves of each socket."""
    tops = tops_of(bench.plan.rig, bench.point, bench.sight.disks)
    host = DutHost(bench.link)
    both = {device_at(half) for top in tops for half in halves_of(host, *_socket(top))}
    return Scope(serials, frozenset(tops | both))


def _socket(name: str) -> tuple[str, int]:
    """The hub and the port that a device is plugged into: "1-3.2" into port 2 of hub 1-3, "1-3" into port 3 of the root
    hub of bus 1."""
    above, _, port = name.rpartition("." if "." in name else "-")
    return above, int(port)


def _cycle(bench: Bench, scope: Scope) -> Cycle:
    plan, begun = bench.plan, time.monotonic()
    off = _edge(bench, False, lambda: bench.see(scope.serials, False, plan.seen_within))
    time.sleep(plan.settling)  # for what is disturbed to show: nothing happens where nothing is
    on = _edge(bench, True, lambda: bench.see(scope.serials, True, plan.back_within))
    time.sleep(plan.settling)  # likewise
    return Cycle(off, on, bench.sight.others(scope, begun), bench.sight.errors(scope, begun))


def _edge(bench: Bench, on: bool, wait: Callable[[], float | None]) -> Edge:
    port = bench.point.port
    done: Acknowledged = bench.switch.set(port, on)
    seen = wait()
    # The kernel may have been quicker than the acknowledgement.
    return Edge(
        acknowledged=done.acknowledged - done.commanded,
        seen=None if seen is None else max(0.0, seen - done.commanded),
        reads=bench.switch.read(port),
    )


@dataclass(frozen=True)
class _LeftOff:
    """What became of a port that was off for long; as in ``Measured``."""

    vbus: Vbus | None = None
    came_back: float | None = None
    went: bool | None = None
    returned: bool | None = None


def _left_off(bench: Bench, scope: Scope, *, cuts: bool) -> _LeftOff:
    """Off for long, for VBUS to be measured and to see whether power comes back by itself."""
    plan, point = bench.plan, bench.point
    volts_on = _volts(plan)
    off_since = time.monotonic()
    bench.switch.set(point.port, False)
    watched = bool(scope.serials) and cuts  # a port that does not cut is a finding already
    went = bench.see(scope.serials, False, plan.seen_within) is not None if watched else None
    vbus = _vbus(plan, bench.person, volts_on) if plan.ask or plan.vbus_command else None
    came_back = None
    if plan.hold > 0 and went is not False:
        bench.tell(f"left off for {plan.hold:g} s, to see whether power comes back by itself")
        came_back = _came_back(bench, scope, off_since)
    bench.hands.power(point.switch, (point.port,))
    returned = bench.see(scope.serials, True, plan.back_within) is not None if watched else None
    return _LeftOff(vbus, came_back, went, returned)


def _came_back(bench: Bench, scope: Scope, since: float) -> float | None:
    """After how many seconds there was power again, if there was."""
    if scope.serials:
        back = bench.sight.wait(scope.serials, True, bench.plan.hold)
        if back is not None:
            return back - since
    else:
        time.sleep(bench.plan.hold)  # nothing hangs there that could be waited for: the read-back is all there is
    return time.monotonic() - since if bench.switch.read(bench.point.port) is True else None


def _vbus(plan: Plan, person: Person, volts_on: float | None) -> Vbus:
    if plan.vbus_command is not None:
        return Vbus(volts_off=_volts(plan), volts_on=volts_on)
    said = person.ask(
        "Is there still power on the USB port (a bus-powered device's lamp, a meter; not what a power adapter feeds)?",
        ("yes", "no", "unsure"),
        PATIENCE,
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


def _result(plan: Plan, point: CutPoint, identity: Identity, measured: Measured, kernel: str) -> Qualification:
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
