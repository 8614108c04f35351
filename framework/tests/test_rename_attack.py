"""The rename attack: two disks are unplugged under load and come back under each other's name, again and again. The
same with a member of an array, and with the array's own name.

Whatever the kernel calls them, not one byte may land on the wrong disk. The proof is from outside: every sector of both
media, read on this machine behind the guest's back, is a stamp of its own disk or was never written.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from guests import FOUND_WITHIN, Guest, guest
from rig_builder import a_rig
from writers import Writer, found_of

from plugpull.dut.conversation.link import GuardRefused
from plugpull.integrity.oracle.readback import ContentKind
from plugpull.integrity.oracle.stamp import SECTOR, device_number
from plugpull.integrity.patterns import Writing
from plugpull.integrity.writing.session import StampRunner, StreamJob
from plugpull.targets.array import Array, RaidLevel
from plugpull.targets.disk import RigDisk

pytestmark = pytest.mark.bench

TIMES = int(os.environ.get("PLUGPULL_RENAMES", "3"))
"""PLUGPULL_RENAMES=50 takes some minutes."""
SIZE = 4 << 20
RUN = 0x5EED
EXTENTS = ((0, SIZE // SECTOR),)
DISKS = ("one", "two")
RIG = (
    a_rig("renames")
    .switch(ports=2)
    .stock_controller()
    .disks(*DISKS, serial="RENAME-{n}", size=SIZE, scratch=True, cable="cables.{n}")
    .text
)


def write(dut: Guest, runner: StampRunner, session: int) -> list[StreamJob]:
    """Start writing to both disks and wait until both have written something."""
    jobs = []
    for disk in DISKS:
        target = RigDisk(disk, dut.context.topology)
        jobs.append(runner.write(target, EXTENTS, Writing(), run=RUN, session=session, seed=session, fill=0))
    assert dut.context.wait_for(lambda event: all(job.tally.writes > 20 for job in jobs), FOUND_WITHIN, since=0)
    return jobs


def names(dut: Guest) -> dict[str, str]:
    return {disk: str(dut.context.identity(disk)["kname"]) for disk in DISKS}


def test_not_one_byte_lands_on_the_wrong_disk(tmp_path: Path) -> None:
    swapped = refused = 0
    with guest(RIG) as dut:
        runner = StampRunner(dut.context)
        for session in range(1, TIMES + 1):
            jobs = write(dut, runner, session)
            before = {disk: dut.context.identity(disk) for disk in DISKS}
            dut.unplug("cables", "1", "2")
            first, second = ("2", "1") if before["one"]["kname"] < before["two"]["kname"] else ("1", "2")  # type: ignore[operator]
            dut.plug("cables", first)
            dut.plug("cables", second)
            for job in jobs:
                assert job.ended.wait(FOUND_WITHIN)
            now = names(dut)
            swapped += now["one"] == before["two"]["kname"] and now["two"] == before["one"]["kname"]
            for disk in DISKS:
                if now[disk] == before[disk]["kname"]:
                    continue
                # Somebody who remembers the name of before, with and without the number of that attachment.
                for remembered in (before[disk], {**before[disk], "diskseq": 0}):
                    with pytest.raises(GuardRefused, match=r"is not the disk it was|cannot open"):
                        dut.call("guard", disk=remembered)
                    refused += 1
        runner.stop(write(dut, runner, TIMES + 1))
        assert swapped == TIMES, "the names were not swapped: nothing was tried"
        assert refused == TIMES * 4
        for disk in DISKS:
            check(Writer(tmp_path), dut.medium(disk), device_number(dut.context.disk(disk).serial))


ARRAY_DISKS = ("one", "two", "three")
ARRAY_RIG = (
    a_rig("renames")
    .switch(ports=3)
    .stock_controller()
    .disks(*ARRAY_DISKS, serial="RENAME-ARRAY-{n}", size=SIZE, scratch=True, cable="cables.{n}")
    .text
)


def made(dut: Guest, name: str, *disks: str) -> tuple[Array, dict[str, Any]]:
    """A mirror of these disks, and the claim that stands for it."""
    array = Array(name, RaidLevel.MIRRORED, tuple(RigDisk(disk, dut.context.topology) for disk in disks), str(uuid4()))
    members = [array.member(dut.context.identity(disk)) for disk in disks]
    words = {"disks": members, "uuid": array.uuid, "level": "raid1", "options": ["--bitmap=internal", "--size=1024"]}
    answer = dut.call("array", do="make", name=name, timeout=50.0, **words)
    assert answer["ok"], answer
    array = replace(array, kname=answer["kname"], bytes=answer["size"])
    return array, array.claim({disk: dut.context.identity(disk) for disk in disks}).disk


def test_a_member_and_an_array_are_not_taken_for_others(tmp_path: Path) -> None:
    """A disk outside of the array gets the kernel name of a member that was unplugged, and a second array the name of
    the first. Whoever remembers a name is refused, and not a byte is written to the outsider."""
    with guest(ARRAY_RIG) as dut:
        untouched = dut.medium("three").read_bytes()
        array, claim = made(dut, "first", "one", "two")
        runner = StampRunner(dut.context)
        job = runner.write(array, ((0, 1024),), Writing(), run=RUN, session=1, seed=1, fill=0)
        assert dut.context.wait_for(lambda event: job.tally.writes > 20, FOUND_WITHIN, since=0)
        member = array.member(dut.context.identity("one"))
        dut.unplug("cables", "1", "3")
        there = {**claim, "members": [one for one in claim["members"] if one["kname"] != member["kname"]]}
        removed = dut.call("array", do="remove_gone", name="first", array=there, timeout=30.0)
        assert removed["ok"], removed
        dut.plug("cables", "3")
        dut.plug("cables", "1")
        assert dut.context.identity("three")["kname"] == member["kname"], "the name was not taken: nothing was tried"
        for remembered in (member, {**member, "diskseq": 0}):
            with pytest.raises(GuardRefused, match=r"is not the disk it was"):
                dut.call("array", do="add", name="first", array=there, disk=remembered, again=True, timeout=30.0)
        runner.stop([job])  # it holds the array exclusively
        outsider = dut.context.identity("three")
        with pytest.raises(GuardRefused, match=r"has \w+ for a member, which is not a disk of this claim"):
            dut.call("guard", disk={**claim, "members": [outsider]})
        assert dut.call("array", do="stop", name="first", array=there, timeout=30.0)["ok"]
        back = [array.member(dut.context.identity(disk)) for disk in ("one", "two")]
        assert dut.call("array", do="erase", disks=back, timeout=30.0)["ok"]
        another, _ = made(dut, "second", "one", "two")
        assert another.kname == array.kname, "the name was not taken: nothing was tried"
        with pytest.raises(GuardRefused, match=r"is not the array .* that this run made"):
            dut.call("guard", disk={**claim, "members": back})
        with pytest.raises(GuardRefused, match=r"is not the array .* that this run made"):
            dut.call("array", do="stop", name="second", array={**claim, "members": back}, timeout=30.0)
        assert dut.medium("three").read_bytes() == untouched


def check(writer: Writer, medium: Path, device: int) -> None:
    extents = f"0:{SIZE // SECTOR}"
    status, out, err = writer.run(
        medium, "read", "--run", f"{RUN:x}", "--device", f"{device:x}", "--extents", extents, "--block", "256"
    )
    assert (status, err) == (0, "")
    runs = found_of(out)
    assert sum(run.sectors for run in runs) == SIZE // SECTOR
    assert {run.kind for run in runs} <= {ContentKind.STAMPED, ContentKind.ZEROED}, [
        r for r in runs if r.kind is not ContentKind.STAMPED
    ]
    assert sum(run.sectors for run in runs if run.kind is ContentKind.STAMPED) > 1000
