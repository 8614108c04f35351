"""Reads stamped disks back, and reads suspect sectors a second time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plugpull.dut.conversation.link import GuardRefused
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import DutError
from plugpull.history import events as ev
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.readback import SectorRun
from plugpull.integrity.oracle.rules import judge
from plugpull.integrity.oracle.stamp import SECTOR
from plugpull.integrity.patterns import Extents
from plugpull.integrity.writing.session import StampRunner, StreamJob
from plugpull.targets.on_bench import is_usable
from plugpull.targets.target import Target

READ_WITHIN = 600.0
"""Seconds. A read-back that takes longer is ended, and the disk's content counts as unknown."""
READ_AGAIN = 32
"""The maximum number of stretches that are read a second time."""


@dataclass(frozen=True)
class _Session:
    target: Target
    job: StreamJob
    extents: Extents
    blank: bool


class ReadBacks:
    """The read-backs of one run of stamped writing."""

    def __init__(self, context: ScenarioContext, runner: StampRunner, run: int) -> None:
        self._context = context
        self._runner = runner
        self._run = run
        self._sessions: dict[str, _Session] = {}
        self._found: dict[str, tuple[int, tuple[SectorRun, ...]]] = {}

    def planned(self, session: int, targets: Iterable[Target]) -> None:
        """Record that a round on these disks is about to begin."""
        disks = tuple(target.name for target in targets)
        self._context.recorder.record(
            ev.StampingPlanned(at=self._context.now(), run=self._run, session=session, disks=disks)
        )

    def wrote(self, target: Target, job: StreamJob, extents: Extents, *, blank: bool) -> None:
        """Note that a session to be read back has begun. ``blank``: no earlier content is known to compare with."""
        self._sessions[job.disk] = _Session(target, job, extents, blank)

    def over(self) -> None:
        """Record that all sessions were read back."""
        sessions = {disk: session.job.session for disk, session in self._sessions.items()}
        if sessions:
            self._context.recorder.record(
                ev.StampingOver(at=self._context.now(), run=self._run, disks=tuple(sessions), sessions=sessions)
            )

    def read(self) -> None:
        """Read back every disk whose last session was not read yet. The checks judge the content later, from the
        history."""
        todo = {
            disk: session
            for disk, session in self._sessions.items()
            if self._found.get(disk, (0, ()))[0] != session.job.session
        }
        begun = {disk: self._begin(disk, session.extents) for disk, session in todo.items()}
        running = {disk: job for disk, job in begun.items() if job is not None}
        self._runner.finish(running.values(), READ_WITHIN)
        suspect = {disk: extents for disk, job in running.items() if (extents := self._suspect(job))}
        if suspect:
            self._context.phase("verify", f"reading suspect sectors a second time on {', '.join(suspect)}")
            again = [self._begin(disk, extents, again=True) for disk, extents in suspect.items()]
            self._runner.finish([job for job in again if job is not None], READ_WITHIN)

    def _begin(self, disk: str, extents: Extents, *, again: bool = False) -> StreamJob | None:
        """Start to read a disk back. If it is away or was replaced, record the reason and return None."""
        context = self._context
        target, written = self._sessions[disk].target, self._sessions[disk].job
        why = f"{disk} is not attached"
        if is_usable(context, target):
            try:
                return self._runner.read(
                    target,
                    extents,
                    run=self._run,
                    session=written.session,
                    logical=written.tally.logical or SECTOR,
                    again=again,
                )
            except (GuardRefused, DutError) as refusal:
                why = refusal.what
        context.recorder.record(
            ev.ReadBackBegun(
                at=context.now(), disk=disk, job="", session=written.session, extents=extents, error=why, again=again
            )
        )
        return None

    def _suspect(self, read: StreamJob) -> Extents:
        """The stretches that look wrong and need a second reading."""
        disk, written = read.disk, self._sessions[read.disk]
        found = decode_found(read.parts)
        session, runs = self._found.get(disk, (0, ()))
        self._found[disk] = (read.session, tuple(found.runs))
        logical = written.job.tally.logical or SECTOR
        opinion = judge(
            decode_ledger(written.job.parts),
            found,
            written.extents,
            runs if session and session + 1 == read.session else None,
            logical_block=logical,
            blank=written.blank,
        )
        return _few([(wrong.first, wrong.sectors) for wrong in opinion.wrong], logical // SECTOR)


def _few(stretches: list[tuple[int, int]], logical: int) -> Extents:
    """Stretches widened to whole logical blocks, in rising order, merged, and limited in number."""
    made: list[tuple[int, int]] = []
    for first, count in sorted(stretches):
        begin, end = first - first % logical, -(-(first + count) // logical) * logical
        if made and begin <= made[-1][0] + made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][0] + made[-1][1]) - made[-1][0])
        else:
            made.append((begin, end - begin))
    return tuple(made[:READ_AGAIN])
