import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X08")
def test_a_hub_is_gone_for_a_while(rig: ScenarioRig) -> None:
    """A hub loses its cable while everything is written: all disks below it go, and all come back."""
    hub, victims, survivors = rig.choose_hub()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(hub.cable, when=load.moved(victims[0], "1 MiB")):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(
        removed(victims),
        returned(victims),
        *undisturbed(survivors),
        data_intact(rig.disks),
    )
