import pytest

from plugpull.checks import files_kept, nothing_stuck, removed, returned, unmountable
from plugpull.errors import NotServed
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_a_dead_filesystem_holds_up_nobody(rig: ScenarioRig, fstype: str) -> None:
    """A cable comes loose under a mounted filesystem that is written, and stays off. Meanwhile another disk is plugged
    out and in again: it must come back as soon as ever, although the dead filesystem is still mounted."""
    victim, survivors = rig.choose_victim()
    others = [disk for disk in survivors if disk.has("cable")]
    if not others:
        raise NotServed("this rig has no second disk whose cable can be cut")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume) as files:
        files.settle()
        with rig.cut(victim.cable, when=files.something_to_lose()):
            with rig.cut(others[0].cable):
                rig.wait(seconds=0.5)
            rig.wait(seconds=1)
    both = (victim, others[0])
    rig.judge(files_kept(victim), unmountable(victim), removed(both), returned(both), nothing_stuck())
