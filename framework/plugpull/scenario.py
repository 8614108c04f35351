"""The scenario API: the object that the ``rig`` fixture gives a scenario."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import count

from msgspec.structs import replace

from plugpull.checks import Check, encode_check
from plugpull.checks.dut.kernel_state import held_longer
from plugpull.checks.dut.residue import left_over
from plugpull.draw import Draw
from plugpull.dut.agent.checkers import too_small
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.conversation.translation import census_of, state_of, timers_set
from plugpull.dut.ending import record_disks, record_end
from plugpull.dut.processors import Processors
from plugpull.dut.recovering import Recovering
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.dut.stalled import Stalled
from plugpull.dut.suspended import Suspended
from plugpull.errors import NoFilesystem, NotServed, RigError, UsageError
from plugpull.faults import cut, judged_by
from plugpull.faults.breaker import Breaker
from plugpull.faults.compose import Fault
from plugpull.faults.injection import Injection
from plugpull.faults.triggers import Trigger
from plugpull.history import events as ev
from plugpull.integrity.file_patterns import FilePattern, file_storm
from plugpull.integrity.patterns import Stamped, steady
from plugpull.integrity.writing.files.running import RunningFiles
from plugpull.integrity.writing.filled import RunningReads
from plugpull.integrity.writing.legs import read_members
from plugpull.integrity.writing.load import RunningStamps
from plugpull.load.copying import RunningCopy
from plugpull.load.load import RunningLoad
from plugpull.load.patterns import Pattern
from plugpull.load.running import SAMPLE_INTERVAL
from plugpull.measuring import REPEATS, Measuring
from plugpull.metering import MeterWatch
from plugpull.plugging import let_none_settle, plug_everything
from plugpull.rig.topology import CutPoint
from plugpull.targets.array_plan import CHUNK, options_of, planned
from plugpull.targets.disk import RigDisk
from plugpull.targets.filesystem import Filesystem
from plugpull.targets.made_array import MadeArray
from plugpull.targets.target import Target, Targets, targets_of

GONE_WITHIN = 10.0
"""Seconds that the DUT gets to remove the last traces of a disk that was cut. Later ones count as left over."""
UNKNOWN_JOB_GRACE = 5.0
"""Seconds that a program which nobody asked to end gets for each of the signals that end it."""


class ScenarioRig(Measuring):
    """The rig, ready to use: every declared disk is attached, and everything that happens is recorded.

    Loads and cuts are context managers; ``judge`` names what must have been true.

        def test_cable_comes_loose_while_writing(rig):
            victim, survivors = rig.choose_victim()
            with rig.load(rig.disks, sequential_write) as load:
                load.settle()
                with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
                    rig.wait(seconds=0.5)
                load.regain_pace()
            rig.judge(removed(victim), returned(victim), kept_pace(survivors), data_intact())
    """

    def __init__(self, context: ScenarioContext, draw: Draw | None = None, repeats: int = REPEATS) -> None:
        super().__init__(context, draw, repeats)
        self.breaker = Breaker(context)
        self.asked = 0
        """The number of checks that were asked for."""
        self.censuses = 0
        """The number of recorded censuses."""
        self.grace_periods = 0
        """The number of recorded grace periods."""
        self._census_before: ev.Census | None = None
        self._state_before: ev.DutState | None = None
        self._arrays = count(1)
        self._filesystems: dict[str, Filesystem] = {}
        self._meters = MeterWatch(context)

    # --- doing ------------------------------------------------------------------------------------------------------

    def load(self, disks: Targets, pattern: Pattern) -> RunningLoad | RunningStamps:
        """Run a load on these disks for the length of the ``with`` block, then read back what was written.

        Writes are stamped, so that ``data_intact`` recognises data of another pass or disk, and torn blocks. fio
        does the reading, the writing of ``fio_write``, and both in a file of a filesystem. Raises ``RigError``.
        """
        targets = targets_of(disks)
        if pattern.fio or any(target.in_file for target in targets):
            return RunningLoad(self.context, targets, pattern)
        if pattern.mode == "write":
            return self.stamp(targets, steady(pattern))
        return RunningReads(self.context, targets, pattern)

    def stamp(self, disks: Targets, pattern: Stamped) -> RunningStamps:
        """Write stamps to these disks for the length of the ``with`` block, then read them back.

        The ledger of completed and flushed writes is kept off the DUT. ``nothing_lost`` judges whether the disks still
        have what they had promised to keep.

            with rig.stamp(rig.disks, flushed_writes) as load:
                load.settle()
                with rig.cut(victim.power, when=load.something_to_lose(victim)):
                    rig.wait(seconds=1)
            rig.judge(nothing_lost())
        """
        stamps = RunningStamps(self.context, targets_of(disks), pattern)
        self.context.promised.update({disk: partial(stamps.promised, disk) for disk in stamps.disks})
        self.context.flushing.update({disk: partial(stamps.in_flush, disk) for disk in stamps.disks})
        return stamps

    def files(self, volume: Filesystem, pattern: FilePattern = file_storm) -> RunningFiles:
        """Write files on a filesystem for the length of the ``with`` block; then let the kernel recover it, scan it,
        unmount it and check it.

        The ledger of what was created, written, renamed, removed and synced is kept off the DUT. ``files_kept`` judges
        whether the filesystem shows what it had promised to keep.

            with rig.filesystem(victim, "ext4") as volume, rig.files(volume) as files:
                files.settle()
                with rig.cut(victim.power, when=files.something_to_lose()):
                    rig.wait(seconds=1)
            rig.judge(files_kept())
        """
        return RunningFiles(self.context, volume, pattern)

    def array(
        self,
        level: str,
        disks: Iterable[RigDisk],
        *,
        size: str = "4 MiB",
        bitmap: bool | str = True,
        ppl: bool = False,
        slow: Iterable[RigDisk] = (),
        chunk: int = CHUNK,
    ) -> MadeArray:
        """Make an array of these disks with mdadm, in this order, for the length of the ``with`` block.

        ``level`` is "raid0", "raid1", "raid10", "raid5" or "raid6". The array uses ``size`` of each disk (a RAID 0 all
        of it) and is in sync when the block begins. ``bitmap`` may be what one bit of it stands for, such as "64 KiB".
        ``ppl`` gives a RAID 5 a partial parity log instead. Those of a mirror's disks that are ``slow`` are written
        with a delay, and read only if no other can be (mdadm's ``--write-mostly`` and ``--write-behind``). ``chunk`` is
        in bytes. When the block ends, the array is stopped, its members are read, and their superblocks are erased.
        Raises ``NotServed`` without mdadm or enough disks, and ``RigError``.

            with rig.array("raid1", (victim, survivors[0])) as array, rig.stamp(array, flushed_writes) as load:
                load.run_for(seconds=1)
        """
        let_none_settle(self.context)
        plan = planned(f"array{next(self._arrays)}", level, tuple(disks), tuple(slow))
        options = options_of(plan, size, bitmap, ppl=ppl, chunk=chunk)
        return MadeArray(self.context, plan, options, partial(read_members, self.context))

    def copy(self, source: Target, target: Target) -> RunningCopy:
        """Copy the beginning of a disk onto another, again and again for the length of the ``with`` block.

        Then the two are compared. It is a load on both, which ``settle`` and ``regain_pace`` watch. Raises ``RigError``
        if it does not start.

            with rig.copy(rig.disks[0], rig.disks[1]) as copying:
                copying.settle()
        """
        return RunningCopy(self.context, source, target)

    def load_on_volume(self, disk: Target, pattern: Pattern) -> RunningLoad:
        """Run fio on a file in the filesystem that is mounted from this disk, for the length of the ``with`` block.

        The same as ``load`` with what ``filesystem`` gave. Raises ``UsageError`` if this scenario made no filesystem on
        the disk.
        """
        if disk.name not in self._filesystems:
            raise UsageError(
                f"this scenario made no filesystem on {disk.name}",
                hint="put it in the block of `with rig.filesystem(...)`",
            )
        return RunningLoad(self.context, (self._filesystems[disk.name],), pattern)

    def filesystem(self, disk: Target, fstype: str = "ext4") -> Filesystem:
        """Make a filesystem on a disk and mount it for the length of the ``with`` block.

        What it gives is something to run a load on, as a disk is. Raises ``NotServed`` if the DUT has no such
        filesystem or the disk is too small for it, ``RigError`` if making or mounting it fails.

            with rig.filesystem(victim, "ext4") as volume, rig.load(volume, fio_write) as load:
                load.settle()
        """
        if fstype != "ext4":  # the setup installs what this one needs
            lacking = self.context.bench.link.call("filesystem.lacks", fstype=fstype, size=disk.size)
            if lacking:
                why = f"no {fstype} on {disk.name}: {lacking}"
                raise NotServed(why) if too_small(fstype, disk.size) else NoFilesystem(why, fstype=fstype)
        let_none_settle(self.context)
        self._filesystems[disk.name] = Filesystem(self.context, disk, fstype)
        return self._filesystems[disk.name]

    def recovering(self, disk: RigDisk) -> Recovering:
        """Have the kernel reset this disk again and again, as its error handler does, for the length of the block.

        Nothing is written to it. Raises ``NotServed`` if its driver has no reset to ask for, and ``RigError`` if no
        reset succeeds.

            with rig.recovering(survivors[0]), rig.cut(victim.cable):
                rig.wait(seconds=1)
        """
        return Recovering(self.context, disk.name)

    def stalled(self, disk: RigDisk, times: int = 1) -> Stalled:
        """Have a disk under load answer no command until the kernel gives one up, so that its error handler runs.

        The block begins when the disk answers again, and ends when the kernel has recovered it. With more ``times``
        it stands still again at once, as often. Raises ``NotServed`` where nobody can do that: only emulated disks can.

            with rig.stalled(victim):
                rig.wait(seconds=1)
            rig.judge(recovered(victim))
        """
        return Stalled(self.context, disk.name, times)

    def suspended(self, seconds: int) -> Suspended:
        """Suspend the DUT's devices, as a machine that sleeps does. It wakes by itself after ``seconds`` (1 to 8).

        The block begins when it sleeps, and ends when it is awake; ``wait_awake()`` waits for that inside it. Raises
        ``NotServed`` if its kernel cannot test that or would be harmed by it, and ``RigError`` if it does not suspend.

            with rig.suspended(seconds=3) as sleep, rig.cut(victim.cable):
                sleep.wait_awake()
        """
        return Suspended(self.context, seconds)

    def processors(self, count: int) -> Processors:
        """Let only so many processors of the DUT run for the length of the ``with`` block.

        Raises ``RigError`` if its kernel cannot take them offline.

            with rig.processors(1), rig.load(rig.disks, sequential_write) as load:
                load.settle()
        """
        return Processors(self.context, count)

    def cut(self, *points: CutPoint, when: Trigger | None = None, permanent: bool = False) -> Injection:
        """Cut these points, all at once, when the trigger fires; restore them when the ``with`` block ends.

        A ``permanent`` cut is restored only when the scenario is over. Raises ``RigError`` if the trigger does not fire
        or a switch does not obey, and ``NotServed`` if the DUT sleeps and the driver of a disk would not notice.
        """
        return self.fault(cut(*points, when=when, permanent=permanent))

    def fault(self, fault: Fault) -> Injection:
        """Inject a fault for the length of the ``with`` block, or from its ``inject()`` to its ``heal()``.

        Raises as ``cut`` does.

            with rig.fault(together(cut(rig.hubs[0].cable), held(cut("disk1.cable"), seconds=0.5))):
                rig.wait(seconds=2)
        """
        return Injection(self.context, self.breaker, fault)

    def judged_by(self, *faults: Fault) -> tuple[Check, ...]:
        """The checks that these faults call for on this rig, whatever load runs, for ``judge``."""
        return judged_by(faults, self.context.rig)

    def is_attached(self, disk: RigDisk) -> bool:
        """Whether the disk is on the kernel's list now.

        if not rig.is_attached(victim):
            with rig.cut(victim.power):
                rig.wait(seconds=2)
        """
        return self.context.bench.disk_table.attached(disk.name) is not None

    def wait(self, seconds: float) -> None:
        """Let this many seconds pass. Raises ``RigError`` if the DUT is lost meanwhile."""
        self.context.pause(seconds)

    def judge(self, *checks: Check) -> None:
        """Name what must have been true. The checks are recorded, and judged when the scenario is over. Those of the
        survivors are left out if the scenario had something done to every scratch disk of the rig."""
        apply = self._without_survivors(checks)
        self.asked += len(apply)
        self.context.recorder.record(ev.Judged(at=self._now(), checks=tuple(encode_check(check) for check in apply)))

    def _now(self) -> float | None:
        clock = self.context.bench.link.clock
        return clock.now()[0] if clock.mapped else None

    # --- the beginning and the end --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Power everything, start listening, and wait until every declared disk is there. Raises RigError."""
        context = self.context
        ready = context.bench.ready()
        context.recorder.record(ready)
        self._kind = ready.kind
        if not ready.fio:
            raise RigError(
                "fio is not installed on the DUT", hint="install the fio package on the DUT; nothing was cut"
            )
        self._shorten_timers()
        context.bench.link.call("sample", interval=SAMPLE_INTERVAL)
        self._meters.start(virtual=self._kind == "virtual")
        plug_everything(context, self._kind)
        record_disks(context, "begin")
        self._state_before = self._state("begin")
        self.context.recorder.record(self._state_before)
        self._census_before = self._record_census(self._count("begin"))

    def _shorten_timers(self) -> None:
        """A guest is thrown away after the scenario; any other DUT gets its own timeouts back, whatever happens."""
        serials = [disk.serial for disk in self.context.rig.disk]
        said = self.context.bench.link.call("timers", serials=serials, guarded=self._kind != "virtual")
        self.context.recorder.record(timers_set(said, "begin"))

    def _state(self, moment: ev.StateMoment) -> ev.DutState:
        return state_of(self.context.bench.link.call("state"), moment)

    def _record_state_at_the_end(self) -> None:
        """Wait up to ``GONE_WITHIN`` seconds until no driver is held more often than at the beginning: while the kernel
        sets up a disk whose cable is back, it holds the drivers of that disk."""
        deadline = time.monotonic() + GONE_WITHIN
        state = self._state("end")
        while self._state_before is not None and held_longer(self._state_before, state) and time.monotonic() < deadline:
            self.context.pause(0.25)
            state = self._state("end")
        self.context.recorder.record(state)

    def take_census(self) -> None:
        """Record what the DUT's kernel holds now. Call it after each cut: ``leak_slope`` judges whether that grows."""
        self._record_census(self._count("cycle"))

    def _record_census(self, census: ev.Census) -> ev.Census:
        self.context.recorder.record(census)
        self.censuses += 1
        return census

    def _count(self, moment: ev.CensusMoment) -> ev.Census:
        return census_of(self.context.bench.link.call("census", exact=moment == "cycle"), moment)

    def _record_what_is_left(self) -> None:
        """Wait up to ``GONE_WITHIN`` seconds until nothing is left over. To show how long that took, record the first
        and the last census that had something left over."""
        deadline = time.monotonic() + GONE_WITHIN
        first: ev.Census | None = None
        last: ev.Census | None = None
        while True:
            census = self._count("end")
            if self._census_before is None or not left_over(self._census_before, census) or time.monotonic() > deadline:
                break
            last = replace(census, moment="settling")
            if first is None:
                first = last
                self._record_census(first)
            self.context.pause(0.25)
        if last is not None and last is not first:
            self._record_census(last)
        self._record_census(census)

    def end(self) -> None:
        """Heal, and look for what is left behind. Never raises."""
        # First of all, even if the DUT is dead: its ports must not stay off.
        back = self.breaker.heal()
        self._meters.stop()
        with suppress(RigError):  # as below
            for view in self.context.bench.seen_from_outside():
                self.context.recorder.record(view)
        if self.context.listener.lost:
            return
        try:
            self.context.phase("heal")
            # A run that was interrupted while a load was being started does not know of it.
            self.context.bench.link.call("jobs.stop", 3 * UNKNOWN_JOB_GRACE + 10, jobs=None, grace=UNKNOWN_JOB_GRACE)
            alive = self.context.bench.link.call("jobs.alive", 10.0)
            left = tuple(f"{job['command'] or job['pid']} (state {job['state']})" for job in alive)
            self.context.recorder.record(ev.Residue(at=self.context.now(), processes=left))
            self.grace_periods += record_end(self.context, back)
            self._record_what_is_left()
            self._record_state_at_the_end()
            if self._kind != "virtual":
                self.context.recorder.record(timers_set(self.context.bench.link.call("timers.restore"), "restored"))
            self.context.phase("")
        except RigError as error:
            if isinstance(error, AgentGone):
                self.context.listener.unanswered(error.what)
            with suppress(RigError):  # the recorder keeps its failure and raises it where somebody can act on it
                self.context.recorder.record(ev.RigFault(summary=error.what, hint=error.hint))
