import pytest

from plugpull.checks import files_kept, nothing_stuck, removed, returned
from plugpull.faults import at_random
from plugpull.scenario import ScenarioRig

RECOVERIES = 3


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_power_fails_again_during_the_recovery(rig: ScenarioRig, fstype: str) -> None:
    """A disk loses its power while files on it are written, and again, three times, while the kernel recovers the
    filesystem. The recovery that comes to its end has everything that was synced."""
    victim, _ = rig.choose_victim("power")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume) as files:
        files.settle()
        with rig.cut(victim.power, when=files.something_to_lose()):
            files.stop()
            volume.unmount()
        for _ in range(RECOVERIES):
            begins = files.step_begins("mount")
            with volume.under_way("mount"), rig.cut(victim.power, when=begins):
                pass
            if volume.mounted:
                volume.unmount()
    rig.judge(files_kept(victim), removed(victim), returned(victim), nothing_stuck())


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_power_fails_while_a_filesystem_is_unmounted(rig: ScenarioRig, fstype: str) -> None:
    """A disk loses its power while its filesystem is unmounted with data that was not yet written. Everything that was
    synced is there when it is mounted again."""
    victim, _ = rig.choose_victim("power")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume) as files:
        files.settle()
        files.stop()
        begins = files.step_begins("umount")
        with volume.under_way("umount"), rig.cut(victim.power, when=begins):
            pass
    rig.judge(files_kept(victim), removed(victim), returned(victim), nothing_stuck())


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_power_fails_while_a_filesystem_is_made(rig: ScenarioRig, fstype: str) -> None:
    """A disk loses its power while a filesystem is made on it. Nothing hangs, and it can be made again and used."""
    victim, _ = rig.choose_victim("power")
    volume = rig.filesystem(victim, fstype)
    with volume.under_way("mkfs"), rig.cut(victim.power, when=at_random(0, 0.5)):
        pass
    with volume, rig.files(volume) as files:
        files.settle()
    rig.judge(files_kept(victim), removed(victim), returned(victim), nothing_stuck())
