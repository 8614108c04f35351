"""The class of a series of verdicts, for every way in which nights can follow each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from archives import date, put, put_nights, results, scenario

from plugpull.archive.trend import SeriesTrend, trend_of
from plugpull.archive.verdicts import Standing, Streaks, advance, standing, wilson

STATUS = {"P": {"PASS"}, "U": {"UNKNOWN"}, "S": {"SKIP"}, "B": {"PASS", "FAIL"}} | {one: {"FAIL"} for one in "FGX"}


def after(letters: str) -> Standing:
    """The standing after these nights. F fails for one reason, G for another, X for one that is expected, B passes and
    fails in one run."""
    progress = Streaks()
    for night, letter in enumerate(letters):
        reason = {"G": "second", "X": "legs_hold expected:a-bug (victim)"}.get(letter, "first")
        advance(progress, f"n{night}", STATUS[letter], [reason])
    return standing(progress)


@pytest.mark.parametrize(
    ("letters", "name", "since"),
    [
        ("PPP", "passing", "n0"),
        ("PPPF", "new", "n3"),
        ("F", "new", "n0"),
        ("PPPFF", "ongoing", "n3"),
        ("F" * 50, "ongoing", "n0"),
        ("PPPFFFFP", "passing again", "n7"),
        ("PPPFFFFPP", "passing again", "n7"),
        ("PPPFFFFPPP", "fixed", "n7"),
        ("FP", "passing again", "n1"),
        ("FFPPP", "fixed", "n2"),
        ("PPPFFFF" + "P" * 19, "fixed", "n7"),
        ("PPPFFFF" + "P" * 20, "passing", "n7"),
        ("PPPPPPF" + "P", "flaky", "n6"),
        ("PPPPPPFFP", "flaky", "n6"),
        ("PPPPPPFPPPP", "flaky", "n6"),
        ("PPPPPPFPPPPP", "passing", "n7"),
        ("PPPPPPFPFFFF", "flaky", "n6"),
        ("PPPPPPFPFFFFF", "ongoing", "n8"),
        ("PPPPPPFPFFFFFFFF", "ongoing", "n8"),
        ("PPPPPPFPFFFFFG", "new", "n13"),
        ("PPPPPPFPPFPPF", "flaky", "n6"),
        ("PPPFFFFPF", "flaky", "n7"),
        ("PPPPPPFPPPPPPPPF", "flaky", "n15"),
        ("PPPPPPFPPPPPPPPFPPPPPPPPPF", "flaky", "n25"),
        ("PPPPPPFPPPPPPPPFFFFF", "ongoing", "n15"),
        ("PPPPPPF" + "P" * 20 + "F", "new", "n27"),
        ("PPPPPPFPPPPPPPPG", "new", "n15"),
        ("PPPPPPFPPPPPPPPGG", "ongoing", "n15"),
        ("PPPPPPFPFFFFFPPPPPF", "new", "n18"),
        ("PPPFFFFPPPPPPF", "new", "n13"),
        ("PPB", "flaky", "n2"),
        ("PPPFFG", "new", "n5"),
        ("PPPFFGG", "ongoing", "n5"),
        ("PPPFFGF", "ongoing", "n3"),
        ("PPPFPG", "new", "n5"),
        ("PPPFPGPGPG", "flaky", "n3"),
        ("", "never run", ""),
        ("UUS", "never run", ""),
        ("X", "ongoing", "n0"),
        ("PPPX", "ongoing", "n3"),
        ("XXF", "new", "n2"),
        ("XXXPPP", "fixed", "n3"),
    ],
)
def test_classes(letters: str, name: str, since: str) -> None:
    found = after(letters)
    assert (found.name, found.since) == (name, since)


@pytest.mark.parametrize("letters", ["PPPF", "PPPFF", "PPPFFFFP", "PPPFFFFPPP", "PPPPPPFP", "PPPFFG"])
def test_a_night_without_a_result_changes_nothing(letters: str) -> None:
    """UNKNOWN and skipped nights neither break nor extend a streak, wherever they are."""
    plain = after(letters)
    mixed = after("".join(f"U{letter}SU" for letter in letters))
    assert (mixed.name, mixed.k, mixed.n, mixed.reason) == (plain.name, plain.k, plain.n, plain.reason)


def test_how_often() -> None:
    assert (after("PPPFFFFPP").k, after("PPPFFFFPP").n) == (2, 3)
    assert (after("P" * 30 + "FPFP").k, after("P" * 30 + "FPFP").n) == (2, 20)
    assert after("PPPFFG").reason == "second"


def test_the_interval_of_a_share() -> None:
    """Against a table: Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score)."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


# --- from files ------------------------------------------------------------------------------------------------------


def classes(directory: Path) -> dict[str, str]:
    return {one.key.split(" ")[0]: one.name for one in trend_of(directory).series}


def only(directory: Path) -> SeriesTrend:
    (one,) = trend_of(directory).series
    return one


def test_each_class_from_files(tmp_path: Path) -> None:
    put_nights(
        tmp_path,
        {
            "new": "PPPPPPPPPF",
            "ongoing": "PPPPPFFFFF",
            "fixed": "FFFFFFFPPP",
            "again": "FFFFFFFFPP",
            "flaky": "PPPFPPFPPF",
            "gone": "PPPPPPPPP.",
            "never": "UUUUUUUUUU",
            "passing": "PPPPPPPPPP",
            "late": "........FU",
        },
    )
    assert classes(tmp_path) == {
        "new": "new",
        "ongoing": "ongoing",
        "fixed": "fixed",
        "again": "passing again",
        "flaky": "flaky",
        "gone": "gone",
        "never": "never run",
        "passing": "passing",
        "late": "new",
    }


def test_where_it_fails_is_the_reason_and_not_its_wording(tmp_path: Path) -> None:
    put(tmp_path, results(0, [scenario()]))
    put(tmp_path, results(1, [scenario(verdict="F", summary="disk2 stood still for 3.9 s")]))
    put(tmp_path, results(2, [scenario(verdict="F", summary="disk2 stood still for 4.1 s")]))
    assert (only(tmp_path).name, only(tmp_path).since, only(tmp_path).reason) == (
        "ongoing",
        date(1),
        "kept_pace (other)",
    )
    put(tmp_path, results(3, [scenario(verdict="F", subject="disk1", summary="disk1 stood still for 3.9 s")]))
    assert (only(tmp_path).name, only(tmp_path).since, only(tmp_path).reason) == ("new", date(3), "kept_pace (victim)")


def test_an_expected_finding_is_never_new(tmp_path: Path) -> None:
    put(tmp_path, results(0, [scenario()]))
    known = scenario(verdict="F", subject="disk1")
    known["findings"][0]["expected"] = "a-bug"
    put(tmp_path, results(1, [known]))
    assert (only(tmp_path).name, only(tmp_path).reason) == ("ongoing", "kept_pace expected:a-bug (victim)")
    put(tmp_path, results(2, [scenario(verdict="F", subject="disk1")]))
    assert (only(tmp_path).name, only(tmp_path).reason) == ("new", "kept_pace (victim)")


def test_kernel_messages_differ_by_their_kind(tmp_path: Path) -> None:
    def night(number: int, text: str) -> None:
        put(tmp_path, results(number, [scenario(verdict="F", check="kernel_clean", subject="kernel", summary=text)]))

    night(0, "INFO: task kworker/0:1:12 blocked for more than 120 seconds.")
    night(1, "INFO: task usb-storage:77 blocked for more than 241 seconds.")
    assert only(tmp_path).name == "ongoing"
    night(2, "BUG: kernel NULL pointer dereference, address: 0000000000000008")
    assert only(tmp_path).name == "new"


def test_series_are_separate_by_rig_kernel_line_and_disk(tmp_path: Path) -> None:
    put(tmp_path, results(0, [scenario(victim="disk1"), scenario(verdict="F", victim="disk3")]))
    put(tmp_path, results(0, [scenario()], rig="shelf"))
    put(tmp_path, results(0, [scenario()], dut={"kernel": "6.12.1"}), "other-kernel")
    put(tmp_path, results(1, [scenario()], dut={"kernel": "6.1.99"}))
    found = {one.key: one.n for one in trend_of(tmp_path).series}
    assert found == {
        "test_a.py::test_b rig=desk kernel=6.1 disk=disk1": 2,
        "test_a.py::test_b rig=desk kernel=6.1 disk=disk3": 1,
        "test_a.py::test_b rig=shelf kernel=6.1 disk=disk1": 1,
        "test_a.py::test_b rig=desk kernel=6.12 disk=disk1": 1,
    }


def test_a_scenario_that_ended_before_its_cut_counts_for_the_disk_cut_last(tmp_path: Path) -> None:
    put(tmp_path, results(0, [scenario(cuts=[])]))
    put(tmp_path, results(1, [scenario()]))
    put(tmp_path, results(2, [scenario(verdict="F", cuts=[])]))
    put(tmp_path, results(3, [scenario(verdict="U", cuts=[])]))
    assert (only(tmp_path).name, only(tmp_path).n) == ("new", 3)
    assert only(tmp_path).key.endswith("disk=disk1")


def test_another_victim_tonight_is_not_gone(tmp_path: Path) -> None:
    for night, victim in enumerate(("disk1", "disk3", "disk1", "disk3")):
        put(tmp_path, results(night, [scenario(victim=victim)]))
    assert {one.name for one in trend_of(tmp_path).series} == {"passing"}


def test_gone(tmp_path: Path) -> None:
    """Not in tonight's run. A run of the same date with fewer scenarios, or one that broke off, does not count."""
    put_nights(tmp_path, {"kept": "PPP", "gone": "PP."})
    assert classes(tmp_path) == {"kept": "passing", "gone": "gone"}
    put(tmp_path, results(3, [scenario("kept"), scenario("gone")]))
    assert classes(tmp_path) == {"kept": "passing", "gone": "passing"}
    put(tmp_path, results(4, [scenario("kept")], complete=False))
    put(tmp_path, results(5, [], verdict="UNKNOWN", unknowns=["no disk answered"]))
    assert classes(tmp_path) == {"kept": "passing", "gone": "passing"}
    partly = results(3, [scenario("kept")], started=date(3).replace("T02", "T09"))
    put(tmp_path, partly)
    assert classes(tmp_path) == {"kept": "passing", "gone": "passing"}
    put(tmp_path, results(6, [scenario("kept")], skipped=[{"id": "gone", "reason": "no hub"}]))
    assert classes(tmp_path) == {"kept": "passing", "gone": "passing"}
    put(tmp_path, results(7, [scenario("kept")]))
    (gone,) = [one for one in trend_of(tmp_path).series if one.name == "gone"]
    assert (gone.since, gone.last) == (date(7), date(3))


def test_a_kernel_line_that_is_not_run_any_more_is_gone(tmp_path: Path) -> None:
    for night in range(8):
        kernel = "6.1.5" if night < 4 else "6.12.5"
        put(tmp_path, results(night, [scenario()], dut={"kernel": kernel}))
        found = {one.line: one.name for one in trend_of(tmp_path).series}
        assert found["6.1"] == ("gone" if night >= 6 else "passing")
    assert found["6.12"] == "passing"


def test_a_rig_that_does_not_run_any_more_is_gone(tmp_path: Path) -> None:
    """One that was renamed, but not one that runs once a week. It is there again as soon as it runs."""
    for night in range(29):
        put(tmp_path, results(night, [scenario()], rig="old" if night < 4 else "renamed"))
        if night % 7 == 3:
            put(tmp_path, results(night, [scenario()], rig="weekly"))
        found = {one.rig: (one.name, one.since) for one in trend_of(tmp_path).series}
        assert found["old"] == (("gone", date(4)) if night >= 6 else ("passing", date(0)))
        assert night < 10 or found["weekly"] == ("passing", date(3))
    assert found["renamed"] == ("passing", date(4))
    put(tmp_path, results(29, [scenario(verdict="F")], rig="old"))
    assert {one.rig: one.name for one in trend_of(tmp_path).series}["old"] == "new"


def test_two_kernels_a_night(tmp_path: Path) -> None:
    for night in range(5):
        put(tmp_path, results(night, [scenario()]), f"{night}-old")
        later = date(night).replace("T02", "T03")
        put(tmp_path, results(night, [scenario()], started=later, dut={"kernel": "6.12.1"}), f"{night}-new")
    trend = trend_of(tmp_path)
    assert trend.nights == 5
    assert [one.name for one in trend.series] == ["passing", "passing"]


def test_a_night_is_read_once_and_in_order(tmp_path: Path) -> None:
    """A run that is dropped in between older ones counts where it belongs."""
    for night in (0, 1, 3, 4, 5):
        put(tmp_path, results(night, [scenario(verdict="F" if night >= 3 else "P")]))
    assert (only(tmp_path).name, only(tmp_path).since) == ("ongoing", date(3))
    put(tmp_path, results(2, [scenario(verdict="F")]))
    assert (only(tmp_path).name, only(tmp_path).since) == ("ongoing", date(2))
    assert only(tmp_path).name == "ongoing"
    (tmp_path / results(5, [])["started"].replace("-", "").replace(":", "")).with_name("never there")
    put(tmp_path, results(5, [scenario(verdict="P")]))
    assert only(tmp_path).name == "passing again"


def test_json_has_exactly_these_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from plugpull.cli import main

    put_nights(tmp_path, {"a": "PPF", "b": "PUU"})
    assert main(["trend", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"nights", "series", "changes", "bench"}
    assert found["nights"] == 3
    assert [set(one) for one in found["series"]] == [{"key", "class", "since", "last", "k", "n", "reason"}] * 2
    assert found["series"][0] == {
        "key": "a rig=desk kernel=6.1 disk=disk1",
        "class": "new",
        "since": date(2),
        "last": date(2),
        "k": 1,
        "n": 3,
        "reason": "kept_pace (other)",
    }
