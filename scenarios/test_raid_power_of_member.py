import pytest

from plugpull.checks import (
    array_failed,
    array_survived,
    legs_hold,
    nothing_lost,
    removed,
    resynced_by_bitmap,
    returned,
)
from plugpull.integrity.patterns import Stamped, Writing, flushed_writes, fua_writes
from plugpull.scenario import ScenarioRig

# 2 MiB are written and flushed once. After that only the first 256 KiB of them are written, and 1792 KiB rest.
mostly_at_rest = Stamped(
    "4 KiB writes to 256 KiB, beside flushed data at rest",
    Writing(flush_writes=64, rest=3584),
    span=2 << 20,
    anchors=False,
)


def test_a_member_of_a_mirror_loses_its_power(rig: ScenarioRig) -> None:
    """A member of a mirror loses its power, and with it what its write cache had not written yet. Data that was flushed
    and not written again since then must be on it: md's bitmap does not mark it any more, so md does not copy it when
    the member is back. This finds a disk that had flushed data only in its cache when it was cut, some 10 s later."""
    victim, survivors = rig.choose_victim("power")
    with rig.array("raid1", (victim, *survivors[:1]), bitmap="64 KiB") as array:
        with rig.stamp(array, mostly_at_rest) as load:
            load.run_for(seconds=1)
            array.wait_unmarked("512 KiB")
            with rig.cut(victim.power, when=load.something_to_lose(array)):
                array.wait_degraded()
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), resynced_by_bitmap(array), legs_hold(array), nothing_lost(array))
    rig.judge(removed(victim), returned(victim))


ARRAYS = [("raid1", 2, flushed_writes), ("raid5", 3, flushed_writes), ("raid1", 2, fua_writes)]


@pytest.mark.parametrize(("level", "members", "pattern"), ARRAYS, ids=["raid1", "raid5", "raid1-fua"])
def test_every_member_loses_its_power(rig: ScenarioRig, level: str, members: int, pattern: Stamped) -> None:
    """Every member of an array loses its power at once under load, and what their write caches had not written. When
    the disks are back, the array is assembled again. What was flushed or written with FUA is there, and they agree."""
    victim, survivors = rig.choose_victim("power")
    disks = (victim, *survivors[: members - 1])
    with rig.array(level, disks) as array, rig.stamp(array, pattern) as load:
        load.run_for(seconds=1)
        with rig.cut(*(disk.power for disk in disks), when=load.something_to_lose(array)):
            load.wait_ended()
            rig.wait(seconds=1)
        if array.stop() and array.assemble(force=True):
            array.add_missing()
            array.wait_clean()
            array.check()
    rig.judge(array_failed(array), legs_hold(array), nothing_lost(array), removed(disks), returned(disks))
