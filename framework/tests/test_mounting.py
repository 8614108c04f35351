"""Steps on filesystems that fail or take far too long are a doubt, unless a cut explains them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from stories import CUT, SURVIVORS, Bench, healthy

from plugpull.checks.files.mounting import CHECKED, MADE, MOUNTED, REAL, UNMOUNTED, step_doubts
from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.history import events as ev

DISK = SURVIVORS[0]
LATER = 120.0
"""Well after all cuts."""


def with_step(kind: str = "virtual", at: float = LATER, **step: Any) -> Bench:
    """The healthy story with one step on a filesystem, and its beginning."""
    bench = healthy(until=LATER + 10.0)
    bench.events = [replace(one, kind=kind) if isinstance(one, ev.DutReady) else one for one in bench.events]
    known: dict[str, Any] = {"action": "mount", "disk": DISK, "ok": True, "seconds": 0.5} | step
    if known["action"] == "umount":
        mount(bench, at=12.0)
    if known["action"] in ("mount", "umount"):
        bench.add(ev.StepBegun(at=at - known["seconds"], action=known["action"], disk=DISK))
    bench.add(ev.Acted(at=at, **known))
    return bench


def mount(bench: Bench, at: float, action: ev.ActionName = "mount") -> None:
    """One more mount or umount, with its beginning."""
    bench.add(ev.StepBegun(at=at - 0.1, action=action, disk=DISK))
    bench.add(ev.Acted(at=at, action=action, disk=DISK, ok=True, seconds=0.1))


def said(bench: Bench) -> list[str]:
    return list(step_doubts(bench.story()))


@pytest.mark.parametrize("action", ["mkfs", "mount", "umount"])
def test_a_step_that_succeeds_in_time_is_no_doubt(action: str) -> None:
    assert said(with_step(action=action)) == []


@pytest.mark.parametrize(
    ("action", "what"),
    [("mkfs", f"no filesystem could be made on {DISK}: full"), ("mount", f"the mount of {DISK} failed: full")],
)
def test_a_step_that_fails_far_from_a_cut_is_a_doubt(action: str, what: str) -> None:
    bench = with_step(action=action, ok=False, detail="full")
    assert said(bench) == [what]
    assert what in bench.judge(undisturbed()).unknowns
    assert said(with_step(action=action, ok=False, at=CUT + 0.5)) == []


def test_a_round_of_files_judges_its_own_mounts() -> None:
    bench = with_step(ok=False)
    bench.add(ev.FileRoundBegun(at=11.0, disk=DISK, job="j", run=1, round=1, directory="/x", fstype="ext4", uuid="u"))
    assert said(bench) == []


@pytest.mark.parametrize(
    ("kind", "action", "limit", "what"),
    [
        ("virtual", "mount", MOUNTED["virtual"], "mounting"),
        ("ssh", "mount", REAL, "mounting"),
        ("virtual", "umount", UNMOUNTED, "unmounting"),
        ("ssh", "umount", UNMOUNTED, "unmounting"),
        ("virtual", "mkfs", MADE, "making a filesystem on"),
    ],
)
def test_a_step_that_takes_far_too_long_is_a_doubt(kind: str, action: str, limit: float, what: str) -> None:
    assert said(with_step(kind, action=action, seconds=limit - 1.0)) == []
    assert said(with_step(kind, action=action, seconds=limit + 1.0)) == [f"{what} {DISK} took {limit + 1.0:.1f} s"]


def test_a_large_disk_of_a_real_bench_may_take_its_time() -> None:
    assert said(with_step("ssh", action="mkfs", seconds=MADE + 1.0)) == []


@pytest.mark.parametrize(("kind", "took", "many"), [("virtual", -1.0, 0), ("virtual", 1.0, 1), ("ssh", 1.0, 0)])
def test_a_check_of_a_filesystem_that_takes_far_too_long_is_a_doubt(kind: str, took: float, many: int) -> None:
    bench = with_step(kind)
    check = ev.FilesystemChecked(
        at=LATER, disk=DISK, fstype="ext4", command="fsck.ext4 -fn", status=0, seconds=CHECKED + took
    )
    bench.add(check)
    assert said(bench) == [f"the check of {DISK} took {CHECKED + 1.0:.1f} s"] * many


@pytest.mark.parametrize("missing", [ev.StepBegun, ev.Acted])
def test_a_mount_of_which_one_end_is_missing_is_a_doubt(missing: type[ev.Event]) -> None:
    bench = with_step()
    mount(bench, LATER + 5.0, "umount")
    assert said(bench) == []
    bench.drop(missing, keep=lambda event: event.action == "umount")
    counts = "0 times and ended 1" if missing is ev.StepBegun else "1 times and ended 0"
    assert said(bench) == [f"the record contradicts itself: mount of {DISK} began {counts} times"]


def test_a_mount_or_an_umount_that_is_missing_altogether_is_a_doubt() -> None:
    bench = healthy(until=LATER + 10.0)
    mount(bench, 12.0)
    mount(bench, 60.0, "umount")
    mount(bench, 70.0)
    assert said(bench) == []
    mount(bench, 80.0)
    (twice,) = said(bench)
    assert twice == f"the filesystem on {DISK} was mounted twice, and that it was unmounted is not on record"
    bench.drop(ev.StepBegun, lambda event: (event.at or 0.0) < 65.0)
    bench.drop(ev.Acted, lambda event: (event.at or 0.0) < 65.0)
    mount(bench, 90.0, "umount")
    (never,) = said(bench)
    assert never == f"the filesystem on {DISK} was unmounted at 90.00 s, and its mount is not on record"
