"""The agent shortens one disk's timeout while it stands still, and says when the kernel had recovered it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from sysfs_tree import Sysfs
from test_agent_timers import machine, value

from plugpull.dut.agent.disks import Disk, Refused, describe
from plugpull.dut.agent.stalls import Stalls
from plugpull.dut.agent.timers import Timers

TIMEOUT, COUNT = "sys/block/sda/device/timeout", "sys/block/sda/device/iotmo_cnt"
HOST = "sys/class/scsi_host/host0/state"


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    made = machine(tmp_path)
    set_value(tmp_path, "sys/block/sda/device/state", "running")
    set_value(tmp_path, COUNT, "0x0")
    set_value(tmp_path, HOST, "running")
    set_stat(tmp_path, 10, 0)
    return made


def set_value(root: Path, path: str, text: str) -> None:
    fresh = root / "fresh"
    fresh.write_text(text + "\n")
    fresh.replace((root / path).resolve())  # nobody reads half of it


def set_stat(root: Path, completed: int, under_way: int) -> None:
    set_value(root, "sys/block/sda/stat", f"0 0 0 0 {completed} 0 0 0 {under_way} 0 0")


def begun(root: Path) -> tuple[Stalls, Timers]:
    timers = Timers(str(root))
    timers.shorten(["S-1"], guarded=False)
    stalls = Stalls(timers, str(root / "sys"))
    said = stalls.begin(wanted(root), 2)
    assert (said["given_up"], said["failed"], value(root, TIMEOUT)) == (0, {}, "2")
    return stalls, timers


def wanted(root: Path) -> Disk:
    found = describe("sda", str(root / "sys"))
    assert found is not None
    return found


def test_the_timeout_is_given_back_when_the_disk_works(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls, _ = begun(tmp_path)
    with pytest.raises(Refused, match="another disk is being stalled"):
        stalls.begin(wanted(tmp_path), 2)
    set_value(tmp_path, COUNT, "0x2")
    set_value(tmp_path, HOST, "recovery")
    set_stat(tmp_path, 10, 1)
    stalls.over(60.0)
    ended: list[dict[str, object]] = []
    ending = threading.Thread(target=lambda: ended.append(stalls.end()), daemon=True)
    ending.start()
    set_stat(tmp_path, 11, 1)
    time.sleep(0.1)
    assert not ended, "its host is being recovered"
    set_value(tmp_path, HOST, "running")
    ending.join(30.0)
    (said,) = ended
    assert (said["given_up"], said["disk"], said["host"], said["worked"]) == (2, "running", "running", True)
    assert value(tmp_path, TIMEOUT) == "15"


def test_a_disk_that_is_never_recovered_is_said_to_be_offline(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls, _ = begun(tmp_path)
    set_value(tmp_path, "sys/block/sda/device/state", "offline")
    stalls.over(0.05)
    said = stalls.end()
    assert (said["disk"], said["host"], value(tmp_path, TIMEOUT)) == ("offline", "running", "15")


def test_a_disk_that_completes_nothing_does_not_work(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls, _ = begun(tmp_path)
    set_stat(tmp_path, 10, 3)
    stalls.over(0.05)
    assert stalls.end()["worked"] is False


def test_another_attachment_keeps_its_own_timeout(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls, _ = begun(tmp_path)
    set_value(tmp_path, "sys/block/sda/diskseq", "7")
    set_value(tmp_path, TIMEOUT, "30")
    stalls.over(60.0)
    said = stalls.end()
    assert (said["disk"], said["given_up"], value(tmp_path, TIMEOUT)) == ("", None, "30")


def test_the_timeout_is_given_back_when_the_controller_is_gone(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls, timers = begun(tmp_path)
    stalls.restore()
    stalls.restore()
    assert value(tmp_path, TIMEOUT) == "15"
    timers.restore()


def test_another_disk_is_refused(tmp_path: Path, sysfs: Sysfs) -> None:
    stalls = Stalls(Timers(str(tmp_path)), str(tmp_path / "sys"))
    with pytest.raises(Refused, match="not the disk it was"):
        stalls.begin({**wanted(tmp_path), "serial": "S-2"}, 2)
    with pytest.raises(Refused, match="gone"):
        stalls.begin({**wanted(tmp_path), "kname": "sdb"}, 2)
    assert value(tmp_path, TIMEOUT) == "30"


def test_commands_sent_with_the_old_timeout_are_waited_for(tmp_path: Path, sysfs: Sysfs) -> None:
    set_stat(tmp_path, 10, 2)
    threading.Timer(0.15, lambda: set_stat(tmp_path, 12, 2)).start()
    at = time.monotonic()
    begun(tmp_path)
    assert time.monotonic() - at >= 0.14
