"""Records that cannot be true, and small contradictions of single witnesses: each defect, beside the healthy story."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from ledgers import stamped
from sessions_on_record import on_record, session
from stories import BACK, CUT, RESTORED, RIG, SETTLED, STOPPED, SURVIVORS, VICTIM, Bench, healthy
from test_plan import judged, named
from watched import properties, watched

from plugpull.checks import no_errors, nothing_lost, returned
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.dut.kernel_clean import kernel_clean
from plugpull.checks.dut.residue import LeakSlope
from plugpull.checks.reach import unreached
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.cuts_made import cuts_made
from plugpull.checks.record.order import disorder
from plugpull.checks.record.wiring import wiring_doubts
from plugpull.checks.starved import lateness
from plugpull.checks.victims.properties import same_properties
from plugpull.checks.victims.users_told import UsersTold
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def said(bench: Bench) -> list[str]:
    return list(disorder(bench.story()))


def test_the_healthy_record_is_in_order() -> None:
    assert said(healthy()) == []
    assert said(watched()) == []


def changed(story: Story, *, at: int, **changes: Any) -> Story:
    """The story with its sample number ``at`` changed."""
    samples = story.of(ev.Sampled)
    made = msgspec.structs.replace(samples[at], **changes)
    return Story(story.begun, tuple(made if one is samples[at] else one for one in story.events), rig=story.rig)


def test_samples_of_another_record() -> None:
    story = healthy().story()
    (what,) = disorder(_moved(story, 200, -8.0))
    assert what.startswith("samples go back in time")
    assert list(disorder(_moved(story, 200, -0.5))) == [], "a reading that was handed on late"


def _moved(story: Story, number: int, by: float) -> Story:
    sample = story.of(ev.Sampled)[number]
    made = msgspec.structs.replace(sample, at=(sample.at or 0.0) + by)
    return Story(story.begun, tuple(made if one is sample else one for one in story.events), rig=story.rig)


def test_a_log_that_goes_back_in_time() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=16.0, text="one", seq=1), ev.KernelMessage(at=15.9, text="two", seq=2))
    assert said(bench) == []
    bench.add(ev.KernelMessage(at=11.0, text="three", seq=3))
    (what,) = said(bench)
    assert what == "the kernel log goes back in time, from 15.90 s to 11.00 s"


@pytest.mark.parametrize(("error", "many"), [(0.01, 0), (30.0, 1)])
def test_a_log_whose_clock_is_not_known(error: float, many: int) -> None:
    bench = healthy()
    bench.replace(ev.DutReady, log_clock_error=error)
    assert len(said(bench)) == many


def test_a_counter_that_is_negative() -> None:
    story = healthy().story()
    disks = {kname: row._replace(writes_in_flight=-1) for kname, row in story.of(ev.Sampled)[200].disks.items()}
    (what,) = disorder(changed(story, at=200, disks=disks))
    assert "is negative at" in what


def test_a_dut_that_was_booted_in_the_middle() -> None:
    bench = healthy()
    ready = ev.DutReady(at=20.0, kernel="6.1", kind="virtual", how="booted", took=1.0)
    bench.add(ready)
    assert said(bench) == ["the DUT was booted at 20.00 s, in the middle of the scenario"]
    bench.add(ev.AgentLost(at=19.0, why="it was restarted", last_heard=19.0))
    assert said(bench) == [], "that is said of the agent"


def test_a_second_agent_of_a_dut_that_was_not_lost() -> None:
    bench = healthy()
    bench.add(ev.DutReady(at=20.0, kernel="6.1", kind="ssh", how="connected", took=1.0))
    assert said(bench) == ["another agent answered at 20.00 s, in the middle of the scenario"]
    bench.add(ev.AgentLost(at=19.0, why="its connection broke", last_heard=19.0))
    assert said(bench) == [], "that is said of the agent"


@pytest.mark.parametrize(("disk", "many"), [("disk2", 1), (VICTIM, 0)])
def test_an_uevent_of_a_removal_that_is_not_on_record(disk: str, many: int) -> None:
    bench = healthy()
    was = bench.story().attachments(disk)[0]
    path = was.sysfs.removeprefix("/sys")
    gone: dict[str, Any] = {
        "at": CUT + 0.07,
        "action": "remove",
        "subsystem": "block",
        "devpath": path,
        "disks": (disk,),
    }
    bench.add(ev.Uevent(**gone, devtype="partition"))
    assert said(bench) == [], "a partition of it"
    bench.add(ev.Uevent(**gone, devtype="disk"))
    assert said(bench) == [f"an uevent says that disk2 ({was.kname}) left at 15.07 s, and it is not on record"] * many


def test_a_disk_with_another_serial_number_than_the_rig_files() -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", serial="X")
    judgement = coherent().judge(bench.story())
    assert any(
        "disk2 was announced with serial X, and the rig file says S-disk2" in what for what in judgement.unknowns
    )


# --- switching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "many"), [(12, 0), (3, 1), (0, 0)])
def test_a_disk_whose_sequence_number_goes_down(number: int, many: int) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and event.at < CUT, diskseq=9)
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, diskseq=number)
    assert len([what for what in said(bench) if "after number" in what]) == many
    ready = ev.DutReady(at=BACK - 0.1, how="booted", kind="virtual", kernel="6.1.0", took=20.0)
    bench.add(ready)
    assert [what for what in said(bench) if "after number" in what] == [], "another kernel counts from 1"


def test_a_cut_of_another_mechanism_than_the_switchs() -> None:
    story = healthy().story()
    disks = [{**disk, "cable": f"cables.{number}"} for number, disk in enumerate(RIG["disk"], 1)]
    rig = {**RIG, "disk": disks, "switch": [{"name": "cables", "mechanism": "data"}]}
    assert wiring_doubts(Story(story.begun, story.events, rig=rig)) == ()
    rig["switch"] = [{"name": "cables", "mechanism": "mains"}]
    (doubt,) = wiring_doubts(Story(story.begun, story.events, rig=rig))
    assert doubt == "disk1.cable was armed to cut data, and the rig file says mains"


@pytest.mark.parametrize(("state", "skew", "many"), [("off", 0.1, 0), ("off", 4.0, 1), ("on", 4.0, 0)])
def test_ports_that_were_to_be_cut_at_once(state: ev.PortState, skew: float, many: int) -> None:
    bench = healthy()
    bench.add(ev.CutSwitched(at=CUT + 0.1, cuts=(1,), state=state, switches=("cables",), ports=2, skew=skew))
    assert len(bench.judge(cuts_made()).unknowns) == many


def test_a_switch_that_acknowledged_before_it_was_told_accuses_nobody() -> None:
    bench = healthy()
    early = ev.Edge
    bench.replace(early, lambda e: (e.state, e.phase) == ("off", "acknowledged"), at=CUT - 3.0)
    story = bench.story()
    assert story.cut_records[0].off.doubt.endswith("acknowledged off before the command")
    judgement = bench.judge(returned(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns


def test_a_disk_that_left_again_with_a_cut_of_which_nothing_is_known() -> None:
    bench = healthy()
    bench.detach(VICTIM, BACK + 1.0)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert "gone again" in finding.summary
    bench.arm(BACK + 0.9, cut=2)
    assert bench.judge(returned(VICTIM)).findings == ()


def test_an_enclosure_that_comes_back_with_a_unit_more() -> None:
    bench = healthy()
    unit = {"kname": "sdx", "place": "0000:00:05.0/1.1:1", "serial": ""}
    bench.attach("", BACK + 0.02, **unit)
    (finding,) = bench.judge(returned(VICTIM)).findings
    assert finding.summary.startswith("disk1 came back with another unit, sdx at 0000:00:05.0/1.1:1")
    bench.attach("", 10.6, **unit)
    assert bench.judge(returned(VICTIM)).findings == (), "it always had two"


# --- the plan, loads, the log -----------------------------------------------------------------------------------------


def test_a_scenario_that_was_not_planned(tmp_path: Any) -> None:
    results = judged(tmp_path, ("a",), named("a"), named("b"))
    assert any("not planned: b" in what for what in results.unknowns)


@pytest.mark.parametrize(("status", "many"), [(0, 0), (-15, 0), (-11, 1)])
def test_a_load_that_crashed(status: int, many: int) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == SURVIVORS[0], exit_status=status)
    assert len(bench.judge(no_errors(SURVIVORS)).unknowns) == many


def test_a_report_of_which_only_the_first_line_is_there() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=20.0, text="------------[ cut here ]------------", level=4))
    judgement = bench.judge(kernel_clean())
    assert judgement.findings == ()
    assert "a report that is not on record" in judgement.unknowns[0]
    bench.add(ev.KernelMessage(at=20.01, text="WARNING: CPU: 0 PID: 7 at drivers/usb/core/hcd.c:12 x+0x1/0x2", level=4))
    judgement = bench.judge(kernel_clean())
    assert judgement.findings
    assert judgement.unknowns == ()


def test_a_root_hub_that_lost_its_power_is_no_cuts_doing() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=CUT + 0.1, text="usb usb1: root hub lost power or was reset"))
    assert bench.judge(kernel_clean()).findings


@pytest.mark.parametrize("disk", [SURVIVORS[0], VICTIM])
def test_a_write_that_failed_though_the_writer_did_not_say_so(disk: str) -> None:
    bench = healthy()
    book, runs = session()
    on_record(bench, book, *runs, disk=disk, start=12.0)
    assert bench.judge(UsersTold()).findings == ()
    bench = healthy()
    book, _ = session()
    book.write(3, error=5)
    on_record(bench, book, *(stamped(write) for write in book.made.writes[:8]), disk=disk, start=12.0)
    findings = [finding.summary for finding in bench.judge(UsersTold()).findings]
    assert findings == [f"a write on {disk}, which no cut had taken, ended with errno 5"]


# --- after the return -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "many"), [("running", 0), ("offline", 1), ("blocked", 1)])
def test_a_disk_that_is_back_and_not_served(state: str, many: int) -> None:
    bench = watched()
    now = next(event for event in bench.events if isinstance(event, ev.DiskAttached) and event.at == BACK)
    bench.drop(ev.DiskProperties, lambda event: event.diskseq != now.diskseq)
    bench.add(properties(now, BACK + 0.03, "attached", state=state), properties(now, 25.6, "end", state=state))
    found = [finding.summary for finding in bench.judge(same_properties()).findings]
    assert found == [f"disk1 is attached and in state {state}"] * many


@pytest.mark.parametrize(("step", "many"), [(0, 0), (1, 1)])
def test_host_numbers_that_rise_with_every_return(step: int, many: int) -> None:
    bench = healthy()
    first = "/sys/devices/pci0000:00/usb1/1-1/1-1.1/1-1.1:1.0/host0/block/sdb"
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and event.at < CUT, sysfs=first)
    for number in range(1, 6):
        at = BACK + 0.8 * number
        bench.detach(VICTIM, at)
        sysfs = f"/sys/devices/pci0000:00/usb1/1-1/1-1.1/1-1.1:1.0/host{1 + step * number}/block/sdb"
        bench.attach(VICTIM, at + 0.3, sysfs=sysfs, kname="sdb")
    found = [one.summary for one in bench.judge(same_properties()).findings if "host number" in one.summary]
    assert len(found) == many


@pytest.mark.parametrize(("per_cycle", "many"), [(20_000, 0), (500_000, 1)])
def test_caches_that_are_not_counted_one_by_one(per_cycle: int, many: int) -> None:
    bench = healthy()
    for number in range(16):
        memory = {"SUnreclaim": (11 << 20) + per_cycle * number + 4096 * (number % 3), "KernelStack": 1 << 20}
        things: dict[str, tuple[str, ...]] = {"scsi host": ("one",)}
        bench.add(ev.Census(at=RESTORED + 0.1 * number, moment="cycle", things=things, slab={"a": 1}, memory=memory))
    assert len(bench.judge(LeakSlope()).findings) == many


# --- what is missing of what was heard --------------------------------------------------------------------------------


def test_disks_that_went_without_a_uevent() -> None:
    bench = healthy()
    bench.drop(ev.Uevent)
    assert said(bench) == ["disks came and went, but no uevent is on record"]


def test_a_disk_that_nobody_wrote_to() -> None:
    bench = healthy()
    disk = SURVIVORS[0]
    bench.drop(ev.LoadBegun, lambda event: event.disk != disk)
    bench.drop(ev.LoadEnded, lambda event: event.disk != disk)
    assert said(bench) == [], "nothing was written to it"
    story = healthy().story()
    events = tuple(
        event for event in story.events if getattr(event, "disk", "") != disk or isinstance(event, ev.DiskAttached)
    )
    (what,) = disorder(Story(story.begun, events, rig=story.rig))
    assert f"bytes were written to {disk}" in what
    ran = ev.FioRan(at=STOPPED, begin=SETTLED, task="direct", disks=(disk,), mode="write", block=65536, depth=1,
                    number=1, planned=1, repeat=1, repeats=1)  # fmt: skip
    assert list(disorder(Story(story.begun, (*events, ran), rig=story.rig))) == [], "fio of a study wrote to it"


def test_clocks_that_were_compared_until_the_cut_only() -> None:
    story = healthy().story()
    asked = Claim(what="all is well", evidence=(Evidence.CLOCK,), begin=SETTLED, end=STOPPED)
    assert unreached(story, [asked]) == ()
    kept = (event for event in story.events if not isinstance(event, ev.ClockMapped) or (event.at or 0.0) < CUT)
    (why,) = unreached(Story(story.begun, tuple(kept), rig=story.rig), [asked])
    assert "were compared for the last time" in why


@pytest.mark.parametrize(("answers", "share"), [(0, 0.9), (4, 0.0)])
def test_samples_that_are_missing_while_the_agent_answers_are_no_starvation(answers: int, share: float) -> None:
    story = healthy().story()
    kept = [event for event in story.events if not (isinstance(event, ev.Sampled) and 18.0 < (event.at or 0.0) < 22.0)]
    kept = [event for event in kept if not isinstance(event, ev.ClockMapped)]
    kept += [ev.ClockMapped(at=18.2 + n, controller=118.2 + n, error=0.002) for n in range(answers)]
    late = lateness(Story(story.begun, tuple(kept), rig=story.rig), 18.5, 21.5)
    assert late >= share if share else late == 0.0


@pytest.mark.parametrize(("status", "many"), [(0, 0), (1, 1)])
def test_a_writer_that_says_that_it_failed(status: int, many: int) -> None:
    bench = healthy()
    book, runs = session()
    on_record(bench, book, *runs, disk=SURVIVORS[0], start=12.0)
    bench.replace(ev.LedgerEnded, status=status, asked=True)
    assert (
        len([what for what in bench.judge(nothing_lost(SURVIVORS[0])).unknowns if "ended with status" in what]) == many
    )


@pytest.mark.parametrize("kind", [ev.Edge, ev.LoadBegun, ev.LoadSettled, ev.DiskAttached])
def test_an_event_that_is_on_record_twice(kind: type[ev.Event]) -> None:
    story = healthy().story()
    event = story.of(kind)[0]
    doubled = Story(story.begun, (*story.events, event, event), rig=story.rig)
    expected = f"one {event.__struct_config__.tag} of {event.at:.2f} s is on record more than once"
    assert [what for what in disorder(doubled) if "more than once" in what] == [expected]


def test_two_events_of_one_kind_at_one_time_are_two() -> None:
    story = healthy().story()
    event = story.of(ev.LoadBegun)[0]
    other = msgspec.structs.replace(event, disk="disk9", job="another")
    assert list(disorder(Story(story.begun, (*story.events, other), rig=story.rig))) == []


@pytest.mark.parametrize(("at", "many"), [(RESTORED, 1), (BACK + 0.5, 0), (BACK - 0.3, 0)])
def test_a_disk_that_was_read_back_while_it_was_away(at: float, many: int) -> None:
    bench = healthy()
    bench.add(ev.ReadBackBegun(at=at, disk=VICTIM, job="r", session=1, extents=()))
    whats = [what for what in said(bench) if "when it was not attached" in what]
    assert len(whats) == many
    bench.replace(ev.ReadBackBegun, error="it is not there")
    assert not [what for what in said(bench) if "when it was not attached" in what]


def test_a_port_that_was_switched_off_twice_for_one_cut() -> None:
    bench = healthy()
    bench.switch("off", CUT + 1.0)
    doubt = f"cables port 1 was switched off 2 times for cut 1 of {VICTIM}.cable"
    assert wiring_doubts(bench.story()) == (doubt,)
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert doubt in result.unknowns
    assert wiring_doubts(healthy().story()) == ()


@pytest.mark.parametrize(("errno", "many"), [(84, 1), (19, 0), (5, 0), (28, 0)])
def test_a_victims_load_that_ended_with_wrong_data(errno: int, many: int) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, errno=errno)
    judgement = UsersTold().judge(bench.story())
    assert judgement.findings == ()
    assert len(judgement.unknowns) == many
    assert all("which is wrong data" in doubt for doubt in judgement.unknowns)
