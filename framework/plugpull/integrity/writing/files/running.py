"""Files written on a filesystem while its disk is cut: rounds of writing, and what is found after each."""

from __future__ import annotations

import errno
from types import TracebackType
from typing import Self

from plugpull.dut.conversation.link import AgentGone, GuardRefused, Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.faults.triggers import AtRandom, Promised, StepBegins, Trigger
from plugpull.history import events as ev
from plugpull.integrity.file_patterns import BETWEEN_PLANS, FilePattern
from plugpull.integrity.writing.files.session import FileJob, FileRunner
from plugpull.targets.filesystem import Filesystem

BEGUN_WITHIN = 60.0
"""Seconds until a writer must have done its first operations: Python starts slowly on an emulated DUT."""
BACK_WITHIN = 60.0
"""Seconds that a disk gets to come back before its filesystem is mounted again. ``returned`` judges that time."""
WITHOUT_JOURNAL = frozenset({"vfat", "exfat"})
"""Filesystems that a cut leaves with errors: they are repaired, and scanned again."""
REFUSED_DIRTY = frozenset({"ntfs3"})
"""Filesystems that the kernel does not mount after a cut, with EINVAL (fs/ntfs3/super.c, "volume is dirty"): they are
repaired before the mount."""
SETTLED_SYNCS = 10
"""Syncs of a writer that must have succeeded before it counts as running: more than those of its first files."""


class RunningFiles:
    """Files written on one filesystem, for the length of its ``with`` block.

    At the end the filesystem is unmounted, mounted again, which lets the kernel recover it, scanned, unmounted and
    checked. Then it is mounted once more, and everything in it is removed. One without a
    journal is repaired before that if it has errors. With a journal, it is repaired on an overlay: on the disk, it
    stays as the kernel left it. ``files_kept`` judges what was found.
    """

    def __init__(self, context: ScenarioContext, volume: Filesystem, pattern: FilePattern) -> None:
        self._context = context
        self._volume = volume
        self._pattern = pattern
        self._runner = FileRunner(context)
        self._run = context.random.getrandbits(64)
        self._round = 0
        self._job: FileJob | None = None
        self._stopped = True
        self._repaired = False
        context.busy.append(lambda: self._job is not None and not self._job.ended.is_set())

    @property
    def disks(self) -> tuple[str, ...]:
        """The name of the disk that the files are on."""
        return (self._volume.name,)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if self._context.listener.lost:
            return
        try:
            self.stop()
            if kind is None:
                self.verify()
                self._over()
        except RigError:
            # During the handling of an error, a second one would hide it.
            if kind is None:
                raise

    # --- writing ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        context, volume = self._context, self._volume
        self._round += 1
        plan = self._pattern.plan(volume.fstype, self._round * BETWEEN_PLANS, context.random.getrandbits(32))
        context.phase("load", f"{plan.name} on {volume.name}")
        context.recorder.record(
            ev.FileRoundPlanned(at=context.now(), disk=volume.name, run=self._run, round=self._round)
        )
        self._job = self._runner.write(
            volume, self._directory, plan.data, run=self._run, number=self._round, pattern=plan.name
        )
        self._stopped = False

    @property
    def _directory(self) -> str:
        """The name of this round's directory in the filesystem."""
        return f"round{self._round}"

    def settle(self, seconds: float = 1.0) -> None:
        """Wait until the writer has synced something, then for ``seconds``. Raises RigError if it does not begin."""
        assert self._job is not None
        job = self._job
        self._context.wait_for(
            lambda event: job.ended.is_set() or job.tally.syncs >= SETTLED_SYNCS, BEGUN_WITHIN, since=0
        )
        if job.tally.syncs < SETTLED_SYNCS or job.tally.errno:
            raise RigError(f"the writer of files on {self._volume.name} {self._trouble(job)}")
        self._context.pause(seconds)

    def played(self) -> None:
        """Wait until the writer has played its plan to the end. Raises RigError if it does not get there."""
        assert self._job is not None
        job = self._job
        self._context.wait_for(lambda event: job.ended.is_set() or job.tally.over, BEGUN_WITHIN, since=0)
        if not job.tally.over or job.tally.errno:
            raise RigError(f"the writer of files on {self._volume.name} {self._trouble(job)}")

    @staticmethod
    def _trouble(job: FileJob) -> str:
        if job.tally.errno:
            return f"was given an error before the cut: {errno.errorcode.get(job.tally.errno, job.tally.errno)}"
        done = f"after {job.tally.operations} operations"
        return f"ended {done}: {job.why or 'no reason given'}" if job.ended.is_set() else f"got stuck {done}"

    def something_to_lose(self, low: float = 0.0, high: float = 0.5) -> Trigger:
        """A trigger: ``low`` to ``high`` seconds, drawn at random, after a sync of this round succeeded."""
        self._context.promised[self._volume.name] = self.promised
        return Promised(self._volume.name, AtRandom(low, high))

    def step_begins(self, step: ev.ActionName, low: float = 0.0, high: float = 0.05) -> Trigger:
        """A trigger: ``low`` to ``high`` seconds, drawn at random, after the system call of the next "mount" or
        "umount" of this filesystem has begun. Ask for it before that.
        """
        known = [event for event in self._context.recorder.since(0) if isinstance(event, ev.StepBegun)]
        before = sum((event.disk, event.action) == (self._volume.name, step) for event in known)
        return StepBegins(self._volume.name, step, before + 1, AtRandom(low, high))

    def promised(self) -> bool:
        """True if a sync of the writer that runs has succeeded."""
        return self._job is not None and self._job.tally.syncs > 0

    def stop(self) -> None:
        """End the writer if it still runs. A writer that cannot be ended gets a ProcessStuck."""
        job = self._job
        if job is None or self._stopped:
            return
        self._stopped = True
        self._context.phase("stop")
        stuck = self._runner.stop([job])
        if job.name not in stuck:
            # The answer to "stop" and the message of the end arrive separately, the second perhaps a little later.
            job.ended.wait(5)
        process = stuck.get(job.name)
        if process is not None:
            self._context.recorder.record(
                ev.ProcessStuck(
                    at=self._context.now(),
                    pid=process["pid"],
                    command=process["command"],
                    state=process["state"],
                    disk=job.disk,
                    stack=tuple(process["stack"]),
                )
            )
        self._context.recorder.record(
            ev.FileRoundEnded(
                at=job.ended_at or self._context.now(),
                disk=job.disk,
                job=job.name,
                asked=job.asked,
                received=job.received,
                status=job.status,
                stuck=process is not None,
                why=job.why,
            )
        )

    # --- looking ----------------------------------------------------------------------------------------------------

    def next_round(self) -> None:
        """End the writing, recover, scan and check the filesystem, mount it and write again: for several cuts in a row.
        One that had to be repaired is made again before it is written.

        Raises RigError if the filesystem cannot be mounted again.
        """
        self.stop()
        if not self.verify():
            raise RigError(f"{self._volume} cannot be written any more", hint="the findings say what became of it")
        if self._repaired:
            # fsck.vfat leaves entries that the kernel takes for errors: it then makes the filesystem read-only.
            self._volume.remake()
        self._start()

    def verify(self) -> bool:
        """Unmount, mount again, scan, unmount and check; then mount again and remove everything. ``files_kept`` judges
        what is found. False if the filesystem cannot be mounted, or has errors in spite of a journal."""
        with self._context.untimed():
            return self._look()

    def _look(self) -> bool:
        volume, context = self._volume, self._context
        self._repaired = False
        context.phase("scan", str(volume))
        if volume.mounted and not volume.unmount():
            self._not_scanned(None, f"{volume} could not be unmounted")
            return False
        missing = context.wait_attached(volume.disks, BACK_WITHIN)
        if missing:
            self._not_scanned(None, f"{', '.join(missing)} did not come back")
            return False
        if not self._recover():
            return False
        self._runner.finish(self._runner.scan(volume, self._directory, number=self._round))
        if not volume.unmount():
            return False  # a checker finds errors in what is mounted; without its verdict nothing passes
        if volume.check() in (0, None):
            return self._remove_all()
        if volume.fstype in WITHOUT_JOURNAL:
            # A cut leaves it with errors: the repair belongs to its recovery, and is no evidence.
            volume.check(repair=True)
            self._repaired = True
            return self._remove_all(repaired=True)
        self._repair()
        return False

    def _repair(self) -> None:
        """Repair the filesystem on an overlay, and scan what is left. The disk stays as the kernel left it."""
        try:
            with self._volume.on_overlay() as aside:
                if aside:
                    self._volume.check(repair=True)
                    self._remove_all(repaired=True)
                    if self._volume.mounted:
                        self._volume.unmount()
        except AgentGone:
            raise
        except RigError as error:
            # What the checker found is on record, and a repair only adds to it.
            self._context.recorder.record(
                ev.Acted(
                    at=self._context.now(),
                    action="overlay",
                    disk=self._volume.name,
                    ok=False,
                    seconds=0.0,
                    detail=error.what,
                )
            )

    def _remove_all(self, *, repaired: bool = False) -> bool:
        """Mount the filesystem and remove everything in it: a directory that cannot be removed is damaged. False if it
        cannot be mounted."""
        volume = self._volume
        answer, dirty = self._mount()
        if not answer["ok"]:
            return False
        self._runner.finish(
            self._runner.scan(volume, self._directory, number=self._round, removing=True, repaired=repaired or dirty)
        )
        return True

    def _mount(self) -> tuple[Message, bool]:
        """Mount it, and repair it before if the kernel refuses to as it is. The answer, and whether it was repaired.
        The scan after a cut may have found errors, and left it dirty."""
        answer = self._volume.try_mount()
        dirty = answer.get("errno") == errno.EINVAL and self._volume.fstype in REFUSED_DIRTY
        if dirty:
            self._volume.check(repair=True)
            answer = self._volume.try_mount()
        return answer, dirty

    def _recover(self) -> bool:
        """Mount the filesystem again. If that fails, record why and return False."""
        try:
            answer, _ = self._mount()
        except GuardRefused as refusal:
            self._not_scanned(None, refusal.what, lost=self._is_lost())
            return False
        if not answer["ok"]:
            self._not_scanned(int(answer.get("errno") or errno.EIO), str(answer["detail"]))
        return bool(answer["ok"])

    def _is_lost(self) -> bool:
        """Whether the disk, recognised as itself, does not hold the filesystem any more."""
        try:
            return self._volume.found_uuid() != self._volume.identity
        except RigError:
            return False

    def _not_scanned(self, mount_errno: int | None, why: str, *, lost: bool = False) -> None:
        self._context.recorder.record(
            ev.FileScanBegun(
                at=self._context.now(),
                disk=self._volume.name,
                job="",
                round=self._round,
                directory=self._directory,
                mount_errno=mount_errno,
                error=why,
                lost=lost,
            )
        )

    def _over(self) -> None:
        self._context.recorder.record(
            ev.FilesOver(at=self._context.now(), disk=self._volume.name, run=self._run, rounds=self._round)
        )
