"""The guard of arrays: an array is opened only if its UUID and all of its members are those of the claim."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from plugpull.dut.agent import array_guard
from plugpull.dut.agent import arrays as arrays_module
from plugpull.dut.agent.array_guard import open_array, prove_array
from plugpull.dut.agent.arrays import Arrays, in_flight, present
from plugpull.dut.agent.disks import Refused

UUID = "a3b1c2d4-0000-4000-8000-112233445566"
OTHER = "ffffffff-0000-4000-8000-112233445566"


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sysfs with the array md127 of the disks sda and sdb. Any descriptor leads to that array."""
    root = tmp_path / "sys"
    md = root / "devices/virtual/block/md127/md"
    md.mkdir(parents=True)
    (md / "uuid").write_text(UUID + "\n")
    for name in ("sda", "sdb"):
        disk = root / "devices/disks" / name
        (disk / "device").mkdir(parents=True)
        (disk / "dev").write_text("8:0\n")
        (md / f"dev-{name}").mkdir()
    monkeypatch.setattr(array_guard, "SYS", str(root))
    monkeypatch.setattr(array_guard, "loop_over", lambda numbers: "")
    monkeypatch.setattr(array_guard, "resolved", lambda path: str(root / "devices/virtual/block/md127"))
    monkeypatch.setattr("stat.S_ISBLK", lambda mode: True)
    monkeypatch.setattr(
        array_guard, "describe", lambda name: described(name) if (root / "devices/disks" / name).is_dir() else None
    )
    return root


def described(name: str, **other: object) -> dict[str, Any]:
    known = {"kname": name, "serial": f"S-{name}", "place": f"p/{name}", "size": 1 << 20, "diskseq": 0, "sockets": []}
    return {**known, **other}


def claim(*members: str, uuid: str = UUID, **other: object) -> dict[str, Any]:
    return {"kname": "md127", "uuid": uuid, "members": [described(name, **other) for name in members]}


def prove(wanted: dict[str, Any]) -> None:
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        prove_array(fd, "md127", wanted)
    finally:
        os.close(fd)


def test_the_array_of_this_run_on_its_disks_is_accepted(sysfs: Path) -> None:
    prove(claim("sda", "sdb"))
    prove(claim("sda", "sdb", "sdc"))


def test_an_array_with_another_uuid_is_refused(sysfs: Path) -> None:
    with pytest.raises(Refused, match=r"md127 is not the array ffffffff-.* that this run made"):
        prove(claim("sda", "sdb", uuid=OTHER))


def test_an_array_without_a_uuid_is_refused(sysfs: Path) -> None:
    (sysfs / "devices/virtual/block/md127/md/uuid").write_text("")
    with pytest.raises(Refused, match="its UUID is ''"):
        prove(claim("sda", "sdb"))
    with pytest.raises(Refused, match="it was not said which UUID"):
        open_array(claim("sda", "sdb", uuid=""))


def test_an_array_with_a_strange_member_is_refused(sysfs: Path) -> None:
    with pytest.raises(Refused, match="md127 has sdb for a member, which is not a disk of this claim"):
        prove(claim("sda"))
    with pytest.raises(Refused, match="has sda for a member"):
        prove(claim("sda", "sdb", serial="ANOTHER"))


def test_a_member_that_is_gone_is_not_compared(sysfs: Path) -> None:
    for path in sorted((sysfs / "devices/disks/sdb").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (sysfs / "devices/disks/sdb").rmdir()
    prove(claim("sda"))


def test_a_partition_is_no_member_of_an_array_of_a_run(sysfs: Path) -> None:
    md = sysfs / "devices/virtual/block/md127/md"
    (md / "dev-sdc1").mkdir()
    (sysfs / "class/block/sdc1").mkdir(parents=True)
    (sysfs / "class/block/sdc1/partition").write_text("1")
    with pytest.raises(Refused, match="partition sdc1"):
        prove(claim("sda", "sdb"))


@pytest.mark.parametrize("kname", ["sda", "../md127", "md127/..", ""])
def test_only_names_of_arrays_are_opened(kname: str) -> None:
    with pytest.raises(Refused, match="is not the kernel name of an array"):
        open_array({**claim("sda"), "kname": kname})


@pytest.mark.parametrize(("refusals", "opened"), [(0, True), (3, True), (10**6, False)])
def test_an_array_that_somebody_has_is_waited_for(monkeypatch: pytest.MonkeyPatch, refusals: int, opened: bool) -> None:
    left, really = [refusals], os.open

    def busy(path: str, flags: int, *rest: int, **more: int) -> int:
        if path != "/dev/md127":
            return really(path, flags, *rest, **more)
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return really("/dev/null", os.O_RDONLY)

    monkeypatch.setattr(os, "open", busy)
    monkeypatch.setattr(array_guard, "RELEASED_WITHIN", 0.2 if not opened else 60.0)
    # What is opened in the end is no array, and is refused for that.
    expected = "is not a block device" if opened else "md127 is in use: a filesystem is mounted from it"
    with pytest.raises(Refused, match=expected):
        open_array(claim("sda", "sdb"))
    assert left[0] == -1 if opened else left[0] > 0


def test_an_array_that_this_agent_did_not_make_is_not_read() -> None:
    arrays = Arrays(lambda message: None, lambda kname: None)
    with pytest.raises(Refused, match="array1 is not an array of this run"):
        arrays.read("array1")
    with pytest.raises(Refused, match="'resync' is not one of"):
        arrays.act("array1", claim("sda"), "resync")


def test_on_the_way_out_members_are_found_by_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that was unplugged meanwhile has another name now; one that is away is left alone."""
    there = [described("sdq", serial="S-sda", diskseq=9), described("sdz")]
    monkeypatch.setattr(arrays_module, "all_disks", lambda: there)
    found = present([described("sda"), described("sdb")])
    assert [(disk["serial"], disk["kname"], disk["diskseq"]) for disk in found] == [("S-sda", "sdq", 9)]


class NoWatch:
    """In place of a watch."""

    def stop(self) -> None: ...


def test_what_is_left_is_erased_on_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    erased: list[str] = []
    arrays = Arrays(lambda message: None, lambda kname: None)
    watch: Any = NoWatch()
    arrays._known["array1"] = arrays_module.Known("md127", UUID, [described("sda"), described("sdb")], watch)
    monkeypatch.setattr(arrays_module, "all_disks", lambda: [described("sda"), described("sdb")])

    def erase(disks: list[dict[str, Any]], timeout: float) -> None:
        erased.append(disks[0]["kname"])
        if disks[0]["kname"] == "sda":
            raise Refused("it is in use")

    monkeypatch.setattr(arrays, "erase", erase)
    arrays.stop_all()
    assert erased == ["sda", "sdb"], "one that cannot be erased keeps the others from it"
    arrays.stop_all()
    assert erased == ["sda", "sdb"]


# --- mdadm ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mdadm(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The lines that mdadm gets. It refuses everything, and prints two numbers."""
    lines: list[list[str]] = []

    def answer(words: Any, fds: Any, timeout: float) -> dict[str, Any]:
        lines.append([word if not word.startswith("/proc/") else "DISK" for word in words])
        asked = words[0].startswith("--examine")
        bitmap = "          Bitmap : 64 bits (chunks), 4 dirty (6.2%)\n"
        said = f"          Events : 17\n  Events Cleared : {19}\n{bitmap}" if asked else "not possible"
        return {"ok": asked, "seconds": 0.1, "detail": said}

    monkeypatch.setattr(arrays_module, "_mdadm", answer)
    monkeypatch.setattr(arrays_module, "open_scratch", lambda disk: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(arrays_module, "open_array", lambda *array, **how: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(arrays_module, "plain", lambda fd: fd)
    return lines


def made() -> Arrays:
    return Arrays(lambda message: None, lambda kname: None)


def test_members_that_are_not_read_are_the_last_ones(mdadm: list[list[str]]) -> None:
    disks = [described("sda"), described("sdb"), described("sdc")]
    made().make("array1", disks, UUID, "raid1", ["--bitmap=internal"], 1.0, write_mostly=1)
    assert mdadm[0][-5:] == ["--bitmap=internal", "DISK", "DISK", "--write-mostly", "DISK"]
    made().make("array1", disks, UUID, "raid1", [], 1.0)
    assert "--write-mostly" not in mdadm[1]


def test_a_member_that_is_refused_is_compared_with_the_bitmap(mdadm: list[list[str]]) -> None:
    answer = made().add("array1", claim("sda", "sdb"), described("sdb"), True, 1.0)
    assert not answer["ok"]
    assert answer["detail"] == (
        "not possible; its superblock is of event 17, bits of the bitmap were cleared at event 19"
    )
    assert mdadm[-1] == ["--examine-bitmap", "/dev/sda"]
    assert made().add("array1", claim("sda"), described("sdb"), False, 1.0)["detail"] == "not possible"


def test_a_disk_that_is_gone_is_removed_as_udev_does(mdadm: list[list[str]]) -> None:
    made().udev_remove("array1", claim("sda"), "sdb", 1.0)
    assert mdadm == [["--incremental", "--fail", "sdb"]]


def test_what_the_bitmap_marks_is_read_from_a_member(
    sysfs: Path, mdadm: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays_module, "SYS", str(sysfs))
    (sysfs / "block/md127/md/bitmap").mkdir(parents=True)
    (sysfs / "block/md127/md/bitmap/chunksize").write_text("65536\n")
    answer = made().marked("array1", claim("sda", "sdb"), 1.0)
    assert (answer["ok"], answer["marked"]) == (True, 4 * 65536)
    assert answer["detail"] == "4 of 64 chunks of 65536 bytes are marked"
    assert mdadm == [["--examine-bitmap", "/dev/sdb"]]


def test_a_bitmap_that_cannot_be_read_marks_nothing_that_is_known(
    mdadm: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"ok": True, "seconds": 0.1, "detail": "mdadm: bad magic"}
    monkeypatch.setattr(arrays_module, "_mdadm", lambda *words: answer)
    assert not made().marked("array1", claim("sda"), 1.0)["ok"]


@pytest.mark.parametrize(("counts", "found"), [("       0        0\n", 0), ("       1        2\n", 3), ("", None)])
def test_requests_of_an_array_that_nobody_uses(tmp_path: Path, counts: str, found: int | None) -> None:
    (tmp_path / "block/md127").mkdir(parents=True)
    if counts:
        (tmp_path / "block/md127/inflight").write_text(counts)
    assert in_flight("md127", 0.05, str(tmp_path)) == found
