import pytest

from plugpull.load import each_alone
from plugpull.scenario import ScenarioRig
from plugpull.studies import alone


@pytest.mark.study(design=each_alone)
@pytest.mark.row("R01")
@pytest.mark.row("F01")
def test_each_disk_alone(rig: ScenarioRig) -> None:
    """Each disk is written and read by itself, several times in random order. A disk that is unlike the others would
    spoil all other measurements, and is named."""
    rig.measure(each_alone(rig.disks))
    rig.judge(alone(rig.disks))
