import pytest

from plugpull.checks import array_survived, files_kept, removed, returned
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X14")
@pytest.mark.parametrize(("level", "members"), [("raid1", 2), ("raid5", 3)], ids=["raid1", "raid5"])
def test_files_outlive_a_member_of_their_array(rig: ScenarioRig, level: str, members: int) -> None:
    """Files are written on a filesystem on an array when a member is unplugged. They are written on without it, and
    while it is put back. Everything is there that was synced, and the array agrees with itself."""
    victim, survivors = rig.choose_victim()
    with rig.array(level, (victim, *survivors[: members - 1]), size="16 MiB") as array:
        with rig.filesystem(array) as volume, rig.files(volume) as files:
            files.settle()
            with rig.cut(victim.cable, when=files.something_to_lose()):
                array.wait_degraded()
                rig.wait(seconds=1)
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(files_kept(array), array_survived(array), removed(victim), returned(victim))
