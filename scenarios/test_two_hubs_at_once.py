import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.faults import cut, held, together
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X08")
def test_two_hubs_are_cut_at_once(rig: ScenarioRig) -> None:
    """Two hubs lose their cables at the same moment while everything is written, and get them back one second apart.
    All disks below them go, and all come back."""
    first, second = rig.choose_hubs(2)
    points = (first.cable, second.cable)
    survivors = rig.survivors_of(*points)
    victims = [disk for disk in rig.disks if disk not in survivors]
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        moment = load.moved(victims[0], "1 MiB")
        with rig.fault(together(held(cut(points[0], when=moment), 1), held(cut(points[1], when=moment), 2))):
            load.regain_pace()
    rig.judge(removed(victims), returned(victims), *undisturbed(survivors), data_intact(rig.disks))
