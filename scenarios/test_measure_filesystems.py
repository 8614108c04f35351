from contextlib import ExitStack

import pytest

from plugpull.load import filesystem_counts, filesystem_design, filesystem_tasks
from plugpull.scenario import ScenarioRig
from plugpull.studies import filesystem_rates
from plugpull.targets.target import Target


@pytest.mark.study(design=filesystem_design)
@pytest.mark.row("R05")
@pytest.mark.row("R03")
@pytest.mark.row("F04")
@pytest.mark.parametrize("fstype", ["ext4", "xfs"])
def test_a_filesystem_on_a_disk_and_on_arrays(rig: ScenarioRig, fstype: str) -> None:
    """Write, rewrite, read and seeks, as bonnie++ does them, on a disk and on RAID 0 arrays of more disks. A filesystem
    whose rate falls with more disks is named, with their number."""
    for count in filesystem_counts(len(rig.disks)):
        with ExitStack() as stack:
            below: Target = rig.disks[0]
            if count > 1:
                below = stack.enter_context(rig.array("raid0", rig.disks[:count], bitmap=False))
            volume = stack.enter_context(rig.filesystem(below, fstype))
            rig.run_tasks(filesystem_tasks(volume, fstype), ordered=True)
    rig.judge(filesystem_rates(fstype))
