import pytest

from plugpull.checks import discovered, kernel_clean
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X01")
def test_every_disk_is_found_at_its_place(rig: ScenarioRig) -> None:
    """The whole tree is plugged in at once; every disk is found at its place, and is soon ready."""
    rig.judge(discovered(rig.disks), kernel_clean())
