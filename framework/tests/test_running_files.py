"""Rounds of files from the writer to the judgement, in a directory of this machine that stands for the filesystem.

The agent's own code runs the program; what cuts a disk does here is done to the directory by hand.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stories import RIG, SIZE

from plugpull.checks import Judgement, files_kept
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.service import Service
from plugpull.dut.agent.wire import now
from plugpull.dut.conversation.link import GuardRefused
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.integrity.file_patterns import FilePattern, FileStorm, ShortPlans, file_storm
from plugpull.integrity.sequences import FileSequence, FileStep, FinalSync
from plugpull.integrity.writing.files.running import RunningFiles
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology
from plugpull.streams import Streams
from plugpull.targets.disk import RigDisk
from plugpull.targets.filesystem import Filesystem

UUID = "6b0f5c1e-0000-4000-8000-000000000001"
STORM = FileStorm("all of it", {**file_storm.weights, "syncfs": 0})
"""Without a sync of this machine's filesystem."""
MODEL = load_rig(rigs_dir() / "quick.toml")


class Double:
    """A scenario's context around an agent whose mounted filesystem is a directory, and the recorded events."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[ev.Event] = []
        self.answers: dict[str, Callable[..., Any]] = {
            "mkfs": lambda **_: {"ok": True, "seconds": 0.1, "detail": "", "uuid": UUID},
            "mount": lambda **_: {"ok": True, "seconds": 0.1, "detail": ""},
            "umount": lambda **_: {"ok": True, "seconds": 0.1, "detail": ""},
            "filesystem.check": lambda **_: {"status": 0, "seconds": 0.1, "command": "e2fsck -f -n", "output": ""},
            "filesystem.holds": lambda **_: UUID,
            "overlay": lambda **_: {"ok": True, "seconds": 0.1, "detail": "", "overlay": "PLUGPULL-disk1"},
            "overlay.drop": lambda **_: {"ok": True, "seconds": 0.1, "detail": ""},
        }
        self.promised: dict[str, Callable[[], bool]] = {}
        self.busy: list[Callable[[], bool]] = []
        self.untimed = nullcontext
        self._ends: dict[str, Callable[[Any], None]] = {}
        self._streams: dict[str, Callable[[Any], None]] = {}
        self._changed = threading.Condition()
        self.service = Service(self._hear)
        self.service.volumes.open = self._open_root  # type: ignore[method-assign]
        attached = SimpleNamespace(kname="sdb", diskseq=1, place="here")
        table = SimpleNamespace(attached=lambda name: attached, places={}, sockets={})
        self.bench = SimpleNamespace(disk_table=table, link=SimpleNamespace(call=self._call, post=self._call))
        self.listener = SimpleNamespace(lost="", expect=self._ends.__setitem__, expect_stream=self._streams.__setitem__)
        self.recorder = SimpleNamespace(record=self.events.append)
        self.random = Streams(1, "").of("data")
        self.missing: tuple[str, ...] = ()

    def _open_root(self, disk: str, uuid: str = "") -> int:
        return os.open(self.directory, os.O_PATH)

    def _hear(self, lines: bytes) -> None:
        for message in map(json.loads, lines.splitlines()):
            where = {"stream": self._streams, "job.end": self._ends}.get(message.get("ev", ""), {})
            if message.get("job") in where:
                where[message["job"]](message)
        with self._changed:
            self._changed.notify_all()

    def _call(self, op: str, _timeout: float = 0.0, /, **arguments: Any) -> Any:
        known = self.answers.get(op) or getattr(self.service, "op_" + op.replace(".", "_"))
        return known(**arguments)

    def now(self) -> float:
        return now()

    def phase(self, name: str, text: str = "") -> None: ...

    def leaving(self, error: BaseException | None) -> None: ...

    def identity(self, name: str) -> dict[str, object]:
        return {"kname": "sdb", "serial": name}

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def wait_for(self, predicate: Callable[[Any], bool], timeout: float, *, since: int | None = None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: predicate(None), timeout)

    def wait_attached(self, names: tuple[str, ...], timeout: float) -> tuple[str, ...]:
        return self.missing

    def judged(self) -> Judgement:
        first = min(event.at or 0.0 for event in self.events)
        before: list[ev.Event] = [
            ev.DiskAttached(
                at=first - 2,
                disk="disk1",
                kname="sdb",
                diskseq=1,
                devt="8:16",
                serial="S",
                place="",
                size=SIZE,
                sysfs="",
            ),
            ev.KernelMessage(at=first - 2, text="sd 1:0:0:0: [sdb] Write cache: enabled, read cache: enabled"),
        ]
        begun = ev.ScenarioBegun(id="x", wall="2030-01-01T00:00:01+00:00", seed=7)
        events = sorted([*before, *self.events], key=lambda event: event.at or 0.0)
        return files_kept().judge(Story(begun, tuple(events), rig=RIG))


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Double]:
    made = Double(tmp_path)
    yield made
    made.service.controller_gone()


def opened(double: Double, pattern: FilePattern = STORM, fstype: str = "ext4") -> RunningFiles:
    context: Any = double
    return RunningFiles(context, Filesystem(context, RigDisk("disk1", Topology(MODEL)), fstype).__enter__(), pattern)


def found(judgement: Judgement) -> str:
    (finding,) = judgement.findings
    return finding.summary


def test_a_storm_is_written_recorded_scanned_and_judged(double: Double) -> None:
    with opened(double) as files:
        files.settle(0.3)
        assert files.promised()
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "ext4 clean" in judgement.worst
    assert ", 0 were promised" not in judgement.worst
    assert list((double.directory / "round1").iterdir()) == [], "the scan removes what it has read"


def test_several_rounds_have_directories_and_numbers_of_their_own(double: Double) -> None:
    with opened(double) as files:
        files.settle(0.1)
        files.next_round()
        files.settle(0.1)
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())
    rounds = [event for event in double.events if isinstance(event, ev.FileRoundBegun)]
    assert [one.directory for one in rounds] == ["round1", "round2"]
    assert judgement.measurements[0].n == 2


@pytest.mark.parametrize("fstype", ["xfs", "vfat"])
def test_a_planted_loss_is_found(double: Double, fstype: str) -> None:
    """What was written and synced last is gone when the filesystem is mounted again."""
    plain = FileStorm("new files", {"create": 1}, most=40)

    def mount(**_: Any) -> dict[str, Any]:
        if (double.directory / "round1").is_dir():
            for name in itertools.chain(
                (double.directory / "round1/A").iterdir(), (double.directory / "round1/B").iterdir()
            ):
                name.unlink()
        return {"ok": True, "seconds": 0.1, "detail": ""}

    double.answers["mount"] = mount
    with opened(double, plain, fstype) as files:
        files.settle(0.2)
    assert "lost after fsync" in found(double.judged())


def test_a_short_plan_ends_by_itself(double: Double) -> None:
    steps = (FileStep("create", "A/x"), FileStep("rename", "A/x", "B/x"))
    plan = ShortPlans(sequence=FileSequence(("A", "B"), (), steps, FinalSync("fsyncdir", "B")))
    with opened(double, plan) as files:
        files.played()
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())


class Checker:
    """Answers with this status to a check, and with 1 to a repair. ``on`` are the overlays that were repaired, empty
    for the disk itself."""

    def __init__(self, double: Double, status: int) -> None:
        self._status = status
        self.on: list[object] = []
        double.answers["filesystem.check"] = self._check

    def _check(self, **asked: Any) -> dict[str, Any]:
        assert asked["disk"]["kname"]
        if asked["repair"]:
            self.on.append(asked["disk"].get("overlay", ""))
        return {
            "status": 1 if asked["repair"] else self._status,
            "seconds": 0.1,
            "command": "fsck -y" if asked["repair"] else "fsck -n",
            "output": "",
        }


@pytest.mark.parametrize(("fstype", "status"), [("vfat", 1), ("vfat", 0), ("ext4", 4)])
def test_a_filesystem_with_errors_is_repaired(double: Double, fstype: str, status: int) -> None:
    """One with a journal only on an overlay."""
    checker = Checker(double, status)
    with opened(double, fstype=fstype) as files:
        files.settle(0.1)
    aside = fstype == "ext4"
    checks = [(event.repaired, event.overlay) for event in double.events if isinstance(event, ev.FilesystemChecked)]
    assert checks == ([(False, False), (True, aside)] if status else [(False, False)])
    assert checker.on == (["PLUGPULL-disk1" if aside else ""] if status else [])
    steps = [event.action for event in double.events if isinstance(event, ev.Acted)]
    after = ["overlay", "mount", "umount", "overlay.drop"] if aside else ["mount"]
    assert steps[steps.index("umount") :] == ["umount", "mount", "umount", *after]
    judgement = double.judged()
    assert judgement.unknowns == ()
    assert [finding.summary.count("has errors") for finding in judgement.findings] == ([1] if status == 4 else [])
    assert ("vfat repaired" in judgement.worst) is (status == 1)
    if status == 4:
        assert "on an overlay in memory, every promised file is there" in " ".join(judgement.findings[0].evidence)


def test_an_overlay_that_cannot_be_used_leaves_the_finding(double: Double) -> None:
    def check(**asked: Any) -> dict[str, Any]:
        if asked["repair"]:
            raise RigError("the agent could not do 'filesystem.check'")
        return {"status": 4, "seconds": 0.1, "command": "e2fsck", "output": ""}

    double.answers["filesystem.check"] = check
    with opened(double) as files:
        files.settle(0.1)
    assert "has errors" in found(double.judged())
    assert [one.ok for one in double.events if isinstance(one, ev.Acted) and one.action == "overlay"] == [True, False]


def test_a_fat_is_repaired_before_it_is_written_again(double: Double) -> None:
    """And made again, because the kernel finds errors in what fsck.vfat leaves, and makes it read-only."""
    checker = Checker(double, 1)
    with opened(double, fstype="vfat") as files:
        files.settle(0.1)
        files.next_round()
        files.settle(0.1)
    assert checker.on == ["", ""]
    steps = [event.action for event in double.events if isinstance(event, ev.Acted)]
    assert steps.count("mkfs") == 2
    # No file of the first round is left when the second one begins.
    again = len(steps) - 1 - steps[::-1].index("mkfs")
    assert steps[again - 1 : again + 2] == ["umount", "mkfs", "mount"]
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "vfat repaired 2 times" in judgement.worst


def test_a_filesystem_without_errors_is_written_again_as_it_is(double: Double) -> None:
    Checker(double, 0)
    with opened(double, fstype="vfat") as files:
        files.settle(0.1)
        files.next_round()
        files.settle(0.1)
    assert [event.action for event in double.events if isinstance(event, ev.Acted)].count("mkfs") == 1
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_nothing_is_written_on_a_journaled_filesystem_with_errors(double: Double) -> None:
    Checker(double, 4)

    def two_rounds() -> None:
        with opened(double) as files:
            files.settle(0.1)
            files.next_round()

    with pytest.raises(RigError, match="cannot be written any more"):
        two_rounds()
    assert "has errors" in found(double.judged())


@pytest.mark.parametrize("fstype", ["vfat", "ext4"])
def test_without_an_overlay_only_a_fat_is_repaired(double: Double, fstype: str) -> None:
    checker = Checker(double, 4 if fstype == "ext4" else 1)
    double.answers["overlay"] = lambda **_: {"ok": False, "seconds": 0.1, "detail": "no module", "overlay": ""}
    with opened(double, fstype=fstype) as files:
        files.settle(0.1)
    assert checker.on == ([""] if fstype == "vfat" else [])
    assert "overlay.drop" not in [event.action for event in double.events if isinstance(event, ev.Acted)]
    judgement = double.judged()
    assert judgement.unknowns == ()
    assert len(judgement.findings) == (fstype == "ext4")


def test_a_filesystem_that_does_not_mount_is_a_finding(double: Double) -> None:
    with opened(double) as files:
        files.settle(0.1)
        double.answers["mount"] = lambda **_: {"ok": False, "seconds": 0.1, "detail": "x", "errno": errno.EUCLEAN}
    assert "unmountable" in found(double.judged())


@pytest.mark.parametrize("holds", ["", "another"])
def test_a_disk_that_lost_its_filesystem_is_a_finding(double: Double, holds: str) -> None:
    def refuse(**_: Any) -> None:
        raise GuardRefused("sdb holds no ext4 filesystem, not the one that this run made")

    with opened(double) as files:
        files.settle(0.1)
        double.answers |= {"mount": refuse, "filesystem.holds": lambda **_: holds}
    assert "a disk without one found" in found(double.judged())


def test_another_disk_is_not_accused(double: Double) -> None:
    def refuse(**_: Any) -> None:
        raise GuardRefused("sdb is not the disk it was")

    with opened(double) as files:
        files.settle(0.1)
        double.answers |= {"mount": refuse, "filesystem.holds": refuse}
    judgement = double.judged()
    assert judgement.findings == ()
    assert "not the disk it was" in "; ".join(judgement.unknowns)


def test_a_disk_that_stays_away_leaves_it_open(double: Double) -> None:
    with opened(double) as files:
        files.settle(0.1)
        double.missing = ("disk1",)
    judgement = double.judged()
    assert judgement.findings == ()
    assert "disk1 did not come back" in "; ".join(judgement.unknowns)


def test_a_mount_that_is_held_is_not_mounted_over(double: Double) -> None:
    with opened(double) as files:
        files.settle(0.1)
        double.answers["umount"] = lambda **_: {"ok": False, "seconds": 0.1, "detail": "busy"}
    assert "could not be unmounted" in "; ".join(double.judged().unknowns)


def test_what_stays_mounted_after_the_scan_is_not_checked(double: Double) -> None:
    """xfs_repair calls a mounted filesystem an error, with the status of a damaged one."""
    answers = iter([True, False, True])
    with opened(double) as files:
        files.settle(0.1)
        double.answers["umount"] = lambda **_: {"ok": next(answers), "seconds": 0.1, "detail": "busy"}
        double.answers["filesystem.check"] = lambda **_: {"status": 1, "seconds": 0.1, "command": "c", "output": ""}
    judgement = double.judged()
    assert judgement.findings == ()
    assert "that the filesystem was checked is not on record" in "; ".join(judgement.unknowns)


def test_a_writer_that_cannot_begin_is_the_bench_s_fault(double: Double) -> None:
    (double.directory / "round1").mkdir()
    with pytest.raises(RigError, match=r"ended after 0 operations: .*File exists"), opened(double) as files:
        files.settle(0.1)


def test_nothing_runs_where_the_filesystem_of_the_run_is_not_mounted(double: Double) -> None:
    """Somebody unmounted it, or mounted another one: the program is not started."""

    def refuse(disk: str, uuid: str = "") -> int:
        raise Refused(f"no filesystem of this run is mounted at {disk} any more")

    files = opened(double)
    double.service.volumes.open = refuse  # type: ignore[method-assign]
    with pytest.raises(Refused, match="no filesystem of this run"), files:
        pass
    assert double.service.jobs.alive() == []
    assert list(double.directory.iterdir()) == []
    assert not [event for event in double.events if isinstance(event, ev.FileRoundBegun)]
