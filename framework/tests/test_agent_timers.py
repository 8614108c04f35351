"""The kernel's timeouts are shortened for a scenario and restored, however the agent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from sysfs_tree import Sysfs

from plugpull.dut.agent.disks import describe
from plugpull.dut.agent.timers import SETTLING, Timers

USB = "pci0000:00/0000:00:05.0/usb2/2-1"
DEFAULTS = {
    "proc/sys/kernel/hung_task_timeout_secs": "120",
    "proc/sys/kernel/hung_task_warnings": "10",
    "proc/sys/kernel/watchdog_thresh": "10",
}


def machine(root: Path, **other: str) -> Sysfs:
    """A machine with one USB disk ``sda`` whose serial number is ``S-1``, and the kernel's default timeouts."""
    for path, value in {**DEFAULTS, **other}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(value + "\n")
    sysfs = Sysfs(root / "sys")
    sysfs.usb_disk("sda", USB, "usb-storage", "S-1")
    scsi = sysfs.root / "devices" / USB / "2-1:1.0/host0/target0:0:0/0:0:0:0"
    sysfs.write(scsi, timeout="30", eh_timeout="10")
    host = sysfs.write(scsi.parent.parent / "scsi_host/host0", eh_deadline="off")
    (sysfs.root / "class/scsi_host").mkdir(parents=True)
    (sysfs.root / "class/scsi_host/host0").symlink_to(host)
    return sysfs


def value(root: Path, path: str) -> str:
    return (root / path).read_text().strip()


def disk_values(root: Path) -> list[str]:
    return [value(root, f"sys/block/sda/device/{name}") for name in ("timeout", "eh_timeout")]


def test_timers_are_shortened_and_restored(tmp_path: Path) -> None:
    machine(tmp_path)
    timers = Timers(str(tmp_path))
    said = timers.shorten(["S-1"], guarded=True)
    assert said["failed"] == {}
    changed = {str(Path(path).relative_to(tmp_path)): (before, after) for path, before, after in said["changed"]}  # type: ignore[attr-defined]
    assert changed["proc/sys/kernel/hung_task_timeout_secs"] == ("120", "20")
    assert changed["proc/sys/kernel/hung_task_warnings"] == ("10", "-1")
    assert value(tmp_path, "proc/sys/kernel/watchdog_thresh") == "8"
    assert disk_values(tmp_path) == ["15", "5"]
    assert value(tmp_path, "sys/class/scsi_host/host0/eh_deadline") == "30"
    restored = timers.restore()
    assert restored["failed"] == {}
    assert {path: value(tmp_path, path) for path in DEFAULTS} == DEFAULTS
    assert disk_values(tmp_path) == ["30", "10"]
    assert value(tmp_path, "sys/class/scsi_host/host0/eh_deadline") == "off"


def test_only_disks_of_the_bench_are_changed(tmp_path: Path) -> None:
    machine(tmp_path)
    timers = Timers(str(tmp_path))
    timers.shorten(["another"], guarded=True)
    assert disk_values(tmp_path) == ["30", "10"]
    timers.restore()


def test_a_disk_that_comes_back_is_shortened_again(tmp_path: Path) -> None:
    sysfs = machine(tmp_path)
    timers = Timers(str(tmp_path))
    timers.shorten(["S-1"], guarded=True)
    device = tmp_path / "sys/block/sda/device"
    (device / "timeout").write_text("30\n")
    disk = describe("sda", str(sysfs.root))
    assert disk is not None
    said = timers.attached(disk)
    assert said["changed"] == [(os.path.realpath(device / "timeout"), "30", "15")]
    timers.restore()
    assert disk_values(tmp_path) == ["30", "10"]


@pytest.mark.parametrize("own", ["5", "8"])
def test_a_shorter_time_that_somebody_has_set_is_kept(tmp_path: Path, own: str) -> None:
    machine(tmp_path, **{"proc/sys/kernel/watchdog_thresh": own})
    timers = Timers(str(tmp_path))
    timers.shorten([], guarded=True)
    assert value(tmp_path, "proc/sys/kernel/watchdog_thresh") == own
    timers.restore()


def test_a_detector_that_was_off_is_on_for_the_scenario(tmp_path: Path) -> None:
    machine(tmp_path, **{"proc/sys/kernel/hung_task_timeout_secs": "0"})
    timers = Timers(str(tmp_path))
    timers.shorten([], guarded=True)
    assert value(tmp_path, "proc/sys/kernel/hung_task_timeout_secs") == "20"
    timers.restore()
    assert value(tmp_path, "proc/sys/kernel/hung_task_timeout_secs") == "0"


def test_new_devices_need_not_settle_for_a_while(tmp_path: Path) -> None:
    machine(tmp_path, **{SETTLING: "1"})
    timers = Timers(str(tmp_path))
    path = str(tmp_path / SETTLING)
    assert timers.let_settle("0") == {"changed": [(path, "1", "0")], "failed": {}}
    assert timers.let_settle("0") == {"changed": [], "failed": {}}
    assert timers.let_settle("1") == {"changed": [(path, "0", "1")], "failed": {}}
    assert value(tmp_path, SETTLING) == "1"


def test_a_kernel_without_usb_storage_has_nothing_to_settle(tmp_path: Path) -> None:
    machine(tmp_path)
    assert Timers(str(tmp_path)).let_settle("0") == {"changed": [], "failed": {}}


def test_a_value_that_was_not_restored_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path)
    monkeypatch.setattr("plugpull.dut.agent.timers._GUARD", "cat >/dev/null")
    timers = Timers(str(tmp_path))
    timers.shorten([], guarded=True)
    restored = timers.restore()
    assert restored["changed"] == []
    assert restored["failed"] == {str(tmp_path / path): f"it is {value(tmp_path, path)}" for path in DEFAULTS}


def test_timers_are_restored_after_the_agent_was_killed(tmp_path: Path) -> None:
    machine(tmp_path)
    script = textwrap.dedent(
        f"""
        import sys, time
        from plugpull.dut.agent.timers import SETTLING, Timers
        timers = Timers({str(tmp_path)!r})
        timers.shorten(["S-1"], guarded=True)
        print("shortened", flush=True)
        time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"shortened\n"
        assert disk_values(tmp_path) == ["15", "5"]
        agent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while everything(tmp_path) != (["30", "10"], DEFAULTS) and time.monotonic() < deadline:
        time.sleep(0.02)  # no process of ours restores them: there is nothing to wait on
    assert everything(tmp_path) == (["30", "10"], DEFAULTS)


def everything(root: Path) -> tuple[list[str], dict[str, str]]:
    return disk_values(root), {path: value(root, path) for path in DEFAULTS}
