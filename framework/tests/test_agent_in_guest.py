"""The scratch guard on a real kernel: which opened descriptor it accepts, and that what it refuses is not written."""

from __future__ import annotations

import hashlib
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from guests import Guest, guest
from media import MD_MAGIC, MEMBERS, partitioned, put
from rig_builder import a_rig

from plugpull.dut.conversation.link import GuardRefused
from plugpull.errors import UsageError
from plugpull.history import events as ev
from plugpull.load.patterns import Pattern, load_arguments

pytestmark = pytest.mark.bench

SIZE = 16 << 20
RIG = (
    a_rig("guarded")
    .switch(ports=3)
    .stock_controller()
    .disks("disk1", "disk2", serial="GUARD-{n}", size="16 MiB", rate="8 MiB/s", cable="cables.{n}", scratch=True)
    .disk("disk3", serial="GUARD-3", size="16 MiB", rate="8 MiB/s", cable="cables.3", scratch=False)
    .text
)

Identity = dict[str, object]
PART = 1 << 20
SIGNATURES = [
    # Magic numbers alone, where the kernel or its tools look for them: drivers/md/md.c (super_1_load,
    # calc_dev_sboffset), lib/label/label.c of LVM2, include/linux/swap.h. The disk is a whole number of 64 KiB.
    pytest.param([(512, b"LABELONE")], "an LVM physical volume", id="LVM label"),
    pytest.param([(4086, b"SWAPSPACE2")], "swap space", id="swap"),
    pytest.param([(0, MD_MAGIC)], "a member of an md array", id="md 1.1"),
    pytest.param([(4096, MD_MAGIC)], "a member of an md array", id="md 1.2"),
    pytest.param([(SIZE - 8192, MD_MAGIC)], "a member of an md array", id="md 1.0"),
    pytest.param([(SIZE - 65536, MD_MAGIC)], "a member of an md array", id="md 0.90"),
    *(
        pytest.param(made(SIZE), re.escape(words), id=f"whole {name}")
        for name, (words, _, made) in MEMBERS.items()
        if name in ("LUKS2", "bcache", "Intel RAID", "ZFS", "btrfs of two")
    ),
    *(
        pytest.param(
            [(0, partitioned(PART, SIZE // 2)), *((PART + at, what) for at, what in MEMBERS[name][2](SIZE // 2))],
            f"a disk with a partition that is {re.escape(MEMBERS[name][0])}",
            id=f"{name} in a partition",
        )
        for name in ("LVM", "md 1.2", "swap", "LUKS1")
    ),
]


@pytest.fixture(scope="module")
def dut() -> Iterator[Guest]:
    with guest(RIG) as started:
        yield started


def changed(identity: Identity, **differences: object) -> Identity:
    return {**identity, **differences}


def digest(medium: Path) -> str:
    return hashlib.sha256(medium.read_bytes()).hexdigest()


@contextmanager
def patched(medium: Path, parts: list[tuple[int, bytes]]) -> Iterator[None]:
    """These bytes at these offsets of the medium for a while, put there behind the guest's back."""
    before = medium.read_bytes()
    try:
        put(medium, *parts, size=len(before))
        yield
    finally:
        with medium.open("r+b") as file:
            file.write(before)


def write_once(dut: Guest, identity: Identity, job: str) -> Any:
    arguments = ["--name=attack", "--filename={file}", "--rw=write", "--bs=64k", "--size=1m", "--buffer_pattern=0xff"]
    return dut.call("fio", job=job, argv=arguments, disk=identity)


def make_ext4(dut: Guest, identity: Identity) -> str:
    """Make a filesystem; its UUID."""
    made = dut.call("mkfs", 150.0, disk=identity, fstype="ext4", timeout=120.0)
    assert made["ok"], made
    return str(made["uuid"])


def test_the_disk_that_is_meant_is_accepted(dut: Guest) -> None:
    dut.call("guard", disk=dut.context.identity("disk1"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("serial", "GUARD-2"),
        ("serial", "GUARD-1 "),
        ("size", SIZE - 512),
        ("size", SIZE + 512),
        ("place", "0000:00:1f.0/9:0"),
        ("diskseq", 999_999),
    ],
)
def test_a_disk_that_differs_in_one_thing_is_refused_and_not_written(dut: Guest, key: str, value: object) -> None:
    wrong = changed(dut.context.identity("disk1"), **{key: value})
    before = digest(dut.medium("disk1"))
    with pytest.raises(GuardRefused, match=key) as refusal:
        dut.call("guard", disk=wrong)
    assert repr(value) in refusal.value.what
    with pytest.raises(GuardRefused, match=key):
        write_once(dut, wrong, f"attack-{key}")
    with pytest.raises(GuardRefused, match=key):
        dut.call("mkfs", disk=wrong, fstype="ext4", timeout=30.0)
    assert digest(dut.medium("disk1")) == before


@pytest.mark.parametrize("key", ["serial", "place", "size"])
def test_an_identity_that_leaves_something_open_is_refused(dut: Guest, key: str) -> None:
    open_ended = {name: value for name, value in dut.context.identity("disk1").items() if name != key}
    with pytest.raises(GuardRefused, match=key):
        dut.call("guard", disk=open_ended)


@pytest.mark.parametrize("kname", ["null", "kmsg", "sdzz", "../dev/sda", "", "sda\n", "."])
def test_a_kernel_name_that_is_no_disk_is_refused(dut: Guest, kname: str) -> None:
    with pytest.raises(GuardRefused):
        dut.call("guard", disk=changed(dut.context.identity("disk1"), kname=kname))


def test_a_character_device_is_not_taken_for_a_disk(dut: Guest) -> None:
    with pytest.raises(GuardRefused, match="null is not a disk"):
        dut.call("guard", disk=changed(dut.context.identity("disk1"), kname="null"))


def test_a_disk_under_load_is_refused(dut: Guest) -> None:
    identity = dut.context.identity("disk1")
    dut.call("fio", job="holder", argv=load_arguments(Pattern("w", "write"), 4 << 20), disk=identity)
    try:
        with pytest.raises(GuardRefused, match="in use"):
            dut.call("guard", disk=identity)
    finally:
        answer = dut.call("jobs.stop", jobs=["holder"], grace=20.0)
    assert answer == {"holder": {"stuck": False}}
    dut.call("guard", disk=identity)


def test_a_mounted_disk_is_refused_until_it_is_unmounted(dut: Guest) -> None:
    identity = dut.context.identity("disk2")
    uuid = make_ext4(dut, identity)
    mounted = dut.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=uuid)
    assert mounted["ok"], mounted
    try:
        with pytest.raises(GuardRefused, match="in use: a filesystem is mounted from it"):
            dut.call("guard", disk=identity)
        with pytest.raises(GuardRefused, match="in use"):
            dut.call("mkfs", disk=identity, fstype="ext4", timeout=30.0)
    finally:
        unmounted = dut.call("umount", name="disk2")
    assert unmounted["ok"], unmounted
    dut.call("guard", disk=identity)


OTHER = "01020304-0506-0708-090a-0b0c0d0e0f10"


def test_a_filesystem_is_mounted_and_written_only_by_the_uuid_that_this_run_gave_it(dut: Guest) -> None:
    identity = dut.context.identity("disk2")
    uuid = make_ext4(dut, identity)
    before = digest(dut.medium("disk2"))
    for wrong, why in ((OTHER, f"holds the ext4 filesystem {uuid}, not the ext4 filesystem {OTHER}"), ("", "not said")):
        with pytest.raises(GuardRefused, match=why):
            dut.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=wrong)
    assert digest(dut.medium("disk2")) == before, "a filesystem that is not this run's was mounted"
    mounted = dut.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=uuid)
    assert mounted["ok"], mounted
    arguments = load_arguments(Pattern("w", "write"), 1 << 20, in_file=True)
    try:
        for wrong in (OTHER, ""):
            with pytest.raises(GuardRefused, match="is mounted for disk2, not"):
                dut.call("fio", job="attack", argv=arguments, disk=identity, directory="disk2", uuid=wrong)
        dut.call("fio", job="own", argv=arguments, disk=identity, directory="disk2", uuid=uuid)
        dut.call("jobs.stop", jobs=["own"], grace=20.0)
    finally:
        unmounted = dut.call("umount", name="disk2")
    assert unmounted["ok"], unmounted
    # Somebody makes another filesystem where this run's was.
    another = make_ext4(dut, identity)
    with pytest.raises(GuardRefused, match=f"holds the ext4 filesystem {another}, not the ext4 filesystem {uuid}"):
        dut.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=uuid)


def test_an_unmount_that_fails_names_who_holds_the_filesystem(dut: Guest) -> None:
    identity = dut.context.identity("disk2")
    uuid = make_ext4(dut, identity)
    mounted = dut.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=uuid)
    assert mounted["ok"], mounted
    arguments = load_arguments(Pattern("w", "write"), 2 << 20, in_file=True)
    pid = dut.call("fio", job="busy", argv=arguments, disk=identity, directory="disk2", uuid=uuid)["pid"]
    # Until its job file is made fio holds nothing; that its bytes move shows that it is.
    kname = str(identity["kname"])
    moved = dut.context.wait_for(
        lambda e: isinstance(e, ev.Sampled) and kname in e.disks and e.disks[kname].writes_in_flight > 0, 60.0
    )
    refused = dut.call("umount", name="disk2")
    dut.call("jobs.stop", jobs=["busy"], grace=20.0)
    unmounted = dut.call("umount", name="disk2")
    assert moved is not None
    assert not refused["ok"]
    assert "busy" in refused["detail"].lower()
    assert "fio" in refused["detail"]
    assert f"(pid {pid})" in refused["detail"]
    assert unmounted["ok"], unmounted


@pytest.mark.parametrize(("parts", "what"), SIGNATURES)
def test_a_member_that_the_run_did_not_make_is_refused_by_name(
    dut: Guest, parts: list[tuple[int, bytes]], what: str
) -> None:
    identity = dut.context.identity("disk1")
    with patched(dut.medium("disk1"), parts):
        before = digest(dut.medium("disk1"))
        with pytest.raises(GuardRefused, match=what) as refusal:
            dut.call("guard", disk=identity)
        with pytest.raises(GuardRefused, match=what):
            write_once(dut, identity, "attack-member")
        assert digest(dut.medium("disk1")) == before
        dut.call("guard", disk=changed(identity, erase_members=True))
    assert str(identity["kname"]) in refusal.value.what
    assert "erase_members = true" in refusal.value.hint
    dut.call("guard", disk=identity)


def test_a_name_handed_to_another_disk_does_not_get_it_erased(dut: Guest) -> None:
    remembered = {name: dut.context.identity(name) for name in ("disk1", "disk2")}
    before = {name: digest(dut.medium(name)) for name in remembered}
    first, second = sorted(remembered, key=lambda name: str(remembered[name]["kname"]))
    ports = {"disk1": "1", "disk2": "2"}
    dut.unplug("cables", *ports.values())
    dut.plug("cables", ports[second])
    dut.plug("cables", ports[first])
    assert dut.context.identity(second)["kname"] == remembered[first]["kname"], "the kernel did not swap the names"
    assert dut.context.identity(first)["kname"] == remembered[second]["kname"]
    for name, identity in remembered.items():
        with pytest.raises(GuardRefused, match="is not the disk it was: serial"):
            write_once(dut, identity, f"rename-{name}")
        with pytest.raises(GuardRefused, match="is not the disk it was: serial"):
            dut.call("mkfs", disk=identity, fstype="ext4", timeout=30.0)
        dut.call("guard", disk=dut.context.identity(name))
    assert {name: digest(dut.medium(name)) for name in remembered} == before


def test_the_same_disk_plugged_in_again_is_another_attachment(dut: Guest) -> None:
    remembered = dut.context.identity("disk1")
    dut.unplug("cables", "1")
    with pytest.raises(GuardRefused, match="cannot open"):
        dut.call("guard", disk=remembered)
    dut.plug("cables", "1")
    if dut.context.identity("disk1")["kname"] == remembered["kname"]:
        with pytest.raises(GuardRefused, match="diskseq"):
            dut.call("guard", disk=remembered)
    dut.call("guard", disk=dut.context.identity("disk1"))


def test_a_disk_not_declared_scratch_has_no_identity_to_write_with(dut: Guest) -> None:
    assert dut.bench.disk_table.attached("disk3") is not None
    with pytest.raises(UsageError, match="disk3 is not declared scratch") as error:
        dut.context.identity("disk3")
    assert "scratch = true" in error.value.hint
    assert "GUARD-3" in error.value.hint


LINES = 2000
FLOOD_DEADLINE = 240.0


def test_no_line_of_a_flooded_kernel_log_is_lost_in_silence(dut: Guest) -> None:
    mark = dut.recorder.mark()

    def logged() -> list[ev.KernelMessage]:
        return [event for event in dut.recorder.since(mark) if isinstance(event, ev.KernelMessage)]

    deadline = time.monotonic() + FLOOD_DEADLINE
    while len(logged()) < LINES and time.monotonic() < deadline:
        dut.call("sysrq", FLOOD_DEADLINE, key="t")  # the state of every task, as fast as the kernel can write it
    before_last = dut.recorder.mark()
    dut.call("sysrq", key="h")
    last = dut.context.wait_for(
        lambda e: isinstance(e, ev.KernelMessage) and "sysrq: HELP" in e.text, FLOOD_DEADLINE, since=before_last
    )
    assert isinstance(last, ev.KernelMessage)
    numbers = [event.seq for event in logged()]
    assert len(numbers) >= LINES
    assert numbers == sorted(set(numbers)), "a line came twice or out of order"
    missing = numbers[-1] - numbers[0] + 1 - len(numbers)
    missed = sum(event.count for event in dut.recorder.since(mark) if isinstance(event, ev.LogLost))
    assert missing == missed
    dropped = [e.summary for e in dut.recorder.since(mark) if isinstance(e, ev.RigFault)]
    assert dropped == []


def needs_recovery(medium: Path) -> bool:
    """EXT4_FEATURE_INCOMPAT_RECOVER (fs/ext4/ext4.h): set for as long as the filesystem is mounted."""
    with medium.open("rb") as file:
        file.seek(1024 + 0x60)
        return bool(struct.unpack("<I", file.read(4))[0] & 0x4)


def test_an_agent_whose_controller_is_gone_ends_fio_and_unmounts() -> None:
    with guest(RIG) as alone:
        identity, medium = alone.context.identity("disk2"), alone.medium("disk2")
        uuid = make_ext4(alone, identity)
        mounted = alone.call("mount", name="disk2", disk=identity, fstype="ext4", uuid=uuid)
        assert mounted["ok"], mounted
        arguments = load_arguments(Pattern("w", "write"), 2 << 20, in_file=True)
        alone.call("fio", job="left", argv=arguments, disk=identity, directory="disk2", uuid=uuid)
        kname = str(identity["kname"])
        moved = alone.context.wait_for(
            lambda e: isinstance(e, ev.Sampled) and kname in e.disks and e.disks[kname].writes_in_flight > 0, 60.0
        )
        assert moved is not None
        assert needs_recovery(medium)
        alone.bench.link.close()
        # A filesystem is let go of only after the last process that has a file open in it has ended.
        deadline = time.monotonic() + 60
        while needs_recovery(medium) and time.monotonic() < deadline:
            time.sleep(0.05)  # seen from outside, where no event is left
        assert not needs_recovery(medium)
        unchanged = digest(medium)
        time.sleep(0.5)  # that nothing is written any more can only be seen by looking twice
        assert digest(medium) == unchanged
