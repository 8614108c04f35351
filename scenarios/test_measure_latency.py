import pytest

from plugpull.load import latency_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import latency


@pytest.mark.study(design=latency_design)
@pytest.mark.row("F06")
def test_small_synchronous_writes(rig: ScenarioRig) -> None:
    """Small synchronous writes to random places, to all disks at once. How long half of them take, and the tail as far
    as there are enough requests beyond a percentile; a disk that pauses while the others work is named."""
    rig.run_tasks(latency_design(rig.disks))
    rig.judge(latency(rig.disks))
