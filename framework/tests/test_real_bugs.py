"""The page of real bugs is made of its data, and names scenarios and rigs that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugpull.checks
from benchmarks.real_bugs import PAGE, RealBug, Tried, Unfixed, known, package_of, page, shows, unfixed
from plugpull.checks.base import check_name
from plugpull.checks.standing import STANDING
from plugpull.expected_findings import read_expected
from plugpull.finding import Finding
from plugpull.integrity.known_sequences import KNOWN_SEQUENCES
from plugpull.judging.expected import pattern_of
from plugpull.judging.results import ScenarioResult, Verdict

BUGS, TRIED = known()
UNFIXED = unfixed()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(BUGS, TRIED, UNFIXED), "run python framework/benchmarks/real_bugs.py --page 1"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_was_shown_by_what_exists(bug: RealBug) -> None:
    root = Path(__file__).resolve().parents[2]
    assert (root / "rigs" / f"{bug.rig}.toml").is_file()
    assert bug.check in (*plugpull.checks.__all__, *map(check_name, STANDING))
    assert bug.finding
    assert any(word in bug.finding for word in bug.words.split("|"))
    found, runs = bug.before_runs
    passed, clean = bug.after_runs
    assert 0 < found <= runs
    assert passed == clean > 0


SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
NAMES = " ".join(
    [*(f"{file.name} {file.read_text()}" for file in SCENARIOS.glob("test_*.py")), *map(str, KNOWN_SEQUENCES)]
)


@pytest.mark.parametrize("bug", UNFIXED, ids=lambda bug: bug.name)
def test_each_bug_without_a_fix_was_shown_and_is_expected(bug: Unfixed) -> None:
    assert (Path(__file__).resolve().parents[2] / "rigs" / f"{bug.rig}.toml").is_file()
    assert bug.check in plugpull.checks.__all__
    assert bug.shown
    entries = [one for one in read_expected([SCENARIOS]) if one.name.startswith(bug.name)]
    assert entries
    shapes = [shape for entry in entries for shape in entry.findings if shape.check == bug.check]
    roles = {"subject": ("two", "disk7")}
    assert any(pattern_of(shape.summary, roles).fullmatch(bug.finding) for shape in shapes)


@pytest.mark.parametrize("bug", [*BUGS, *UNFIXED], ids=lambda bug: bug.name)
def test_each_bug_has_a_scenario(bug: RealBug | Unfixed) -> None:
    for word in bug.scenario.replace("]", "").split():
        assert word == "and" or word in NAMES, word


def test_a_bug_is_shown_by_its_own_finding_only() -> None:
    bug = BUGS[0]
    its = Finding(check=bug.check, subject="disk", summary=f"here is a {bug.words.split('|')[0]}")
    other = Finding(check="returned", subject="disk", summary=its.summary)
    strange = Finding(check=bug.check, subject="disk", summary="something else")

    def result(*findings: Finding) -> ScenarioResult:
        return ScenarioResult(id="a", verdict=Verdict.FAIL, seconds=1.0, sentence="", findings=findings)

    assert shows(bug, result(other, strange, its)) == its.summary
    assert shows(bug, result(other, strange)) == ""


def test_packages_are_named_without_their_places() -> None:
    assert package_of("http://a/b/linux-image-6.16.3+deb13-amd64_6.16.3-1~bpo13+1_amd64.deb") == (
        "linux-image-6.16.3+deb13-amd64"
    )
    assert package_of("linux-image-6.1.0-54-amd64") == "linux-image-6.1.0-54-amd64"


def test_what_was_tried_is_on_the_page() -> None:
    tried = Tried("md: something", "6.12.1", "linux-image-6.12.1-amd64", "a story", 7, "it needs luck")
    assert "| md: something | 6.12.1 | `linux-image-6.12.1-amd64` | a story | 7 | it needs luck |" in page((), (tried,))
    assert "None." in page((), ())
