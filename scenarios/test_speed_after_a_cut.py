import pytest

from plugpull.checks import data_intact, removed, returned
from plugpull.load import all_at_once, sequential_write
from plugpull.scenario import ScenarioRig
from plugpull.studies import recovery_cost


@pytest.mark.row("X13")
def test_disks_are_as_fast_after_a_cut_as_before(rig: ScenarioRig) -> None:
    """All disks are measured, then a cable comes loose under load and is put back, and all are measured again. The
    victim and the survivors are as fast as before, or it is said by how much they are not."""
    victim, survivors = rig.choose_victim()
    rig.measure(all_at_once(rig.disks))
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.cable):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.measure(all_at_once(rig.disks))
    rig.judge(removed(victim), returned(victim), data_intact(rig.disks), recovery_cost(victim, survivors))
