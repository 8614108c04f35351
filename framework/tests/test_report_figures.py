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


def test_figures_of_one_name_are_set_apart_by_what_differs(results: Results) -> None:
    sizes = [
        changed(_figure("read by size", "disk1", 2e6), parameters={"block": k << 10, "depth": 1}) for k in (64, 80)
    ]
    text = "\n".join(page(changed(results, measurements=(*sizes, _figure("read alone", "disk1", 2e6)))))
    assert re.search(r"read by size +disk1, block 64 KiB +2 MB/s", text)
    assert re.search(r"read by size +disk1, block 80 KiB +2 MB/s", text)
    assert re.search(r"read alone +disk1 +2 MB/s", text)


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


def test_dips_that_are_concluded_are_shaded_where_they_are(results: Results) -> None:
    rates = tuple(4e5 if number in (8, 9, 20) else 2e6 for number in range(30))
    parameters: dict[str, str | float] = {"window": 1 << 20}
    long = Measurement(
        name="write sustained", subject="disk1", value=2e6, unit="B/s", n=30, samples=rates, parameters=parameters
    )
    dip = Conclusion(kind="dip", subject="disk1", text="It dips.", value=0.8)
    found = figures(changed(results, measurements=(long,), conclusions=(dip,)))
    assert found is not None
    (plot,) = found.plots
    first, second = plot.dips
    assert [round((x - plot.left) / plot.gap) for x, _, _ in plot.dips] == [8, 20]
    assert first[1] == pytest.approx(2 * second[1], abs=0.2)
    assert second[2] == "80% below the usual rate"
    html = render_html(changed(results, measurements=(long,), conclusions=(dip,)), [()])
    assert html.count('<rect class="dip"') == 2
    without = figures(changed(results, measurements=(long,), conclusions=()))
    assert without is not None
    assert without.plots[0].dips == (), "the study did not conclude any"


def test_watts_are_drawn_below_the_rates_by_number_of_disks_at_work(results: Results) -> None:
    def watts(name: str, value: float, **parameters: str | float) -> Measurement:
        return Measurement(
            name=name, subject="shelf", value=value, unit="W", n=1, samples=(value,), parameters=parameters
        )

    read = [
        watts("idle watts", 10.0),
        watts("watts, write, 1 stream", 11.4, streams=1, synthetic="yes"),
        watts("watts, write, 4 streams", 15.6, streams=4, synthetic="yes"),
        watts("watts at most, write, 4 streams", 16.0, streams=4),
    ]
    found = figures(changed(results, measurements=(*results.measurements, *read)))
    assert found is not None
    plot = found.plots[-1]
    assert plot.title == "write: watts that shelf reads (computed)"
    assert [mark.label for mark in plot.marks] == ["0", "1", "4"]
    assert plot.ticks[-1][1].endswith(" W")
