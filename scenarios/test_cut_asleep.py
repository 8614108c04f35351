from plugpull.checks import data_intact, kernel_clean, nothing_left, nothing_stuck, removed, returned
from plugpull.load import idle
from plugpull.scenario import ScenarioRig


def test_a_cable_is_cut_while_the_machine_sleeps(rig: ScenarioRig) -> None:
    """All disks are idle, and the machine suspends its devices for a moment. A cable is cut while it sleeps, and put
    back when it is awake. The disk is missed, comes back, and all data is there."""
    victim, _ = rig.choose_victim()
    with rig.load(rig.disks, idle), rig.suspended(seconds=3) as sleep, rig.cut(victim.cable):
        sleep.wait_awake()
        rig.wait(seconds=1)
    rig.judge(
        removed(victim), returned(victim), data_intact(rig.disks), kernel_clean(), nothing_left(), nothing_stuck()
    )


def test_a_cable_is_cut_while_the_machine_wakes(rig: ScenarioRig) -> None:
    """All disks are idle, and the machine sleeps for a moment. A cable is cut about when its devices are resumed, and
    put back a little later. The disk comes back, and all data is there."""
    victim, _ = rig.choose_victim()
    with rig.load(rig.disks, idle), rig.suspended(seconds=2):
        rig.wait(seconds=3.5)
        with rig.cut(victim.cable):
            rig.wait(seconds=4)
    rig.judge(returned(victim), data_intact(rig.disks), kernel_clean(), nothing_left(), nothing_stuck())


def test_every_disk_is_missed_after_a_sleep(rig: ScenarioRig) -> None:
    """The machine suspends its devices for a moment, and nothing happens meanwhile. Then the cable of one disk after
    the other comes loose and is put back: wherever a disk is plugged in, that is noticed."""
    rig.choose_victim()  # skips the scenario if no cable can be cut
    victims = [disk for disk in rig.disks if disk.has("cable")]
    with rig.load(rig.disks, idle):
        with rig.suspended(seconds=2) as sleep:
            sleep.wait_awake()
        for victim in victims:
            with rig.cut(victim.cable):
                rig.wait(seconds=1)
    rig.judge(
        removed(victims), returned(victims), data_intact(rig.disks), kernel_clean(), nothing_left(), nothing_stuck()
    )
