from plugpull.checks import data_intact, recovered, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


def test_a_cable_is_cut_while_another_disk_is_recovered(rig: ScenarioRig) -> None:
    """The kernel resets one disk again and again, as its error handler does. Meanwhile the cable of another comes loose
    and is put back, three times. Both work afterwards, and the rest is not disturbed."""
    recovered, victim, others = rig.choose_two()
    with rig.load([*others, victim], sequential_write) as load:
        load.settle()
        with rig.recovering(recovered):
            for _ in range(3):
                with rig.cut(victim.cable):
                    rig.wait(seconds=0.3)
        load.regain_pace()
    with rig.load([recovered, victim], sequential_write) as load:
        load.settle(seconds=1)
    rig.judge(removed(victim), returned(victim), *undisturbed(others))


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
