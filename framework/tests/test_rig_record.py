"""A record that is not of the rig in its rig file, or holds what nobody on record did: each defect, and the healthy
story."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from stories import BACK, CUT, LAST, RIG, STOPPED, SURVIVORS, VICTIM, Bench, healthy, later
from test_kernel_scope import bench as on_usb
from watched import watched

from plugpull.checks.dut.kernel_clean import kernel_clean
from plugpull.checks.dut.kernel_state import state_kept
from plugpull.checks.reach import clock_doubts
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.order import disorder
from plugpull.checks.record.rig_record import PLUGGED, rig_doubts
from plugpull.checks.record.same_dut import same_dut
from plugpull.checks.record.wiring import wiring_doubts
from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.checks.victims.log_identity import another_hub, other_speeds, reset_otherwise
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def on(rig: dict[str, Any], bench: Bench | None = None) -> list[str]:
    """What is said of a bench's record beside this rig file."""
    made = healthy() if bench is None else bench
    made.replace(ev.Phase, lambda phase: phase.name == "plug", text=f"{PLUGGED} and its power")
    story = made.story()
    return list(rig_doubts(Story(story.begun, story.events, rig=rig)))


# --- the rig file -----------------------------------------------------------------------------------------------------


def test_the_rig_on_record() -> None:
    assert on(RIG) == []
    assert on({}) == [], "older runs have none"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hub": [{**RIG["hub"][0], "at": "usb.2"}]}, "disk1 was announced at port 1.1, and is at port 2.1 by the rig"),
        ({"disk": RIG["disk"][:2]}, "disk3 was announced, and the rig file does not have it"),
        ({"disk": []}, "disk1 was announced, and the rig file does not have it"),
        ({"disk": [*RIG["disk"], RIG["disk"][0]]}, "the rig file has disk1 2 times"),
        (
            {"disk": [*RIG["disk"], {"name": "ghost", "at": "usb.3"}]},
            "ghost of the rig file was plugged in, and never announced",
        ),
    ],
)
def test_a_rig_file_of_another_bench(change: dict[str, Any], said: str) -> None:
    assert any(what.startswith(said) for what in on({**RIG, **change}))


def test_a_disk_that_was_moved_is_where_it_was_put() -> None:
    bench = healthy()
    bench.add(ev.DiskMoved(at=CUT + 1, disk=VICTIM, socket="hub1.4", place="", until=CUT + 1.1))
    assert on({**RIG, "hub": [{**RIG["hub"][0], "at": "usb.2"}]}, bench) == []


def test_a_real_disk_may_be_in_any_port() -> None:
    bench = healthy()
    bench.events = [
        msgspec.structs.replace(event, kind="ssh") if isinstance(event, ev.DutReady) else event
        for event in bench.events
    ]
    assert on({**RIG, "hub": [{**RIG["hub"][0], "at": "usb.2"}]}, bench) == []


# --- identity by the log ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "many"), [("high-speed", 0), ("SuperSpeed", 1), ("full-speed", 1)])
def test_a_link_that_the_kernel_logged_otherwise(words: str, many: int) -> None:
    bench = on_usb()
    text = f"usb 1-1.1: new {words} USB device number 9 using xhci_hcd"
    bench.add(ev.KernelMessage(at=BACK - 0.5, text=text))
    assert len(list(other_speeds(bench.story()))) == many


@pytest.mark.parametrize(("words", "many"), [("high-speed", 0), ("SuperSpeed", 1), ("low-speed", 1)])
def test_a_reset_at_another_speed_than_that_of_the_link(words: str, many: int) -> None:
    bench = on_usb()
    text = f"usb 1-1.1: reset {words} USB device number 9 using xhci_hcd"
    bench.add(ev.KernelMessage(at=BACK + 0.5, text=text), ev.KernelMessage(at=BACK + 0.6, text=text))
    assert len(list(reset_otherwise(bench.story()))) == many


def test_a_reset_while_no_disk_is_there_says_nothing_of_a_link() -> None:
    bench = on_usb()
    text = "usb 1-1.1: reset low-speed USB device number 9 using xhci_hcd"
    bench.add(ev.KernelMessage(at=BACK - 0.2, text=text))
    assert list(reset_otherwise(bench.story())) == []


@pytest.mark.parametrize(("product", "many"), [("55aa", 0), ("0001", 1)])
def test_a_hub_that_comes_back_as_another(product: str, many: int) -> None:
    bench = on_usb()
    for at, number in ((10.1, "55aa"), (BACK - 1.0, product)):
        text = f"usb 1-1: New USB device found, idVendor=0409, idProduct={number}, bcdDevice= 1.01"
        bench.add(ev.KernelMessage(at=at, text=text))
    assert len(list(another_hub(bench.story()))) == many


@pytest.mark.parametrize(("ports", "many"), [("4 ports", 0), ("2 ports", 1)])
def test_a_hub_that_comes_back_with_fewer_ports(ports: str, many: int) -> None:
    bench = on_usb()
    for at, number in ((10.1, "4 ports"), (BACK - 1.0, ports)):
        bench.add(ev.KernelMessage(at=at, text=f"hub 1-1:1.0: {number} detected"))
    assert len(list(another_hub(bench.story()))) == many


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("behind", "many"), [(0.0, 0), (5.0, 1)])
def test_reports_from_after_the_end_of_the_scenario(behind: float, many: int) -> None:
    bench = healthy(until=LAST + behind)
    begun, *events = bench.scenario()
    assert isinstance(begun, ev.ScenarioBegun)
    events[-1] = msgspec.structs.replace(events[-1], at=LAST + 0.5)
    said = [what for what in disorder(Story(begun, (begun, *events), rig=RIG)) if "after the end" in what]
    assert len(said) == many


@pytest.mark.parametrize(("back", "many"), [(0.1, 0), (0.6, 1)])
def test_a_log_that_goes_back_accuses_nobody_by_its_times(back: float, many: int) -> None:
    bench = healthy()
    for seq, at in ((1, 16.0), (2, 16.0 - back)):
        bench.add(ev.KernelMessage(at=at, text=f"line {seq}", seq=seq))
    assert len([what for what in clock_doubts(bench.story()) if "the kernel log goes back" in what]) == many


def test_an_error_of_a_switchs_clock_below_zero() -> None:
    bench = healthy()
    bench.replace(ev.Edge, error=-2.0)
    assert any("has a negative error" in what for what in wiring_doubts(bench.story()))
    assert judge_story(bench.story()).verdict is Verdict.UNKNOWN
    assert wiring_doubts(healthy().story()) == ()


def test_a_load_that_ended_before_it_began_accuses_nobody() -> None:
    story = healthy().story()
    moved = [
        msgspec.structs.replace(event, at=STOPPED)
        if isinstance(event, ev.LoadBegun) and event.disk == VICTIM
        else event
        for event in story.events
    ]
    story = Story(story.begun, tuple(moved), rig=RIG)
    assert undisturbed().judge(story).findings == ()
    assert any("before it began" in what for what in coherent().judge(story).unknowns)


def test_a_copy_of_the_scenario_before() -> None:
    story = healthy().story()
    copied = same_dut(story, story)
    assert any("that the scenario before it has" in what for what in copied.unknowns)
    after = Story(story.begun, tuple(later(event, 100.0) for event in story.events), rig=RIG)
    assert same_dut(after, story).unknowns == ()


# --- the log ----------------------------------------------------------------------------------------------------------


def test_a_log_of_processes_only() -> None:
    bench = healthy()
    assert bench.judge(kernel_clean()).unknowns == ()
    bench.replace(ev.KernelMessage, facility=1)
    assert "no line of the kernel log was recorded" in bench.judge(kernel_clean()).unknowns[0]


def test_an_error_at_an_unknown_time() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(text="systemd[1]: Started a timer."))
    assert undisturbed().judge(bench.story()).unknowns == ()
    bench.add(ev.KernelMessage(text="I/O error, dev sdc, sector 8 op 0x1:(WRITE)", level=3))
    judgement = undisturbed().judge(bench.story())
    assert judgement.findings == ()
    assert "whom it is about is not known" in judgement.unknowns[0]


# --- what nobody did --------------------------------------------------------------------------------------------------


def released(disk: str, at: float, action: str = "unbind") -> ev.Uevent:
    path = "/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.2/1-1.2:1.0"
    return ev.Uevent(at=at, action=action, subsystem="usb", devtype="usb_interface", devpath=path, disks=(disk,))


@pytest.mark.parametrize(
    ("disk", "at", "accused"),
    [(SURVIVORS[0], 13.0, 1), (SURVIVORS[0], CUT + 0.3, 1), (VICTIM, CUT + 0.3, 0), (VICTIM, 13.0, 1)],
)
def test_a_driver_that_lets_go_of_a_disk(disk: str, at: float, accused: int) -> None:
    bench = healthy()
    bench.add(released(disk, at))
    found = undisturbed().judge(bench.story()).findings
    assert [finding.subject for finding in found] == [disk] * accused
    bench = healthy()
    bench.add(released(disk, at, "bind"))
    assert undisturbed().judge(bench.story()).findings == ()


def test_a_driver_that_lets_go_of_a_disk_that_is_reset_on_request() -> None:
    bench = healthy()
    bench.add(released(SURVIVORS[0], 20.3), ev.DiskRecovered(at=20.0, disk=SURVIVORS[0], until=21.0, resets=1))
    assert undisturbed().judge(bench.story()).findings == ()


def test_an_uevent_of_a_disk_that_nothing_else_announces() -> None:
    bench = healthy()
    path = bench.story().attachments("disk2")[0].sysfs.removeprefix("/sys")
    came = ev.Uevent(at=20.0, action="add", subsystem="block", devtype="disk", devpath=path)
    bench.add(came)
    assert any("came at 20.00 s" in what for what in disorder(bench.story()))
    bench.add(msgspec.structs.replace(came, at=20.4, action="remove", disks=("disk2",)))
    assert not any("came at 20.00 s" in what for what in disorder(bench.story())), "it left before it was read"
    bench = healthy()
    bench.add(msgspec.structs.replace(came, at=10.5))
    assert list(disorder(bench.story())) == [], "its announcement"


@pytest.mark.parametrize(("disk", "at"), [(VICTIM, BACK + 1.0), (SURVIVORS[0], STOPPED + 1.5)])
def test_a_disk_that_is_written_when_nobody_writes(disk: str, at: float) -> None:
    story = healthy().story()
    assert list(disorder(story)) == []
    keys = {(one.kname, one.diskseq) for one in story.attachments(disk)}
    events = [
        msgspec.structs.replace(
            event,
            disks={
                name: row._replace(written_bytes=row.written_bytes + (1 << 20)) if (name, row.diskseq) in keys else row
                for name, row in event.disks.items()
            },
        )
        if isinstance(event, ev.Sampled) and (event.at or 0.0) > at
        else event
        for event in story.events
    ]
    (said,) = disorder(Story(story.begun, tuple(events), rig=RIG))
    assert f"bytes were written to {disk}" in said
    begun = msgspec.structs.replace(story.of(ev.LoadBegun)[0], disk=disk, job="second", at=at - 0.5)
    ended = msgspec.structs.replace(story.of(ev.LoadEnded)[0], disk=disk, job="second", at=LAST - 0.1)
    assert list(disorder(Story(story.begun, (*events, begun, ended), rig=RIG))) == [], "a second load writes"


@pytest.mark.parametrize(("counts", "many"), [((100, 200), 0), ((100, 100), 0), ((100, 7), 1)])
def test_interrupts_of_the_timer_only_rise(counts: tuple[int, int], many: int) -> None:
    bench = watched()
    bench.replace(ev.DutState, lambda state: state.moment == "begin", interrupts={"LOC interrupts": counts[0]})
    bench.replace(ev.DutState, lambda state: state.moment == "end", interrupts={"LOC interrupts": counts[1]})
    assert len(bench.judge(state_kept()).unknowns) == many
