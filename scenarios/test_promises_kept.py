import pytest

from plugpull.checks import (
    data_intact,
    kept_pace,
    kernel_clean,
    no_errors,
    nothing_left,
    nothing_lost,
    nothing_stuck,
    removed,
    returned,
)
from plugpull.faults import at_random
from plugpull.integrity.patterns import flushed_writes
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("U02")
def test_power_fails_between_flushes(rig: ScenarioRig) -> None:
    """A disk loses its power while it is written and flushed. What it said was flushed is there when it comes back;
    what it had not promised to keep may be gone. Small flushed writes vary by a half, whatever is done to the disk."""
    victim, survivors = rig.choose_victim("power")
    with rig.stamp(rig.disks, flushed_writes) as load:
        load.settle()
        with rig.cut(victim.power, when=load.moved(victim, "256 KiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        nothing_lost(),
        removed(victim),
        returned(victim),
        kept_pace(survivors, min_ratio=0.5),
        no_errors(survivors),
        kernel_clean(),
        nothing_left(),
        nothing_stuck(),
    )


@pytest.mark.row("U02")
def test_a_cable_comes_loose_between_flushes(rig: ScenarioRig) -> None:
    """A cable comes loose while its disk is written and flushed, and is put back. What it said was flushed must be
    there. The other disks run a load of fio meanwhile, which has an opinion of its own on their data."""
    victim, survivors = rig.choose_victim()
    with rig.load(survivors, sequential_write) as load, rig.stamp(victim, flushed_writes) as stamps:
        load.settle()
        with rig.cut(victim.cable, when=stamps.moved(victim, "256 KiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        nothing_lost(victim),
        data_intact(survivors),
        removed(victim),
        returned(victim),
        kept_pace(survivors),
        no_errors(survivors),
        kernel_clean(),
        nothing_left(),
        nothing_stuck(),
    )


@pytest.mark.row("U02")
def test_five_power_cuts_in_a_row(rig: ScenarioRig) -> None:
    """A disk loses its power five times, at random moments, while it is written and flushed. After each cut everything
    is read back, and the writing goes on over what is there."""
    victim, _ = rig.choose_victim("power")
    with rig.stamp(rig.disks, flushed_writes) as load:
        for _ in range(5):
            with rig.cut(victim.power, when=at_random(0.1, 0.5)):
                rig.wait(seconds=0.2)
            load.next_round()
    rig.judge(nothing_lost(), removed(victim), returned(victim), kernel_clean(), nothing_left(), nothing_stuck())
