import pytest

from plugpull.checks import data_intact, found_again, removed, returned, undisturbed
from plugpull.faults import move
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X09")
def test_the_disks_of_a_dead_hub_move_to_another(rig: ScenarioRig) -> None:
    """A hub dies for good. As many of its disks as there is room for are plugged in beside it, are found there as
    themselves, and are used. Later everything is plugged in as it was."""
    move_from_dead_hub(rig, another_controller=False)


@pytest.mark.row("X10")
def test_the_disks_of_a_dead_hub_move_to_another_controller(rig: ScenarioRig) -> None:
    """A hub dies for good. Its disks are plugged in at another controller, perhaps of another make, are found there
    as themselves, and are used. Later everything is plugged in as it was."""
    move_from_dead_hub(rig, another_controller=True)


def move_from_dead_hub(rig: ScenarioRig, *, another_controller: bool) -> None:
    hub, victims, survivors = rig.choose_hub()
    elsewhere = rig.sockets_elsewhere(victims, hub, another_controller=another_controller)
    moved = [disk for disk in victims if disk.name in elsewhere]
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.cut(hub.cable), rig.fault(move(elsewhere)), rig.load(moved, sequential_write) as there:
            there.settle()
        load.regain_pace()
    rig.judge(
        removed(victims),
        found_again(moved),
        returned(victims),
        *undisturbed(survivors),
        data_intact([*survivors, *moved]),
    )
