from plugpull.checks import data_intact, kept_pace, kernel_clean, no_errors, removed, returned
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig

WATCHED = 40
"""Seconds. The kernel reports a hung task after 20 to 25 (see plugpull/dut/agent/timers.py), a soft lockup after 16,
and gives a SCSI command up after 15."""


def test_nothing_comes_later(rig: ScenarioRig) -> None:
    """A cable comes loose while all disks are written, and is put back. Then the machine is watched for as long as the
    kernel needs to notice a hung task, a locked-up CPU or an unanswered command."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.wait(seconds=WATCHED)
    rig.judge(
        removed(victim),
        returned(victim),
        kept_pace(survivors),
        no_errors(survivors),
        data_intact(rig.disks),
        kernel_clean(),
    )
