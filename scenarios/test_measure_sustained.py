import pytest

from plugpull.load import all_for_long
from plugpull.scenario import ScenarioRig
from plugpull.studies import sustained


@pytest.mark.study(design=all_for_long, repeats=1)
@pytest.mark.row("U05")
def test_a_sustained_write_keeps_its_rate(rig: ScenarioRig) -> None:
    """All disks are written for long. Dips, such as for garbage collection, are named with their depth, length and
    recovery, and so is a rate that falls for good."""
    rig.measure(all_for_long(rig.disks), repeats=1)
    rig.judge(sustained(rig.disks))
