from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, resynced_by_bitmap, returned
from plugpull.integrity.patterns import Stamped, Writing
from plugpull.scenario import ScenarioRig

few_places = Stamped("4 KiB writes to 256 KiB", Writing(flush_writes=64), span=256 << 10, anchors=False)


def test_a_member_gets_only_what_it_missed(rig: ScenarioRig) -> None:
    """A member of a mirror with a bitmap is unplugged, and little is written while it is away. When it is put back,
    only that is copied to it, by the bytes that are written to the disk. The marks of the first resync are cleared
    before, which md does after some seconds."""
    victim, survivors = rig.choose_victim()
    with rig.array("raid1", (victim, *survivors[:1]), bitmap="64 KiB") as array:
        array.wait_unmarked("64 KiB")
        with rig.stamp(array, few_places) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
                rig.wait(seconds=1)
        array.readd(victim)
        array.wait_clean()
        array.check()
    rig.judge(
        array_survived(array),
        resynced_by_bitmap(array),
        legs_hold(array),
        nothing_lost(array),
        removed(victim),
        returned(victim),
    )
