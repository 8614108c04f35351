"""Filesystems on the DUT: whoever writes into one reaches the disk it lies on, whatever became of its directory's name.

The tests that mount need root and a namespace of their own; no block device of this machine is touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from namespaces import why_no_mounts

from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.volumes import Mounted, Volumes, mount_point, open_root
from plugpull.load.patterns import Pattern, load_arguments

FRAMEWORK = Path(__file__).parents[1]


needs_mounts = pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())


def in_namespace(script: str, *arguments: str) -> dict[str, object]:
    """What ``script`` prints as JSON, run where its mounts are seen by nobody else."""
    line = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", textwrap.dedent(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(FRAMEWORK)}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


LOST = """
    import ctypes, json, os, subprocess, sys
    from plugpull.dut.agent.disks import Refused
    from plugpull.dut.agent.volumes import Volumes, open_root
    libc = ctypes.CDLL(None, use_errno=True)
    target, fio = sys.argv[1], sys.argv[2:]
    os.mkdir(target)
    above = os.stat(target).st_dev
    assert libc.mount(b"medium", target.encode(), b"tmpfs", 0, None) == 0
    volumes = Volumes()
    volumes._mounted["disk1"] = open_root(target, os.stat(target).st_dev)
    root = volumes.open("disk1")
    # Somebody else unmounts it: the name is an empty directory of the system's own filesystem from here on.
    assert libc.umount2(target.encode(), 2) == 0
    try:
        volumes.open("disk1")
        refused = ""
    except Refused as refusal:
        refused = str(refusal)
    arguments = [part.replace("{file}", "/proc/self/fd/%d/load" % root) for part in fio]
    done = subprocess.run(arguments, pass_fds=(root,), capture_output=True, text=True, cwd="/")
    answer = {
        "left": os.listdir(target), "status": done.returncode, "said": done.stdout + done.stderr, "refused": refused,
        "written": os.listdir("/proc/self/fd/%d" % root),
        "elsewhere": os.fstat(root).st_dev != above,
    }
    print(json.dumps(answer))
"""


@needs_mounts
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_writes_to_the_disk_or_not_at_all_when_the_mount_has_vanished(tmp_path: Path) -> None:
    arguments = load_arguments(Pattern("w", "write"), 1 << 20, in_file=True)
    # The medium is in memory here, which not every kernel gives O_DIRECT.
    arguments = ["--direct=0" if part == "--direct=1" else part for part in arguments]
    arguments = ["--runtime=1" if part.startswith("--runtime") else part for part in arguments]
    answer = in_namespace(LOST, str(tmp_path / "mount"), "fio", *arguments)
    assert answer["left"] == [], "fio wrote to the filesystem below"
    assert (answer["status"], answer["written"], answer["elsewhere"]) == (0, ["load"], True), answer["said"]
    assert answer["refused"] == f"no filesystem of this run is mounted at {tmp_path / 'mount'} any more"


def test_a_directory_that_nothing_is_mounted_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no filesystem of this run is mounted at"):
        open_root(str(tmp_path), os.makedev(8, 16))
    with pytest.raises(Refused, match="no filesystem of this run is mounted at"):
        open_root(str(tmp_path), os.makedev(0, 4000))


def test_a_directory_that_was_replaced_by_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(Refused, match="cannot be reached"):
        open_root(str(tmp_path / "link"), os.stat("/").st_dev)
    with pytest.raises(Refused, match="cannot be reached: No such file"):
        open_root(str(tmp_path / "gone"), os.stat("/").st_dev)


def test_a_refusal_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(Refused):
            open_root(str(tmp_path), os.makedev(8, 16))
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_where_a_descriptor_s_filesystem_is_mounted(tmp_path: Path) -> None:
    fd = os.open("/proc", os.O_PATH)
    try:
        assert mount_point(fd) == "/proc"
    finally:
        os.close(fd)
    (tmp_path / "self" / "fdinfo").mkdir(parents=True)
    (tmp_path / "self" / "fdinfo" / "5").write_text("pos:\t0\nflags:\t0\nmnt_id:\t36\n")
    (tmp_path / "self" / "mountinfo").write_text(
        "35 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 35 0:40 / /tmp/with\\040space rw - btrfs /dev/sdb rw\n"
    )
    assert mount_point(5, str(tmp_path)) == "/tmp/with space"
    assert mount_point(6, str(tmp_path)) == ""


def test_what_was_not_mounted_can_neither_be_written_nor_unmounted() -> None:
    volumes = Volumes()
    with pytest.raises(Refused, match="disk1 is not mounted by this run"):
        volumes.open("disk1")
    assert volumes.umount("disk1")["detail"] == "not mounted"
    volumes.release_all()


UUID = "01020304-0506-0708-090a-0b0c0d0e0f10"


@pytest.mark.parametrize(("mounted", "asked"), [(UUID, ""), ("", UUID), (UUID, UUID[:-1] + "1")])
def test_a_filesystem_with_another_uuid_than_the_asked_one_is_refused(tmp_path: Path, mounted: str, asked: str) -> None:
    volumes = Volumes()
    volumes._mounted["disk1"] = Mounted(str(tmp_path), 0, 0, fstype="ext4", uuid=mounted)
    with pytest.raises(Refused, match=f"is mounted for disk1, not {asked or 'any'}"):
        volumes.open("disk1", asked)


def test_a_filesystem_whose_disk_is_gone_is_refused(tmp_path: Path) -> None:
    volumes = Volumes()
    volumes._mounted["disk1"] = Mounted(str(tmp_path), 0, 0, "ext4", UUID, os.makedev(8, 4000))
    with pytest.raises(Refused, match=f"the disk of the filesystem at {tmp_path} is gone: No such file"):
        volumes.open("disk1", UUID)


def test_a_device_that_took_the_disk_s_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volumes = Volumes()
    volumes._mounted["disk1"] = Mounted(str(tmp_path), 0, 0, "ext4", UUID, os.makedev(8, 4000))
    monkeypatch.setattr("plugpull.dut.agent.volumes.resolved", lambda path: "/sys/devices/null")
    with pytest.raises(Refused, match=f"/dev/null is not the disk that {tmp_path} was mounted from"):
        volumes.open("disk1", UUID)


BUSY = """
    import ctypes, json, os, sys
    from plugpull.dut.agent.volumes import Volumes, open_root
    libc = ctypes.CDLL(None, use_errno=True)
    target = sys.argv[1]
    os.mkdir(target)
    assert libc.mount(b"medium", target.encode(), b"tmpfs", 0, None) == 0
    volumes = Volumes()
    volumes._mounted["disk1"] = open_root(target, os.stat(target).st_dev)
    busy = open(target + "/held", "w")
    first = volumes.umount("disk1")
    os.close(volumes.open("disk1"))
    busy.close()
    second = volumes.umount("disk1")
    print(json.dumps({"first": first, "second": second, "left": os.path.exists(target)}))
"""


@needs_mounts
def test_an_unmount_that_fails_leaves_it_usable_and_the_next_one_succeeds(tmp_path: Path) -> None:
    answer = in_namespace(BUSY, str(tmp_path / "mount"))
    first, second = answer["first"], answer["second"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert not first["ok"]
    assert "busy" in first["detail"]
    assert "held by python (pid " in first["detail"]
    assert (second["ok"], answer["left"]) == (True, False)
