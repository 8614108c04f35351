"""What the agent counts on the DUT."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.dut.agent.census import census


def hubs(sys: Path, **references: str) -> None:
    """Hubs, and how many references keep each of them from being suspended."""
    for name, usage in references.items():
        (sys / "bus/usb/devices" / name / "power").mkdir(parents=True)
        (sys / "bus/usb/devices" / name / "power/runtime_usage").write_text(usage)
        (sys / "bus/usb/devices" / name / "bDeviceClass").write_text("09\n")


def machine(folder: Path) -> tuple[str, str]:
    """A sysfs and a proc with one disk, of which the host is there a second time."""
    sys, proc = folder / "sys", folder / "proc"
    usb = sys / "devices/pci0000:00/0000:00:10.0/usb1/1-1"
    for number in (0, 4):
        host = usb / f"1-1:1.0/host{number}/scsi_host/host{number}"
        host.mkdir(parents=True)
        (host / "proc_name").write_text("usb-storage\n")
        (sys / "class/scsi_host").mkdir(parents=True, exist_ok=True)
        (sys / f"class/scsi_host/host{number}").symlink_to(host)
    (sys / "bus/usb/devices/1-1:1.0").mkdir(parents=True)
    hubs(sys, usb1="2", **{"1-1": "0"})
    for name, size in (("md127", "2048"), ("loop0", "0")):
        (sys / "block" / name).mkdir(parents=True)
        (sys / "block" / name / "size").write_text(size)
    (proc / "self/fd").mkdir(parents=True)
    (proc / "self/fd/3").symlink_to("/dev/sdb (deleted)")
    (proc / "self/fd/4").symlink_to("/dev/null")
    (proc / "self/mountinfo").write_text("36 35 98:0 / /mnt/x rw,noatime - ext4 /dev/sda1 rw\nhalf a line\n")
    (proc / "meminfo").write_text("MemTotal: 100 kB\nSUnreclaim: 4 kB\n")
    for pid, thread in (("7", "usb-storage"), ("8", "jbd2/sda1-8"), ("9", "kworker/0:1")):
        (proc / pid).mkdir()
        (proc / pid / "comm").write_text(f"{thread}\n")
    (sys / "block/sda").mkdir()
    (sys / "block/sda/dev").write_text("8:0\n")
    for bdi in ("8:0", "8:32", "259:0"):
        (sys / "class/bdi" / bdi).mkdir(parents=True)
    for name in ("sda", "sdc", "nvme0n1"):
        (sys / "kernel/debug/block" / name).mkdir(parents=True)
    for slot in ("01", "02"):
        (sys / "kernel/debug/usb/xhci/0000:00:10.0/devices" / slot).mkdir(parents=True)
    (proc / "slabinfo").write_text(
        "slabinfo - version: 2.1\n"
        "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n"
        "kmalloc-4k           10     16   4096    8    8 : tunables    0    0    0\n"
        "dentry             9000   9000    192   21    1 : tunables    0    0    0\n"
        "scsi_sense_cache      2     64    128   32    1 : tunables    0    0    0\n"
    )
    return str(sys), str(proc)


def test_what_the_agent_counts(tmp_path: Path) -> None:
    assert census(*machine(tmp_path)) == {
        "things": {
            "scsi host": ["usb-storage at 0000:00:10.0/1", "usb-storage at 0000:00:10.0/1"],
            "block device": ["md127"],
            "usb device": ["1-1", "usb1"],
            "mount": ["/dev/sda1 on /mnt/x (ext4)"],
            "open file": ["/dev/sdb (deleted)"],
            "kernel thread": ["jbd2", "usb-storage"],
            "xhci slot": ["at 0000:00:10.0", "at 0000:00:10.0"],
            "reference to a hub": ["usb1", "usb1"],
            "trace of a disk": ["backing device 8:32", "debugfs directory block/sdc"],
        },
        "slab": {"kmalloc-4k": 40960, "scsi_sense_cache": 256},
        "memory": {"SUnreclaim": 4096},
        "exact": False,
    }


def test_entries_of_hosts_that_are_gone_are_traces(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for name in ("class/scsi_device/4:0:0:0", "class/bsg/5:0:0:0", "bus/scsi/devices/target6:0:0", "class/bsg/card0"):
        (tmp_path / "sys" / name).mkdir(parents=True)
    for name in ("scsi/scsi", "scsi/usb-storage/4", "scsi/usb-storage/15"):
        (tmp_path / "proc" / name).mkdir(parents=True)
    assert census(sys, proc)["things"]["trace of a disk"] == [
        "/proc/scsi/usb-storage/15",
        "/sys/bus/scsi/devices/target6:0:0",
        "/sys/class/bsg/5:0:0:0",
        "backing device 8:32",
        "debugfs directory block/sdc",
    ]


def test_an_exact_census_shrinks_the_chosen_caches_first(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for name in ("kmalloc-4k", "scsi_sense_cache", "dentry"):
        (tmp_path / "sys/kernel/slab" / name).mkdir(parents=True)
        (tmp_path / "sys/kernel/slab" / name / "shrink").write_text("")
        (tmp_path / "sys/kernel/slab" / name / "objects").write_text("3 N0=3\n")
    counted = census(sys, proc, exact=True)
    assert (counted["exact"], counted["slab"]) == (True, {"kmalloc-4k": 12288, "scsi_sense_cache": 384})
    assert Path(sys, "kernel/slab/kmalloc-4k/shrink").read_text() == "1"
    assert Path(sys, "kernel/slab/dentry/shrink").read_text() == ""
    Path(sys, "kernel/slab/kmalloc-4k/objects").unlink()
    assert not census(sys, proc, exact=True)["exact"]


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("/dev/sdb", "/dev/sdb"),
        ("/dev/sdb (deleted)", "/dev/sdb (deleted)"),
        ("/dev/loop1", "/dev/loop3p1"),
        ("/var/lib/snapd/snaps/core_1.snap", "/dev/loop3p1"),
    ],
)
def test_a_loop_device_over_a_disk_goes_by_its_name(tmp_path: Path, image: str, source: str) -> None:
    sys, proc = machine(tmp_path)
    (tmp_path / "sys/block/loop3/loop").mkdir(parents=True)
    (tmp_path / "sys/block/loop3/loop/backing_file").write_text(f"{image}\n")
    Path(proc, "self/mountinfo").write_text("36 35 7:3 / /mnt/x ro - squashfs /dev/loop3p1 ro\n")
    assert census(sys, proc)["things"]["mount"] == [f"{source} on /mnt/x (squashfs)"]


def test_a_host_that_was_removed_and_not_freed_is_counted_by_its_thread(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for pid, name in ((40, "scsi_eh_0"), (41, "scsi_eh_2"), (42, "scsi_tmf_2")):
        (Path(proc) / str(pid)).mkdir()
        (Path(proc) / str(pid) / "comm").write_text(f"{name}\n")
    assert census(sys, proc)["things"]["scsi host"] == [
        "host2 (removed, not freed: scsi_eh_2 still runs)",
        *census(*machine(tmp_path / "clean"))["things"]["scsi host"],
    ]


def test_a_census_of_this_machine_does_not_fail() -> None:
    things = census()["things"]
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert any(" on / (" in mount for mount in things["mount"]) is ("/" in mounts), "in a chroot, / may be no mount"


def test_a_machine_without_any_of_it_is_empty(tmp_path: Path) -> None:
    assert not any(census(str(tmp_path), str(tmp_path))["things"].values())
