import pytest

from plugpull.checks import files_kept, removed, returned, unmountable
from plugpull.integrity.file_patterns import ShortPlans
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X14")
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_power_fails_right_after_a_sync(rig: ScenarioRig, fstype: str, length: int) -> None:
    """One or two operations on files and a sync, drawn from all there are. As soon as the sync has returned, the disk
    loses its power. Five times, and each time what was synced is there."""
    victim, _ = rig.choose_victim("power")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume, ShortPlans(length)) as files:
        for number in range(5):
            files.played()
            with rig.cut(victim.power):
                pass
            if number < 4:
                files.next_round()
    rig.judge(files_kept(victim), unmountable(victim), removed(victim), returned(victim))
