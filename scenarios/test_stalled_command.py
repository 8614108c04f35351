import pytest

from plugpull.checks import data_intact, recovered, undisturbed
from plugpull.errors import NotServed
from plugpull.load import sequential_read, sequential_write
from plugpull.scenario import ScenarioRig

OFTEN = 6
"""The kernel repeats a command five times (SD_MAX_RETRIES, drivers/scsi/sd.h), and uses two requests in turn for a disk
that takes one command at once (``nr_requests``). Of 11 times, one of them had more than five."""


@pytest.mark.row("X19")
def test_a_command_is_not_answered(rig: ScenarioRig) -> None:
    """All disks are written, and one does not answer a command until the kernel gives it up, aborts it and resets the
    disk. The command is sent again: its user sees no error, all data is there, and the others do not notice."""
    victim, survivors = rig.choose_victim()
    if not survivors:
        raise NotServed(f"no other scratch disk can be watched while {victim} stands still")
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.load(victim, sequential_write) as writing:
            writing.settle(seconds=1)
            with rig.stalled(victim):
                pass  # it is over when the disk works, and no later write covers what was lost
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact([victim, *survivors]))


@pytest.mark.row("X19")
def test_a_read_is_not_answered(rig: ScenarioRig) -> None:
    """As before, while all disks are read. Afterwards all data is still there."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_read) as load:
        load.settle()
        with rig.stalled(victim):
            rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact(rig.disks))


@pytest.mark.row("X19")
def test_a_command_is_not_answered_when_it_is_sent_again(rig: ScenarioRig) -> None:
    """A disk does not answer a command, and not when it is sent again, so that an abort is not enough. The kernel sends
    the disk nothing more, resets it, asks whether it is ready, and goes on. No user sees an error."""
    victim, survivors = rig.choose_victim()
    if not survivors:
        raise NotServed(f"no other scratch disk can be watched while {victim} stands still")
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.load(victim, sequential_write) as writing:
            writing.settle(seconds=1)
            with rig.stalled(victim, times=2):
                pass  # it is over when the disk works, and no later write covers what was lost
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact([victim, *survivors]))


@pytest.mark.row("X19")
def test_a_disk_stands_still_now_and_then(rig: ScenarioRig) -> None:
    """A disk does not answer a command, and works again. Twice more, some seconds apart, it does not answer one when it
    is sent again either, so that it is reset. Then it stands still more often than a command may be repeated. Nothing
    that the kernel remembers of one time adds up: the disk stays in service, and no user sees an error.
    """
    victim, survivors = rig.choose_victim()
    if not survivors:
        raise NotServed(f"no other scratch disk can be watched while {victim} stands still")
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.load(victim, sequential_write) as writing:
            writing.settle(seconds=1)
            for times in (1, 2, 2, *[1] * OFTEN):
                with rig.stalled(victim, times):
                    pass  # it is over when the disk works
                rig.wait(seconds=1)
        load.regain_pace()
    rig.judge(recovered(victim), *undisturbed(survivors), data_intact([victim, *survivors]))
