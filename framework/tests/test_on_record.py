"""Records of which one line is missing: a report of the agent, or a step of the bench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from stories import CUT, RESTORED, SETTLED, Bench, healthy

from plugpull.checks.record.cuts_made import cuts_made
from plugpull.checks.record.on_record import missing_reports, missing_uevents, on_record
from plugpull.dut.agent.service import NUMBERED, Service
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.translation import translate
from plugpull.history import events as ev
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

BEFORE = 40
"""Reports that the agent had made before it was asked."""


def without(story: Story, unwanted: Callable[[Any], bool]) -> Story:
    """The story without the one event that is unwanted."""
    kept = tuple(event for event in story.events if not unwanted(event))
    assert len(kept) == len(story.events) - 1
    return with_events(story, kept)


def with_events(story: Story, events: tuple[ev.Event, ...]) -> Story:
    return Story(story.begun, events, rig=story.rig)


# --- reports of the agent --------------------------------------------------------------------------------------------

REPORTED = (ev.Uevent, ev.DiskAttached, ev.DiskDetached, ev.KernelMessage, ev.Activity)


def numbered(story: Story, *, before: int | None = BEFORE, ended: bool = True) -> Story:
    """The story as a numbering agent would have made it."""
    number, events = BEFORE, []
    for event in story.events:
        if isinstance(event, REPORTED):
            number += 1
            event = replace(event, report=number)
        elif isinstance(event, ev.DutReady):
            event = replace(event, reports=before)
        elif isinstance(event, ev.ScenarioEnded) and ended:
            event = replace(event, reports=number)
        events.append(event)
    return with_events(story, tuple(events))


def test_a_record_with_every_report_is_whole() -> None:
    assert missing_reports(numbered(healthy().story())) == ()
    assert judge_story(numbered(healthy().story())).verdict is Verdict.PASS


def test_any_report_that_is_missing_is_noticed() -> None:
    whole = numbered(healthy().story())
    reports = [event.report for event in whole.events if event.report]
    assert len(reports) > 8
    for number in reports:
        story = without(whole, lambda event, number=number: event.report == number)  # type: ignore[misc]
        assert missing_reports(story) == (
            f"1 reports of the agent are not on record; number {number} is the first that is not there",
        )
        assert judge_story(story).verdict is not Verdict.PASS


def test_more_reports_than_the_scenario_says_there_were() -> None:
    *events, ended = numbered(healthy().story()).events
    assert isinstance(ended, ev.ScenarioEnded)
    assert ended.reports is not None
    fewer = with_events(healthy().story(), (*events, replace(ended, reports=ended.reports - 2)))
    assert missing_reports(fewer) == (
        f"the record has report {ended.reports} of the agent, and says that number {ended.reports - 2} was the last",
    )


def row_of_uevents(*rows: tuple[int, int | None], kernel: str = "6.1.0") -> Story:
    """The healthy story with uevents of these numbers, and how many of others the agent counted before each."""
    bench = healthy()
    bench.replace(ev.DutReady, kernel=kernel)
    bench.drop(ev.Uevent)
    for at, (number, others) in enumerate(rows, 12):
        bench.add(
            ev.Uevent(at=at, action="change", subsystem="usb", devpath="/devices/x", seqnum=number, others=others)
        )
    return bench.story()


def test_uevents_that_the_agent_never_got() -> None:
    assert missing_uevents(row_of_uevents((7, 0), (8, 0), (11, 2))) == ()
    assert missing_uevents(row_of_uevents((7, 0), (9, 0), (11, 2))) == (), "the others were counted late"
    (missing,) = missing_uevents(row_of_uevents((7, 0), (8, 0), (14, 2)))
    assert missing == "3 uevents of the kernel are not on record, between number 7 and the last"
    assert judge_story(row_of_uevents((7, 0), (8, 0), (14, 2))).verdict is Verdict.UNKNOWN
    early = row_of_uevents((7, 0), (8, 1), (11, 1))
    assert missing_uevents(early) == ("the agent counted 1 uevents between the kernel's numbers 7 and 8",)
    assert judge_story(early).verdict is Verdict.UNKNOWN
    assert missing_uevents(row_of_uevents((0, 0), (0, 0))) == (), "an agent without the numbers"
    (lost,) = missing_uevents(row_of_uevents((7, 0), (0, 0), (9, 0)))
    assert lost.startswith("1 uevents of the kernel are not on record")
    assert missing_uevents(row_of_uevents((7, None), (8, None), (14, None))) == (), "an agent that did not count"


def test_uevents_that_newer_kernels_send_in_another_order() -> None:
    rows = (7, 0), (8, 1), (10, 0)
    assert missing_uevents(row_of_uevents(*rows, kernel="6.12.117+deb12-amd64")) == ()
    assert missing_uevents(row_of_uevents(*rows, kernel="6.9.7")) != ()
    assert missing_uevents(row_of_uevents((7, 0), (8, 20), (29, 0), kernel="6.12.117")) != ()


def test_reports_that_arrive_in_another_order_are_whole() -> None:
    whole = numbered(healthy().story())
    ready = next(event for event in whole.events if isinstance(event, ev.DutReady))
    early = ev.KernelMessage(at=9.9, text="one more", report=BEFORE)
    events = (whole.events[0], early, *reversed(whole.events[1:]))
    assert ready in events
    assert missing_reports(with_events(whole, events)) == ()


def test_reports_that_are_not_for_the_record_are_not_missed() -> None:
    whole = numbered(healthy().story())
    *events, ended = (event for event in whole.events if event.report != BEFORE + 4)
    assert isinstance(ended, ev.ScenarioEnded)
    assert missing_reports(with_events(whole, (*events, replace(ended, left_out=1)))) == ()
    assert missing_reports(with_events(whole, (*events, ended))) != ()


def test_records_without_numbers_are_judged_as_ever() -> None:
    for story in (
        healthy().story(),
        numbered(healthy().story(), before=None),
        numbered(healthy().story(), ended=False),
    ):
        first = next(event for event in story.events if isinstance(event, ev.Uevent))
        assert missing_reports(without(story, lambda event, first=first: event is first)) == ()  # type: ignore[misc]


def test_what_went_with_an_agent_that_was_lost_is_said_elsewhere() -> None:
    story = numbered(healthy().story())
    lost = with_events(story, (*story.events[:-1], ev.AgentLost(at=25.9, why="it fell silent"), story.events[-1]))
    assert missing_reports(without(lost, lambda event: event.report == BEFORE + 3)) == ()


def test_the_agent_numbers_what_only_it_can_say() -> None:
    lines: list[bytes] = []
    service = Service(lines.append)
    messages: list[dict[str, Any]] = [{"ev": kind} for kind in sorted(NUMBERED - {"disk.add", "disk.remove"})]
    for message in [{"ev": "sample"}, *messages, {"id": 1, "ok": True}]:
        service._send(message)
    assert [message["report"] for message in messages] == list(range(1, len(messages) + 1))
    assert service.op_hello()["reports"] == len(messages)


def test_a_report_keeps_its_number_on_the_way_into_the_record() -> None:
    message = {"ev": "kmsg", "at": 1.0, "text": "hello", "level": 6, "seq": 5, "report": 17}
    assert translate(message, DiskTable({}, {})) == ev.KernelMessage(at=1.0, text="hello", seq=5, report=17)
    with pytest.raises(ValueError, match="seventeen"):
        translate(message | {"report": "seventeen"}, DiskTable({}, {}))


# --- switching -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["off", "on"])
@pytest.mark.parametrize("phase", ["commanded", "acknowledged", "read-back"])
def test_each_step_of_an_edge_has_to_be_on_record(state: str, phase: str) -> None:
    story = healthy().story()
    assert cuts_made().judge(story).unknowns == ()
    holed = without(story, lambda e: isinstance(e, ev.Edge) and (e.state, e.phase) == (state, phase))
    assert any(f"was switched {state}" in what for what in cuts_made().judge(holed).unknowns)


def test_a_switch_that_cannot_be_asked_is_not_asked_for_an_answer() -> None:
    bench = healthy()
    bench.drop(ev.Edge, keep=lambda edge: edge.phase != "read-back")
    assert bench.judge(cuts_made()).unknowns == ()


def for_good() -> Bench:
    """A cable that is cut for good, and restored as the scenario ends."""
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    bench.add(ev.Healed(at=RESTORED + 0.1, ports=("cables.1",)))
    return bench


@pytest.mark.parametrize(
    ("unwanted", "said"),
    [
        (lambda e: isinstance(e, ev.Healed), "disk1.cable was restored when the scenario ended is not on record"),
        (lambda e: isinstance(e, ev.Edge) and (e.state, e.phase) == ("on", "commanded"), "it was commanded"),
        (lambda e: isinstance(e, ev.Edge) and (e.state, e.phase) == ("on", "acknowledged"), "it acknowledged"),
        (lambda e: isinstance(e, ev.Edge) and (e.state, e.phase) == ("on", "read-back"), "read back then"),
    ],
)
def test_restoring_what_was_cut_for_good_has_to_be_on_record(unwanted: Callable[[Any], bool], said: str) -> None:
    story = for_good().story()
    assert cuts_made().judge(story).unknowns == ()
    assert any(said in what for what in cuts_made().judge(without(story, unwanted)).unknowns)


def test_a_healing_without_any_edge_is_noticed() -> None:
    bench = for_good()
    bench.drop(ev.Edge, keep=lambda edge: edge.state == "off")
    said = "how cables.1 was switched on when the scenario ended is not on record"
    assert said in bench.judge(cuts_made()).unknowns


def at_once() -> Bench:
    """Two cables that are cut at once."""
    bench = healthy()
    edges = [event for event in bench.events if isinstance(event, ev.Edge)]
    bench.add(*(replace(edge, cut=2, port="2", point="disk2.cable") for edge in edges))
    bench.replace(ev.CutArmed, group=1)
    armed = next(event for event in bench.events if isinstance(event, ev.CutArmed))
    bench.add(replace(armed, cut=2, point="disk2.cable", victims=("disk2",)))
    states: tuple[tuple[ev.PortState, float], ...] = (("off", CUT), ("on", RESTORED))
    for state, at in states:
        switched = ev.CutSwitched(at=at + 0.01, cuts=(1, 2), state=state, switches=("cables",), ports=2, skew=0.0)
        bench.add(switched)
    return bench


@pytest.mark.parametrize("state", ["off", "on"])
def test_how_far_apart_edges_made_at_once_were_has_to_be_on_record(state: str) -> None:
    said = f"how far apart 2 ports were switched {state} at once is not on record"
    story = at_once().story()
    assert said not in cuts_made().judge(story).unknowns
    holed = without(story, lambda event: isinstance(event, ev.CutSwitched) and event.state == state)
    assert said in cuts_made().judge(holed).unknowns


# --- other steps -----------------------------------------------------------------------------------------------------


def test_a_load_that_was_to_settle_has_to_have_settled() -> None:
    bench = healthy()
    bench.add(ev.Phase(at=SETTLED - 0.5, name="settle"))
    assert bench.judge(on_record()).unknowns == ()
    bench.drop(ev.LoadSettled)
    assert bench.judge(on_record()).unknowns == ("when the load had settled is not on record",)


def test_a_file_system_that_was_to_be_made_has_to_have_been_made() -> None:
    bench = healthy()
    bench.add(ev.Phase(at=10.9, name="mkfs", text="ext4 on disk2"))
    bench.add(ev.Acted(at=10.95, action="mkfs", disk="disk2", ok=True, seconds=0.1))
    assert bench.judge(on_record()).unknowns == ()
    bench.drop(ev.Acted)
    assert bench.judge(on_record()).unknowns == ("that a file system was made is not on record",)


@pytest.mark.parametrize(("part", "end"), [(ev.LedgerPart, ev.LedgerEnded), (ev.ReadBackPart, ev.ReadBackEnded)])
def test_every_piece_that_arrived_has_to_be_on_record(part: type[Any], end: type[Any]) -> None:
    """Base64 of 3, 2 and 1 bytes."""
    bench = healthy()
    for at, offset, data in ((12.0, 0, "AAAA"), (12.1, 3, "AAA="), (12.2, 5, "AA==")):
        bench.add(part(at=at, disk="disk2", job="stamp1-disk2", offset=offset, data=data))
    bench.add(
        end(at=13.0, disk="disk2", job="stamp1-disk2", received=6, **({"asked": True} if end is ev.LedgerEnded else {}))
    )
    assert bench.judge(on_record()).unknowns == ()
    bench.drop(part, keep=lambda event: event.offset != 3)
    assert bench.judge(on_record()).unknowns == ("2 of 6 bytes that the job stamp1-disk2 reported are not on record",)
    bench.drop(end)
    assert bench.judge(on_record()).unknowns == ("how the job stamp1-disk2 on disk2 ended is not on record",)


def test_that_every_cpu_scheduled_has_to_be_on_record() -> None:
    bench = healthy()
    bench.add(ev.GracePeriod(at=25.6, seconds=0.1, ended=True))
    *events, ended = bench.story().events
    assert isinstance(ended, ev.ScenarioEnded)
    whole = with_events(bench.story(), (*events, replace(ended, grace_periods=1)))
    assert on_record().judge(whole).unknowns == ()
    holed = without(whole, lambda event: isinstance(event, ev.GracePeriod))
    assert on_record().judge(holed).unknowns == ("whether every CPU scheduled at the end is not on record",)


def counted(taken: int | None) -> Bench:
    bench = healthy()
    moments: tuple[tuple[float, ev.CensusMoment], ...] = ((10.9, "begin"), (20.0, "cycle"), (25.6, "end"))
    for at, moment in moments:
        bench.add(ev.Census(at=at, moment=moment, things={}))
    return bench


def test_every_census_has_to_be_on_record() -> None:
    def story(taken: int | None) -> Story:
        made = counted(taken).story()
        *events, ended = made.events
        assert isinstance(ended, ev.ScenarioEnded)
        return with_events(made, (*events, replace(ended, censuses=taken)))

    assert on_record().judge(story(3)).unknowns == on_record().judge(story(None)).unknowns == ()
    holed = without(story(3), lambda event: isinstance(event, ev.Census) and event.moment == "cycle")
    assert on_record().judge(holed).unknowns == ("3 censuses were taken, and 2 are on record",)
