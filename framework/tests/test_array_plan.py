"""What an array is to be made of, and mdadm's options for it."""

from __future__ import annotations

import pytest

from plugpull.errors import NotServed
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology
from plugpull.targets.array_plan import options_of, planned
from plugpull.targets.disk import RigDisk

TOPOLOGY = Topology(load_rig(rigs_dir() / "quick.toml"))
DISKS = tuple(RigDisk(name, TOPOLOGY) for name in ("disk1", "disk2"))


def test_the_slow_members_of_a_mirror_come_last() -> None:
    array = planned("array1", "raid1", (DISKS[0], DISKS[1]), slow=(DISKS[0],))
    assert (array.disks, array.write_mostly) == (("disk2", "disk1"), ("disk1",))
    assert "--write-behind=256" in options_of(array, "4 MiB", True, ppl=False)
    even = planned("array1", "raid1", (DISKS[0], DISKS[1]))
    assert (even.disks, even.write_mostly) == (("disk1", "disk2"), ())
    assert "--write-behind=256" not in options_of(even, "4 MiB", True, ppl=False)


def test_an_array_of_too_small_disks_is_not_served_by_the_rig() -> None:
    pair = DISKS[:2]
    least = min(disk.size for disk in pair) >> 20
    mirror = planned("array1", "raid1", pair)
    assert options_of(mirror, f"{least - 1} MiB", True, ppl=False)
    with pytest.raises(NotServed, match=f"the raid1 needs {least + 1} MiB of each member, and disk"):
        options_of(mirror, f"{least} MiB", True, ppl=False)
    assert options_of(planned("array1", "raid0", pair), f"{least} MiB", True, ppl=False)
