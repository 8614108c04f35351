import pytest

from plugpull.load import sweep_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import transfer_size


@pytest.mark.study(design=sweep_design, repeats=1)
@pytest.mark.row("X19")
def test_the_largest_safe_transfer_size(rig: ScenarioRig) -> None:
    """All disks are read and written with larger and larger requests, one at a time. Their real size is proved from the
    counters. A disk that completes nothing for seconds, or fails, is tried again alone with the largest safe size and
    with the failing one; then the largest safe size is named, with the udev rule and the quirk that enforce it."""
    rig.sweep_sizes(rig.disks)
    rig.judge(transfer_size(rig.disks))
