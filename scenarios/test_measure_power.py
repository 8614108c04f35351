import pytest

from plugpull.load import power_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import power_drawn


@pytest.mark.study(design=power_design, meter=True)
@pytest.mark.row("X26")
def test_power_drawn_by_streams(rig: ScenarioRig) -> None:
    """The disks behind a power meter are left alone, and then 1, 2, 4 and all of them are written and read. The watts
    of each, the highest of them, the energy per GB and, if the meter is fast enough, the peak of a disk that starts
    are known. A rig without a meter cannot serve this."""
    disks = rig.metered_disks()
    rig.wait(seconds=8)  # what they draw without a load
    rig.measure(power_design(disks))
    rig.judge(power_drawn(disks))
