import pytest

from plugpull.checks import nothing_left, returned, same_properties
from plugpull.scenario import ScenarioRig


@pytest.mark.row("U03")
def test_the_link_is_as_fast_after_every_cut(rig: ScenarioRig) -> None:
    """An idle disk is unplugged and plugged in twelve times. Each time it comes back as itself, with its driver, and
    with a link that is as fast and as wide as before: one that falls back now and then is found, with how often."""
    victim, _ = rig.choose_victim()
    for _ in range(12):
        with rig.cut(victim.cable):
            rig.wait(seconds=0.2)
        rig.wait(seconds=0.2)  # until the DUT has read how wide the link is, and how the disk is driven
    rig.judge(returned(victim), same_properties(), nothing_left())
