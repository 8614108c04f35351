import pytest

from plugpull.checks import files_kept, removed, returned, unmountable
from plugpull.integrity.known_sequences import KNOWN_SEQUENCES, KnownSequence
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X14")
@pytest.mark.parametrize("sequence", KNOWN_SEQUENCES, ids=str)
@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "f2fs"])
def test_power_fails_where_a_filesystem_once_lost_files(rig: ScenarioRig, fstype: str, sequence: KnownSequence) -> None:
    """A few operations on files and syncs, after which a filesystem of some kernel had lost what was synced, or could
    not be mounted. As soon as the last sync has returned, the disk loses its power. What was synced is there."""
    victim, _ = rig.choose_victim("power")
    with rig.filesystem(victim, fstype) as volume, rig.files(volume, sequence) as files:
        files.played()
        with rig.cut(victim.power):
            pass
    rig.judge(files_kept(victim), unmountable(victim), removed(victim), returned(victim))
