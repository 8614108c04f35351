"""Records whose witnesses contradict each other, and whose evidence does not reach."""

from __future__ import annotations

import msgspec
import pytest
from stories import CUT, GONE, RESTORED, SETTLED, STEP, VICTIM, Bench, healthy

from plugpull.checks import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.reach import unreached
from plugpull.checks.record.coherent import DYING, FEW, coherent
from plugpull.checks.record.cuts_made import cuts_made
from plugpull.checks.starved import gaps, ran, starved
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.reader import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def claim(*evidence: Evidence, begin: float = SETTLED, end: float = RESTORED, **other: object) -> Claim:
    return Claim(what="all is well", evidence=evidence, begin=begin, end=end, **other)  # type: ignore[arg-type]


def test_a_healthy_record_agrees_with_itself() -> None:
    assert healthy().judge(coherent()) == Judgement()
    assert healthy().judge(cuts_made()).unknowns == ()
    assert unreached(healthy().story(), [claim(*Evidence)]) == (
        "it is not known whether all is well: what the DUT holds was not counted at the beginning and the end",
    )


@pytest.mark.parametrize(
    ("kind", "which", "said"),
    [
        (ev.DiskDetached, lambda event: event.at == GONE, "is not in the samples from"),
        (ev.DiskAttached, lambda event: event.at > CUT, "was sampled and had never been attached"),
    ],
)
def test_a_lost_announcement_is_noticed(kind: type[ev.Event], which: object, said: str) -> None:
    bench = healthy()
    story = bench.story()
    events = tuple(event for event in story.events if not (isinstance(event, kind) and which(event)))  # type: ignore[operator]
    judgement = coherent().judge(Story(story.begun, events, rig=story.rig))
    assert any(said in what for what in judgement.unknowns), judgement


@pytest.mark.parametrize(
    ("kind", "said"), [(ev.DiskDetached, "was removed 2 times"), (ev.DiskAttached, "was attached 2 times")]
)
def test_a_doubled_announcement_is_noticed(kind: type[ev.Event], said: str) -> None:
    story = healthy().story()
    events = tuple(
        again for event in story.events for again in ((event, event) if isinstance(event, kind) else (event,))
    )
    judgement = coherent().judge(Story(story.begun, events, rig=story.rig))
    assert any(said in what for what in judgement.unknowns), judgement


def test_a_disk_that_is_sampled_after_its_removal() -> None:
    bench = healthy()
    story = bench.story()
    ghost = tuple(
        msgspec.structs.replace(event, disks=event.disks | {"sdb": Counters(1, 0, 0, 0, 0, 0, 0, 0)})
        if isinstance(event, ev.Sampled) and GONE < (event.at or 0.0) < RESTORED
        else event
        for event in story.events
    )
    judgement = coherent().judge(Story(story.begun, ghost, rig=story.rig))
    assert any("was removed at 15.07 s and was sampled until" in what for what in judgement.unknowns), judgement


@pytest.mark.parametrize(("late", "many"), [(0.2, 0), (0.5, 1)])
def test_a_disk_that_is_sampled_for_a_moment_after_its_removal(late: float, many: int) -> None:
    story = healthy().story()
    ghost = tuple(
        msgspec.structs.replace(event, disks=event.disks | {"sdb": Counters(1, 0, 0, 0, 0, 0, 0, 0)})
        if isinstance(event, ev.Sampled) and GONE < (event.at or 0.0) < GONE + late
        else event
        for event in story.events
    )
    assert len(coherent().judge(Story(story.begun, ghost, rig=story.rig)).unknowns) == many


# --- cuts that were not made ----------------------------------------------------------------------------------


def test_a_cut_that_was_armed_and_never_made_is_unknown_whatever_was_asked() -> None:
    bench = healthy(checks=())
    bench.arm(20.0, cut=2)
    assert bench.judge(cuts_made()).unknowns == ("disk1.cable was not cut: it was never switched off",)
    assert judge_story(bench.story()).verdict is Verdict.UNKNOWN


def test_a_restoring_edge_that_is_missing_or_in_doubt() -> None:
    bench = healthy()
    bench.drop(ev.Edge, lambda event: event.state == "off")
    assert "may not have been restored: it was never switched on" in bench.judge(cuts_made()).unknowns[0]
    bench.switch("on", RESTORED, agrees=False)
    assert "read back otherwise" in bench.judge(cuts_made()).unknowns[0]


def _edges(bench: Bench, **changes: object) -> Judgement:
    bench.replace(ev.Edge, lambda event: event.state == "on", **changes)
    return bench.judge(cuts_made())


def test_edges_that_cannot_be_true() -> None:
    assert "before it was cut" in _edges(healthy(), at=CUT - 1).unknowns[0]
    assert "a cut that was never armed" in " ".join(_edges(healthy(), cut=7).unknowns)
    bench = healthy()
    bench.replace(ev.Edge, lambda event: event.phase == "read-back" and event.state == "on", at=RESTORED - 0.5)
    assert bench.judge(cuts_made()).unknowns == (
        "cables port 1 was read back before it had acknowledged that it is on",
    )
    bench = healthy()
    bench.switch("off", CUT)
    assert "is on record 2 times" in bench.judge(cuts_made()).unknowns[0]


@pytest.mark.parametrize("phase", ["commanded", "acknowledged"])
@pytest.mark.parametrize("state", ["off", "on"])
def test_a_switch_that_did_not_confirm_a_command_is_a_doubt(phase: str, state: str) -> None:
    bench = healthy()
    bench.replace(ev.Edge, lambda event: (event.phase, event.state) == (phase, state), agrees=False)
    assert f"cables did not confirm that port 1 is to be {state}" in bench.judge(cuts_made()).unknowns


# --- evidence that does not reach -----------------------------------------------------------------------------


def test_samples_have_to_reach_from_the_beginning_to_the_end() -> None:
    story = healthy().story()
    assert unreached(story, [claim(Evidence.SAMPLES), claim(Evidence.SAMPLES, disk="disk2")]) == ()
    assert "the samples end at" in unreached(story, [claim(Evidence.SAMPLES, end=40.0)])[0]
    assert "the samples begin at" in unreached(story, [claim(Evidence.SAMPLES, begin=5.0)])[0]
    bench = healthy()
    bench.drop(ev.DiskAttached, lambda event: event.disk != "disk2")
    bench._attached.pop("disk2")
    assert "disk2 was not sampled" in unreached(bench.story(), [claim(Evidence.SAMPLES, disk="disk2")])[0]


def test_a_hole_in_the_samples_is_missing_evidence_unless_the_dut_was_starved() -> None:
    bench = healthy()
    bench.starved = ((16.0, 19.0),)
    assert unreached(bench.story(), [claim(Evidence.SAMPLES, end=22.0)]) == ()
    bench.add(ev.ClockMapped(at=17.5, controller=617.5, error=0.002))
    assert "have a hole of" in unreached(bench.story(), [claim(Evidence.SAMPLES, end=22.0)])[0]


@pytest.mark.parametrize(("gained", "many"), [(0.0, 0), (0.012, 0), (0.06, 1)])
def test_a_clock_that_gains_some_milliseconds_changes_nothing_that_is_judged(gained: float, many: int) -> None:
    bench = healthy()
    clocks = [one for one in bench.story().events if isinstance(one, ev.ClockMapped)]
    ahead = clocks[len(clocks) // 2]
    bench.add(ev.ClockMapped(at=(ahead.at or 0.0) + gained, controller=ahead.controller, error=0.001))
    assert len(unreached(bench.story(), [claim(Evidence.CLOCK)])) == many


def test_clocks_that_contradict_each_other() -> None:
    bench = healthy()
    bench.add(ev.ClockMapped(at=18.5, controller=620.5, error=0.002))
    assert "contradict each other by" in unreached(bench.story(), [claim(Evidence.CLOCK)])[0]
    story = bench.story()
    without = tuple(event for event in story.events if not isinstance(event, ev.ClockMapped))
    assert "were never compared" in unreached(Story(story.begun, without), [claim(Evidence.CLOCK)])[0]


@pytest.mark.parametrize(("apart", "verdict"), [(0.0, Verdict.FAIL), (0.1, Verdict.FAIL), (2.0, Verdict.UNKNOWN)])
def test_a_guest_whose_clock_runs_away_is_not_accused(apart: float, verdict: Verdict) -> None:
    """The cut is on the controller's clock and the removal on the DUT's: nobody knows which came first."""
    bench = healthy()
    bench.detach("disk2", 17.0)
    bench.add(ev.ClockMapped(at=18.5, controller=618.5 + apart, error=0.002))
    result = judge_story(bench.story())
    assert result.verdict is verdict
    assert any("disk2" in said for said in (result.findings and [result.findings[0].summary]) or result.unknowns)


def test_a_clock_that_is_known_less_well_than_what_is_judged() -> None:
    story = healthy().story()
    blurred = tuple(
        msgspec.structs.replace(event, error=3.0) if isinstance(event, ev.ClockMapped) else event
        for event in story.events
    )
    assert "1 s are judged" in unreached(Story(story.begun, blurred), [claim(Evidence.CLOCK, limit=1.0)])[0]
    assert unreached(Story(story.begun, blurred), [claim(Evidence.CLOCK, limit=5.0)]) == ()


def test_an_agent_that_was_lost_and_came_back_saw_less_than_all() -> None:
    bench = healthy()
    bench.add(ev.AgentLost(at=18.0, why="the connection broke", last_heard=17.9))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.UNKNOWN
    assert any("the agent was lost: the connection broke" in why for why in result.unknowns)


def test_lost_kernel_messages_and_loads_without_an_end() -> None:
    bench = healthy()
    bench.add(ev.LogLost(at=18.0, count=7))
    assert "7 records of the kernel log were lost" in unreached(bench.story(), [claim(Evidence.LOG)])[0]
    bench.drop(ev.LoadEnded)
    assert "ended was not recorded" in unreached(bench.story(), [claim(Evidence.LOAD, disk=VICTIM)])[0]


class Claiming(Check, frozen=True, tag="claiming_in_tests"):
    """Finds nothing wrong, and claims more than any record holds."""

    def judge(self, story: Story) -> Judgement:
        return Judgement(worst="splendid")

    def claims(self, story: Story) -> tuple[Claim, ...]:
        return (claim(Evidence.SAMPLES, end=1000.0),)


def test_what_a_check_claims_without_evidence_is_unknown_and_is_not_said() -> None:
    result = judge_story(healthy(checks=(Claiming(),)).story())
    assert result.verdict is Verdict.UNKNOWN
    assert "it is not known whether all is well: the samples end at" in result.unknowns[0]
    assert [check.worst for check in result.checks if check.check == "claiming_in_tests"] == [""]


@pytest.mark.parametrize(("used", "verdict"), [(0.1, False), (1.9, True)])
def test_a_gap_in_which_the_guest_was_run_is_its_own_doing(used: float, verdict: bool) -> None:
    bench = healthy()
    bench.starved = ((16.0, 18.0),)
    story = bench.story()
    events = tuple(
        msgspec.structs.replace(event, ran=5.0 if (event.at or 0.0) < 17.0 else 5.0 + used)
        if isinstance(event, ev.ClockMapped)
        else event
        for event in story.events
    )
    (gap,) = gaps(Story(story.begun, events))
    assert ran(Story(story.begun, events), gap) is verdict
    assert starved(Story(story.begun, events)) == (() if verdict else (gap,))
    assert not ran(story, gap), "nothing on record says so"


def _falling(kname: str, begin: float, end: float) -> tuple[str, ...]:
    """What is said of a disk whose counters are near zero meanwhile."""
    story = healthy().story()
    events = tuple(
        msgspec.structs.replace(
            event, disks=event.disks | {kname: Counters(event.disks[kname].diskseq, 0, 5, 0, 0, 0, 0, 0)}
        )
        if isinstance(event, ev.Sampled) and begin < (event.at or 0.0) < end and kname in event.disks
        else event
        for event in story.events
    )
    unknowns = coherent().judge(Story(story.begun, events, rig=story.rig)).unknowns
    return tuple(what for what in unknowns if "went back" in what)


def test_counters_that_go_back() -> None:
    assert any("the counters of sdc went back" in what for what in _falling("sdc", 20.0, 99.0))


def test_counters_that_are_misread_for_a_moment_do_not_go_back() -> None:
    """Sums over CPUs are read while they change. Emulated guests show it in one sample after the other."""
    assert _falling("sdc", 20.0, 20.0 + (FEW - 1) * STEP) == ()
    assert _falling("sdc", 20.0, 20.0 + (FEW + 1) * STEP) != ()


@pytest.mark.parametrize(
    ("kind", "less", "doubted"), [("virtual", 512, True), ("virtual", 0, False), ("ssh", 512, False)]
)
def test_a_counter_that_is_lower_for_a_moment(kind: ev.DutKind, less: int, doubted: bool) -> None:
    """On a real machine it may be a reading error."""
    story = healthy().story()
    rows = [event for event in story.events if isinstance(event, ev.Sampled) and "sdc" in event.disks]
    before, odd = rows[-3:-1]
    was = before.disks["sdc"]
    lower = was._replace(written_bytes=was.written_bytes - less)
    changed = msgspec.structs.replace(odd, disks=odd.disks | {"sdc": lower})
    events = tuple(
        changed
        if event is odd
        else msgspec.structs.replace(event, kind=kind)
        if isinstance(event, ev.DutReady)
        else event
        for event in story.events
    )
    unknowns = coherent().judge(Story(story.begun, events, rig=story.rig)).unknowns
    assert any("the counters of sdc went back" in what for what in unknowns) is doubted


def test_counters_of_a_disk_that_is_being_torn_down_may_go_back() -> None:
    assert _falling("sdb", GONE - DYING + 0.1, GONE) == ()
    assert _falling("sdb", GONE - DYING - FEW * STEP - 0.3, GONE) != ()


@pytest.mark.parametrize(("ahead", "doubted"), [(0.0, False), (3.0, True)])
def test_the_clocks_must_agree_in_a_scenario_without_a_cut(ahead: float, doubted: bool) -> None:
    bench = healthy()
    bench.drop(ev.CutArmed)
    bench.drop(ev.Edge)
    bench.add(ev.ClockMapped(at=20.05, controller=620.05 + ahead, error=0.002))
    assert any("contradict each other" in why for why in bench.unreached(coherent())) is doubted
