"""The overview at the top of the report: one clock for all scenarios, every disk in a row, every cut shaded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain, pairwise

import pytest
import report_stories as made
from test_report_html import Page

from plugpull.history import events as ev
from plugpull.judging.results import ScenarioResult
from plugpull.report.html import render_html
from plugpull.report.overview import CHARACTER, Placed, overview, place
from plugpull.report.timeline import timeline_of

BEGUN = datetime.fromisoformat("2031-03-02T01:14:09+00:00")
LENGTH = made.END - made.START


def later(events: Sequence[ev.Event], seconds: float, *, mapped: bool = True) -> list[ev.Event]:
    """The same story, begun so many seconds later: the guest is restored, so that its own clock says the same."""
    moved: list[ev.Event] = []
    for event in events:
        if isinstance(event, ev.ScenarioBegun):
            moved.append(made.changed(event, wall=(BEGUN + timedelta(seconds=seconds)).isoformat()))
        elif isinstance(event, ev.ClockMapped):
            moved += [made.changed(event, controller=event.controller + seconds)] if mapped else []
        else:
            moved.append(event)
    return moved


def placed(*stories: Sequence[ev.Event], result: ScenarioResult | None = None) -> list[Placed]:
    scenario = result or made.passing()
    return place([(n, f"s{n}", scenario, timeline_of(s, scenario), s) for n, s in enumerate(stories, 1)])


def story() -> Sequence[ev.Event]:
    return made.run().stories[made.PASSING]


def test_scenarios_are_placed_by_the_controllers_clock() -> None:
    assert [one.begin for one in placed(story(), later(story(), 27.5))] == [0.0, pytest.approx(27.5)]


def test_a_scenario_that_never_reached_the_dut_is_placed_by_the_wall_clock() -> None:
    one, two, three = placed(story(), later(story(), 31.0, mapped=False), later(story(), 60.0))
    assert [one.begin, two.begin, three.begin] == pytest.approx([0.0, 31.0, 60.0], abs=0.1)


def test_clocks_that_contradict_the_order_do_not_overlap_scenarios() -> None:
    one, two = placed(story(), later(story(), -300.0))
    assert two.begin == one.end == pytest.approx(LENGTH)


def test_no_clock_at_all_puts_them_one_after_the_other() -> None:
    bare = [event for event in story() if not isinstance(event, ev.ClockMapped | ev.ScenarioBegun)]
    one, two = placed(bare, bare)
    assert two.begin == one.end


def test_every_disk_is_a_row_and_every_cut_is_shaded_where_it_was() -> None:
    drawn = overview(placed(story(), later(story(), 30.0)))
    assert drawn is not None
    (strip,) = drawn.strips
    assert [row.name for row in strip.rows] == ["disk1", "disk2", "disk3"]
    scale = (drawn.right - drawn.left) / (30.0 + LENGTH)
    for shade, begin in zip(strip.shades, (9.0, 39.0), strict=True):
        assert shade.x == pytest.approx(drawn.left + begin * scale, abs=0.1)
        assert shade.width == pytest.approx((made.RESTORED_AT - made.CUT_AT) * scale, abs=0.2)
        assert "disk1.cable (data), takes disk1; 9.00 s after its begin, for 2.40 s" in shade.title
    assert [box.title for box in strip.absent] == ["disk1 absent"] * 2


def test_a_long_run_is_broken_into_strips_of_one_scale_between_scenarios() -> None:
    drawn = overview(placed(*(later(story(), 25.0 * number) for number in range(20))))
    assert drawn is not None
    assert len(drawn.strips) == 4
    assert [box.label.split()[0] for strip in drawn.strips for box in strip.heads] == [str(n) for n in range(1, 21)]
    widths = {round(box.width) for strip in drawn.strips for box in strip.heads}
    assert len(widths) == 1, "scenarios of one length have one width"
    assert max(box.x + box.width for strip in drawn.strips for box in strip.heads) <= drawn.right
    assert drawn.height < 700


def test_labels_of_many_short_scenarios_are_not_drawn_over_each_other() -> None:
    drawn = overview(placed(*(later(story(), 25.0 * number) for number in range(200))))
    assert drawn is not None
    named = [[box for box in strip.heads if box.label] for strip in drawn.strips]
    assert all(row[0] is strip.heads[0] for row, strip in zip(named, drawn.strips, strict=True))
    assert 50 < sum(map(len, named)) < 200
    for one, other in chain.from_iterable(map(pairwise, named)):
        assert one.x + CHARACTER * len(one.label) < other.x


def test_values_are_shown_on_hover() -> None:
    drawn = overview(placed(story()))
    assert drawn is not None
    said = {cell.title.splitlines()[0]: cell.title for cell in drawn.strips[0].cells}
    assert "absent 3.39 s, from 9.12 s of the scenario on" in said["disk1, victim in scenario 1"]
    assert "write: mean 2" in said["disk2, survivor in scenario 1"]
    assert "final pace 99 % of its baseline 29.6 MB/s" in said["disk3, survivor in scenario 1"]


def test_one_burst_does_not_flatten_a_row() -> None:
    rate = made.steady
    burst = made.samples(lambda disk, at: 900.0 * made.MB if 110.0 <= at < 110.2 else rate(disk, at))
    drawn = overview(placed(made.ordered(made.begin(made.PASSING, made.STORY), burst)))
    assert drawn is not None
    assert {row.top for row in drawn.strips[0].rows} == {"40 MB/s"}


def test_a_passing_report_shows_it_at_the_top_with_nothing_opened() -> None:
    results = made.results_of(made.passing())
    source = render_html(results, {made.PASSING: story()})
    page = Page(source)
    assert [chart["class"] for chart in page.all("svg", "timeline")] == ["timeline overview", "timeline"]
    assert source.index("timeline overview") < source.index('<table class="scenarios">')
    assert any(link.get("href") == "#s1" for link in page.all("a", "scenario-PASS"))
    marks = [tag for tag in page.all("path", "tick-error") if (tag.get("d") or "").endswith("h10l-5 10z")]
    assert marks == [], "nothing was found"


def test_findings_are_marked_where_they_were() -> None:
    failing = made.failing()
    drawn = overview(placed(made.run().stories[made.FAILING], result=failing))
    assert drawn is not None
    assert len(drawn.strips[0].findings) == len([f for f in failing.findings if f.at is not None])


def test_nothing_to_draw_draws_nothing() -> None:
    assert "timeline overview" not in render_html(made.results_of(made.unknown()), {})
