import pytest

from plugpull.errors import NotServed
from plugpull.load import side_by_side
from plugpull.scenario import ScenarioRig
from plugpull.studies import beside


@pytest.mark.study(design=side_by_side)
@pytest.mark.row("X27")
@pytest.mark.row("R08")
@pytest.mark.row("F03")
@pytest.mark.row("X23")
def test_controllers_side_by_side(rig: ScenarioRig) -> None:
    """The same number of disks works at once on each controller, several times in random order. A difference is claimed
    only if it is significant and worth it."""
    design = side_by_side(rig.disks)
    if not design:
        raise NotServed("this rig has scratch disks on one controller only")
    rig.measure(design)
    rig.judge(beside(rig.disks))
