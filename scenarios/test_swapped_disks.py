import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.faults import swap
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X09")
def test_two_disks_are_swapped(rig: ScenarioRig) -> None:
    """Two disks of one controller are written, and within milliseconds each is plugged in where the other was. Both are
    found by their identity and have their own data there. Then they are swapped back."""
    first, second, survivors = rig.choose_pair()
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.load([first, second], sequential_write) as writing:
            writing.settle(seconds=1)
            swapped = rig.fault(swap(first, second, when=writing.moved(first, "1 MiB"))).inject()
        # What they hold was read back while they were swapped.
        swapped.heal()
        load.regain_pace()
    rig.judge(removed([first, second]), returned([first, second]), *undisturbed(survivors), data_intact(rig.disks))
