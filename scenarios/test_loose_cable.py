import pytest

from plugpull.checks import nothing_left, returned, undisturbed
from plugpull.faults import bounce
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig

BURSTS = (
    (0.0002, 0.001, 0.0002),
    (0.002, 0.01, 0.002, 0.03, 0.005, 0.15, 0.01),
    (0.15, 0.005, 0.04, 0.02, 0.0005, 0.002, 0.1, 0.08, 0.15),
)
"""Seconds: contact lost, made, lost, ... and made again. Two to five losses, as of a plug that is half in."""


@pytest.mark.parametrize("burst", BURSTS, ids=["a touch", "loose", "shaken"])
def test_a_plug_makes_bad_contact(rig: ScenarioRig, burst: tuple[float, ...]) -> None:
    """The plug of a disk loses contact several times in a fraction of a second while everything is written. In the end
    the disk is there again, and the others did not notice."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.fault(bounce(victim.cable, gaps=burst, when=load.moved(victim, "1 MiB"))):
            pass
        load.regain_pace()
    rig.judge(returned(victim), *undisturbed(survivors), nothing_left())
