import pytest

from plugpull.checks import (
    data_intact,
    kept_while_powered,
    kernel_clean,
    nothing_left,
    nothing_lost,
    nothing_stuck,
    removed,
    returned,
    undisturbed,
)
from plugpull.integrity.patterns import (
    Stamped,
    flushed_writes,
    fua_writes,
    hot_spot,
    sequential_stamps,
    unflushed_writes,
)
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("U02")
def test_power_fails_between_flushes(rig: ScenarioRig) -> None:
    """A disk loses its power while it is written and flushed. All flushed data is there when it comes back; data
    that it had not promised to keep may be gone. The other disks are written evenly meanwhile."""
    victim, survivors = rig.choose_victim("power")
    with rig.load(survivors, sequential_write) as load, rig.stamp(victim, flushed_writes) as stamps:
        load.settle()
        with rig.cut(victim.power, when=stamps.something_to_lose(victim)):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        nothing_lost(victim),
        data_intact(survivors),
        removed(victim),
        returned(victim),
        *undisturbed(survivors),
    )


@pytest.mark.row("U02")
def test_a_cable_comes_loose_between_flushes(rig: ScenarioRig) -> None:
    """A cable comes loose while its disk is written and flushed, and is put back. All flushed data must be there.
    If the disk kept its power, completed writes without a flush must be there too."""
    victim, survivors = rig.choose_victim()
    with rig.load(survivors, sequential_write) as load, rig.stamp(victim, flushed_writes) as stamps:
        load.settle()
        with rig.cut(victim.cable, when=stamps.moved(victim, "256 KiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(
        nothing_lost(victim),
        kept_while_powered(),
        data_intact(survivors),
        removed(victim),
        returned(victim),
        *undisturbed(survivors),
    )


@pytest.mark.row("U02")
def test_five_power_cuts_in_a_row(rig: ScenarioRig) -> None:
    """A disk loses its power five times, at random moments, while it is written and flushed. After each cut everything
    is read back, and the writing continues over the stored data."""
    victim, _ = rig.choose_victim("power")
    with rig.stamp(victim, flushed_writes) as stamps:
        for _ in range(5):
            with rig.cut(victim.power, when=stamps.something_to_lose(victim)):
                rig.wait(seconds=0.2)
            stamps.next_round()
    rig.judge(nothing_lost(), removed(victim), returned(victim), kernel_clean(), nothing_left(), nothing_stuck())


@pytest.mark.row("U02")
@pytest.mark.parametrize("pattern", [fua_writes, hot_spot, sequential_stamps], ids=["fua", "hot_spot", "sequential"])
def test_power_fails_under_other_writes(rig: ScenarioRig, pattern: Stamped) -> None:
    """A disk loses its power under other writes: with FUA, repeatedly at one place, or sequential."""
    victim, _ = rig.choose_victim("power")
    with rig.stamp(victim, pattern) as stamps, rig.cut(victim.power, when=stamps.something_to_lose(victim)):
        rig.wait(seconds=0.2)
    rig.judge(nothing_lost(), removed(victim), returned(victim), kernel_clean(), nothing_left(), nothing_stuck())


@pytest.mark.row("U02")
def test_a_cable_comes_loose_and_nothing_was_flushed(rig: ScenarioRig) -> None:
    """A disk is written and never flushed, and its cable comes loose. If the disk kept its power, all completed
    writes are there."""
    victim, _ = rig.choose_victim()
    with rig.stamp(victim, unflushed_writes) as stamps, rig.cut(victim.cable, when=stamps.moved(victim, "128 KiB")):
        rig.wait(seconds=0.2)
    rig.judge(
        nothing_lost(),
        kept_while_powered(),
        removed(victim),
        returned(victim),
        kernel_clean(),
        nothing_left(),
        nothing_stuck(),
    )
