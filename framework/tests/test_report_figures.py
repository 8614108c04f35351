"""The section of figures and conclusions in the report, and the page of them on the terminal."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from report_stories import changed, passing, results_of

from plugpull.commands.measure import page
from plugpull.judging.results import Conclusion, Measurement, Results
from plugpull.report.figures import HEIGHT, TOP, figures
from plugpull.report.html import render_html


def _figure(name: str, subject: str, value: float, *, disks: int = 1, check: str = "scaling") -> Measurement:
    samples = tuple(value * share for share in (0.98, 1.0, 1.02))
    return Measurement(
        name=name,
        subject=subject,
        value=value,
        unit="B/s",
        low=value * 0.95,
        high=value * 1.05,
        n=3,
        samples=samples,
        parameters={"disks": disks},
        check=check,
    )


KNEE = Conclusion(
    kind="knee",
    subject="<usb>",
    text="It grows up to 1.5 <disks>.",
    value=1.5,
    unit="disks",
    evidence=("1 disk: 2 MB/s",),
)


@pytest.fixture
def results() -> Results:
    return changed(
        results_of(passing()),
        measurements=(
            _figure("write alone", "disk1", 2e6),
            _figure("write alone", "disk2", 1.5e6),
            _figure("write together", "disk1, disk2", 3e6, disks=2),
        ),
        conclusions=(KNEE,),
    )


def test_rates_alone_are_side_by_side_and_sums_are_a_curve(results: Results) -> None:
    found = figures(results)
    assert found is not None
    alone, curve = found.plots
    assert [mark.label for mark in alone.marks] == ["disk1", "disk2"]
    assert (alone.line, [mark.label for mark in curve.marks]) == ("", ["1", "2"])
    assert curve.line.startswith("M")
    assert (
        "disk1, disk2: 3 MB/s (2.85 MB/s to 3.15 MB/s), repeats: 2.94 MB/s, 3 MB/s, 3.06 MB/s" in curve.marks[1].title
    )
    assert len(curve.marks[1].dots) == 3


def test_places_are_in_proportion_and_inside_the_picture(results: Results) -> None:
    found = figures(results)
    assert found is not None
    plot = found.plots[0]
    one, two = plot.marks
    assert (plot.floor - two.y) / (plot.floor - one.y) == pytest.approx(0.75, abs=0.01)
    assert one.low is not None
    assert one.high is not None
    assert HEIGHT > plot.floor > one.low > one.y > one.high >= TOP
    assert plot.ticks[0] == (plot.floor, "0 B/s")
    assert plot.ticks[-1][0] == pytest.approx(TOP)


def test_a_run_without_measurements_has_no_such_section(results: Results) -> None:
    assert figures(results_of(passing())) is None
    assert 'id="figures"' not in render_html(results_of(passing()), [()])
    only = figures(changed(results, measurements=()))
    assert only is not None
    assert (only.plots, only.conclusions) == ((), (KNEE,))


def test_the_report_draws_them_as_valid_svg_and_escapes_foreign_text(results: Results) -> None:
    html = render_html(results, [()])
    assert "It grows up to 1.5 &lt;disks&gt;." in html
    drawings = re.findall(r'<figure class="plot">\s*(<svg.*?</svg>)', html, re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_the_page_has_every_figure_and_conclusion(results: Results) -> None:
    text = "\n".join(page(results))
    assert re.search(r"write together +disk1, disk2 +3 MB/s +2.85 MB/s to 3.15 MB/s +n=3", text)
    assert "knee: It grows up to 1.5 <disks>." in text
    empty = "\n".join(page(results_of(passing())))
    assert "nothing was measured" in empty


def test_a_long_write_is_drawn_window_by_window(results: Results) -> None:
    rates = (2e6, 2e6, 4e5, 2e6)
    long = Measurement(
        name="write sustained",
        subject="disk1",
        value=2e6,
        unit="B/s",
        n=4,
        samples=rates,
        parameters={"window": 1 << 20},
    )
    found = figures(changed(results, measurements=(long,)))
    assert found is not None
    (plot,) = found.plots
    assert [title for _, title in plot.windows][2] == "from 2 MiB on: 400 kB/s"
    assert plot.line.count("M") == 3
    assert plot.axis == "4 MiB"
    html = render_html(changed(results, measurements=(long,)), [()])
    (drawing,) = re.findall(r'<figure class="plot">\s*(<svg.*?</svg>)', html, re.DOTALL)
    assert len(ElementTree.fromstring(drawing).findall(".//{*}title")) == 4
