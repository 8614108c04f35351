import pytest

from plugpull.checks import data_intact, recovered, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X19")
def test_a_command_is_not_answered(rig: ScenarioRig) -> None:
    """All disks are written, and one does not answer a command until the kernel gives it up, aborts it and resets the
    disk. The command is sent again: its user sees no error, all data is there, and the others do not notice."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.stalled(victim):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact(rig.disks))


@pytest.mark.row("X19")
def test_a_command_is_not_answered_when_it_is_sent_again(rig: ScenarioRig) -> None:
    """A disk does not answer a command, and not when it is sent again, so that an abort is not enough. The kernel sends
    the disk nothing more, resets it, asks whether it is ready, and goes on. No user sees an error."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.stalled(victim, times=2):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact(rig.disks))


def test_a_cable_is_cut_while_the_error_handler_runs(rig: ScenarioRig) -> None:
    """A disk does not answer a command, and not when it is sent again. Its cable comes loose 2 s after it answers, when
    a driver may still be resetting it, and is put back. The disk comes back, and the others do not notice."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.stalled(victim, times=2):
            rig.wait(seconds=2)
            with rig.cut(victim.cable):
                rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(removed(victim), returned(victim), *undisturbed(survivors), data_intact(survivors))


def test_another_cable_is_cut_while_the_error_handler_runs(rig: ScenarioRig) -> None:
    """A disk does not answer a command. While the kernel aborts it and resets the disk, the cable of another comes
    loose, and is put back. The one is recovered, the other comes back, and the rest is not disturbed."""
    stalled, victim, others = rig.choose_two()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.stalled(stalled), rig.cut(victim.cable):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(recovered(stalled), removed(victim), returned(victim), *undisturbed(others))
