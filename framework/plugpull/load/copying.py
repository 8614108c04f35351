"""A copy from one disk to another, as a load on both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev
from plugpull.load.fio_report import FioReport
from plugpull.load.patterns import Pattern, span_of
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

COMPARED_WITHIN = 120.0
"""Seconds to wait for the comparison at the end. It reads what was copied once, which takes a few."""
BLOCK = 120 << 10
"""Bytes at once: the most that usb-storage transfers on a High-Speed link (drivers/usb/storage/scsiglue.c)."""


class RunningCopy(RunningJobs):
    """One disk is copied onto another again and again, for the length of the ``with`` block. Then they are compared.

    Its progress is that of the two disks: the source is read, and the target is written.
    """

    def __init__(self, context: ScenarioContext, source: Target, target: Target) -> None:
        super().__init__(context, (source, target))
        self._source, self._target = source, target
        pattern = Pattern("copy", "read", BLOCK)
        self._span = min(span_of(source, pattern), span_of(target, pattern))
        self._said: dict[str, Any] = {}

    def _begin(self) -> None:
        context = self._context
        self._mark = context.recorder.mark()
        context.phase("load", f"{self._source.name} is copied onto {self._target.name}")
        claims = {one.name: claim_of(context, one) for one in (self._source, self._target)}
        name = f"copy-{self._source.name}-{self._target.name}"
        context.listener.expect(name, self._ended)
        for one in (self._source, self._target):
            job = Job(name, one.name, claims[one.name].kname, self._span)
            self._jobs[one.name] = job
        disks = {"source": claims[self._source.name].disk, "target": claims[self._target.name].disk}
        context.bench.link.call("copy", 60.0, job=name, length=self._span, block=BLOCK, **disks)
        for one in (self._source, self._target):
            job = self._jobs[one.name]
            context.recorder.record(
                ev.LoadBegun(
                    at=context.now(),
                    disk=one.name,
                    job=job.name,
                    mode="read" if one is self._source else "write",
                    block=BLOCK,
                    depth=1,
                    span=self._span,
                    kname=job.kname,
                    argv=("copy", "--direct=1"),
                )
            )

    def _ended(self, message: Message) -> None:
        said = _report(str(message["output"]))
        self._said = said or {}
        for name, job in self._jobs.items():
            job.status, job.asked, job.ended_at = message["status"], message["asked"], message["at"]
            job.report = self._report_of(name, said)
            job.ended.set()

    def _report_of(self, name: str, said: dict[str, Any] | None) -> FioReport:
        if said is None:
            return FioReport(complete=False)
        copied, number = int(said["copied"]), int(said["errno"])
        reads = name == self._source.name
        own = said["side"] == ("source" if reads else "target")
        why = f"{os.strerror(number)} at offset {said['offset']} of the {said['side']} of the copy" if number else ""
        return FioReport(
            # The copy of a disk ends with the other one's error too: that is not this disk's.
            errno=number if own else 0,
            read_bytes=copied + int(said["checked"]) if reads else 0,
            written_bytes=0 if reads else copied,
            message=why if own else "",
            longest=float(said["longest"]),
        )

    def _first_bytes(self, disk: str) -> int:
        return BLOCK

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Message]:
        jobs = list(running)
        if not jobs:
            return {}
        name = jobs[0].name
        said = self._context.bench.link.call("jobs.stop", 3 * COMPARED_WITHIN, jobs=[name], grace=COMPARED_WITHIN)
        return {name: answer["process"] for name, answer in said.items() if answer["stuck"]}

    def verify(self) -> None:
        """Record how the target compares with the source: the copy itself has read both back."""
        context, said = self._context, self._said
        why = ""
        if not said:
            why = "the copy left no report of what it compared"
        elif said["errno"]:
            why = f"the copy ended with {os.strerror(int(said['errno']))} on its {said['side']}"
        bad = tuple((int(at), int(length), "differs from its source") for at, length in said.get("bad", ()))
        context.recorder.record(
            ev.Verified(
                at=context.now(),
                disk=self._target.name,
                checked=int(said.get("checked", 0)),
                bad=bad,
                error="" if bad else why,
                method=f"compared with {self._source.name} after the copy",
            )
        )


def _report(output: str) -> dict[str, Any] | None:
    """The line of JSON at the end of the program's output; ``None`` if it did not get that far."""
    lines = output.strip().splitlines()
    try:
        said = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    known = {"copied", "errno", "side", "offset", "longest", "checked", "bad"}
    return said if isinstance(said, dict) and known <= said.keys() else None
