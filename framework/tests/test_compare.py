"""Runs side by side: findings of one alone, events of one alone, longer times; several kernels; a bisection's step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from defects_bench import RIG
from long_tests import only_if_asked
from stories import BACK, CUT, GONE, RESTORED, SURVIVORS, VICTIM, Bench, all_checks, encode, healthy, run_of

from plugpull.archive.compare import compare
from plugpull.archive.compare_show import as_html, as_text
from plugpull.checks import no_errors
from plugpull.cli import main
from plugpull.commands.run import _alone, worst
from plugpull.history import events as ev

CHECKS = (*all_checks(), no_errors(SURVIVORS))


def recorded(directory: Path, *benches: Bench, kernel: str = "6.1.0-56-amd64") -> Path:
    directory.mkdir(parents=True)
    for bench in benches:
        bench.replace(ev.DutReady, kernel=kernel)
    (directory / "history.jsonl").write_bytes(encode(run_of(*(bench.scenario() for bench in benches))))
    return directory


def well() -> Bench:
    return healthy(checks=CHECKS)


def slower() -> Bench:
    """Back after 2.42 s instead of 1.21 s, and with an error of a survivor's."""
    bench = well()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, at=RESTORED + 2.42)
    bench.add(ev.KernelMessage(at=13.0, text="I/O error, dev sdc, sector 8 op 0x1:(WRITE)", level=3))
    return bench


def test_what_is_the_same(tmp_path: Path) -> None:
    one, two = recorded(tmp_path / "one", well()), recorded(tmp_path / "two", well())
    comparison = compare([one, two])
    assert not comparison.differs
    (scenario,) = comparison.scenarios
    assert (scenario.verdicts, scenario.only, scenario.sequences) == (("PASS", "PASS"), ((), ()), ())
    assert [(row.disk, row.what, row.ratios) for row in scenario.times] == [
        (VICTIM, "removed", (1.0,)),
        (VICTIM, "returned", (1.0,)),
        (VICTIM, "first I/O", (1.0,)),
    ]
    assert scenario.times[0].seconds[0] == pytest.approx(GONE - CUT)
    assert [run.name for run in comparison.runs] == ["one", "two"], "one kernel does not distinguish them"


def test_what_differs(tmp_path: Path) -> None:
    one = recorded(tmp_path / "one", well())
    two = recorded(tmp_path / "two", slower(), kernel="6.12.100")
    comparison = compare([one, two])
    assert comparison.differs
    assert [run.name for run in comparison.runs] == ["6.1.0-56-amd64", "6.12.100"]
    (scenario,) = comparison.scenarios
    assert scenario.verdicts == ("PASS", "FAIL")
    assert [len(findings) for findings in scenario.only] == [0, 1]
    (sequence,) = scenario.sequences
    assert (sequence.disk, sequence.kinds) == (
        "disk2",
        (("storage.attach",), ("storage.attach", "block.error")),
    )
    (back,) = [row for row in scenario.times if row.what == "returned"]
    assert (back.seconds, back.ratios) == ((1.21, 2.42), (2.0,))
    text = list(as_text(comparison))
    assert "    only B: no_errors: the kernel reported an error on disk2: I/O error, dev sdc, sector 8" in "\n".join(
        text
    )
    assert any("1.210 s" in line and "2.420 s" in line and line.endswith("2.00") for line in text)
    assert text[-1] == "verdicts or findings differ"
    page = as_html(comparison)
    assert "only B: <strong>no_errors</strong>" in page
    assert "<code>storage.attach</code>" in page


def test_the_same_finding_told_with_other_numbers_is_the_same(tmp_path: Path) -> None:
    other = well()
    other.add(ev.KernelMessage(at=13.5, text="I/O error, dev sdc, sector 4711 op 0x1:(WRITE)", level=3))
    first = well()
    first.add(ev.KernelMessage(at=13.0, text="I/O error, dev sdc, sector 8 op 0x1:(WRITE)", level=3))
    comparison = compare([recorded(tmp_path / "one", first), recorded(tmp_path / "two", other)])
    assert not comparison.differs
    assert comparison.scenarios[0].verdicts == ("FAIL", "FAIL")


def test_a_scenario_that_only_one_run_has(tmp_path: Path) -> None:
    comparison = compare([recorded(tmp_path / "one", well(), well()), recorded(tmp_path / "two", well())])
    assert [scenario.verdicts for scenario in comparison.scenarios] == [("PASS", "PASS"), ("PASS", "")]
    assert comparison.differs
    assert any("A PASS, B not run" in line for line in as_text(comparison))


def test_what_a_kernel_says_is_text(tmp_path: Path) -> None:
    bench = well()
    bench.add(ev.KernelMessage(at=13.0, text="I/O error, dev sdc, sector 8 <script>\x1b[2J", level=3))
    comparison = compare([recorded(tmp_path / "one", well()), recorded(tmp_path / "two", bench)])
    assert "<script>" not in as_html(comparison)
    assert "\x1b" not in as_html(comparison) + "\n".join(as_text(comparison))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = recorded(tmp_path / "one", well()), recorded(tmp_path / "two", slower())
    assert main(["compare", str(one), str(one)]) == 0
    assert capsys.readouterr().out.endswith("the same verdicts and findings\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"], "it writes nothing"
    assert main(["compare", str(one), str(two), "--json", "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert (tmp_path / "out/compare.json").read_text() == out
    assert json.loads(out)["scenarios"][0]["verdicts"] == ["PASS", "FAIL"]
    assert (tmp_path / "out/compare.html").is_file()
    assert main(["compare", str(one)]) == 2
    assert main(["compare", str(one), str(tmp_path / "nothere")]) == 2


def test_the_worst_of_several() -> None:
    assert [worst(each) for each in ([0, 0], [0, 3], [3, 1], [1, 2], [0, 1])] == [0, 3, 1, 2, 1]


def test_a_run_on_one_of_several_kernels_is_repeated_alone() -> None:
    words = ["run", "-k", "writing", "--kernel", "A", "--kernel=B", "--seed", "1", "--out", "runs"]
    assert _alone(words, "B", 7) == ["run", "-k", "writing", "--out", "runs", "--kernel", "B", "--seed", "7"]


def test_a_scenario_that_one_kernel_fails_comes_with_the_commands_of_a_bisection(tmp_path: Path) -> None:
    good, bad = (
        recorded(tmp_path / "a", well(), kernel="6.1.1"),
        recorded(tmp_path / "b", slower(), kernel="6.1.2 $(x)"),
    )
    comparison = compare([good, bad])
    assert comparison.scenarios[0].verdicts == ("PASS", "FAIL")
    start, run = comparison.scenarios[0].bisect
    assert start == "git bisect start BAD GOOD  # the commits of 6.1.2___x_ and 6.1.1"
    assert "plugpull bisect-step --kernel . -k test_" in run
    assert f"        {run}" in list(as_text(comparison))
    assert "git bisect start BAD GOOD" in as_html(comparison)


def test_nothing_can_be_bisected_on_one_kernel(tmp_path: Path) -> None:
    comparison = compare([recorded(tmp_path / "a", well()), recorded(tmp_path / "b", slower())])
    assert comparison.scenarios[0].verdicts == ("PASS", "FAIL")
    assert comparison.scenarios[0].bisect == ()
    both_fail = compare([recorded(tmp_path / "c", slower(), kernel="6.1.1"), recorded(tmp_path / "d", slower())])
    assert both_fail.scenarios[0].bisect == ()


# --- a step of a bisection --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--nosuch"], 128),
        (["--rig", "nothere.toml"], 128),
        (["nothere.py"], 128),
        (["--module", "nothere.ko"], 128),
        (["--kernel", "a", "--kernel", "b"], 128),
        (["--kernel", "."], 125),
    ],
)
def test_what_no_commit_will_mend_ends_a_bisection(
    words: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    assert main(["bisect-step", *words]) == status


def test_what_plugpull_gets_wrong_itself_is_no_commits_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rig.toml"
    file.write_text(RIG)
    # A cache that is a file: nothing that plugpull expects.
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    assert main(["bisect-step", "--rig", str(file), "--kernel", str(tmp_path)]) in (125, 128)
    assert capsys.readouterr().err


# --- for real ---------------------------------------------------------------------------------------------------


def plugpull(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "plugpull", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@only_if_asked
@pytest.mark.bench
def test_two_kernels_and_a_bad_commit(tmp_path: Path) -> None:
    from plugpull.cache import Cache
    from plugpull.virtual.kernel import find_kernel

    tree = find_kernel(None, Cache.default())
    kernel = tree.version
    (tmp_path / "rig.toml").write_text(RIG)
    both = ("--rig", "rig.toml", "-k", "while_idle", "--out", "out")
    ended = plugpull(tmp_path, "run", *both, "--kernel", kernel, "--kernel", kernel)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    runs = [path for path in (tmp_path / "out").glob("20*") if path.is_dir()]
    assert len(runs) == 2
    comparison = json.loads((tmp_path / "out/compare.json").read_text())
    assert comparison["runs"][0]["seed"] == comparison["runs"][1]["seed"]
    assert {run["kernel"] for run in comparison["runs"]} == {tree.version}
    assert comparison["scenarios"][0]["times"][0]["what"] == "removed"
    assert ended.stdout.rstrip().endswith("compare.html")
    (tmp_path / "rig.toml").write_text(RIG + "\n[[defect]]\nkind = 'serial-changes'\ndisk = 'victim'\n")
    bad = plugpull(tmp_path, "bisect-step", *both)
    assert bad.returncode == 1, bad.stdout + bad.stderr
