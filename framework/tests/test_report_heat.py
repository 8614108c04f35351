"""The heat map of arrays, and the curves over the size of a request."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from report_stories import changed, passing, results_of

from plugpull.judging.results import Measurement
from plugpull.report.figures import figures
from plugpull.report.heat import heat_maps
from plugpull.report.html import render_html
from plugpull.report.text import NONE


def _array(level: str, members: int, chunk: int, value: float, mode: str = "write") -> Measurement:
    return Measurement(
        name=f"{mode} array",
        subject=f"{level} of <{members}>",
        value=value,
        unit="B/s",
        low=value * 0.9,
        high=value * 1.1,
        n=3,
        samples=(value,) * 3,
        parameters={"level": level, "members": members, "chunk": chunk},
    )


ARRAYS = (
    _array("raid0", 3, 65536, 6e6),
    _array("raid0", 2, 65536, 4e6),
    _array("raid0", 2, 16384, 2e6),
    _array("raid1", 2, 0, 2e6),
    _array("raid0", 2, 65536, 5e6, "read"),
)


def test_arrays_are_a_map_of_members_and_chunks_for_each_mode() -> None:
    write, read = heat_maps(ARRAYS)
    assert [label for _, label in write.rows] == ["raid0 of 2", "raid0 of 3", "raid1 of 2"]
    assert [label for _, label in write.columns] == [NONE, "16 KiB", "64 KiB"]
    assert len(write.cells) == 4
    assert (read.mode, len(read.cells)) == ("read", 1)
    assert all(cell.x + write.cell_width <= write.width for cell in write.cells)
    assert all(cell.y + write.cell_height <= write.height for cell in write.cells)


def test_the_highest_rate_is_the_darkest_cell() -> None:
    write = heat_maps(ARRAYS)[0]
    shares = {cell.label: cell.share for cell in write.cells}
    assert shares["6 MB/s"] == 1.0
    assert shares["6 MB/s"] > shares["4 MB/s"] > shares["2 MB/s"] > 0
    assert [cell.pale for cell in write.cells if cell.label in ("6 MB/s", "2 MB/s")] == [False, True, True]
    assert "4 MB/s (3.6 MB/s to 4.4 MB/s), repeats: 4 MB/s, 4 MB/s, 4 MB/s" in write.cells[1].title


def test_rigs_without_arrays_have_no_map() -> None:
    assert heat_maps([Measurement(name="write alone", value=1.0, unit="B/s")]) == ()


def test_the_map_is_in_the_report_as_valid_drawing() -> None:
    results = changed(results_of(passing()), measurements=ARRAYS)
    html = render_html(results, {})
    begin = html.index('aria-label="write: arrays by level')
    svg = html[html.rindex("<svg", 0, begin) : html.index("</svg>", begin) + 6]
    drawn = ElementTree.fromstring(svg)
    assert len(drawn.findall(".//rect")) == 4
    assert "raid0 of <2>" in "".join(drawn.itertext())


def test_rates_over_the_size_of_a_request_are_a_curve_for_each_disk() -> None:
    sizes = tuple(
        Measurement(
            name="read by size", subject=disk, value=1e6 * size, unit="B/s", samples=(1e6 * size,),
            parameters={"block": size << 10, "depth": 1},
        )
        for disk in ("disk1", "disk2")
        for size in (4, 8, 16)
    )  # fmt: skip
    found = figures(changed(results_of(passing()), measurements=sizes))
    assert found is not None
    assert [plot.title for plot in found.plots] == [
        "read: disk1, by the size of a request",
        "read: disk2, by the size of a request",
    ]
    assert [mark.label for mark in found.plots[0].marks] == ["4", "8", "16"]
    assert found.plots[0].line


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_rates_of_nothing_are_drawn_too(value: float) -> None:
    assert heat_maps([_array("raid0", 2, 65536, value)])[0].cells[0].share == pytest.approx(0.08)
