import pytest

from plugpull.checks import files_kept, removed, returned, undisturbed, unmountable
from plugpull.integrity.file_patterns import FileStorm, fsync_storm, rename_storm
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_power_fails_while_files_are_written(rig: ScenarioRig, fstype: str) -> None:
    """A disk loses its power while files on it are written, renamed, removed and synced. When it is back, the kernel
    recovers the filesystem, and everything is there that was synced. The other disks do not notice."""
    victim, survivors = rig.choose_victim("power")
    with (
        rig.filesystem(victim, fstype) as volume,
        rig.files(volume) as files,
        rig.load(survivors, sequential_write) as load,
    ):
        load.settle()
        files.settle()
        with rig.cut(victim.power, when=files.something_to_lose()):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(files_kept(victim), unmountable(victim), removed(victim), returned(victim), *undisturbed(survivors))


@pytest.mark.row("X14")
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3"])
def test_a_cable_comes_loose_while_files_are_written(rig: ScenarioRig, fstype: str) -> None:
    """The cable of a disk comes loose while files on it are written. The dead filesystem is unmounted while the cable
    hangs, and mounted again when it is back. Everything is there that was synced."""
    victim, _ = rig.choose_victim()
    with rig.filesystem(victim, fstype) as volume, rig.files(volume) as files:
        files.settle()
        with rig.cut(victim.cable, when=files.something_to_lose()):
            rig.wait(seconds=0.5)
            files.stop()
            volume.unmount()
    rig.judge(files_kept(victim), unmountable(victim), removed(victim), returned(victim))


@pytest.mark.row("X14")
@pytest.mark.parametrize("pattern", [rename_storm, fsync_storm], ids=["renames", "fsyncs"])
@pytest.mark.parametrize("fstype", ["ext4", "xfs"])
def test_power_fails_three_times_in_a_storm(rig: ScenarioRig, fstype: str, pattern: FileStorm) -> None:
    """A disk loses its power three times while its files do nothing but be renamed, or be appended to and synced. After
    each cut the filesystem is recovered, scanned and checked, and written again."""
    victim, _ = rig.choose_victim("power")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume, pattern) as files:
        for number in range(3):
            files.settle(seconds=0.5)
            with rig.cut(victim.power, when=files.something_to_lose()):
                pass
            if number < 2:
                files.next_round()
    rig.judge(files_kept(victim), unmountable(victim), removed(victim), returned(victim))
