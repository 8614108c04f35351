import pytest

from plugpull.load import scaling_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import alone, scaling


@pytest.mark.study(design=scaling_design)
@pytest.mark.row("A02")
@pytest.mark.row("F01")
@pytest.mark.row("F02")
@pytest.mark.row("R01")
@pytest.mark.row("R02")
@pytest.mark.row("R10")
@pytest.mark.row("U04")
@pytest.mark.row("X24")
@pytest.mark.row("X25")
@pytest.mark.row("X22")
def test_disks_alone_and_together(rig: ScenarioRig) -> None:
    """Each disk by itself, more and more of them at once, and all but one, several times in random order. A disk that
    is unlike the others is named. The sum of the rates grows up to a knee and stays at a ceiling where disks share a
    bottleneck; which of them share it shows when one is left out. The load's processor time is measured with it."""
    rig.wait(seconds=2.2)  # what the DUT's processors do without a load
    rig.measure(scaling_design(rig.disks))
    rig.judge(alone(rig.disks))
    if len(rig.disks) > 1:
        rig.judge(scaling(rig.disks))
