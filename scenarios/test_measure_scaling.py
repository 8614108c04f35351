import pytest

from plugpull.errors import NotServed
from plugpull.load import scaling_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import scaling


@pytest.mark.study(design=scaling_design)
@pytest.mark.row("X22")
@pytest.mark.row("X24")
@pytest.mark.row("R02")
@pytest.mark.row("A02")
def test_more_and_more_disks_at_once(rig: ScenarioRig) -> None:
    """More and more disks work at once, then all but one, several times in random order. The rate grows up to a knee
    and stays at a ceiling where the disks share a bottleneck; which disks share it shows when one is left out."""
    if len(rig.disks) < 2:
        raise NotServed("this rig has only one scratch disk")
    rig.measure(scaling_design(rig.disks))
    rig.judge(scaling(rig.disks))
