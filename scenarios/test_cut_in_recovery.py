from plugpull.checks import removed, returned, undisturbed
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
