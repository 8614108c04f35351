"""Reads the members of a stopped array, to see what each of them holds of the stamps that were written to the array."""

from __future__ import annotations

import base64
import itertools

from plugpull.checks.raid.arrays import layout_of
from plugpull.dut.conversation.link import GuardRefused, Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import DutError
from plugpull.history import events as ev
from plugpull.integrity.patterns import Extents
from plugpull.integrity.writing.session import StampRunner, StreamJob, reader_arguments
from plugpull.load.fio_report import FioReport
from plugpull.targets.claim import Identity
from plugpull.targets.made_array import MadeArray

READ_WITHIN = 300.0
"""Seconds. A reading that takes longer is ended, and the member's content counts as unknown."""
_numbers = itertools.count(1)


def read_members(context: ScenarioContext, array: MadeArray) -> None:
    """Read each attached member of a stopped array where the stamps of its last session are. Nothing is read of an
    array without stamps, or whose layout is not understood."""
    made = next((one for one in reversed(context.recorder.since(0)) if _is_made(one, array)), None)
    sessions = [one for one in context.recorder.since(0) if isinstance(one, ev.LedgerBegun) and one.disk == array.name]
    if not isinstance(made, ev.ArrayMade) or not sessions:
        return
    layout = layout_of(made)
    if not layout.known:
        return
    context.phase("array", f"reading the members of {array.name}")
    reader = _Reader(context)
    for member in array.members:
        offset = made.offsets.get(member.name)
        extents = () if offset is None else layout.member_extents(sessions[-1].extents)
        shifted = tuple((first + (offset or 0), count) for first, count in extents)
        attached = context.bench.disk_table.attached(member.name) is not None
        identity = array.member_claim(member) if attached and offset is not None else None
        reader.begin(array.name, member.name, identity, sessions[-1], offset or 0, shifted)
    reader.finish()


def _is_made(event: ev.Event, array: MadeArray) -> bool:
    return isinstance(event, ev.ArrayMade) and event.array == array.name


class _Reader:
    """Readings of members, side by side."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._runner = StampRunner(context)
        self._legs: list[StreamJob] = []

    def begin(
        self, array: str, disk: str, identity: Identity | None, last: ev.LedgerBegun, offset: int, extents: Extents
    ) -> None:
        """Start to read a member. If that is not possible, record the reason."""
        why = f"{disk} is not attached"
        job = StreamJob(f"leg{next(_numbers)}-{disk}", disk, "", 0, session=last.session)
        if identity is not None:
            try:
                self._begin(job, identity, last, extents)
                why = ""
            except (GuardRefused, DutError) as refusal:
                why = refusal.what
        self._context.recorder.record(
            ev.LegReadBegun(
                at=self._context.now(),
                array=array,
                disk=disk,
                job="" if why else job.name,
                session=last.session,
                run=last.run,
                device=last.device,
                offset=offset,
                extents=extents,
                error=why,
            )
        )

    def _begin(self, job: StreamJob, identity: Identity, last: ev.LedgerBegun, extents: Extents) -> None:
        arguments = reader_arguments(extents, last.run, last.device, last.session)
        digest = self._runner.sent()
        job.kname = str(identity["kname"])
        listener = self._context.listener
        listener.expect(job.name, lambda message: self._over(job, message))
        listener.expect_stream(job.name, lambda message: self._found(job, message))
        argv = [*arguments, "--fd", "{fd}"]
        self._context.bench.link.call("run", 60.0, job=job.name, digest=digest, argv=argv, disk=identity)
        self._legs.append(job)

    def _found(self, job: StreamJob, message: Message) -> None:
        offset, text = int(message["offset"]), str(message["data"])
        self._context.recorder.record(
            ev.LegReadPart(at=message["at"], disk=job.disk, job=job.name, offset=offset, data=text)
        )
        job.received = offset + len(base64.b64decode(text))
        self._context.bench.link.post("ack", job=job.name, upto=job.received)

    @staticmethod
    def _over(job: StreamJob, message: Message) -> None:
        job.status, job.asked, job.ended_at = message["status"], message["asked"], message["at"]
        job.report = FioReport(message=str(message["output"]).strip())
        job.ended.set()

    def finish(self, timeout: float = READ_WITHIN) -> None:
        """Wait for all readings, and record their ends."""
        self._context.wait_for(lambda event: all(job.ended.is_set() for job in self._legs), timeout, since=0)
        stuck = self._runner.stop([job for job in self._legs if not job.ended.is_set()])
        for job in self._legs:
            self._context.recorder.record(
                ev.LegReadEnded(
                    at=job.ended_at or self._context.now(),
                    disk=job.disk,
                    job=job.name,
                    received=job.received,
                    status=job.status,
                    stuck=job.name in stuck,
                    why=job.report.message if job.status is not None else f"it did not finish within {timeout:g} s",
                )
            )
