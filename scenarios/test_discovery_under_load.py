import pytest

from plugpull.checks import ready_under_load, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X12")
def test_a_disk_is_discovered_while_the_others_work(rig: ScenarioRig) -> None:
    """A disk is plugged in three times while all disks are idle, and three times while the others are written. Under
    load, it may take only a little longer."""
    victim, survivors = rig.choose_victim()
    for _ in range(3):
        with rig.cut(victim.cable):
            rig.wait(seconds=0.2)
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        for _ in range(3):
            with rig.cut(victim.cable):
                rig.wait(seconds=0.2)
        load.regain_pace()
    rig.judge(
        removed(victim),
        returned(victim),
        ready_under_load(victim),
        *undisturbed(survivors),
    )
