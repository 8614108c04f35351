import pytest

from plugpull.checks import data_intact, removed, undisturbed, unmountable
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X07")
def test_a_cable_is_gone_for_good(rig: ScenarioRig) -> None:
    """A cable dies under a mounted filesystem that is being written to. Nothing hangs, and the filesystem can be
    unmounted although its disk never comes back."""
    victim, survivors = rig.choose_victim()
    with rig.filesystem(victim) as volume:
        with rig.load_on_volume(victim, sequential_write) as writing, rig.load(survivors, sequential_write) as load:
            writing.settle(seconds=0.5)
            load.settle()
            with rig.cut(victim.cable, permanent=True):
                load.regain_pace(at_least=2)
        volume.unmount()
    rig.judge(
        removed(victim),
        unmountable(victim),
        *undisturbed(survivors),
        data_intact(survivors),
    )
