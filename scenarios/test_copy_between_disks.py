import pytest

from plugpull.checks import (
    answered,
    data_intact,
    ended_with_error,
    no_errors,
    nothing_stuck,
    removed,
    returned,
    undisturbed,
)
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X18")
def test_one_disk_is_copied_onto_another(rig: ScenarioRig) -> None:
    """One disk is copied onto another for a while. The copy goes on without a pause, and in the end both hold the
    same."""
    source, target, _ = rig.choose_two()
    with rig.copy(source, target) as copying:
        copying.settle()
        rig.wait(seconds=5)
    rig.judge(answered(), no_errors([source, target]), data_intact([target]), nothing_stuck())


@pytest.mark.row("X18")
def test_the_target_of_a_copy_is_cut(rig: ScenarioRig) -> None:
    """The target of a copy loses its cable. The copy ends with an error instead of hanging, and the disk it read from
    and all others work on."""
    source, target, others = rig.choose_two()
    with rig.load(others, sequential_write) as load, rig.copy(source, target) as copying:
        load.settle()
        copying.settle(seconds=1)
        with rig.cut(target.cable, when=copying.moved(target, "256 KiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        removed(target),
        returned(target),
        ended_with_error(target),
        *undisturbed(others),
        no_errors(source),
    )
