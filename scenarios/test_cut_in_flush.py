import pytest

from plugpull.checks import kernel_clean, nothing_left, nothing_lost, nothing_stuck, removed, returned
from plugpull.integrity.patterns import Stamped, Writing
from plugpull.scenario import ScenarioRig

flushed_often = Stamped("random 4 KiB writes, a flush every 16", Writing(flush_writes=16))


@pytest.mark.row("U02")
@pytest.mark.parametrize("kind", ["power", "cable"])
def test_a_disk_is_cut_at_the_instant_of_a_flush(rig: ScenarioRig, kind: str) -> None:
    """A disk loses its power, or its cable, three times while a flush is under way. What earlier flushes had made
    durable is there each time; the flush that was cut off had promised nothing yet."""
    victim, _ = rig.choose_victim(kind)
    with rig.stamp(victim, flushed_often) as stamps:
        for _ in range(3):
            with rig.cut(victim.power if kind == "power" else victim.cable, when=stamps.flushing(victim)):
                rig.wait(seconds=0.2)
            stamps.next_round()
    rig.judge(nothing_lost(), removed(victim), returned(victim), kernel_clean(), nothing_left(), nothing_stuck())
