"""The check ``returned``: disks come back in time as themselves."""

from __future__ import annotations

import pytest
from stories import BACK, CUT, RESTORED, VICTIM, Bench, healthy
from test_checks_removed import never_gone

from plugpull.checks import returned
from plugpull.checks.record.coherent import coherent
from plugpull.history import events as ev


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


def test_a_disk_that_left_while_the_agent_read_what_it_was() -> None:
    bench = healthy()
    bench.attach(VICTIM, BACK - 0.5, diskseq=0, size=0, serial="")
    bench.detach(VICTIM, BACK - 0.4)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert finding.summary == "disk1 came back and was gone again before it was read"
    assert bench.judge(coherent()).unknowns == ()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK - 0.5, serial="X")
    assert "came back with serial X instead of S-disk1" in bench.judge(returned(VICTIM)).findings[0].summary


def test_a_disk_without_a_number_that_stays() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, diskseq=0)
    assert any("was sampled and had never been attached" in what for what in bench.judge(coherent()).unknowns)


def test_there_twice() -> None:
    bench = healthy()
    bench.attach(VICTIM, BACK + 1.0, kname="sdh")
    summaries = [finding.summary for finding in bench.judge(returned(VICTIM)).findings]
    assert "disk1 is attached twice, as sdb and sdh" in summaries


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
        (None, True, "does not report whether it is on again"),
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


def power_cycled(bench: Bench, back: float | None) -> Bench:
    """The disk stays away when its cable is restored. Its power is cut at 20 s and restored at 21 s."""
    bench.drop(ev.DiskAttached, lambda event: event.at != BACK)
    bench._attached[VICTIM] = bench._attached[VICTIM][:1]
    point = {"cut": 2, "point": f"{VICTIM}.power"}
    bench.add(ev.CutArmed(at=19.9, mechanism="mains", trigger="at once", victims=(VICTIM,), **point))  # type: ignore[arg-type]
    for state, at in (("off", 20.0), ("on", 21.0)):
        for phase in ("commanded", "acknowledged", "read-back"):
            edge = {"switch": "mains", "port": "1", "state": state, "phase": phase, "error": 0.002}
            bench.add(ev.Edge(at=at, **point, **edge))  # type: ignore[arg-type]
    if back is not None:
        bench.attach(VICTIM, back)
    return bench


def test_a_disk_that_needs_a_power_cycle() -> None:
    judgement = power_cycled(healthy(), 22.5).judge(returned(VICTIM, within=2))
    (finding,) = judgement.findings
    assert finding.summary == (
        "disk1 did not come back within 2 s of disk1.cable being restored; it needs a power cycle: it was back 1.50 s "
        "after disk1.power was restored"
    )
    assert not judgement.unknowns
    (conclusion,) = judgement.conclusions
    assert (conclusion.kind, conclusion.subject) == ("needs-power-cycle", "disk1")
    assert conclusion.evidence[0] == finding.summary


def test_a_disk_that_even_a_power_cycle_does_not_bring_back() -> None:
    judgement = power_cycled(healthy(), None).judge(returned(VICTIM, within=2))
    (finding,) = judgement.findings
    assert finding.summary == "disk1 did not come back within 2 s of disk1.cable being restored"
    assert not judgement.unknowns
    assert not judgement.conclusions


def test_a_disk_that_left_before_any_cut_is_unknown_at_the_next() -> None:
    bench = healthy()
    bench.drop(ev.DiskAttached)
    assert "disk1 was not there" in bench.judge(returned(VICTIM)).unknowns[0]


def often(speeds: tuple[str, ...]) -> Bench:
    """The victim is cut once for each of these speeds, with which it comes back."""
    bench = healthy()
    bench.drop(ev.DiskAttached, lambda event: event.at != BACK)
    bench.drop(ev.DiskDetached)
    bench.drop(ev.CutArmed)
    bench.drop(ev.Edge)
    bench._attached[VICTIM] = bench._attached[VICTIM][:1]
    for number, speed in enumerate(speeds):
        begin = 14.0 + 2 * number
        bench.add(
            ev.CutArmed(
                at=begin - 0.1, cut=number + 1, point=f"{VICTIM}.cable", mechanism="data", trigger="", victims=(VICTIM,)
            )
        )
        bench.switch("off", begin, cut=number + 1)
        bench.detach(VICTIM, begin + 0.1)
        bench.switch("on", begin + 0.5, cut=number + 1)
        bench.attach(VICTIM, begin + 1.0, speed=speed)
    return bench


def test_a_link_that_falls_back_now_and_then_is_found_with_how_often() -> None:
    (finding,) = often(("480", "12", "12", "480", "12")).judge(returned(VICTIM)).findings
    assert finding.summary == "disk1 came back at 12 Mb/s instead of 480 Mb/s in 3 of 5 returns (60%)"
    assert len(finding.evidence) == 3
    assert often(("480", "480", "480")).judge(returned(VICTIM)).findings == ()
    assert often(("", "480", "")).judge(returned(VICTIM)).findings == ()
