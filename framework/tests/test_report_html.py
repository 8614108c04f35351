"""The HTML report: complete, self-contained, and safe whatever the strings in it hold."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
import report_stories as made

from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.results import CheckResult, Verdict
from plugpull.report.html import events_of, render_html

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = (
    "</script><script>alert(1)</script>\x1b[31mred\x1b[0m \x00 \ud800 \u202e <img src=http://evil.example/x> {{ 7*7 }}"
)


class Page(HTMLParser):
    """Parses a page, insisting that every element is closed where it should be."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def all(self, tag: str, kind: str = "") -> list[dict[str, str | None]]:
        found = [attributes for name, attributes in self.elements if name == tag]
        return [a for a in found if not kind or kind in (a.get("class") or "").split()]


@pytest.fixture(scope="module")
def report() -> str:
    run = made.run()
    return render_html(run.results, run.stories, [("2031-03-01", Verdict.PASS), ("2031-03-02", Verdict.FAIL)])


@pytest.fixture(scope="module")
def page(report: str) -> Page:
    return Page(report)


def test_it_opens_with_the_verdict_and_the_cuts_executed(page: Page) -> None:
    results = made.run().results
    assert (
        page.words.index(results.sentence) < page.words.index("2 of 3 cuts executed") < page.words.index("Worst case")
    )
    assert "3 scenarios: 1 PASS, 1 FAIL, 1 UNKNOWN" in page.words


def test_every_scenario_has_its_sentence_story_checks_and_worst_case(page: Page) -> None:
    for scenario in made.run().results.scenarios:
        assert page.words.count(scenario.sentence) == 2
        assert scenario.story.splitlines()[0] in page.words
        for check in scenario.checks:
            assert check.worst in page.words


def test_what_did_not_pass_is_open_and_what_passed_is_folded(page: Page) -> None:
    assert ["open" in scenario for scenario in page.all("details", "scenario")] == [False, True, True]


def test_every_disk_has_a_row_with_its_role(page: Page) -> None:
    disks = [a["class"] for a in page.all("g", "disk")]
    assert disks == ["disk disk-victim", "disk disk-survivor", "disk disk-survivor"] * 2
    assert "49 % of baseline" in page.words


def test_the_cut_is_shaded_from_commanded_off_to_restored_on(page: Page) -> None:
    shades = page.all("rect", "shade")
    drawn = [a for a in shades if a.get("x")][-2:]
    assert [a.get("x") for a in drawn] == [drawn[0].get("x")] * 2
    units = (988 - 150) / (made.END - made.START)
    assert float(drawn[0]["x"] or 0) == pytest.approx(150 + (made.CUT_AT - made.START) * units, abs=0.2)
    assert float(drawn[0]["width"] or 0) == pytest.approx((made.RESTORED_AT - made.CUT_AT) * units, abs=0.2)
    assert any(a.get("fill") == "url(#hatch-0)" and a.get("x") == drawn[0]["x"] for a in page.all("rect"))
    assert "1 disk1.cable, data" in page.words


def test_the_times_of_a_cut_are_absolute_and_since_the_command(page: Page) -> None:
    for absolute, since in (
        ("113.291", "+0.071 s"),
        ("113.303", "+0.083 s"),
        ("113.284", "+0.064 s"),
        ("113.338", "+0.118 s"),
        ("115.620", "+2.400 s"),
        ("116.730", "+3.510 s"),
        ("117.140", "+3.920 s"),
    ):
        assert f"{absolute} {since}" in page.words
    assert "1.11 s" in page.words
    assert "± 0.8 ms" in page.words


def test_findings_come_with_their_evidence_and_unknowns_with_their_reason(page: Page) -> None:
    assert "113.320 0.0 MB/s (31 samples)" in page.words
    assert "armed but never commanded" in page.words
    assert "not executed" in page.words


def test_kernel_messages_are_ticks_on_the_axis_and_lines_around_the_cut(page: Page) -> None:
    assert len(page.all("path", "tick-error")) >= 2
    assert "[ 113.303000] +0.083 usb 1-1: USB disconnect, device number 2" in page.words
    assert "+0.091 E device offline error, dev sda" in page.words


def test_charts_and_tables_are_named_for_those_who_cannot_see_them(page: Page) -> None:
    assert page.all("html")[0]["lang"] == "en"
    charts = page.all("svg", "timeline")
    assert len(charts) == 1 + 2, "the overview, and two scenarios with samples"
    assert all(chart["role"] == "img" and chart["aria-labelledby"] for chart in charts)
    assert len(page.all("desc")) == len(charts)
    assert all(header.get("scope") in {"row", "col"} for header in page.all("th"))


def test_identifiers_are_unique(page: Page) -> None:
    named = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(named) == len(set(named))


def test_nothing_is_fetched_from_anywhere(report: str, page: Page) -> None:
    for _, attributes in page.elements:
        for name in ("src", "href", "data", "action", "xlink:href", "poster", "srcset"):
            assert re.match(r"(#|kernel\.log$)", attributes.get(name) or "#")
    styles = "".join(re.findall(r"<style>(.*?)</style>", report, re.DOTALL))
    assert "@import" not in styles
    assert "url(" not in styles
    assert "default-src 'none'" in report


def test_hostile_strings_are_shown_and_not_obeyed() -> None:
    run = made.run()
    scenario = made.failing()
    bad = made.changed(
        scenario,
        id=f"x::{HOSTILE}",
        sentence=HOSTILE,
        story=HOSTILE,
        findings=(Finding(check=HOSTILE, subject=HOSTILE, summary=HOSTILE, evidence=(HOSTILE,)),),
        unknowns=(HOSTILE,),
        checks=(CheckResult(check=HOSTILE, verdict=Verdict.FAIL, worst=HOSTILE),),
        cuts=(made.changed(made.CUT, point=HOSTILE, mechanism=HOSTILE, trigger=HOSTILE, victims=(HOSTILE,)),),
    )
    events: list[ev.Event] = [
        *run.stories[made.FAILING],
        ev.KernelMessage(at=made.CUT_AT + 0.2, text=HOSTILE, level=3),
        ev.Note(at=made.CUT_AT, text=HOSTILE),
        ev.ScenarioError(at=made.CUT_AT, fault="rig", summary=HOSTILE, traceback=HOSTILE),
        ev.LoadBegun(at=made.CUT_AT, disk=HOSTILE, job="j", mode="write", block=1, depth=1, span=1),
    ]
    results = made.changed(made.results_of(bad), rig=HOSTILE, sentence=HOSTILE, controller={HOSTILE: HOSTILE})
    source = render_html(results, {bad.id: events}, [(HOSTILE, Verdict.PASS)], kernel_log="kernel.log")
    source.encode()
    page = Page(source)
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    assert not set(source) & {"\x00", "\x1b", "\u202e", "\ud800"}
    assert "{{ 7*7 }}" in page.words
    assert "\u241b[31mred" in page.words
    data = re.search(r'id="data">(.*?)</script>', source, re.DOTALL)
    assert data is not None
    assert set(json.loads(data[1])) == {"s1"}


def test_a_run_without_scenarios_and_scenarios_without_events_are_reported() -> None:
    empty = Page(render_html(made.results_of(), {}))
    assert "No scenario was run." in empty.words
    assert "0 of 0 cuts executed" in empty.words
    bare = Page(render_html(made.results_of(made.passing(), made.unknown()), {}))
    assert "Nothing was sampled and nothing was cut" in bare.words
    assert len(bare.all("svg", "timeline")) == 1 + 1, "the executed cut alone is worth a drawing"


def test_an_incomplete_run_says_so() -> None:
    results = made.changed(made.results_of(made.passing()), complete=False)
    assert "The history ends before the run did" in Page(render_html(results, {})).words


def test_many_kernel_lines_are_cut_down_and_the_whole_log_is_linked() -> None:
    chatter = [ev.KernelMessage(at=made.CUT_AT + i / 1000, text=f"line {i} of the flood") for i in range(500)]
    source = render_html(made.results_of(made.passing()), {made.PASSING: chatter})
    page = Page(source)
    assert "440 lines left out, see kernel.log" in page.words
    assert sum(f"line {i} of the flood" in page.words for i in range(500)) <= 60 + len(page.all("path", "tick-message"))


def test_a_story_of_the_reader_is_taken_with_what_held_before_it() -> None:
    events = made.run().stories[made.PASSING]
    begun = events[0]
    assert isinstance(begun, ev.ScenarioBegun)
    held = tuple(made.attached(disk, 1.0) for disk in made.DISKS)
    rest = tuple(event for event in events[1:] if not isinstance(event, ev.DiskAttached))
    story = Story(begun, (begun, *rest), before=held)
    page = Page(render_html(made.results_of(made.passing()), events_of([story])))
    assert len(page.all("path", "write")) == 1 + 3 + 3, "the key, three disks in the overview and in the chart"


def test_a_long_run_of_many_disks_stays_small() -> None:
    run = made.large()
    assert len(render_html(run.results, run.stories).encode()) < 500_000
