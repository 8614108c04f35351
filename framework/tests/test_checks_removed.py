"""The check ``removed``: disks that were cut are gone in time, or it is known why not."""

from __future__ import annotations

import pytest
from stories import CUT, GONE, RATE, RESTORED, VICTIM, Bench, healthy

from plugpull.checks import removed, returned
from plugpull.checks.evidence import miswired
from plugpull.checks.record.coherent import coherent
from plugpull.checks.victims.as_declared import as_declared
from plugpull.checks.victims.removed import Removed
from plugpull.history import events as ev


def never_gone(**switch: bool | None) -> Bench:
    """The switch was commanded off, and the disk stayed for the rest of the story."""
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.drop(ev.Uevent)
    bench.drop(ev.KernelMessage, lambda event: "disconnect" not in event.text)
    bench.drop(ev.DiskAttached, lambda event: event.at < CUT)
    bench.drop(ev.Edge)
    bench.drop(ev.LoadEnded, lambda event: event.disk != VICTIM)
    bench.add(ev.LoadEnded(at=24.3, disk=VICTIM, job=f"load-{VICTIM}", asked=True, asked_at=24.0))
    bench.switch("off", CUT, **switch)  # type: ignore[arg-type]
    del bench._attached[VICTIM][1:]
    bench._attached[VICTIM] = [(10.4, float("inf"), "sdb", 1)]
    return bench


def test_removed_in_time() -> None:
    judgement = healthy().judge(removed(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst == "gone after 0.07 s (limit 1 s)"


def test_an_uevent_that_was_read_late_is_not_a_late_removal() -> None:
    bench = healthy()
    bench.replace(ev.DiskDetached, at=GONE + 2.5)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert bench.judge(coherent()).unknowns, "it was not in the samples meanwhile"


def test_removed_too_late() -> None:
    judgement = healthy().judge(removed(VICTIM, within=0.05))
    assert "disk1 was removed 0.06 s after disk1.cable was cut" in judgement.findings[0].summary


@pytest.mark.parametrize("within", [0.059, 0.061])
def test_within_the_error_of_the_clocks_nothing_is_concluded(within: float) -> None:
    judgement = healthy().judge(removed(VICTIM, within=within))
    assert not judgement.findings
    assert "with clocks known to" in judgement.unknowns[0]


def test_a_clock_that_is_hardly_known_makes_a_late_removal_unknown() -> None:
    bench = healthy()
    bench.replace(ev.Edge, error=2.5)
    judgement = bench.judge(removed(VICTIM, within=1.0))
    assert not judgement.findings
    assert "too close to the limit of 1 s" in judgement.unknowns[0]


def test_removed_only_when_it_was_plugged_in_again() -> None:
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.drop(ev.Uevent)
    bench.add(ev.DiskDetached(at=RESTORED + 0.1, disk=VICTIM, kname="sdb", diskseq=1))
    bench._attached[VICTIM][0] = (10.4, RESTORED + 0.1, "sdb", 1)
    (finding,) = bench.judge(removed(VICTIM, within=5)).findings
    assert "and only after it was restored" in finding.summary


def test_a_cut_that_is_over_before_the_kernel_notices_it_may_remove_the_disk_afterwards() -> None:
    bench = healthy()
    bench.replace(ev.Edge, lambda event: event.state == "on", at=CUT + 0.03)
    judgement = bench.judge(removed(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "was removed 0.06 s" in bench.judge(removed(VICTIM, within=0.05)).findings[0].summary


def plugged_in_again(speed: str, gone: float, off_for: float = 0.2) -> Bench:
    """Something was at the port again ``off_for`` seconds after the cut, and the disk was removed at ``gone``."""
    bench = healthy()
    bench.replace(ev.Edge, lambda event: event.state == "on", at=CUT + off_for)
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, speed=speed)
    bench.replace(ev.DiskDetached, at=gone)
    bench.replace(ev.Uevent, at=gone - 0.01)
    bench.replace(ev.KernelMessage, lambda event: "USB disconnect" in event.text, at=gone - 0.02)
    bench._attached[VICTIM][0] = (10.4, gone, "sdb", 1)
    return bench


def test_the_kernel_asks_a_superspeed_device_that_is_there_again_for_five_seconds() -> None:
    """hub_port_connect_change reads the descriptor of the device that it knows, and nobody answers."""
    assert plugged_in_again("5000", CUT + 4.4).judge(removed(VICTIM)).findings == ()
    late = (
        plugged_in_again("5000", CUT + 6.2),
        plugged_in_again("480", CUT + 4.4),
        plugged_in_again("5000", CUT + 4.4, off_for=1.0),
    )
    for bench in late:
        assert "disk1 was removed" in bench.judge(removed(VICTIM)).findings[0].summary
    assert "(limit 6 s)" in late[0].judge(removed(VICTIM)).findings[0].summary


@pytest.mark.parametrize(("speed", "twice"), [("5000", 0), ("480", 1)])
def test_meanwhile_it_may_be_attached_a_second_time_where_it_is_now(speed: str, twice: int) -> None:
    bench = plugged_in_again(speed, CUT + 4.4)
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at < CUT)
    bench.attach(VICTIM, CUT + 1.5, kname="sdq", speed=speed)
    assert len([one for one in bench.judge(as_declared()).findings if "attached twice" in one.summary]) == twice


def test_where_uevents_are_missing_its_removal_may_be_one_of_them() -> None:
    bench = plugged_in_again("480", CUT + 4.4)
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at < CUT)
    bench.attach(VICTIM, CUT + 1.5, kname="sdq", speed="480")
    bench.drop(ev.Uevent)
    for at, number in ((12.0, 7), (13.0, 8), (20.0, 12)):
        bench.add(ev.Uevent(at=at, action="change", subsystem="usb", devpath="/devices/x", seqnum=number, others=0))
    judgement = bench.judge(as_declared())
    assert judgement.findings == ()
    assert any("attached twice" in doubt for doubt in judgement.unknowns)


def test_a_removal_that_only_the_samples_show_is_a_contradiction() -> None:
    bench = healthy()
    bench.drop(ev.DiskDetached)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert "the record contradicts itself" in judgement.unknowns[0]


def test_time_in_which_the_dut_was_starved_does_not_count() -> None:
    bench = healthy()
    bench.starved = ((CUT - 0.1, CUT + 1.9),)
    bench.drop(ev.DiskDetached)
    bench.drop(ev.Uevent)
    bench.add(ev.DiskDetached(at=CUT + 1.95, disk=VICTIM, kname="sdb", diskseq=1))
    bench._attached[VICTIM][0] = (10.4, CUT + 1.95, "sdb", 1)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    bench.starved = ()
    assert bench.judge(removed(VICTIM)).findings


def test_asked_about_no_disk() -> None:
    assert healthy().judge(removed(())).unknowns == ("removed was asked about no disk",)
    assert healthy().judge(returned(())).unknowns == ("returned was asked about no disk",)


def test_all_victims_are_judged_when_none_is_named() -> None:
    assert healthy().judge(removed(None)).subject == VICTIM
    assert healthy().judge(returned(None)).subject == VICTIM
    assert healthy().judge(Removed(None, besides=(VICTIM,))).subject == ""


def swapped() -> Bench:
    """The switch said off for disk1, disk1 stayed, and disk2 left."""
    bench = never_gone()
    bench.detach("disk2", GONE)
    return bench


def test_outlets_that_are_swapped_are_nobodys_fault() -> None:
    story = swapped().story()
    assert "the outlets look swapped" in miswired(story)
    assert miswired(healthy().story()) == ""
    judgement = swapped().judge(removed(VICTIM))
    assert not judgement.findings
    assert "the outlets look swapped" in judgement.unknowns[0]


def test_a_kernel_that_keeps_a_disk_whose_bytes_stopped() -> None:
    bench = never_gone()
    bench.pace = lambda disk, at: 0.0 if disk == VICTIM and at > CUT else RATE
    judgement = bench.judge(removed(VICTIM))
    assert "still on the kernel's list 1 s after" in judgement.findings[0].summary
    assert judgement.findings[0].at == CUT + 0.01 + 1


def test_a_board_without_read_back_does_not_accuse_a_kernel_that_saw_nothing() -> None:
    bench = never_gone(agrees=None)
    bench.pace = lambda disk, at: 0.0 if disk == VICTIM and at > CUT else RATE
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert judgement.unknowns == (
        (
            "disk1 stayed and the kernel saw nothing, so whether disk1.cable was cut is not known "
            "(no read-back: verified by its effect alone)"
        ),
    )


def test_a_switch_that_cut_nothing_is_not_the_kernels_fault() -> None:
    judgement = never_gone().judge(removed(VICTIM))
    assert not judgement.findings
    expected = "the switch cables port 1 said off, but disk1 stayed: the switch cut nothing"
    assert judgement.unknowns[0].startswith(expected)


def test_an_idle_disk_that_stayed_proves_nothing() -> None:
    bench = never_gone()
    bench.drop(ev.LoadBegun)
    bench.drop(ev.LoadEnded)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert "no load was on disk1" in judgement.unknowns[0]


@pytest.mark.parametrize(
    ("agrees", "ack", "why"),
    [(False, True, "read back otherwise"), (True, False, "did not acknowledge off")],
)
def test_a_switch_that_is_in_doubt(agrees: bool, ack: bool, why: str) -> None:
    judgement = never_gone(agrees=agrees, ack=ack).judge(removed(VICTIM))
    assert not judgement.findings
    assert why in judgement.unknowns[0]


def test_a_cut_that_was_never_made() -> None:
    bench = never_gone()
    bench.drop(ev.Edge)
    assert bench.judge(removed(VICTIM)).unknowns == ("disk1.cable was not cut: it was never switched off",)


def test_a_disk_outside_every_cut() -> None:
    judgement = healthy().judge(removed("disk2"))
    assert judgement.unknowns == ("disk2 was never cut, so its removal cannot be judged",)


def test_removal_is_not_known_once_the_agent_is_silent() -> None:
    bench = never_gone()
    bench.until = CUT + 0.5
    bench.events = [event for event in bench.events if (event.at or 0) <= CUT + 0.5]
    bench.add(ev.AgentLost(at=18.0, why="no answer", last_heard=CUT + 0.5))
    bench.drop(ev.LoadEnded, lambda event: False)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert "whether disk1 was removed is not known" in judgement.unknowns[0]


def test_a_glitch_too_short_to_notice() -> None:
    bench = never_gone()
    bench.pace = lambda disk, at: 0.0 if disk == VICTIM and at > CUT else RATE
    bench.switch("on", CUT + 0.5)
    judgement = bench.judge(removed(VICTIM))
    assert not judgement.findings
    assert "was off for only 0.49 s" in judgement.unknowns[0]
