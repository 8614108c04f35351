"""Checks of what was cut: gone, back as itself, its users told, its filesystem unmounted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from stories import BACK, CUT, GONE, RATE, RESTORED, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import ended_with_error, ready_under_load, removed, returned, unmountable
from plugpull.checks.evidence import miswired
from plugpull.checks.removed import Removed
from plugpull.history import events as ev


def never_gone(**switch: bool | None) -> Bench:
    """The switch was told off, and the disk stayed for the rest of the story."""
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


# --- removed -----------------------------------------------------------------------------------------------


def test_removed_in_time() -> None:
    judgement = healthy().judge(removed(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst == "gone after 0.07 s (limit 1 s)"


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


# --- returned ----------------------------------------------------------------------------------------------


def test_returned_in_time_as_itself() -> None:
    judgement = healthy().judge(returned(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst == "back after 1.21 s (limit 5 s)"


def test_returned_too_late() -> None:
    (finding,) = healthy().judge(returned(VICTIM, within=1)).findings
    assert finding.summary == "disk1 came back only after 1.20 s (limit 1 s)"


@pytest.mark.parametrize("name", ["", VICTIM])
def test_it_came_back_with_another_serial(name: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, disk=name, serial="X")
    judgement = bench.judge(returned(VICTIM))
    assert [finding.summary for finding in judgement.findings] == ["disk1 came back with serial X instead of S-disk1"]
    assert "serial X" in judgement.findings[0].evidence[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": 1 << 20}, "came back with 1048576 bytes instead of 67108864"),
        ({"place": "0000:00:05.0/3:0"}, "came back at 0000:00:05.0/3:0 instead of 0000:00:05.0/1.1:0"),
        ({"speed": "12"}, "came back at 12 Mb/s instead of 480 Mb/s"),
        ({"driver": "usb-storage"}, "came back on usb-storage instead of uas"),
        ({"kname": "sdg"}, "came back as sdg although nothing held its name sdb"),
    ],
)
def test_it_came_back_changed(change: dict[str, object], said: str) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, driver="uas")
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, **change)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert said in finding.summary


HIGH, SUPER = "0000:00:05.0/usb2-1.1:0", "0000:00:05.0/usb3-1.1:0"


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        pytest.param((HIGH,), (HIGH,), [], id="the same"),
        pytest.param((SUPER,), (SUPER, HIGH), [], id="the peer is known later only"),
        pytest.param((SUPER, HIGH), (HIGH, SUPER), [], id="the other half of the socket"),
        pytest.param((), (SUPER,), [], id="recorded by an older version"),
        pytest.param((HIGH,), (SUPER,), [f"came back at {SUPER} instead of {HIGH}"], id="another socket, one place"),
    ],
)
def test_a_place_is_two_sockets(first: tuple[str, ...], then: tuple[str, ...], said: list[str]) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, sockets=first)
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, sockets=then)
    assert [finding.summary for finding in bench.judge(returned(VICTIM)).findings] == [f"disk1 {one}" for one in said]


def test_it_came_back_in_the_same_socket_on_the_slower_bus() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, sockets=(SUPER, HIGH), speed="5000")
    here = {"place": "0000:00:05.0/7.1:0", "sockets": (HIGH, SUPER), "speed": "480"}
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, **here)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert finding.summary == "disk1 came back at 480 Mb/s instead of 5000 Mb/s"


def test_another_name_is_fine_while_the_old_one_is_in_use() -> None:
    bench = healthy()
    bench.drop(ev.LoadEnded, lambda event: event.disk != VICTIM)
    bench.add(ev.LoadEnded(at=BACK + 1, disk=VICTIM, job=f"load-{VICTIM}", asked=False, exit_status=1, errno=19))
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, kname="sdg")
    assert not bench.judge(returned(VICTIM)).findings


def test_announced_with_no_bytes_before_it_came_back() -> None:
    bench = healthy()
    bench.attach(VICTIM, BACK - 0.5, size=0)
    bench.add(ev.DiskDetached(at=BACK - 0.2, disk=VICTIM, kname="sdb", diskseq=5))
    assert "came back with 0 bytes instead of 67108864 at first" in bench.judge(returned(VICTIM)).findings[0].summary


def test_there_twice() -> None:
    bench = healthy()
    bench.attach(VICTIM, BACK + 1.0, kname="sdh")
    summaries = [finding.summary for finding in bench.judge(returned(VICTIM)).findings]
    assert "disk1 is there twice, as sdb and sdh" in summaries


@pytest.mark.parametrize(("agrees", "ack"), [(False, True), (True, False)])
def test_a_doubtful_restoring_edge_says_nothing_of_the_time(agrees: bool, ack: bool) -> None:
    bench = healthy()
    bench.drop(ev.Edge, lambda event: event.state == "off")
    bench.switch("on", RESTORED, agrees=agrees, ack=ack)
    judgement = bench.judge(returned(VICTIM))
    assert not judgement.findings
    assert "how soon disk1 came back is not known" in judgement.unknowns[0]


def test_another_place_is_allowed_when_the_story_says_so() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, place="0000:00:05.0/3:0", speed="12")
    judgement = bench.judge(returned(VICTIM, same_place=False))
    assert not judgement.findings
    assert not judgement.unknowns


def never_back(**switch: bool | None) -> Bench:
    bench = healthy(until=40.0)
    bench.drop(ev.DiskAttached, lambda event: event.at != BACK)
    bench.drop(ev.Edge, lambda event: event.state == "off")
    bench.switch("on", RESTORED, **switch)  # type: ignore[arg-type]
    del bench._attached[VICTIM][1:]
    return bench


def test_it_never_came_back() -> None:
    judgement = never_back().judge(returned(VICTIM))
    assert "did not come back within 5 s of disk1.cable being restored" in judgement.findings[0].summary


@pytest.mark.parametrize(
    ("agrees", "ack", "why"),
    [
        (False, True, "read back otherwise"),
        (None, True, "cannot tell whether it is on again"),
        (True, False, "did not acknowledge on"),
    ],
)
def test_it_never_came_back_and_the_switch_may_be_to_blame(agrees: bool | None, ack: bool, why: str) -> None:
    judgement = never_back(agrees=agrees, ack=ack).judge(returned(VICTIM))
    assert not judgement.findings
    assert why in judgement.unknowns[0]


def test_it_never_came_back_as_far_as_was_watched() -> None:
    bench = never_back()
    bench.until = 20.0
    bench.events = [event for event in bench.events if (event.at or 0) <= 20.0]
    judgement = bench.judge(returned(VICTIM))
    assert not judgement.findings
    assert "the record ends" in judgement.unknowns[0]


def test_a_permanent_cut_has_no_return() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    judgement = bench.judge(returned(VICTIM))
    assert not judgement.findings
    assert "never switched on" in judgement.unknowns[0]


def test_a_port_that_comes_back_by_itself_is_the_switchs_doing() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, at=CUT + 1)
    judgement = bench.judge(returned(VICTIM))
    assert not judgement.findings
    assert "though disk1.cable was still off" in judgement.unknowns[0]


def test_back_and_gone_again() -> None:
    bench = healthy()
    bench.detach(VICTIM, 20.0)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert "was gone again 1.79 s later" in finding.summary


def test_a_disk_that_never_left_cannot_return() -> None:
    judgement = never_gone().judge(returned(VICTIM))
    assert judgement.unknowns == ("disk1 was never seen gone, so it could not come back",)


# --- ended_with_error, unmountable, ready_under_load ---------------------------------------------------------


def test_the_load_of_the_victim_ended_with_an_error() -> None:
    judgement = healthy().judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert "after 0.09 s" in judgement.worst


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"at": CUT + 6}, "only after 6.00 s (limit 5 s)"),
        ({"asked": True, "errno": 0}, "went on until it was asked to stop"),
        ({"stuck": True}, "could not be ended"),
        ({"errno": 0, "exit_status": 0}, "ended without an error"),
    ],
)
def test_the_load_of_the_victim_did_not_end_as_it_should(change: dict[str, object], said: str) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, **change)
    (finding,) = bench.judge(ended_with_error(VICTIM, within=5)).findings
    assert said in finding.summary


def test_a_load_on_a_disk_that_stayed_need_not_end() -> None:
    judgement = never_gone().judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert judgement.unknowns


def test_a_load_whose_end_is_not_recorded() -> None:
    bench = healthy()
    bench.drop(ev.LoadEnded)
    assert "was not recorded" in bench.judge(ended_with_error(VICTIM)).unknowns[0]


def mounted(at: float = 12.0, *, ok: bool = True) -> Bench:
    bench = healthy()
    bench.add(ev.Acted(at=at, action="mount", disk=VICTIM, ok=ok, seconds=0.1))
    return bench


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("tried", [True, False])
def test_a_filesystem_that_was_never_mounted_proves_nothing(tried: bool, ok: bool) -> None:
    bench = mounted(ok=False) if tried else healthy()
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=ok, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns == (f"the filesystem on {VICTIM} was not mounted, so nothing is known of unmounting it",)
    assert judgement.worst == ""


@pytest.mark.parametrize(("mount", "umount"), [(12.0, CUT - 0.5), (20.0, 21.0)])
def test_a_filesystem_that_was_not_mounted_at_the_cut_proves_nothing(mount: float, umount: float) -> None:
    bench = mounted(mount)
    bench.add(ev.Acted(at=umount, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns == (f"the filesystem on {VICTIM} was not mounted when {VICTIM}.cable was cut",)


def test_a_filesystem_that_was_unmounted_twice_was_not_mounted_the_second_time() -> None:
    bench = mounted()
    for at in (20.0, 21.0):
        bench.add(ev.Acted(at=at, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    assert "was not mounted" in bench.judge(unmountable(VICTIM)).unknowns[0]


def test_an_unmounting_that_worked_at_the_second_try() -> None:
    bench = mounted()
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail="target is busy"))
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_a_survivor_is_unmounted_without_a_cut_of_its_own() -> None:
    bench = healthy()
    bench.add(ev.Acted(at=12.0, action="mount", disk=SURVIVORS[0], ok=True, seconds=0.1))
    bench.add(ev.Acted(at=14.0, action="umount", disk=SURVIVORS[0], ok=True, seconds=0.1))
    judgement = bench.judge(unmountable(SURVIVORS[0]))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_unmounting() -> None:
    bench = mounted()
    assert bench.judge(unmountable(VICTIM)).unknowns == ("nobody tried to unmount disk1",)
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert "took 0.20 s" in bench.judge(unmountable(VICTIM, within=0.1)).findings[0].summary
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail="target is busy"))
    assert "target is busy" in bench.judge(unmountable(VICTIM)).findings[0].summary


def test_an_error_that_came_late() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, at=CUT + 6)
    assert "only after 6.00 s (limit 5 s)" in bench.judge(ended_with_error(VICTIM)).findings[0].summary
    assert not bench.judge(ended_with_error(VICTIM, within=30)).findings
    bench.starved = ((CUT + 1, CUT + 4),)
    judgement = bench.judge(ended_with_error(VICTIM))
    assert not judgement.findings
    assert "the DUT was starved meanwhile" in judgement.unknowns[0]


def test_unmounting_that_took_long() -> None:
    bench = mounted()
    bench.add(ev.Acted(at=24.0, action="umount", disk=VICTIM, ok=True, seconds=5.5))
    assert "took 5.50 s (limit 5 s)" in bench.judge(unmountable(VICTIM)).findings[0].summary
    assert not bench.judge(unmountable(VICTIM, within=30)).findings
    bench.starved = ((20.0, 22.0),)
    assert "the DUT was starved meanwhile" in bench.judge(unmountable(VICTIM)).unknowns[0]


def cut_often(idle: Iterable[float], busy: Iterable[float]) -> Bench:
    """The victim is cut again and again: seconds that each return took, first while the others are busy."""
    busy, idle = list(busy), list(idle)
    bench = healthy(until=30.0 + 5 * (len(busy) + len(idle)))
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at < CUT)
    bench._attached[VICTIM].pop()
    bench.attach(VICTIM, RESTORED + busy[0])
    at = 28.0
    for disk in SURVIVORS:
        bench.load(disk, at - 1, at + 5.0 * (len(busy) - 1))
    for number, took in enumerate([*busy[1:], *idle], start=2):
        bench.arm(at - 0.1, cut=number)
        bench.switch("off", at, cut=number)
        bench.detach(VICTIM, at + 0.1)
        bench.switch("on", at + 1, cut=number)
        bench.attach(VICTIM, at + 1 + took)
        at += 5.0
    return bench


OFTEN = (1.0, 1.1, 1.2)


def test_ready_under_load_against_idle() -> None:
    judgement = cut_often(OFTEN, (1.2, 1.3, 1.1)).judge(ready_under_load(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert judgement.worst.startswith(
        "ready after 1.20 s under load, 1.10 s idle (limit 1.65 s, would have noticed 0.65 s"
    )
    assert (judgement.measured, judgement.limit, judgement.smallest) == pytest.approx((1.2, 1.65, 0.65), abs=0.01)


def test_a_doubling_under_load_is_a_finding() -> None:
    (finding,) = cut_often(OFTEN, (2.2, 2.3, 2.1)).judge(ready_under_load(VICTIM)).findings
    assert finding.summary == "disk1 was ready after 2.20 s under load, 1.10 s idle (limit 1.65 s)"
    assert not cut_often(OFTEN, (2.2, 1.2, 1.1)).judge(ready_under_load(VICTIM)).findings, "one slow return in three"
    assert not cut_often((0.4, 0.4, 0.4), (0.65, 0.65, 0.6)).judge(ready_under_load(VICTIM)).findings, (
        "0.25 s are chance"
    )


def test_ready_under_load_needs_three_of_each() -> None:
    judgement = cut_often(OFTEN, (1.1,)).judge(ready_under_load(VICTIM))
    assert judgement.unknowns == ("disk1 came back 3 idle and 1 under load, and 3 of each are needed to compare",)
    assert healthy().judge(ready_under_load(VICTIM)).unknowns == ("disk1 did not come back idle: nothing to compare",)


def test_a_factor_that_the_scenario_gives_takes_one_of_each() -> None:
    judgement = cut_often((1.1,), (1.21,)).judge(ready_under_load(VICTIM, factor=3, spare=1))
    assert not judgement.findings
    assert not judgement.unknowns
    assert cut_often((0.1,), (1.21,)).judge(ready_under_load(VICTIM, factor=3, spare=1)).findings


def test_several_disks_are_each_judged() -> None:
    judgement = healthy().judge(removed([VICTIM, *SURVIVORS]))
    assert len(judgement.unknowns) == 2
    assert GONE > CUT
