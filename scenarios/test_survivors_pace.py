import pytest

from plugpull.checks import data_intact, removed, undisturbed
from plugpull.errors import NotServed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X13")
def test_survivors_keep_their_pace(rig: ScenarioRig) -> None:
    """A disk dies under load. The others may stall for a moment while the kernel handles it; then they run as fast as
    before, or faster."""
    victim, survivors = rig.choose_victim()
    if not survivors:
        raise NotServed(f"no other scratch disk survives when the cable of {victim} is cut")
    with rig.load(rig.disks, sequential_write) as load:
        load.settle(seconds=5)
        with rig.cut(victim.cable, when=load.moved(victim, "2 MiB"), permanent=True):
            load.regain_pace(at_least=5)
    rig.judge(
        removed(victim),
        *undisturbed(survivors),
        data_intact(survivors),
    )
