"""Qualifying a port from beginning to end: open, measure, judge, write the file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from plugpull import __version__
from plugpull.coordination.journal import Journal
from plugpull.coordination.place import place_and_lease
from plugpull.dut.conversation.hello import ANSWER
from plugpull.dut.real.opened_switches import connected_agent, opened_switches
from plugpull.errors import UsageError
from plugpull.interrupts import signals_held
from plugpull.qualify import judgement
from plugpull.qualify.measured import MeasuredPort
from plugpull.qualify.measuring import Plan, PortBench, measure
from plugpull.qualify.observer import PortObserver
from plugpull.qualify.qualification import VERSION, Qualification, SwitchDevice, write_qualification
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.base import Identity
from plugpull.switches.host import Person


def qualify(
    plan: Plan, person: Person, out: Path, report: Callable[[str], None], journal: Journal | None = None
) -> Qualification:
    """Measure a port, judge it and write the file. ``report`` shows a line of text.

    The port is on at the end, however this ends; after a SIGKILL the ``journal`` lets the next start restore it.
    Raises UsageError and RigError; then there is no file.
    """
    point = Topology(plan.rig).cut_point(plan.point)
    if point.device == "dut" or "dut.power" in point.shares_with:
        raise UsageError("the DUT's own power cannot be qualified, because nothing could watch the DUT then")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", hint="name another file with --out")
    result = _measured(plan, point, person, report, journal)
    write_qualification(out, result)
    _report_result(result, report)
    report(f"written: {out}")
    return result


def _measured(
    plan: Plan, point: CutPoint, person: Person, report: Callable[[str], None], journal: Journal | None
) -> Qualification:
    observer = PortObserver()
    with place_and_lease(plan.rig, plan.file), connected_agent(plan.rig, observer.receive) as link:
        kernel = str(link.call("hello", ANSWER)["kernel"])
        for disk in link.call("disks", ANSWER):
            observer.receive({"ev": "disk.add", "disk": disk})
        with opened_switches(plan.rig, plan.file.parent, person, link, journal) as switches:
            switches.refuse_unsafe(point.switch)
            identity = switches.switch(point.switch).identity
            bench = PortBench(plan, point, switches, observer, link, person, report)
            with signals_held() as signals:
                try:
                    with signals.interruptible():
                        measured = measure(bench)
                finally:
                    switches.power(point.switch, (point.port,))
    return _result(plan, point, identity, measured, kernel)


def _result(plan: Plan, point: CutPoint, identity: Identity, measured: MeasuredPort, kernel: str) -> Qualification:
    return Qualification(
        qualification=VERSION,
        switch=SwitchDevice(
            driver=identity.driver,
            model=identity.model,
            serial=identity.serial,
            firmware=identity.firmware,
            place=identity.place,
        ),
        port=point.port,
        point=point.name,
        mechanism=point.mechanism.value,
        verdict=judgement.verdict(measured),
        findings=tuple(judgement.findings(measured)),
        unknowns=tuple(judgement.unknowns(measured)),
        cycles=len(measured.cycles),
        held=measured.held,
        vbus=measured.vbus.text() if measured.vbus else "",
        latencies=judgement.latencies(measured),
        kernel=kernel,
        plugpull=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _report_result(result: Qualification, report: Callable[[str], None]) -> None:
    for name, found in result.latencies.items():
        numbers = " / ".join(f"{1000 * value:.1f}" for value in (found.least, found.median, found.p95, found.most))
        report(f"{name}: {numbers} ms (least / median / 95th percentile / most of {found.count})")
    for text in result.findings:
        report(f"finding: {text}")
    for text in result.unknowns:
        report(f"not measured: {text}")
    report(f"{result.verdict}: {result.point} ({result.mechanism}), port {result.port} of {result.switch.driver}")
