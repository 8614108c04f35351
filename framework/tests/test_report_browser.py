"""The report in a real browser: its script runs, without a word on the console, and draws the zoomable charts."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
import report_stories as made

from plugpull.commands.screenshot import main
from plugpull.errors import UsageError
from plugpull.report.html import render_html
from plugpull.report.screenshot import browse, find_browser, page_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find_browser()
    except UsageError as error:
        pytest.fail(f"this test needs a browser: {error}", pytrace=False)
    run = made.run()
    place = tmp_path_factory.mktemp("report") / "report.html"
    place.write_text(render_html(run.results, run.stories), encoding="utf-8")
    return place


def test_the_page_makes_its_charts_and_says_nothing_on_the_console(page: Path) -> None:
    dom, log = browse(f"{page.as_uri()}#zoom", "--dump-dom", "--enable-logging=stderr")
    assert [line for line in log.splitlines() if "CONSOLE" in line] == []
    charts = re.search(r'<body[^>]*\bdata-charts="(\d+)"', dom)
    assert charts is not None, "the page's script did not run to its end"
    assert int(charts[1]) == 6, "three disks in each of the two scenarios with samples"
    assert dom.count("<canvas") == 6


def test_a_picture_of_the_whole_page_is_taken(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "report.png"
    assert main([str(page.parent), str(picture), "--width", "900"]) == 0
    header = picture.read_bytes()[:24]
    width, height = struct.unpack(">II", header[16:24])
    assert header.startswith(b"\x89PNG")
    assert width == 900
    assert height > 1500, "taller than a window: the whole page"


def test_what_is_not_a_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        page_of(tmp_path)
    assert main([str(tmp_path), str(tmp_path / "x.png")]) == 2
