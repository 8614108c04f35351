"""The agent's copy-on-write overlays: what is asked of device-mapper, and what the guard accepts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugpull.dut.agent import overlay
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.overlay import Overlays, open_overlay, open_volume, request

SOURCE = """
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
int main(void) {
    static struct { struct dm_ioctl head; struct dm_target_spec spec; char table[24]; } all;
    all.head = (struct dm_ioctl){.version = {4, 0, 0}, .data_size = sizeof(all), .data_start = sizeof(all.head),
                                 .target_count = 1, .name = "a name", .uuid = "a uuid"};
    all.spec = (struct dm_target_spec){.length = 4096, .target_type = "snapshot"};
    strcpy(all.table, "8:16 7:0 N 8");
    fprintf(stderr, "%lx %lx %lx %lx %x %x %x\\n", DM_DEV_CREATE, DM_DEV_REMOVE, DM_DEV_SUSPEND, DM_TABLE_LOAD,
            LOOP_SET_FD, LOOP_CLR_FD, LOOP_CTL_GET_FREE);
    return fwrite(&all, sizeof(all.head) + sizeof(all.spec) + 16, 1, stdout) != 1;
}
"""
BELOW: dict[str, Any] = {"kname": "sdb", "serial": "S", "place": "here", "size": 1 << 20}
WANTED = {"overlay": "PLUGPULL-disk1", "below": BELOW}


@pytest.mark.skipif(shutil.which("cc") is None, reason="the kernel's headers are read by a compiler")
def test_the_requests_are_those_of_the_kernels_headers(tmp_path: Path) -> None:
    (tmp_path / "dm.c").write_text(SOURCE)
    subprocess.run(["cc", "-o", tmp_path / "dm", tmp_path / "dm.c"], check=True)
    done = subprocess.run([tmp_path / "dm"], capture_output=True, check=True)
    made = request("a name", "a uuid", (4096, "snapshot", "8:16 7:0 N 8"))
    # The size that the program gave includes more room for the table.
    assert made[:12] + made[16:] == done.stdout[:12] + done.stdout[16:]
    assert int.from_bytes(made[12:16], "little") == len(made)
    numbers = [int(number, 16) for number in done.stderr.split()]
    own = [overlay._DM | one for one in (overlay._CREATE, overlay._REMOVE, overlay._SUSPEND, overlay._LOAD)]
    assert numbers == [*own, overlay._LOOP_SET_FD, overlay._LOOP_CLR_FD, overlay._LOOP_CTL_GET_FREE]


def node(folder: Path, *slaves: str, uuid: str = "PLUGPULL-disk1") -> Path:
    """A device-mapper device in a sysfs of its own."""
    made = folder / "block" / "dm-0"
    (made / "dm").mkdir(parents=True)
    (made / "dm" / "uuid").write_text(uuid + "\n")
    (made / "dev").write_text("254:0\n")
    for slave in slaves:
        (made / "slaves" / slave).mkdir(parents=True)
    return made


def test_another_overlay_is_not_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(overlay, "SYS", str(tmp_path))
    node(tmp_path, "sdb", "loop0", uuid="LVM-somebody's")
    with pytest.raises(Refused, match="there is no overlay PLUGPULL-disk1"):
        open_volume(WANTED)


def test_an_overlay_whose_device_is_another_one_is_not_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(overlay, "SYS", str(tmp_path))
    node(tmp_path, "sdb", "loop0")
    monkeypatch.setattr(os, "open", lambda path, flags: 0)
    monkeypatch.setattr(os, "close", lambda fd: None)
    with pytest.raises(Refused, match="dm-0 is not the overlay PLUGPULL-disk1 any more"):
        open_overlay(WANTED)


@pytest.mark.parametrize(
    ("slaves", "serial", "why"),
    [
        (("sdb", "loop0"), "S", ""),
        (("sdb", "loop0"), "T", "sdb is not the disk it was: serial is 'T', expected 'S'"),
        (("sdb", "loop0"), None, "sdb, which the overlay dm-0 lies on, is gone"),
        (("sdb", "sdc"), "S", "the overlay dm-0 lies on sdb, sdc"),
        (("sdb",), "S", "the overlay dm-0 lies on sdb"),
        ((), "S", "the overlay dm-0 lies on nothing"),
    ],
)
def test_an_overlay_lies_on_the_wanted_disk(
    monkeypatch: pytest.MonkeyPatch, slaves: tuple[str, ...], serial: str | None, why: str
) -> None:
    found = None if serial is None else {**BELOW, "serial": serial, "sockets": [], "diskseq": 1}
    monkeypatch.setattr(overlay, "describe", lambda kname: found)
    if not why:
        overlay._prove_below("dm-0", list(slaves), BELOW)
        return
    with pytest.raises(Refused, match=re.escape(why)):
        overlay._prove_below("dm-0", list(slaves), BELOW)


def test_a_dut_without_the_modules_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(4096))

    def refuse(name: str, size: int, disk: int) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/dev/loop-control")

    monkeypatch.setattr(overlay, "open_target", lambda wanted: os.open(tmp_path / "disk", 0))
    monkeypatch.setattr(overlay, "size_of", lambda fd: 4096)
    monkeypatch.setattr(overlay, "_make", refuse)
    made = Overlays().make("disk1", BELOW)
    assert (made["ok"], made["overlay"]) == (False, "")
    assert "/dev/loop-control" in made["detail"]


def test_an_overlay_that_nobody_made_cannot_be_dropped() -> None:
    assert Overlays().drop("disk1") == {"ok": False, "seconds": 0.0, "detail": "disk1 has no overlay"}
