import pytest

from plugpull.checks import data_intact, kernel_clean, nothing_left, nothing_stuck, removed, returned
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig
from plugpull.targets.disk import RigDisk


@pytest.mark.row("X20")
@pytest.mark.parametrize("cpus", [1, 8], ids=["one CPU", "all CPUs"])
def test_disks_by_number_and_place(rig: ScenarioRig, cpus: int) -> None:
    """One disk, then two, then all of a place are written at once: those plugged in directly, then those behind hubs;
    with one CPU, and with all. Each time one of them is cut and comes back. The machine survives every combination."""
    rig.choose_victim()  # skips a rig without a cable that can be cut
    hubs = {hub.name for hub in rig.hubs}
    places: dict[bool, list[RigDisk]] = {False: [], True: []}
    for disk in rig.disks:
        if disk.has("cable"):
            places[disk.socket.partition(".")[0] in hubs].append(disk)
    used = [disks for disks in places.values() if disks]
    with rig.processors(cpus):
        for disks in used:
            for count in sorted({1, min(2, len(disks)), len(disks)}):
                with rig.load(disks[:count], sequential_write) as load:
                    load.settle(seconds=1)
                    with rig.cut(disks[0].cable):
                        rig.wait(seconds=0.3)
    cut = [disks[0] for disks in used]
    rig.judge(removed(cut), returned(cut), data_intact(), kernel_clean(), nothing_left(), nothing_stuck())
