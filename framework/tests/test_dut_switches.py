"""Switches of a real bench: kept open, opened anew after a failure, put right by the next start after a SIGKILL, and
refused where they would cut the DUT's own system or themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sysfs_tree import Sysfs

from plugpull.coordination.journal import Journal, sweep
from plugpull.dut.agent.system import system_disks, used_disks
from plugpull.dut.reach import reach_of
from plugpull.dut.real import RealSetting
from plugpull.dut.safety import refuse_own_control, refuse_system_disks, usb_place_of
from plugpull.errors import RigError, UsageError
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.run import _restore
from plugpull.switches.host_local import LocalHost
from plugpull.switches.person import TerminalPerson

PATIENCE = 60.0

RIG = """
[rig]
name = "shelf"

[dut]
kind = "{kind}"
{dut}

[[switch]]
name = "relay"
driver = "command"
ports = 4
mechanism = "mains"
via = "{via}"
on = "echo on > state-{{port}}"
off = "echo off > state-{{port}}"
read = "cat state-{{port}}"

[[controller]]
name = "usb"
path = "0000:00:14.0"

[[hub]]
name = "hub1"
at = "usb.2"
power = "relay.3"

[[disk]]
name = "disk1"
at = "usb.1"
serial = "S-1"
size = "1 GiB"
scratch = true
power = "relay.1"

[[disk]]
name = "disk2"
at = "hub1.4"
serial = "S-2"
size = "1 GiB"
scratch = true
power = "relay.2"
"""


def rig_file(folder: Path, kind: str = "local", via: str = "controller", dut: str = "") -> Path:
    file = folder / "rig.toml"
    text = RIG.format(kind=kind, via=via, dut=dut).replace("state-", f"{folder}/state-")
    file.write_text(text)
    return file


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path / "sys")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return load_rig(rig_file(tmp_path))


@contextmanager
def opened(folder: Path) -> Iterator[RealSetting]:
    rig = load_rig(rig_file(folder))
    journal = Journal(folder / "journal", folder)
    setting = RealSetting(rig, folder, journal, reach_of(rig.dut), TerminalPerson())
    try:
        yield setting
    finally:
        setting.close()
        journal.close()


def state(folder: Path, port: int) -> str:
    return (folder / f"state-{port}").read_text().strip()


# --- kept, and opened anew --------------------------------------------------------------------------------------------


def test_a_switch_is_opened_once(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        first = setting.switch("relay")
        first.set("1", False)
        assert setting.switch("relay") is first


def test_a_switch_that_failed_is_opened_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        first = setting.switch("relay")
        with pytest.raises(RigError):
            first.read("1")  # there is no file yet
        second = setting.switch("relay")
        assert second is not first
        second.set("1", True)
        assert second.read("1") is True
        assert setting.switch("relay") is second


# --- after a SIGKILL --------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from test_dut_switches import opened

with opened(Path(sys.argv[1])) as setting:
    relay = setting.switch("relay")
    relay.set_many(["1", "2", "3"], False)
    relay.set("3", True)
    relay.set("4", False)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_run(folder: Path) -> None:
    line = [sys.executable, "-c", KILLED, str(folder)]
    done = subprocess.run(line, cwd=Path(__file__).parent, timeout=PATIENCE, check=False)
    assert done.returncode == -9


def test_what_a_killed_run_left_off_is_turned_on_by_the_next_start(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    assert [state(tmp_path, port) for port in (1, 2, 3, 4)] == ["off", "off", "on", "off"]
    (tmp_path / "state-3").write_text("untouched")
    told: list[str] = []
    assert sweep(tmp_path / "journal", told.append, _restore) == 1
    assert [state(tmp_path, port) for port in (1, 2, 3, 4)] == ["on", "on", "untouched", "on"]
    assert [line for line in told if "power restored: relay.1 was left off" in line]
    assert list((tmp_path / "journal").iterdir()) == []


def test_what_cannot_be_turned_on_is_tried_again_by_each_start(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    (tmp_path / "state-2").unlink()
    (tmp_path / "state-2").mkdir()  # a switch that fails
    told: list[str] = []
    sweep(tmp_path / "journal", told.append, _restore)
    assert state(tmp_path, 1) == "on"
    assert state(tmp_path, 4) == "on", "one that fails kept the rest from being restored"
    assert [line for line in told if "could not be restored: relay.2" in line]
    assert [line for line in told if "tries again" in line]
    (tmp_path / "state-2").rmdir()
    told.clear()
    sweep(tmp_path / "journal", told.append, _restore)
    assert state(tmp_path, 2) == "on"
    assert list((tmp_path / "journal").iterdir()) == []


def test_a_sweep_that_can_restore_nothing_keeps_the_journal(tmp_path: Path) -> None:
    kill_a_run(tmp_path)
    sweep(tmp_path / "journal", lambda text: None)
    assert state(tmp_path, 1) == "off"
    assert list((tmp_path / "journal").iterdir())


def test_an_orderly_end_with_an_outlet_off_is_put_right_by_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        setting.switch("relay").set("1", False)
    sweep(tmp_path / "journal", lambda text: None, _restore)
    assert state(tmp_path, 1) == "on"


def test_an_orderly_end_with_everything_on_leaves_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        setting.switch("relay").set("1", False)
        setting.switch("relay").set("1", True)
        assert setting.switch("relay").read("1") is True
    assert list((tmp_path / "journal").iterdir()) == []


def test_an_outlet_that_acknowledges_and_reads_back_off_is_not_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as setting:
        relay = setting.switch("relay")
        relay.set("1", False)
        relay.set("1", True)
        (tmp_path / "state-1").write_text("off")
        assert relay.read("1") is False
    (journal,) = (tmp_path / "journal").iterdir()
    assert journal.suffix == ".jsonl"


@pytest.mark.parametrize("broken", [{}, {"name": "relay"}, {"name": "relay", "driver": "gone", "ports": 1}])
def test_a_journal_whose_switch_makes_no_sense_stops_nothing(tmp_path: Path, broken: dict[str, Any]) -> None:
    journal = Journal(tmp_path / "journal", tmp_path)
    journal.outlet(broken, {"kind": "local"}, tmp_path, "1", False)
    journal.close()
    told: list[str] = []
    assert sweep(tmp_path / "journal", told.append, _restore) == 1
    assert [line for line in told if "could not be restored" in line]


# --- what may never be cut --------------------------------------------------------------------------------------------


def found(kname: str, place: str, serial: str = "OS") -> dict[str, Any]:
    return {"kname": kname, "place": place, "serial": serial}


def test_a_disk_of_the_system_s_own_is_no_disk_of_the_rig(rig: Rig) -> None:
    with pytest.raises(UsageError, match=r"disk1 \(serial S-1\) is a disk that the DUT's own system runs from"):
        refuse_system_disks(rig, [found("sda", "pci0000:00/0000:00:17.0/ata1", "S-1")], {"sda"})


@pytest.mark.parametrize("place", ["0000:00:14.0/2.4:0", "0000:00:14.0/2.1:0", "0000:00:14.0/2.1.3:0"])
def test_a_cut_that_would_take_the_system_away_is_refused(rig: Rig, place: str) -> None:
    with pytest.raises(UsageError, match=r"cutting hub1\.power would take sdx away") as caught:
        refuse_system_disks(rig, [found("sdx", place)], {"sdx"})
    assert caught.value.mend


@pytest.mark.parametrize(
    "place", ["0000:00:14.0/3:0", "0000:00:14.0/21:0", "0000:00:15.0/2.4:0", "pci0000:00/0000:00:17.0/ata1"]
)
def test_a_system_that_no_cut_reaches_is_fine(rig: Rig, place: str) -> None:
    refuse_system_disks(rig, [found("sdx", place), found("sda", "0000:00:14.0/1:0", "S-1")], {"sdx"})


class SysfsHost(LocalHost):
    """A machine with another sysfs and /dev than this one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(path.removeprefix(str(self._root)) for path in super().glob(f"{self._root}{pattern}"))

    def real_path(self, path: str) -> str:
        return os.path.realpath(f"{self._root}{path}").removeprefix(str(self._root))


@pytest.fixture
def machine(tmp_path: Path) -> SysfsHost:
    """A USB serial adapter at port 2.1 of the controller, and a HID device at 3."""
    root = tmp_path / "machine"
    usb = "devices/pci0000:00/0000:00:14.0/usb1"
    nodes = {
        "class/tty/ttyUSB0": f"{usb}/1-2/1-2.1/1-2.1:1.0/ttyUSB0/tty/ttyUSB0",
        "class/hidraw/hidraw0": f"{usb}/1-3/1-3:1.0/0003:16C0:05DF.0001/hidraw/hidraw0",
    }
    for link, target in nodes.items():
        node = root / "sys" / target
        node.mkdir(parents=True)
        (node / "device").symlink_to(node.parent.parent)
        (root / "sys" / link).parent.mkdir(parents=True)
        (root / "sys" / link).symlink_to(node)
    (root / "dev" / "serial" / "by-id").mkdir(parents=True)
    (root / "dev" / "ttyUSB0").touch()
    (root / "dev" / "serial" / "by-id" / "usb-relay").symlink_to(root / "dev" / "ttyUSB0")
    for folder, link, target in (
        ("bus/usb/devices", "1-2.1", f"{usb}/1-2/1-2.1"),
        ("dev/char", "189:4", f"{usb}/1-2/1-2.1"),
    ):
        (root / "sys" / folder).mkdir(parents=True)
        (root / "sys" / folder / link).symlink_to(root / "sys" / target)
    return SysfsHost(root)


BELOW = ["/dev/ttyUSB0", "/dev/serial/by-id/usb-relay", "1-2.1:1.0", "hub 1-2.1", "/dev/bus/usb/001/005:0"]


@pytest.mark.parametrize("place", BELOW)
def test_a_switch_that_would_cut_its_own_control_cable_is_refused(rig: Rig, machine: SysfsHost, place: str) -> None:
    assert usb_place_of(machine, place) == "0000:00:14.0/2.1:0"
    with pytest.raises(UsageError, match=r"would cut its own control path: .* below hub1\.power") as caught:
        refuse_own_control(rig, "relay", machine, place)
    assert caught.value.mend


@pytest.mark.parametrize("place", ["/dev/hidraw0", "/dev/ttyS0", "", "serial 01:02", "http://pdu/1", "9-9"])
def test_a_switch_that_is_controlled_from_elsewhere_is_fine(rig: Rig, machine: SysfsHost, place: str) -> None:
    refuse_own_control(rig, "relay", machine, place)


def test_a_switch_may_hang_off_what_another_one_cuts(rig: Rig, machine: SysfsHost) -> None:
    refuse_own_control(rig, "other", machine, "/dev/ttyUSB0")


# --- what the system lives on -----------------------------------------------------------------------------------------


def block(sysfs: Sysfs, kname: str, number: str, partition_of: Path | None = None, *slaves: Path) -> Path:
    node = (partition_of or sysfs.root / "devices/virtual/block") / kname
    sysfs.write(node, dev=number, **({"partition": "1"} if partition_of else {}))
    (sysfs.root / "dev/block").mkdir(parents=True, exist_ok=True)
    (sysfs.root / "dev/block" / number).symlink_to(node)
    for slave in slaves:
        (node / "slaves").mkdir(exist_ok=True)
        (node / "slaves" / slave.name).symlink_to(slave)
    return node


def proc(folder: Path, *mounts: tuple[str, str], swaps: str = "") -> str:
    """/proc with these mounts: (device number, mount point)."""
    lines = [f"{n} 1 {number} / {point} rw - ext4 /dev/x rw\n" for n, (number, point) in enumerate(mounts)]
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/mountinfo").write_text("".join(lines))
    (folder / "proc/swaps").write_text(f"Filename Type Size Used Priority\n{swaps}")
    return str(folder / "proc")


def test_a_root_on_raid_on_encrypted_partitions_lives_on_all_its_disks(sysfs: Sysfs, tmp_path: Path) -> None:
    parts = []
    for number, kname in enumerate(("sda", "sdb", "sdc")):
        disk = sysfs.disk(kname, f"pci0000:00/0000:00:17.0/ata{number}")
        parts.append(block(sysfs, f"{kname}1", f"8:{number * 16 + 1}", disk))
    crypt = block(sysfs, "dm-0", "253:0", None, parts[0])
    raid = block(sysfs, "md0", "9:0", None, crypt, parts[1])
    lvm = block(sysfs, "dm-1", "253:1", None, raid)
    assert lvm.exists()
    there = proc(tmp_path, ("253:1", "/"), ("8:33", "/mnt/test"), ("0:21", "/proc"))
    assert system_disks(str(sysfs.root), there) == ["sda", "sdb"]


@pytest.mark.parametrize("point", ["/", "/boot", "/usr", "/var"])
def test_each_of_the_system_s_directories_counts(sysfs: Sysfs, tmp_path: Path, point: str) -> None:
    block(sysfs, "sda1", "8:17", sysfs.disk("sda", "pci0000:00/0000:00:17.0/ata1"))
    assert system_disks(str(sysfs.root), proc(tmp_path, ("8:17", point))) == ["sda"]


def put_mounts(folder: Path, *lines: str, pid: str = "self", space: str = "") -> str:
    """/proc with these lines of mountinfo for a process, in a mount namespace of this name."""
    there = folder / "proc" / pid
    (there / "ns").mkdir(parents=True, exist_ok=True)
    if space:
        (there / "ns" / "mnt").symlink_to(f"mnt:[{space}]")
    (there / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    (folder / "proc/swaps").write_text("Filename Type Size Used Priority\n")
    return str(folder / "proc")


def number_of(path: Path) -> str:
    on = os.stat(path).st_dev
    return f"{os.major(on)}:{os.minor(on)}"


def test_a_root_on_a_loop_device_lives_on_the_disk_with_the_image(sysfs: Sysfs, tmp_path: Path) -> None:
    image = tmp_path / "root.squashfs"
    image.touch()
    block(sysfs, "sda1", number_of(image), sysfs.disk("sda", "pci0000:00/0000:00:17.0/ata1"))
    loop = block(sysfs, "loop0", "7:0")
    (sysfs.root / "block/loop0").symlink_to(loop)
    sysfs.write(loop / "loop", backing_file=str(image))
    there = put_mounts(tmp_path, "1 1 7:0 / / ro - squashfs /dev/loop0 ro")
    assert system_disks(str(sysfs.root), there) == ["sda"]


def test_a_root_that_is_an_overlay_lives_on_the_disks_of_its_layers(sysfs: Sysfs, tmp_path: Path) -> None:
    (tmp_path / "lower").mkdir()
    number = number_of(tmp_path / "lower")
    block(sysfs, "sda1", number, sysfs.disk("sda", "pci0000:00/0000:00:17.0/ata1"))
    options = f"rw,lowerdir={tmp_path}/none:{tmp_path}/lower,upperdir={tmp_path}/up,workdir={tmp_path}/work"
    there = put_mounts(tmp_path, f"1 1 0:30 / / rw - overlay overlay {options}")
    assert system_disks(str(sysfs.root), there) == ["sda"]


def test_a_root_on_btrfs_lives_on_all_its_disks(sysfs: Sysfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, kname in enumerate(("sda", "sdb", "sdc")):
        part = block(sysfs, f"{kname}1", f"8:{number * 16 + 1}", sysfs.disk(kname, f"pci0000:00/0000:00:17.0/{number}"))
        volume = sysfs.root / "fs/btrfs" / ("one" if kname != "sdc" else "other") / "devices"
        volume.mkdir(parents=True, exist_ok=True)
        (volume / part.name).symlink_to(part)
    monkeypatch.setattr("plugpull.dut.agent.system.number_of", {"/dev/sdb1": "8:17"}.get)
    there = put_mounts(tmp_path, "1 1 0:25 /@ / rw - btrfs /dev/sdb1 rw,subvol=/@")
    assert system_disks(str(sysfs.root), there) == ["sda", "sdb"]


def test_a_root_on_zfs_lives_on_the_disks_that_nothing_else_explains(
    sysfs: Sysfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, kname in enumerate(("sda", "sdb", "sdc", "sdd")):
        sysfs.disk(kname, f"pci0000:00/0000:00:17.0/ata{number}")
    block(sysfs, "sdc1", "8:33", sysfs.root / "devices/pci0000:00/0000:00:17.0/ata2/block/sdc")
    monkeypatch.setattr("plugpull.dut.agent.system._claimed", lambda root: iter(("sda", "sdb", "sdc")))
    there = put_mounts(
        tmp_path, "1 1 0:25 / / rw - zfs rpool/ROOT rw", "2 1 8:33 / /media/stick rw - ext4 /dev/sdc1 rw"
    )
    assert system_disks(str(sysfs.root), there) == ["sda", "sdb"]
    assert used_disks(str(sysfs.root), there) == {"sda": "/", "sdb": "/", "sdc": "/media/stick"}


def test_what_is_mounted_anywhere_is_used(sysfs: Sysfs, tmp_path: Path) -> None:
    parts = {}
    for number, kname in enumerate(("sda", "sdb", "sdc", "sdd")):
        parts[kname] = block(
            sysfs, f"{kname}1", f"8:{number * 16 + 1}", sysfs.disk(kname, f"pci0000:00/0000:00:17.0/ata{number}")
        )
    (sysfs.root / "class/block").mkdir(parents=True)
    (sysfs.root / "class/block/sdc1").symlink_to(parts["sdc"])
    (sysfs.root / "fs/ext4/sdc1").mkdir(parents=True)  # mounted where nobody sees it
    put_mounts(tmp_path, "1 1 8:17 / /srv/data rw - ext4 /dev/sdb1 rw", pid="77", space="4026532000")
    there = put_mounts(tmp_path, "1 1 8:1 / / rw - ext4 /dev/sda1 rw", "2 1 0:5 / /proc rw - proc proc rw")
    assert used_disks(str(sysfs.root), there) == {"sda": "/", "sdb": "/srv/data", "sdc": "somewhere (ext4 on sdc1)"}
    assert system_disks(str(sysfs.root), there) == ["sda"]


@pytest.mark.parametrize(("scratch", "refused"), [("true", False), ("false", True)])
def test_a_mounted_disk_is_not_taken_away_unless_it_is_scratch(tmp_path: Path, scratch: str, refused: bool) -> None:
    file = rig_file(tmp_path)
    file.write_text(file.read_text().replace("scratch = true", f"scratch = {scratch}"))
    rig = load_rig(file)
    there = found("sdb", "0000:00:14.0/2.1:0", "S-1")
    if refused:
        with pytest.raises(UsageError, match=r"cutting hub1\.power would take sdb away, which is mounted at /srv"):
            refuse_system_disks(rig, [there], (), {"sdb": "/srv"})
    else:
        refuse_system_disks(rig, [there], (), {"sdb": "/srv"})
    refuse_system_disks(rig, [there], (), {})


def test_swap_counts_and_so_does_a_file_of_swap(sysfs: Sysfs, tmp_path: Path) -> None:
    file = tmp_path / "swapfile"
    file.touch()
    on = os.stat(file).st_dev
    block(sysfs, "sda1", f"{os.major(on)}:{os.minor(on)}", sysfs.disk("sda", "pci0000:00/0000:00:17.0/ata1"))
    assert system_disks(str(sysfs.root), proc(tmp_path, swaps=f"{file} file 1 0 -2\n")) == ["sda"]


def test_a_switch_table_can_be_put_into_the_journal_and_read_back(rig: Rig) -> None:
    (declared,) = rig.switch
    again = type(declared).model_validate(declared.model_dump(mode="json"))
    assert again == declared
    assert again.options == declared.options


def test_an_exit_stack_is_all_a_run_has_to_close(tmp_path: Path) -> None:
    from plugpull.dut.real import prepare_real

    file = rig_file(tmp_path)
    with ExitStack() as held:
        journal = Journal(tmp_path / "journal", tmp_path)
        held.callback(journal.close)
        assert callable(prepare_real(load_rig(file), file, journal, held))
    assert list((tmp_path / "journal").iterdir()) == []
