"""What a run was to run: planned, skipped, missing and doubled scenarios; and what goes wrong around them."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import msgspec
import pytest
from dry_runs import dry_run
from stories import BACK, encode, healthy, run_of

from plugpull.errors import NoFilesystem, NotServed
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Results, Skipped, Verdict
from plugpull.locate import rigs_dir
from plugpull.report.junit import render_junit
from plugpull.run_directory import _file_name
from plugpull.scenario import ScenarioRig


def named(name: str, *more: ev.Event, serial: str = "") -> list[ev.Event]:
    """A healthy scenario of this name, with ``more`` events at its end."""
    bench = healthy()
    if serial:
        bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial=serial)
    begun, *middle, ended = bench.scenario()
    return [msgspec.structs.replace(begun, id=name), *middle, *more, msgspec.structs.replace(ended, id=name)]


def skipped(name: str, *more: ev.Event, reason: str = "no hub") -> list[ev.Event]:
    """A scenario that was skipped as soon as the DUT was ready."""
    begun, ready, *_, ended = named(name)
    return [begun, ready, *more, ev.ScenarioSkipped(id=name, reason=reason), ended]


def judged(directory: Path, planned: tuple[str, ...] | None, *parts: list[ev.Event]) -> Results:
    begun, *rest = run_of(*parts)
    (directory / "history.jsonl").write_bytes(encode([msgspec.structs.replace(begun, planned=planned), *rest]))
    return judge_history(read_history(directory))


# --- judging a plan ----------------------------------------------------------------------------------------


def hub_that_stays(folder: Path) -> str:
    """The quick rig, without a cable of its hub that could be cut."""
    lines = (rigs_dir() / "quick.toml").read_text().splitlines()
    file = folder / "rig.toml"
    file.write_text("\n".join(line for line in lines if not line.startswith('cable = "cables.4"')))
    return str(file)


def test_a_run_of_all_that_was_planned_passes(tmp_path: Path) -> None:
    assert judged(tmp_path, ("a", "b"), named("a"), named("b")).verdict is Verdict.PASS


def test_a_planned_scenario_that_is_not_there_is_named(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a", "b", "c"), named("b"))
    assert results.verdict is Verdict.UNKNOWN
    assert results.unknowns == ("2 of 3 planned scenarios were not run: a, c",)
    assert "planned scenarios were not run: a, c" in results.sentence


def test_many_missing_scenarios_are_not_all_named(tmp_path: Path) -> None:
    results = judged(tmp_path, tuple("abcdefgh"), named("a"))
    assert results.unknowns == ("7 of 8 planned scenarios were not run: b, c, d, e, f and 2 more",)


def test_a_scenario_that_is_there_twice_is_named(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a",), named("a"), named("a"))
    assert results.verdict is Verdict.UNKNOWN
    assert results.unknowns == ("the history has scenarios more than once: a",)
    assert judged(tmp_path, ("a", "a"), named("a"), named("a")).verdict is Verdict.PASS, "it was planned twice"


def test_scenarios_in_another_order_than_planned(tmp_path: Path) -> None:
    swapped = judged(tmp_path, ("a", "b", "c"), named("a"), named("c"), named("b"))
    assert swapped.unknowns == ("the scenarios of the history are in another order than the plan",)
    assert swapped.verdict is Verdict.UNKNOWN
    skipping = judged(tmp_path, ("a", "b", "c"), named("a"), skipped("b"), named("c"))
    assert skipping.unknowns == ()


def test_old_histories_do_not_say_what_was_planned(tmp_path: Path) -> None:
    assert judged(tmp_path, None, named("a"), named("a")).verdict is Verdict.PASS


def test_a_failure_stands_beside_an_incomplete_run(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a", "b"), named("a", serial="X"))
    assert results.verdict is Verdict.FAIL
    assert results.unknowns == ("1 of 2 planned scenarios were not run: b",)


# --- skipped -----------------------------------------------------------------------------------------------


def test_a_skipped_scenario_has_no_verdict(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a", "b"), named("a"), skipped("b"))
    assert results.verdict is Verdict.PASS
    assert [scenario.id for scenario in results.scenarios] == ["a"]
    assert results.skipped == (Skipped(id="b", reason="no hub"),)
    assert results.sentence == "PASS: 1 scenario passed in 30.00 s, 1 of 1 cuts executed, 1 skipped."
    suite = ET.fromstring(render_junit(results))[0]
    assert (suite.get("tests"), suite.get("skipped"), suite.get("errors")) == ("2", "1", "0")
    assert [case.get("message") for case in suite.iter("skipped")] == ["no hub"]


def test_a_run_of_skipped_scenarios_is_unknown(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a",), skipped("a"))
    assert results.verdict is Verdict.UNKNOWN
    assert results.unknowns == ("no scenario was run",)


def test_a_scenario_that_was_not_even_begun_is_skipped_too(tmp_path: Path) -> None:
    results = judged(tmp_path, ("a", "b"), [ev.ScenarioSkipped(id="b", reason="not today")], named("a"))
    assert results.verdict is Verdict.PASS
    assert results.skipped == (Skipped(id="b", reason="not today"),)


@pytest.mark.parametrize(
    "event",
    [
        ev.CutArmed(at=11.0, cut=1, point="disk1.cable", mechanism="data", trigger="at once", victims=("disk1",)),
        ev.RigFault(at=11.0, summary="the switch vanished"),
        ev.ScenarioError(at=11.0, fault="framework", summary="TypeError"),
        ev.AgentLost(at=11.0, why="no answer"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_was_begun_or_went_wrong_is_not_skipped(tmp_path: Path, event: ev.Event) -> None:
    results = judged(tmp_path, ("a", "b"), named("a"), skipped("b", event))
    assert results.skipped == ()
    assert results.scenarios[1].verdict is Verdict.UNKNOWN


def test_what_the_kernel_did_in_a_skipped_scenario_is_found(tmp_path: Path) -> None:
    died = ev.DutDied(at=11.0, headline="Kernel panic - not syncing: x")
    results = judged(tmp_path, ("a", "b"), named("a"), skipped("b", died))
    assert results.verdict is Verdict.FAIL
    assert results.skipped == ()


# --- through pytest ----------------------------------------------------------------------------------------

HEADER = "import pytest\n"
PASSES = "def test_passes(rig):\n    rig.play()\n"


def test_the_plan_is_what_is_left_after_deselection(tmp_path: Path) -> None:
    files = {"test_s.py": PASSES + PASSES.replace("passes", "other") + "def test_plain(): pass\n"}
    ran = dry_run(tmp_path, files, "-k", "not other")
    assert ran.history.begun is not None
    assert ran.history.begun.planned == ("test_s.py::test_passes",)
    assert ran.history.begun.numbered
    assert ran.status == EXIT_PASS, ran.output


def test_what_the_rig_cannot_serve_is_skipped_with_the_reason(tmp_path: Path) -> None:
    body = "def test_hub(rig):\n    rig.choose_hub()\n"
    ran = dry_run(tmp_path, {"test_s.py": PASSES + body}, "-rs", rig=hub_that_stays(tmp_path))
    assert ran.results["skipped"] == [
        {"id": "test_s.py::test_hub", "reason": "this rig has no hub whose cable can be cut"}
    ]
    assert "1 passed, 1 skipped" in ran.output
    assert "skipped test_s.py::test_hub\n        this rig has no hub whose cable can be cut" in ran.output
    assert ran.status == EXIT_PASS, ran.output


def test_what_the_dut_did_not_have_for_one_scenario_is_not_asked_for_again(tmp_path: Path) -> None:
    body = """
from pathlib import Path
from plugpull.errors import NoFilesystem, NotServed

@pytest.mark.parametrize("fstype", ["ext4", "exfat", "ntfs3"])
@pytest.mark.parametrize("number", [1, 2])
def test_files(rig, number, fstype):
    with Path("opened").open("a") as opened:
        opened.write(f"{fstype} {number}, ")
    if fstype == "ntfs3":
        raise NoFilesystem("no ntfs3 on disk1: the DUT's kernel has no ntfs3", fstype=fstype)
    if fstype == "exfat":
        raise NotServed("another disk may serve it")
    rig.play()
"""
    ran = dry_run(tmp_path, {"test_s.py": HEADER + body})
    assert (tmp_path / "opened").read_text() == "ext4 1, exfat 1, ntfs3 1, ext4 2, exfat 2, "
    skips = [skip["reason"] for skip in ran.results["skipped"] if "ntfs3" in skip["id"]]
    assert skips == ["no ntfs3 on disk1: the DUT's kernel has no ntfs3"] * 2
    assert "2 passed, 4 skipped" in ran.output
    assert ran.status == EXIT_PASS, ran.output


def test_a_filesystem_that_only_this_disk_is_too_small_for_may_be_asked_for_again() -> None:
    rig = Mock()
    answer = rig.context.bench.link.call
    answer.return_value = "a xfs needs a disk of 300 MiB"
    with pytest.raises(NotServed) as small:
        ScenarioRig.filesystem(rig, Mock(size=64 << 20), "xfs")
    assert not isinstance(small.value, NoFilesystem)
    answer.return_value = "the DUT's kernel has no xfs"
    with pytest.raises(NoFilesystem, match="has no xfs") as none:
        ScenarioRig.filesystem(rig, Mock(size=1 << 30), "xfs")
    assert none.value.fstype == "xfs"


def test_skips_of_every_kind_are_in_the_results(tmp_path: Path) -> None:
    body = """
@pytest.mark.skip(reason="by a mark")
def test_marked(rig): pass

def test_in_the_body(rig): pytest.skip("in the body")

@pytest.fixture
def needs_hub(rig): return rig.choose_hub()

def test_in_a_fixture(needs_hub): pass
"""
    ran = dry_run(tmp_path, {"test_s.py": HEADER + body + PASSES}, rig=hub_that_stays(tmp_path))
    assert {skip["id"].removeprefix("test_s.py::test_"): skip["reason"] for skip in ran.results["skipped"]} == {
        "marked": "by a mark",
        "in_the_body": "in the body",
        "in_a_fixture": "this rig has no hub whose cable can be cut",
    }
    assert "1 passed, 3 skipped" in ran.output
    assert ran.status == EXIT_PASS, ran.output


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "@pytest.fixture\ndef broken(): raise ValueError('before')\ndef test_it(broken, rig): rig.play()\n",
            "setup of test_s.py::test_it: ValueError: before",
        ),
        (
            "@pytest.fixture\ndef broken(rig): raise ValueError('after')\ndef test_it(broken): rig.play()\n",
            "ValueError: after",
        ),
        (
            "@pytest.fixture\ndef late(rig):\n yield\n raise ValueError('late')\ndef test_it(late, rig): rig.play()\n",
            "teardown of test_s.py::test_it: ValueError: late",
        ),
    ],
    ids=["before the rig", "after the rig", "in teardown"],
)
def test_errors_in_fixtures_keep_a_run_from_passing(tmp_path: Path, body: str, said: str) -> None:
    ran = dry_run(tmp_path, {"test_s.py": HEADER + PASSES + body})
    assert ran.status == EXIT_UNKNOWN, ran.output
    assert said in str(ran.results["unknowns"]) + str([one["unknowns"] for one in ran.results["scenarios"]])


def test_a_failure_by_pytest_is_one_like_an_assertion(tmp_path: Path) -> None:
    body = "def test_it(rig):\n    rig.play()\n    pytest.fail('not as it should be')\n"
    ran = dry_run(tmp_path, {"test_s.py": HEADER + body})
    assert ran.status == EXIT_FAIL, ran.output
    assert ran.results["scenarios"][0]["findings"][0]["summary"].endswith("not as it should be")


@pytest.mark.parametrize(
    ("error", "status", "found"),
    [("DutError", EXIT_FAIL, ["disk1 failed"]), ("RigError", EXIT_UNKNOWN, []), ("UsageError", EXIT_UNKNOWN, [])],
)
def test_an_error_of_the_dut_is_a_finding_and_one_of_the_bench_is_not(
    tmp_path: Path, error: str, status: int, found: list[str]
) -> None:
    body = f"from plugpull import errors\ndef test_it(rig):\n    rig.play()\n    raise errors.{error}('disk1 failed')\n"
    ran = dry_run(tmp_path, {"test_s.py": HEADER + body})
    assert ran.status == status, ran.output
    assert [one["summary"] for one in ran.results["scenarios"][0]["findings"]] == found


def test_another_test_that_fails_is_not_covered_by_a_pass(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, {"test_s.py": PASSES + "def test_plain(): assert False\n"})
    assert ran.results["verdict"] == "PASS"
    assert ran.status == 1, ran.output


def test_what_was_not_run_is_named(tmp_path: Path) -> None:
    stops = "def test_stops(rig): raise KeyboardInterrupt\n"
    ran = dry_run(tmp_path, {"test_s.py": PASSES + stops + PASSES.replace("passes", "never")})
    assert ran.status == EXIT_UNKNOWN
    assert "1 of 3 planned scenarios were not run: test_s.py::test_never" in ran.results["unknowns"]


def test_files_of_one_name_in_two_folders_have_ids_and_folders_of_their_own(tmp_path: Path) -> None:
    files = {f"elsewhere/{folder}/test_s.py": PASSES for folder in "ab"}
    inside = tmp_path / "root"
    inside.mkdir()
    arguments = ("--import-mode=importlib", "--rootdir", str(inside), "elsewhere/a", "elsewhere/b")
    ran = dry_run(tmp_path, files, *arguments)
    assert [story.id for story in ran.history.stories] == [
        "elsewhere/a/test_s.py::test_passes",
        "elsewhere/b/test_s.py::test_passes",
    ]
    folders = sorted(path.name for path in (ran.directory / "scenarios").iterdir())
    assert folders == ["test_s-test_passes", "test_s-test_passes-2"]
    assert ran.status == EXIT_PASS, ran.output


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("scenarios/test_x.py::test_y", "test_x-test_y"),
        ("scenarios/test_x.py::test_y[a/../b]", "test_x-test_y-a-..-b"),
        ("../../test_x.py::..", "test_x"),
        ("..", "scenario"),
        ("", "scenario"),
        ("a/b::" + "c" * 500, "b-" + "c" * 118),
    ],
)
def test_a_scenarios_folder_is_within_the_runs(name: str, folder: str) -> None:
    assert _file_name(name) == folder
