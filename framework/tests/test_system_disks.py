"""Which disks the DUT's system runs from, and which are mounted anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sysfs_tree import Sysfs

from plugpull.dut.agent.system import system_disks, used_disks


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path / "sys")


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


def test_swap_counts_and_so_does_a_file_of_swap(sysfs: Sysfs, tmp_path: Path) -> None:
    file = tmp_path / "swapfile"
    file.touch()
    on = os.stat(file).st_dev
    block(sysfs, "sda1", f"{os.major(on)}:{os.minor(on)}", sysfs.disk("sda", "pci0000:00/0000:00:17.0/ata1"))
    assert system_disks(str(sysfs.root), proc(tmp_path, swaps=f"{file} file 1 0 -2\n")) == ["sda"]
