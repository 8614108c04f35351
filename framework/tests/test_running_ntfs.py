"""Files on ntfs3, which the kernel does not mount while it is dirty."""

from __future__ import annotations

import errno

import pytest
from test_running_files import Double, double, found, opened

from plugpull.history import events as ev

__all__ = ["double"]

MOUNTED: dict[str, object] = {"ok": True, "seconds": 0.1, "detail": ""}
DIRTY: dict[str, object] = {"ok": False, "seconds": 0.1, "detail": "Invalid argument", "errno": errno.EINVAL}


def mounted_in_turn(double: Double, *first: dict[str, object]) -> None:
    """Mounts end as these say, and well after them. Only a repair by ntfsfix succeeds."""
    mounts = iter(first)
    double.answers["mount"] = lambda **_: next(mounts, MOUNTED)
    double.answers["filesystem.check"] = lambda **asked: {
        "status": 0 if asked["repair"] else None,
        "seconds": 0.1,
        "command": "ntfsfix -d",
        "output": "",
    }


@pytest.mark.parametrize("fstype", ["ntfs3", "ext4"])
def test_a_dirty_ntfs_is_repaired_before_it_is_mounted(double: Double, fstype: str) -> None:
    """Its kernel driver refuses to mount it. On ext4, the same error is a finding."""
    with opened(double, fstype=fstype) as files:
        files.settle(0.1)
        mounted_in_turn(double, DIRTY)
    repairs = [event.repaired for event in double.events if isinstance(event, ev.FilesystemChecked)]
    judgement = double.judged()
    if fstype == "ext4":
        assert "unmountable" in found(judgement)
        return
    assert repairs == [True, False]
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "ntfs3 repaired" in judgement.worst


def test_a_scan_may_leave_an_ntfs_dirty(double: Double) -> None:
    """It is repaired before everything in it is removed."""
    with opened(double, fstype="ntfs3") as files:
        files.settle(0.1)
        mounted_in_turn(double, MOUNTED, DIRTY)
    assert [event.repaired for event in double.events if isinstance(event, ev.FilesystemChecked)] == [False, True]
    removals = [event for event in double.events if isinstance(event, ev.FileScanBegun) and event.removing]
    assert [event.repaired for event in removals] == [True]
    judgement = double.judged()
    assert (judgement.findings, judgement.unknowns) == ((), ())
