"""One line of text per event: for the live view, for logs, and for the step-by-step list of the report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from plugpull.history import events as ev
from plugpull.report.fault_text import fault_text, is_shown
from plugpull.report.text import duration, one_line, rate, size, skew, stamp, under_test

READY = {"restored": "was restored from its snapshot", "booted": "booted"}
"""How a DUT became ready, by ``DutReady.how``. Any other one just answered."""


_SILENT = frozenset({ev.ClockMapped, ev.KernelMessage, ev.Sampled, ev.Uevent})
"""Kinds of events that are never shown, and that a long scenario has very many of."""


class Tone(StrEnum):
    """How much a line matters."""

    PLAIN = "plain"
    """The ordinary course of the run."""
    CUT = "cut"
    """A switch was operated."""
    WARNING = "warning"
    """The kernel or a disk reports a change for the worse."""
    TROUBLE = "trouble"
    """A fault of the bench, an error of the scenario, a dead DUT."""


@dataclass(frozen=True)
class Line:
    at: float | None
    tone: Tone
    words: str

    def __str__(self) -> str:
        return f"{clock(self.at)} {self.words}"


def clock(at: float | None) -> str:
    """A DUT time as the kernel log stamps it, ten characters wide: ``[  12.345]``."""
    return f"[{'?' if at is None else stamp(at):>8}]"


def narrate(event: ev.Event) -> Line | None:
    """The line for ``event``, or ``None`` for events that are not shown (samples, uevents, kernel messages)."""
    if type(event) in _SILENT:
        return None
    kinds = (_scenario, _cut, _disk, _load, _stamps, _files, _trouble)
    said = next((words for kind in kinds if (words := kind(event)) is not None), None)
    return None if said is None else Line(event.at, said[0], one_line(said[1], 300))


def kernel_line(message: ev.KernelMessage) -> Line:
    """A kernel message as a line; warnings and worse stand out."""
    tone = Tone.WARNING if message.level <= 4 else Tone.PLAIN
    return Line(message.at, tone, f"kernel: {one_line(message.text, 240)}")


Narrated = tuple[Tone, str] | None
"""The tone and the words of an event; ``None`` if it is not shown."""


def _scenario(event: ev.Event) -> Narrated:
    match event:
        case ev.ScenarioBegun():
            return Tone.PLAIN, f"scenario {event.id} begins" + (f" (row {event.row})" if event.row else "")
        case ev.ScenarioEnded():
            return Tone.PLAIN, f"scenario {event.id} ended after {duration(event.seconds)}"
        case ev.ScenarioSkipped():
            return Tone.PLAIN, f"scenario {event.id} skipped: {event.reason}"
        case ev.SoakBegun():
            return Tone.PLAIN, f"a soak of {duration(event.seconds)} begins"
        case ev.RunResumed():
            return Tone.WARNING, f"the run is resumed at {event.wall}; what happened before is not on record"
        case ev.DiskSetAside():
            return Tone.WARNING, f"{event.disk} is set aside: the run goes on without it"
        case ev.Phase():
            return Tone.PLAIN, f"phase {event.name}" + (f": {event.text}" if event.text else "")
        case ev.Note():
            return Tone.PLAIN, f"note: {event.subject + ': ' if event.subject else ''}{event.text}"
        case ev.DutReady():
            return Tone.PLAIN, (
                f"under test: {under_test(event.kernel, event.kind, event.accel, event.modules)}; the DUT "
                f"{READY.get(event.how, 'answered')} in {duration(event.took)}"
            )
        case ev.RunEnded() if event.interrupted:
            return Tone.TROUBLE, f"run interrupted: {event.interrupted}"
    return None


def _cut(event: ev.Event) -> Narrated:
    match event:
        case ev.FaultInjected() if is_shown(event):
            return Tone.CUT, f"fault {event.number}: {fault_text(event.fault)}"
        case ev.CutArmed():
            lasting = ", for good" if event.permanent else ""
            victims = ", ".join(event.victims) or "no disk"
            return (
                Tone.CUT,
                f"cut {event.cut} armed: {event.point} ({event.mechanism}{lasting}), {event.trigger}; takes {victims}",
            )
        case ev.Edge(phase="read-back", agrees=False):
            return Tone.TROUBLE, f"cut {event.cut}: {event.switch}.{event.port} does not read back {event.state}"
        case ev.Edge():
            return (
                Tone.CUT,
                f"cut {event.cut}: {event.point} {event.state}, {event.phase} ({event.switch}.{event.port})",
            )
        case ev.CutSwitched():
            cuts = ", ".join(map(str, event.cuts))
            by = f" by {', '.join(event.switches)}" if len(event.switches) > 1 else ""
            return Tone.CUT, f"cuts {cuts}: {event.ports} ports {event.state} at once{by}, skew {skew(event.skew)}"
        case ev.Healed(ok=False):
            return Tone.TROUBLE, f"power did NOT come back on {', '.join(event.ports)}: {event.detail}"
        case ev.Healed() if event.ports:
            return Tone.CUT, f"power back on {', '.join(event.ports)}"
    return None


def _disk(event: ev.Event) -> Narrated:
    match event:
        case ev.DiskAttached(disk=""):
            return None
        case ev.DiskAttached():
            speed = f" at {event.speed} Mb/s" if event.speed else ""
            return Tone.PLAIN, f"{event.disk} attached as {event.kname}{speed} ({size(event.size)}, {event.place})"
        case ev.DiskDetached() if event.disk:
            return Tone.WARNING, f"{event.disk} detached (was {event.kname})"
        case ev.DiskMoved():
            return Tone.PLAIN, f"{event.disk} was plugged into {event.socket} ({event.place})"
        case ev.DiskRecovered():
            vain = f", {event.failed} times in vain ({event.detail})" if event.failed else ""
            return Tone.PLAIN, f"{event.disk} was reset {event.resets} times on request{vain}"
        case ev.DiskStalled():
            how = "?" if event.given_up is None else str(event.given_up)
            return Tone.CUT, f"{event.disk} stood still {len(event.spans)} times, and the kernel gave up {how} commands"
        case ev.Verified(error="", bad=()):
            return Tone.PLAIN, f"{event.disk} verified: {size(event.checked)} compared, all as written"
        case ev.Verified(error=""):
            return Tone.WARNING, f"{event.disk} verified: {len(event.bad)} bad ranges in {size(event.checked)}"
        case ev.Verified():
            return Tone.TROUBLE, f"{event.disk} could not be verified: {event.error}"
    return None


def _load(event: ev.Event) -> Narrated:
    match event:
        case ev.LoadBegun():
            return Tone.PLAIN, f"load on {event.disk}: {event.mode}, {size(event.block)} blocks, depth {event.depth}"
        case ev.LoadSettled():
            return Tone.PLAIN, f"load settled on {', '.join(event.disks)}"
        case ev.Measured():
            took = duration((event.at or event.begin) - event.begin)
            return Tone.PLAIN, f"measured for {took}: {event.mode} on {', '.join(event.disks)}"
        case ev.DriveCacheSwitched():
            done = "" if event.ok else f", in vain: {event.detail}"
            tone = Tone.PLAIN if event.ok else Tone.WARNING
            return tone, f"the write cache of {event.disk} is switched {'on' if event.on else 'off'}{done}"
        case ev.FioRan():
            wrong = next((f"; {disk}: {one.error}" for disk, one in event.figures.items() if one.error), "")
            took = duration((event.at or event.begin) - event.begin)
            tone = Tone.WARNING if wrong else Tone.PLAIN
            return tone, f"{event.task} for {took} on {', '.join(event.disks)}{wrong}"
        case ev.MeterOpened():
            computed = ", computed and not measured" if event.synthetic else ""
            what = f"meter {event.meter} ({event.device}{computed}) is read {event.rate:g} times per second"
            return Tone.PLAIN, f"{what}: the {event.side} side of {', '.join(event.disks)}"
        case ev.LoadEnded(stuck=True):
            return Tone.WARNING, f"load on {event.disk} is stuck and could not be ended"
        case ev.LoadEnded() if event.errno or not event.asked:
            why = event.message or (f"errno {event.errno}" if event.errno else f"exit status {event.exit_status}")
            return Tone.WARNING, f"load on {event.disk} ended by itself: {why}"
        case ev.LoadEnded():
            return Tone.PLAIN, f"load on {event.disk} ended: {size(event.read_bytes + event.written_bytes)} moved"
        case ev.ProcessStuck():
            return Tone.WARNING, f"process {event.pid} ({event.command}) cannot be ended, state {event.state}"
        case ev.Acted():
            end = "" if event.ok else f" failed: {event.detail}"
            return (
                Tone.PLAIN if event.ok else Tone.WARNING,
                f"{event.action} {event.disk}{end} ({duration(event.seconds)})",
            )
        case ev.Residue() if event.processes:
            return Tone.WARNING, f"left on the DUT: {', '.join(event.processes)}"
    return None


def _files(event: ev.Event) -> Narrated:
    match event:
        case ev.FileRoundBegun():
            what = f"on the {event.fstype} of {event.disk}, round {event.round}: {event.pattern}"
            return Tone.PLAIN, f"writing files {what}"
        case ev.FileRoundEnded(stuck=True):
            return Tone.WARNING, f"the writer of files on {event.disk} is stuck and could not be ended"
        case ev.FileRoundEnded():
            return Tone.PLAIN, f"writing files on {event.disk} ended: {size(event.received)} of ledger"
        case ev.FileScanBegun() if event.error:
            return Tone.WARNING, f"the files on {event.disk} are not scanned: {event.error}"
        case ev.FileScanEnded(status=0):
            return Tone.PLAIN, f"the files on {event.disk} scanned"
        case ev.FileScanEnded():
            why = event.why or f"status {event.status}"
            return Tone.WARNING, f"the files on {event.disk} were not scanned to their end: {why}"
        case ev.FilesystemChecked():
            said = event.output.strip().splitlines()[-1:] if event.status is None else [f"status {event.status}"]
            tone = Tone.WARNING if event.status else Tone.PLAIN
            return tone, f"{event.command or 'check'} of {event.disk}: {''.join(said)} ({duration(event.seconds)})"
    return None


def _stamps(event: ev.Event) -> Narrated:
    match event:
        case ev.LedgerBegun():
            covered = size(512 * sum(count for _, count in event.extents))
            return Tone.PLAIN, f"stamping {event.disk}, session {event.session}: {covered}, {event.order}"
        case ev.LedgerEnded(stuck=True):
            return Tone.WARNING, f"the writer on {event.disk} is stuck and could not be ended"
        case ev.LedgerEnded():
            return Tone.PLAIN, f"stamping {event.disk} ended: {size(event.received)} of ledger"
        case ev.ReadBackBegun() if event.error:
            return Tone.WARNING, f"{event.disk} is not read back: {event.error}"
        case ev.ReadBackEnded(status=0):
            return Tone.PLAIN, f"{event.disk} read back"
        case ev.ReadBackEnded():
            why = event.why or f"status {event.status}"
            return Tone.WARNING, f"{event.disk} was not read back to its end: {why}"
        case ev.SeenFromOutside(ok=False):
            return Tone.TROUBLE, f"{event.disk} is not scratch and was written: {event.detail}"
    return None


def _trouble(event: ev.Event) -> Narrated:
    match event:
        case ev.RigFault():
            hint = f" (hint: {event.hint})" if event.hint else ""
            return Tone.TROUBLE, f"rig: {event.subject + ': ' if event.subject else ''}{event.summary}{hint}"
        case ev.ScenarioError():
            return Tone.TROUBLE, f"scenario stopped ({event.fault}): {event.summary}"
        case ev.AgentLost():
            return Tone.TROUBLE, f"agent lost: {event.why}"
        case ev.DutDied():
            return Tone.TROUBLE, f"DUT died: {event.headline}"
        case ev.LogLost():
            return Tone.TROUBLE, f"{event.count} kernel log records were lost"
    return None


def rate_or_blank(bytes_per_second: float | None) -> str:
    """A rate for a table cell, blank when there is none or nothing moves."""
    return "" if not bytes_per_second else rate(bytes_per_second)
