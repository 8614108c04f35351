from plugpull.checks import array_survived, files_kept, removed, returned
from plugpull.scenario import ScenarioRig


def test_a_filesystem_on_an_array_does_not_notice(rig: ScenarioRig) -> None:
    """Files are written on a filesystem on a RAID 5. A member of the array is unplugged, and later put back while the
    writing goes on. Everything is there that was synced."""
    victim, survivors = rig.choose_victim()
    with rig.array("raid5", (victim, *survivors[:2]), size="12 MiB") as array:
        with rig.filesystem(array) as volume, rig.files(volume) as files:
            files.settle()
            with rig.cut(victim.cable, when=files.something_to_lose()):
                array.wait_degraded()
                rig.wait(seconds=1)
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), files_kept(array), removed(victim), returned(victim))
