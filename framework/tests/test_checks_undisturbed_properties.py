"""Nobody outside a blast radius changes its properties: each defect, and the healthy case next to it."""

from __future__ import annotations

import msgspec
import pytest
from disturbances import found, subjects
from stories import BACK, CUT, GONE, VICTIM
from test_kernel_scope import bench, warn

from plugpull.checks import Check
from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.history import events as ev


def coming_up(disk: str, port: int, at: float) -> list[ev.Event]:
    size = "131072 512-byte logical blocks: (67.1 MB/64.0 MiB)"
    lines = (size, "Write Protect is off", "Write cache: enabled, read cache: enabled, doesn't support DPO or FUA")
    return [warn(f"sd {port}:0:0:0: [{disk}] {line}", at, 5) for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        "sdc: detected capacity change from 131072 to 0",
        "sdc: detected capacity change from 131072 to 65536",
        "sd 2:0:0:0: [sdc] Write Protect is on",
        "sd 2:0:0:0: [sdc] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA",
        "sd 2:0:0:0: [sdc] Assuming drive cache: write through",
        "sd 2:0:0:0: [sdc] 65536 512-byte logical blocks: (33.6 MB/32.0 MiB)",
        "sd 2:0:0:0: [sdc] 0 512-byte logical blocks: (0 B/0 B)",
    ],
)
def test_a_survivor_changes_its_properties(text: str) -> None:
    made = bench()
    made.add(*coming_up("sdc", 2, 10.49), warn(text, CUT + 0.5, 5))
    assert "disk2" in subjects(made)
    assert len(subjects(made)) == 1


@pytest.mark.parametrize(
    ("disk", "on", "at", "accused"),
    [
        ("disk2", False, 0.0, []),
        ("disk2", True, 0.0, ["disk2"]),
        (VICTIM, False, 0.0, ["disk2"]),
        ("disk2", False, 3.0, ["disk2"]),
    ],
    ids=["asked", "other direction", "other disk", "another time"],
)
def test_a_cache_that_a_study_switched_has_not_changed_by_itself(
    disk: str, on: bool, at: float, accused: list[str]
) -> None:
    made, begin = bench(), CUT + 0.5
    text = "sd 2:0:0:0: [sdc] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA"
    made.add(*coming_up("sdc", 2, 10.49), warn(text, begin, 5))
    made.add(ev.DriveCacheSwitched(at=begin - 0.1 + at, until=begin + 0.1 + at, disk=disk, on=on))
    assert subjects(made) == accused


def test_a_victim_comes_back_as_it_was_or_does_not() -> None:
    made = bench()
    made.add(*coming_up("sdb", 1, 10.39), *coming_up("sdb", 1, BACK - 0.02))
    made.add(warn("sdb: detected capacity change from 131072 to 0", GONE - 0.01, 6))
    assert found(made) == []
    made.add(warn("sd 1:0:0:0: [sdb] Assuming drive cache: write through", BACK - 0.01, 3))
    ((subject, said),) = found(made)
    assert (subject, said) == (VICTIM, f"disk1 had a write cache and has no write cache since {BACK - 0.01:.2f} s")


@pytest.mark.parametrize(("at", "many"), [(CUT + 0.05, 0), (BACK - 0.01, 1)], ids=["off", "on again"])
def test_a_victim_that_is_cut_while_it_is_probed_cannot_say_whether_it_has_a_cache(at: float, many: int) -> None:
    made = bench()
    made.add(*coming_up("sdb", 1, 10.39), *coming_up("sdb", 1, BACK + 0.02))
    made.add(warn("sd 1:0:0:0: [sdb] Assuming drive cache: write through", at, 3))
    said = [text for _, text in found(made) if "no write cache since" in text]
    assert len(said) == many


@pytest.mark.parametrize("blocks", ["16384 4096-byte", "131064 512-byte"])
def test_a_victim_comes_back_with_other_blocks(blocks: str) -> None:
    made = bench()
    made.add(*coming_up("sdb", 1, 10.39))
    made.add(warn(f"sd 1:0:0:0: [sdb] {blocks} logical blocks: (67.1 MB/64.0 MiB)", BACK - 0.02, 5))
    ((subject, said),) = found(made)
    number, size = blocks.removesuffix("-byte").split()
    now = f"has {number} blocks of {size} bytes since {BACK - 0.02:.2f} s"
    assert (subject, said) == (VICTIM, f"disk1 had 131072 blocks of 512 bytes and {now}")


def test_a_disk_that_cannot_be_asked_for_its_size_has_not_changed_it() -> None:
    made = bench()
    nothing = "sd 1:0:0:0: [sdb] 0 512-byte logical blocks: (0 B/0 B)"
    made.add(warn(nothing, 10.3, 5), *coming_up("sdb", 1, 10.39), warn(nothing, GONE - 0.01, 5))
    made.add(warn(nothing, BACK - 0.5, 5), *coming_up("sdb", 1, BACK - 0.02))
    assert found(made) == []


def test_a_size_that_is_logged_long_before_the_disk_is_announced_is_its_own() -> None:
    """Both disks went, and each comes back under the other's name, slowly."""
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, "disk2"))
    made.detach("disk2", GONE)
    made.drop(ev.DiskAttached, lambda event: event.at != BACK)
    made.attach(VICTIM, BACK, kname="sdc")
    made.attach("disk2", BACK + 0.1, kname="sdb")
    small = "sd 2:0:0:0: [{}] 65536 512-byte logical blocks: (33.6 MB/32.0 MiB)"
    made.add(*coming_up("sdb", 1, 10.39)[:1], warn(small.format("sdc"), 10.49, 5))
    made.add(*coming_up("sdc", 1, BACK - 1.5)[:1], warn(small.format("sdb"), BACK - 1.4, 5))
    assert found(made) == []


def test_names_that_are_exchanged_on_return_exchange_no_properties() -> None:
    made = bench()
    made.replace(ev.CutArmed, point="hub1.cable", victims=(VICTIM, "disk2"))
    made.detach("disk2", GONE)
    made.drop(ev.DiskAttached, lambda event: event.at != BACK)
    made.attach(VICTIM, BACK, kname="sdc")
    made.attach("disk2", BACK + 0.1, kname="sdb")
    through = "sd {}:0:0:0: [{}] Write cache: disabled, read cache: enabled, doesn't support DPO or FUA"
    made.add(*coming_up("sdb", 1, 10.39), warn(through.format(2, "sdc"), 10.49, 5))
    made.add(*coming_up("sdc", 1, BACK - 0.02), warn(through.format(2, "sdb"), BACK + 0.08, 5))
    assert found(made) == []


def test_it_has_no_required_fields() -> None:
    check: Check = undisturbed()
    assert msgspec.json.encode(check) == b'{"check":"undisturbed"}'


def test_a_survivor_loses_its_capacity_soon_after_it_came_up() -> None:
    made = bench()
    made.add(warn("sdc: detected capacity change from 0 to 131072", 10.51, 6))
    assert found(made) == []
    made.add(warn("sdc: detected capacity change from 131072 to 0", 10.9, 6))
    assert subjects(made) == ["disk2"]
