import pytest

from plugpull.checks import (
    data_intact,
    kernel_clean,
    no_errors,
    nothing_left,
    nothing_stuck,
    removed,
    returned,
    undisturbed,
)
from plugpull.faults import at_random
from plugpull.load import idle, sequential_read, sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X06")
def test_while_idle(rig: ScenarioRig) -> None:
    """A cable comes loose while the disks are idle, and is put back."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, idle), rig.cut(victim.cable, when=at_random(0.1, 0.5)):
        rig.wait(seconds=1)
    rig.judge(
        removed(victim),
        returned(victim),
        no_errors(survivors),
        data_intact(rig.disks),
        kernel_clean(),
        nothing_left(),
        nothing_stuck(),
    )


@pytest.mark.row("X06")
def test_while_reading(rig: ScenarioRig) -> None:
    """A cable comes loose while all disks are read, and is put back. The others read on at their pace."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_read) as load:
        load.settle()
        with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        removed(victim),
        returned(victim),
        *undisturbed(survivors),
        data_intact(rig.disks),
    )


@pytest.mark.row("X06")
def test_while_writing(rig: ScenarioRig) -> None:
    """A cable comes loose while all disks are written, and is put back. The others write on at their pace, and all
    written data is there."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        removed(victim),
        returned(victim),
        *undisturbed(survivors),
        data_intact(rig.disks),
    )
