"""Runs with several parts are judged as one, and a part that is missing, altered or strange is noticed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from runs_in_parts import begun, benches, record, scenario, shard

from plugpull.cli import main
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.history import events as ev
from plugpull.judging.judge import judge_history
from plugpull.judging.outcome import write_outcome
from plugpull.judging.results import Results, Verdict
from plugpull.judging.results_io import SCHEMA_FILE
from plugpull.merging.gather import gather
from plugpull.merging.manifest import read_manifest, write_manifest
from plugpull.merging.read import read_run

SHARDS = (("a", "c"), ("b", "d"))
"""The plans of two shards of the scenarios a to d, taken in turn."""


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The runs of two healthy shards."""
    return shard(tmp_path / "one", 1, SHARDS), shard(tmp_path / "two", 2, SHARDS)


def judged(run: Path, *, edited: bool = False) -> Results:
    return judge_history(read_run(run, edited=edited))


def merged(out: Path, *runs: Path) -> Results:
    gather(out, runs)
    return write_outcome(out)[0]


def verdicts(results: Results) -> list[tuple[str, str]]:
    return [(one.id, one.verdict.value) for one in results.scenarios]


# --- benches side by side ----------------------------------------------------------------------------------


def test_benches_are_judged_as_one_run(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "abc", [scenario("c")], [scenario("a"), scenario("b")])
    results = judged(run)
    assert results.verdict is Verdict.PASS, results.unknowns
    assert [(one.id, one.part) for one in results.scenarios] == [("a", "bench-2"), ("b", "bench-2"), ("c", "bench-1")]
    assert [(part.name, part.scenarios, part.complete) for part in results.parts] == [
        ("bench-1", 1, True),
        ("bench-2", 2, True),
    ]
    assert results.seconds == 60.0, "from the beginning of the first to the end of the last"


def test_a_finding_of_one_bench_fails_the_run(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b", serial="X")])
    assert judged(run).verdict is Verdict.FAIL


def test_a_scenario_that_no_bench_ran_is_unknown(tmp_path: Path) -> None:
    results = judged(benches(tmp_path / "run", "abc", [scenario("a")], [scenario("b")]))
    assert results.verdict is Verdict.UNKNOWN
    assert results.unknowns == ("1 of 3 planned scenarios were not run: c",)


def test_the_plan_is_known_although_the_list_of_parts_has_lost_it(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "abc", [scenario("a")], [scenario("b")], planned=())
    assert judged(run).unknowns == ("1 of 3 planned scenarios were not run: c",)


def test_a_scenario_that_two_benches_ran_is_unknown(tmp_path: Path) -> None:
    results = judged(benches(tmp_path / "run", "ab", [scenario("a"), scenario("b")], [scenario("b")]))
    assert results.unknowns == ("the history has scenarios more than once: b",)


def test_a_run_of_which_no_bench_recorded_anything(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", rig_name="quick", seed=3, unknowns=("bench 1 died",))
    results = judged(run)
    assert (results.verdict, results.rig, results.seed) == (Verdict.UNKNOWN, "quick", 3)
    assert "bench 1 died" in results.unknowns
    assert "2 of 2 planned scenarios were not run: a, b" in results.unknowns


def test_a_bench_that_died_leaves_the_verdicts_of_the_others(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")])
    record(run / "parts/bench-2", begun("ab", bench=2), scenario("b")[:-3], ended=False)
    results = judged(run)
    assert results.verdict is Verdict.UNKNOWN
    assert verdicts(results) == [("a", "PASS"), ("b", "UNKNOWN")]
    assert "bench-2: its history ends before its run did" in results.unknowns


def test_a_run_whose_parent_was_killed_cannot_pass(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b")], open=True, parts=())
    results = judged(run)
    assert verdicts(results) == [("a", "PASS"), ("b", "PASS")]
    assert (results.verdict, results.complete) == (Verdict.UNKNOWN, False)


def test_an_interrupted_run_says_by_what(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], interrupted="ended by SIGINT")
    assert "the run was interrupted (ended by SIGINT)" in judged(run).unknowns


def test_one_bench_alone_can_be_judged(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "abc", [scenario("c"), scenario("a")], [scenario("b")])
    assert judged(run / "parts/bench-1").verdict is Verdict.PASS, "its part of the plan, in the order it was given"


def test_the_scenario_before_is_the_one_on_the_same_bench(tmp_path: Path) -> None:
    """Two machines boot their guests apart. A guest of another boot on one bench is the bench's fault."""
    a, b, c = (scenario(name, boot_id=boot) for name, boot in (("a", "1"), ("b", "2"), ("c", "1")))
    assert judged(benches(tmp_path / "apart", "abc", [a, c], [b])).verdict is Verdict.PASS
    mixed = judged(benches(tmp_path / "mixed", "abc", [a, b], [c]))
    assert any("the guest is of another boot" in reason for one in mixed.scenarios for reason in one.unknowns)


# --- parts that were changed ----------------------------------------------------------------------------------


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b")])
    shutil.rmtree(run / "parts/bench-2")
    assert set(judged(run).unknowns) == {
        "the history of bench-2 is missing",
        "1 of 2 planned scenarios were not run: b",
    }


def test_a_part_that_is_not_listed_is_named(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b")])
    manifest = read_manifest(run)
    assert manifest is not None
    write_manifest(run, msgspec.structs.replace(manifest, parts=manifest.parts[:1]))
    assert judged(run).unknowns == ("bench-2 is not in the list of the run's parts",)


def test_a_part_that_was_replaced_by_another_run_is_named(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b", serial="X")])
    other = record(tmp_path / "other", begun("ab", bench=2), scenario("b"))
    shutil.copy(other / "history.jsonl", run / "parts/bench-2")
    assert judged(run).unknowns == ("the history of bench-2 was altered after the parts were put together",)
    assert judged(run, edited=True).unknowns == ()


def test_an_edited_line_is_noticed_by_its_seal(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b")])
    history = run / "parts/bench-1/history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(line for line in lines if b'"type":"sample' not in line or line is lines[40]))
    results = judged(run)
    assert results.verdict is Verdict.UNKNOWN
    assert any("missing from the history" in reason for reason in results.scenarios[0].unknowns)


@pytest.mark.parametrize("damage", ["missing", "not json", "a link"])
def test_a_list_of_parts_that_cannot_be_read(tmp_path: Path, damage: str) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b")])
    listed = run / "parts.json"
    listed.rename(tmp_path / "elsewhere.json")
    if damage == "not json":
        listed.write_text("{")
    elif damage == "a link":
        listed.symlink_to(tmp_path / "elsewhere.json")
    results = judged(run)
    assert "the list of the run's parts is missing or damaged" in results.unknowns
    assert verdicts(results) == [("a", "PASS"), ("b", "PASS")]


@pytest.mark.parametrize("name", ["../../other", "..", "/etc", "a.b", ""])
def test_a_part_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    record(tmp_path / "other", begun("a"), scenario("a"))
    run = benches(tmp_path / "run", "a", [scenario("a")])
    text = (run / "parts.json").read_text()
    (run / "parts.json").write_text(text.replace("bench-1", name))
    assert f"the history of {name} is missing" in judged(run).unknowns


def test_a_part_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "a", [scenario("a")])
    (run / "parts/bench-1").rename(tmp_path / "elsewhere")
    (run / "parts/bench-1").symlink_to(tmp_path / "elsewhere")
    assert "the history of bench-1 is missing" in judged(run).unknowns


def test_parts_on_different_kernels(tmp_path: Path) -> None:
    run = benches(tmp_path / "run", "ab", [scenario("a")], [scenario("b", kernel="6.12.0")])
    (reason,) = judged(run).unknowns
    assert reason.startswith("the parts ran different kernels: ")
    assert reason.endswith("6.12.0 (bench-2)")


# --- shards --------------------------------------------------------------------------------------------------


def test_shards_are_merged_in_the_order_of_the_whole_plan(tmp_path: Path) -> None:
    whole = record(tmp_path / "whole", begun("abcd"), *map(scenario, "abcd"))
    shards = [
        record(tmp_path / plan, begun(plan, shard=f"{number}/2", whole=tuple("abcd")), *map(scenario, plan))
        for number, plan in enumerate(("ac", "bd"), 1)
    ]
    results = merged(tmp_path / "out", *reversed(shards))
    assert results.verdict is Verdict.PASS, results.unknowns
    assert verdicts(results) == verdicts(judged(whole))
    assert [part.shard for part in results.parts] == ["2/2", "1/2"]
    assert read_run(tmp_path / "out").begun == msgspec.structs.replace(begun("abcd"))


def test_a_shard_alone_passes(two: tuple[Path, Path]) -> None:
    assert judged(two[0]).verdict is Verdict.PASS


def test_a_shard_that_was_not_merged_is_missed(tmp_path: Path, two: tuple[Path, Path]) -> None:
    results = merged(tmp_path / "out", two[0])
    assert results.verdict is Verdict.UNKNOWN
    assert results.unknowns == ("2 of 4 planned scenarios were not run: b, d",)
    assert merged(tmp_path / "out", two[1]).verdict is Verdict.PASS, "it is added later"


def test_merging_a_run_again_changes_nothing(tmp_path: Path, two: tuple[Path, Path]) -> None:
    first = merged(tmp_path / "out", *two)
    assert merged(tmp_path / "out", *two, two[0]) == first


def test_two_runs_of_one_shard_are_noticed(tmp_path: Path, two: tuple[Path, Path]) -> None:
    again = shard(tmp_path / "again", 2, SHARDS, scenario("b"), scenario("d", serial="X"))
    results = merged(tmp_path / "out", *two, again)
    assert results.unknowns == ("the history has scenarios more than once: b, d",)


def test_the_command_that_repeats_a_merged_run_has_no_shard(tmp_path: Path, two: tuple[Path, Path]) -> None:
    merged(tmp_path / "out", *two)
    opening = read_run(tmp_path / "out").begun
    assert opening is not None
    assert opening.argv == ("plugpull", "run")
    assert (opening.planned, opening.shard, opening.whole) == (("a", "c", "b", "d"), "", None)


def test_shards_that_ran_on_several_benches(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    benches(one, "ac", [scenario("a")], [scenario("c")], unknowns=("bench 2 hesitated",))
    benches(two, "bd", [scenario("d")], [scenario("b")])
    results = merged(tmp_path / "out", one, two)
    assert verdicts(results) == [(name, "PASS") for name in "acbd"]
    assert results.unknowns == ("bench 2 hesitated",)
    assert len(results.parts) == 4


def test_the_merged_run_has_all_files_and_the_given_runs_stay_as_they_were(
    tmp_path: Path, two: tuple[Path, Path]
) -> None:
    (two[0] / "scenarios/a").mkdir(parents=True)
    (two[0] / "scenarios/a/console.log").write_text("login:")
    (two[0] / "scenarios/a/link").symlink_to("/etc/passwd")
    os.mkfifo(two[0] / "scenarios/a/pipe")
    before = {path: path.lstat().st_mtime_ns for path in two[0].rglob("*")}
    out = tmp_path / "out"
    results = merged(out, *two)
    assert {path: path.lstat().st_mtime_ns for path in two[0].rglob("*")} == before
    assert {path.name for path in (out / "parts/part-1/scenarios/a").iterdir()} == {"console.log"}
    assert "login:" in (out / "console.log").read_text()
    assert (out / "parts/part-1/history.jsonl").read_bytes() == (two[0] / "history.jsonl").read_bytes()
    jsonschema.validate(json.loads((out / "results.json").read_bytes()), json.loads(SCHEMA_FILE.read_bytes()))
    page = (out / "report.html").read_text()
    assert "part-2 (shard 2/2): 2 scenarios" in page
    assert results.sentence in page.replace("&#39;", "'")


# --- the command -----------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["merge", out, str(two[0])]) == EXIT_UNKNOWN
    assert main(["merge", out, str(two[1])]) == EXIT_PASS
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"report: {out}/report.html"
    assert said[-2].startswith("PASS: 4 scenarios passed")
    assert main(["check", out]) == EXIT_PASS
    assert main(["report", out]) == EXIT_PASS
    assert main(["compare", out, out]) == EXIT_PASS
    bad = shard(tmp_path / "bad", 1, SHARDS, scenario("a", serial="X"), scenario("c"))
    assert main(["merge", str(tmp_path / "other"), str(bad), str(two[1])]) == EXIT_FAIL


def test_what_cannot_be_merged(tmp_path: Path, two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: Path) -> str:
        assert main(["merge", *map(str, words)]) == EXIT_USAGE
        return capsys.readouterr().err

    assert "is not a run directory" in refused(tmp_path / "out", tmp_path / "nothing")
    assert "is, or is in, one of the runs" in refused(two[0], *two)
    assert "is, or is in, one of the runs" in refused(two[0] / "out", *two)
    assert "and plugpull merge did not make it" in refused(two[1], two[0])
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refused(tmp_path / "file", *two)
    other = record(tmp_path / "other", begun("a", rig_name="another"), scenario("a"))
    assert "are not of one rig: another, made-up" in refused(tmp_path / "out", *two, other)
    changed = record(tmp_path / "changed", begun("a", rig={"rig": {"name": "made-up"}}), scenario("a"))
    assert "are not of one rig: made-up" in refused(tmp_path / "out", *two, changed)
    assert not (tmp_path / "out").exists(), "nothing was begun"
    merged(tmp_path / "out", two[0])
    assert "are not of one rig" in refused(tmp_path / "out", other), "nor what is added later"


def test_an_empty_directory_can_be_merged_into(tmp_path: Path, two: tuple[Path, Path]) -> None:
    (tmp_path / "out").mkdir()
    assert merged(tmp_path / "out", *two).verdict is Verdict.PASS


def test_a_run_that_grows_while_it_is_copied(
    tmp_path: Path, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree = shutil.copytree

    def grown(source: Path, *rest: Any, **more: Any) -> None:
        with (source / "history.jsonl").open("a") as file:
            file.write("{")
        copytree(source, *rest, **more)

    monkeypatch.setattr(shutil, "copytree", grown)
    with pytest.raises(UsageError, match="is still being recorded"):
        gather(tmp_path / "out", two)


def test_a_skipped_scenario_of_a_shard_stays_skipped(tmp_path: Path) -> None:
    one = record(
        tmp_path / "one",
        begun("a", shard="1/2", whole=("a", "b")),
        scenario("a"),
        [ev.ScenarioSkipped(id="b", reason="no hub")],
    )
    results = merged(tmp_path / "out", one)
    assert results.verdict is Verdict.PASS, results.unknowns
    assert [skip.id for skip in results.skipped] == ["b"]
