import pytest

from plugpull.errors import NotServed
from plugpull.load import (
    array_baseline,
    array_cells,
    array_design,
    array_tasks,
    member_size,
    rebuild_design,
    sequential_write,
)
from plugpull.load.array_designs import BASELINE_REPEATS
from plugpull.scenario import ScenarioRig
from plugpull.studies import array_rates, rebuilds


@pytest.mark.study(design=array_design)
@pytest.mark.row("R04")
@pytest.mark.row("R09")
@pytest.mark.row("F02")
@pytest.mark.row("A02")
@pytest.mark.row("R03")
def test_arrays_of_levels_members_and_chunks(rig: ScenarioRig) -> None:
    """Arrays of each level, of more and more disks and with several chunk sizes, are written and read in whole stripes.
    An array that is far slower than its members allow, by what each does alone and all at once, is named."""
    cells = array_cells(len(rig.disks))
    if not cells:
        raise NotServed("an array needs two scratch disks")
    rig.measure(array_baseline(rig.disks), repeats=min(BASELINE_REPEATS, rig.repeats))
    for cell in cells:
        members, size = rig.disks[: cell.members], member_size(rig.disks)
        with rig.array(cell.level, members, size=size, bitmap=False, chunk=cell.chunk) as array:
            rig.run_tasks(array_tasks(array, cell))
    rig.judge(array_rates(rig.disks))


@pytest.mark.study(design=rebuild_design)
@pytest.mark.row("R06")
def test_rebuilds_without_a_load_and_with_one(rig: ScenarioRig) -> None:
    """A member is taken out of an array and rebuilt, several times: once while nothing else happens, and once while the
    array is written. How long the rebuild takes is measured, and what the load adds to it."""
    level, members = ("raid5", rig.disks[:4]) if len(rig.disks) > 2 else ("raid1", rig.disks)
    with rig.array(level, members, size=member_size(members), bitmap=False) as array:
        for _ in range(rig.repeats):
            array.take_out(members[-1])
            array.rebuild(members[-1])
            array.take_out(members[-1])
            with rig.keep_busy(array, sequential_write) as load:
                load.settle(seconds=0.5)
                array.rebuild(members[-1])
    rig.judge(rebuilds(rig.repeats))
