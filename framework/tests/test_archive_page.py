"""The page, the text and the Markdown of an archive."""

from __future__ import annotations

import random
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from archives import date, folder, measurement, put, put_nights, results, scenario
from test_archive_index import HOSTILE

from plugpull.archive.page import write_page
from plugpull.archive.trend import trend_of
from plugpull.archive.trend_show import amount, as_markdown, as_text
from plugpull.cli import main


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def headings(self) -> list[str]:
        return [" ".join(word.split()) for word in self.words if word.strip()]


def page_of(directory: Path) -> Page:
    path, _ = write_page(directory)
    return Page(path.read_text("utf-8"))


def slower(directory: Path, nights: int = 24, at: int = 12, reports: bool = True) -> None:
    """A scenario that begins to fail in the last night, and a rate that falls by a tenth."""
    draw = random.Random(3)
    for night in range(nights):
        rate = [draw.gauss(90.0 if night >= at else 100.0, 1.0) * 1e6 for _ in range(5)]
        verdict = "F" if night == nights - 1 else "P"
        run = put(directory, results(night, [scenario("test_a.py::test_pulled", verdict, values={"rate": rate})]))
        if reports and night % 2:
            (run / "report.html").write_text("<p>a report</p>")


def test_what_is_new_comes_first(tmp_path: Path) -> None:
    slower(tmp_path)
    lines = list(as_text(trend_of(tmp_path)))
    assert lines[0] == "24 nights: 1 new, 1 value changed"
    headings = [line for line in lines if line and not line.startswith(" ")][1:]
    assert headings == ["New failures", "Slower or worse"]
    text = page_of(tmp_path).text
    order = [
        "24 nights: 1 new",
        "New failures",
        "pulled",
        "Slower or worse",
        "a night usually varies",
        "The newest 24 nights",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert "disk2 stood still for 3.9 s" in text
    assert re.search(r"rate : (99|100)[.\d]* MB/s to (89|90)[.\d]* MB/s \(-(9|10|11)\.\d %\)", text)


def test_a_click_leads_to_the_report_of_a_run_that_has_one(tmp_path: Path) -> None:
    slower(tmp_path)
    links = {one["href"] for tag, one in page_of(tmp_path).tags if tag == "a"}
    assert links == {f"{folder(night)}/report.html" for night in range(24) if night % 2}
    elsewhere = tmp_path.parent / "elsewhere"
    elsewhere.mkdir()
    path, _ = write_page(tmp_path, elsewhere / "page.html")
    assert f'href="../{tmp_path.name}/{folder(1)}/report.html"' in path.read_text()


def test_a_link_is_not_taken_for_a_report(tmp_path: Path) -> None:
    slower(tmp_path, nights=3, reports=False)
    (tmp_path / folder(1) / "report.html").symlink_to("/etc/passwd")
    assert [one for tag, one in page_of(tmp_path).tags if tag == "a"] == []


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    slower(tmp_path)
    page = page_of(tmp_path)
    assert {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object", "form"} == set()
    policy = next(one["content"] for tag, one in page.tags if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "url(" not in (tmp_path / "index.html").read_text()
    assert (tmp_path / "index.txt").read_text() == "\n".join(as_text(trend_of(tmp_path))) + "\n"
    assert (tmp_path / "index.md").read_text() == "\n".join(as_markdown(trend_of(tmp_path))) + "\n"


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    found = scenario(
        HOSTILE, "F", check=HOSTILE, subject=HOSTILE, summary=HOSTILE, victim=HOSTILE, values={HOSTILE: 5.0}
    )
    for night in range(3):
        put(tmp_path, results(night, [found], rig=HOSTILE, dut={"kernel": HOSTILE}, unknowns=[HOSTILE]), f"{night}")
    text = write_page(tmp_path)[0].read_text("utf-8")
    assert not {character for character in text if ord(character) < 32} - {"\n"}
    assert "\u202e" not in text
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not [name for _, one in page.tags for name in one if name.startswith("on")]
    assert "alert(1)" in page.text


def test_the_grid_has_a_mark_for_each_night(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PPFUP", "b": "....P"})
    paths = [(one["class"], one["d"] or "") for tag, one in page_of(tmp_path).tags if tag == "path" and "class" in one]
    marks = {(kind, len(re.findall("M", path))) for kind, path in paths}
    assert marks == {("p", 3), ("f", 1), ("u", 1), ("p", 1)}


def test_a_large_archive_has_a_small_page(tmp_path: Path) -> None:
    """60 scenarios with 10 values each. Only the newest nights are drawn, so its size does not grow with more."""
    draw = random.Random(1)
    sizes = []
    for night in range(100):
        values = [measurement(f"rate {number}", draw.gauss(100.0, 2.0)) for number in range(10)]
        there = [scenario(f"scenarios/test_{number}.py::test_pulled", measurements=values) for number in range(60)]
        put(tmp_path, results(night, there))
        if night in (95, 99):
            sizes.append(write_page(tmp_path)[0].stat().st_size)
    assert sizes[1] < 1_000_000
    assert sizes[1] < 1.02 * sizes[0]


def test_old_news_is_not_repeated(tmp_path: Path) -> None:
    slower(tmp_path, nights=50, at=12)
    (change,) = trend_of(tmp_path).changes
    assert change.state == "changed"
    assert "Slower or worse" not in list(as_text(trend_of(tmp_path)))


def test_a_step_at_a_declared_change_is_not_a_change(tmp_path: Path) -> None:
    draw = random.Random(7)
    for night in range(20):
        kernel = "6.1.0-56-amd64" if night < 12 else "6.1.0-57-amd64"
        rate = draw.gauss(100.0 if night < 12 else 80.0, 1.0)
        put(tmp_path, results(night, [scenario(values={"rate": rate})], dut={"kernel": kernel, "kind": "virtual"}))
    trend = trend_of(tmp_path)
    assert trend.changes == ()
    (step,) = trend.steps
    assert (step.at, step.declared) == (date(12), "kernel 6.1.0-57-amd64")
    assert step.share == pytest.approx(-0.2, abs=0.02)
    assert "Different since a declared change" in list(as_text(trend))


def test_a_bench_that_decays_is_seen(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "P" * 30 + "UUPUU", "b": "P" * 35})
    (bench,) = [one for one in trend_of(tmp_path).bench if not one.key]
    assert (bench.state, bench.k, bench.n) == ("decaying", 4, 20)
    assert (bench.since, bench.last, bench.reason) == (date(33), date(34), "the switch did not acknowledge")
    shutil.rmtree(tmp_path)
    put_nights(tmp_path, {"a": "PU" + "P" * 30})
    assert trend_of(tmp_path).bench == ()


def test_the_page_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_nights(tmp_path, {"a": "PF"})
    assert main(["trend", str(tmp_path), "--page", str(tmp_path / "page.html"), "--markdown"]) == 0
    seen = capsys.readouterr()
    assert seen.out.startswith("**2 nights: 1 new**\n")
    assert (tmp_path / "page.html").is_file()
    assert (tmp_path / "page.md").read_text() == seen.out


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (28.5e6, "B/s", "28.5 MB/s"),
        (950.0, "B/s", "950 B/s"),
        (0.25, "s", "0.25 s"),
        (3.0, "", "3"),
        (2e9, "B", "2 GB"),
    ],
)
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text
