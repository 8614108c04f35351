"""Findings that a kernel is known to cause stay findings and are marked, and no others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from array_stories import ARRAY, OFFSET, mirror, stamps
from stories import Bench, encode, healthy, run_of

from plugpull.checks import legs_hold
from plugpull.errors import UsageError
from plugpull.expected_findings import FILE, read_expected
from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.judging.expected import _covers, concerns, in_range, release_of
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Results, Verdict
from plugpull.locate import scenarios_dir
from plugpull.plugin_session import summary
from plugpull.report.html import render_html

KERNEL = "6.12.107+deb12-amd64"
SUMMARY = (
    "{subject} does not hold what array1 was given ({sectors} zeroed), the first zeroed at sector {first} of the array:"
    " expected {...}; found zeros"
)
TEXT = f"""
[[expected]]
name = "a-bug"
reference = "md: fix a bug, in 6.12.109"
evidence = "found in 2 of 2 runs on 6.12.107"
scenario = "test_cable.py::test_cut"
kernels = [">=6.12.100 <6.12.109", ">=6.1.0-40 <6.1.0-56"]

[[expected.finding]]
check = "legs_hold"
subject = "{{victim}}"
summary = "{SUMMARY}"
at_most = {{ sectors = 8 }}
"""


def entries(folder: Path, text: str = TEXT) -> tuple[ev.ExpectedFinding, ...]:
    (folder / FILE).write_text(text)
    return read_expected([folder, folder])


def stale(sectors: int = 8, disk: str = "disk1") -> Bench:
    """A mirror one of whose members holds zeros instead of what was written, which is one finding."""
    bench = healthy(checks=[legs_hold(ARRAY)])
    mirror(bench)
    zeros = [SectorRun(ContentKind.ZEROED, OFFSET, sectors)]
    legs: dict[str, Any] = {disk: zeros}
    stamps(bench, **legs)
    return bench


def judged(folder: Path, bench: Bench, expected: tuple[ev.ExpectedFinding, ...], kernel: str = KERNEL) -> Results:
    bench.replace(ev.DutReady, kernel=kernel)
    begun, *others = bench.scenario()
    assert isinstance(begun, ev.ScenarioBegun)
    file = folder / "history.jsonl"
    file.write_bytes(encode(run_of([msgspec.structs.replace(begun, expected=expected), *others])))
    return judge_history(read_history(file))


def names(results: Results) -> list[str]:
    """The names of the expected findings that those of ``legs_hold`` are."""
    return [one.expected for each in results.scenarios for one in each.findings if one.check == "legs_hold"]


def test_an_expected_finding_is_a_finding_and_is_marked(tmp_path: Path) -> None:
    results = judged(tmp_path, stale(), entries(tmp_path))
    (scenario,) = results.scenarios
    assert (results.verdict, scenario.verdict) == (Verdict.FAIL, Verdict.FAIL)
    assert names(results) == ["a-bug"]
    assert scenario.findings[0].evidence[-1] == (
        "expected of this kernel (a-bug): md: fix a bug, in 6.12.109; found in 2 of 2 runs on 6.12.107"
    )
    assert scenario.sentence.endswith("found zeros. This is expected of this kernel (a-bug).")
    assert "1 of 1 scenarios failed (1 of them only as expected of this kernel)" in results.sentence
    (entry,) = results.expected
    assert (entry.name, entry.scenarios, entry.matched, entry.findings) == ("a-bug", 1, 1, 1)
    assert not [line for line in summary(results) if "expected and not found" in line]
    assert [line for line in summary(results) if line.endswith("found zeros (expected: a-bug)")]


def test_the_report_shows_it_with_its_reference(tmp_path: Path) -> None:
    results = judged(tmp_path, stale(), entries(tmp_path))
    page = render_html(results, {}, begun=None)
    assert "expected of this kernel (a-bug), legs_hold" in page
    assert "md: fix a bug, in 6.12.109" in page
    assert "1 of 1</td>" in page


def test_an_entry_that_found_nothing_is_listed(tmp_path: Path) -> None:
    bench = healthy(checks=[legs_hold(ARRAY)])
    mirror(bench)
    stamps(bench)
    results = judged(tmp_path, bench, entries(tmp_path))
    assert [one for each in results.scenarios for one in each.findings if one.expected] == []
    (entry,) = results.expected
    assert (entry.scenarios, entry.matched, entry.findings) == (1, 0, 0)
    assert "expected and not found: a-bug, in 1 scenario: md: fix a bug, in 6.12.109" in list(summary(results))
    assert "<strong>0</strong> of 1</td>" in render_html(results, {}, begun=None)


OTHERS = [
    ("sectors = 8", "sectors = 7"),  # more than it allows
    ("6.12.109", "6.12.107"),  # fixed in this kernel
    ("6.12.100", "6.12.108"),  # not in this kernel yet
    ("{victim}", "{survivor}"),
    ("{victim}", "array1"),
    ("legs_hold", "nothing_lost"),
    ("found zeros", "found ones"),
    ("{sectors} zeroed", "{sectors} torn"),
]


@pytest.mark.parametrize(("text", "other"), OTHERS)
def test_a_finding_that_differs_is_not_covered(tmp_path: Path, text: str, other: str) -> None:
    assert text in TEXT
    results = judged(tmp_path, stale(), entries(tmp_path, TEXT.replace(text, other)))
    assert names(results) == [""]
    assert "expected of this kernel" not in results.sentence
    assert results.verdict is Verdict.FAIL


@pytest.mark.parametrize(("module", "marked"), [("", "a-bug"), ("raid0", "a-bug"), ("raid1", "")])
def test_nothing_is_expected_of_another_build_of_the_module(tmp_path: Path, module: str, marked: str) -> None:
    text = TEXT.replace("\nscenario", f"\nmodule = {module!r}\nscenario") if module else TEXT
    bench = stale()
    bench.replace(ev.DutReady, modules=("raid1 sha256:0123456789ab (raid1.ko)",))
    assert names(judged(tmp_path, bench, entries(tmp_path, text))) == [marked]


def test_another_disk_is_not_covered(tmp_path: Path) -> None:
    assert names(judged(tmp_path, stale(disk="disk2"), entries(tmp_path))) == [""]


def test_a_new_finding_beside_an_expected_one_comes_first(tmp_path: Path) -> None:
    bench = stale()
    bench.add(ev.KernelMessage(at=24.0, text="BUG: kernel NULL pointer dereference, address: 0000000000000008"))
    results = judged(tmp_path, bench, entries(tmp_path))
    (scenario,) = results.scenarios
    assert "a-bug" in names(results)
    assert scenario.sentence.startswith("FAIL: BUG: kernel NULL pointer")
    assert f"1 of {len(scenario.findings)} findings is expected of this kernel (a-bug)." in scenario.sentence
    assert "only as expected" not in results.sentence


def test_an_entry_in_a_history_that_cannot_be_read_covers_nothing(tmp_path: Path) -> None:
    (entry,) = entries(tmp_path)
    (shape,) = entry.findings
    odd = msgspec.structs.replace(shape, summary="{...}{...}{...}")
    assert names(judged(tmp_path, stale(), (msgspec.structs.replace(entry, findings=(odd,)),))) == [""]


@pytest.mark.parametrize(
    ("kernel", "inside"),
    [
        ("6.1.0-54-amd64", True),
        ("6.1.0-56-amd64", False),
        ("6.1.0-39-amd64", False),
        ("6.1.55", False),
        ("6.10.11+bpo-amd64", False),
        ("6.1.0-rc3", False),
        ("next", False),
    ],
)
def test_ranges_of_kernels(kernel: str, inside: bool) -> None:
    assert in_range(kernel, ">=6.1.0-40 <6.1.0-56") is inside


def test_releases_are_compared_as_numbers() -> None:
    assert release_of("6.12.9") < release_of("6.12.107+deb12-amd64") < release_of("6.17-rc1")  # type: ignore[operator]
    assert in_range("7.2.1", ">=6.1")


@pytest.mark.parametrize(
    ("id", "about"),
    [
        ("scenarios/test_cable.py::test_cut", True),
        ("test_cable.py::test_cut[disk3]", True),
        ("scenarios/test_cable.py::test_cut_short", False),
        ("scenarios/test_cable.py::test", False),
        ("scenarios/a_test_cable.py::test_cut", False),
    ],
)
def test_which_scenario_an_entry_is_about(tmp_path: Path, id: str, about: bool) -> None:
    (entry,) = entries(tmp_path)
    assert concerns(entry, id) is about


MISTAKES = [
    ('name = "a-bug"', 'name = "a bug"', "letters, digits and hyphens"),
    ("reference = ", "source = ", "reference|source"),
    ('"md: fix a bug, in 6.12.109"', '""', "it has no reference"),
    (">=6.12.100 <6.12.109", "6.12", "is not a range of kernels"),
    ("{first}", "{sectors}", "{sectors} twice"),
    ("sectors = 8", "many = 8", "at_most has 'many'"),
    ("expected {...}", "expected {...}{...}{...}", "more than 2 times"),
    ("[[expected]]", "[[expected]", "cannot be read"),
    ("check =", "checks =", "cannot be read"),
]


@pytest.mark.parametrize(("text", "other", "says"), MISTAKES)
def test_a_mistake_in_the_file_is_reported(tmp_path: Path, text: str, other: str, says: str) -> None:
    assert text in TEXT
    with pytest.raises(UsageError, match=says):
        entries(tmp_path, TEXT.replace(text, other, 1))


def test_one_name_for_two_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two expected findings are called 'a-bug'"):
        entries(tmp_path, TEXT + TEXT)


def test_scenarios_without_such_a_file(tmp_path: Path) -> None:
    assert read_expected([tmp_path]) == ()


BOTH = """the btrfs on uas is wrong after the cut of uas.power (which took its power) ({count} both names): {path}: \
both names: 1 name of file 2000002 expected ({sync}, operation 7, returned at 9.250 s), {found} found"""


@pytest.mark.parametrize(
    ("count", "path", "sync", "found", "known"),
    [
        ("1", "A/x", "fsyncdir of B", "A/x and B/y", True),
        ("2", "A/y", "fsyncdir of A", "A/y and B/x", True),
        ("3", "A/x", "fsyncdir of B", "A/x and B/y", False),
        ("1 lost after fsync, 1", "A/x", "fsyncdir of B", "A/x and B/y", False),
        ("1", "A/x", "fsync of B/y", "A/x and B/y", False),
        ("1", "B/x", "fsyncdir of B", "B/x and B/y", False),
    ],
)
def test_two_names_after_a_rename_on_btrfs_are_known(count: str, path: str, sync: str, found: str, known: bool) -> None:
    summary = BOTH.format(count=count, path=path, sync=sync, found=found)
    roles = {"victim": ("uas",), "subject": ("uas",)}
    entries = [one for one in read_expected([scenarios_dir()]) if one.name.startswith("btrfs-both-names")]
    (entry,) = entries
    finding = Finding(check="files_kept", subject="uas", summary=summary)
    assert any(_covers(shape, finding, roles) for shape in entry.findings) is known


def test_the_stock_file_names_scenarios_that_exist() -> None:
    found = read_expected([scenarios_dir()])
    assert found
    for entry in found:
        file, _, test = entry.scenario.partition("::")
        assert f"def {test.partition('[')[0]}(" in (scenarios_dir() / file).read_text()
