"""Nightly runs: the check before, the runs, what is new, what is removed, and the units for systemd."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from archives import FIRST, folder, put, put_nights, results, scenario
from shelves import shelf

from plugpull.archive.retention import HALF_GONE, Retention, prune
from plugpull.archive.trend import make_index, trend_of
from plugpull.cli import main
from plugpull.commands import nightly, nightly_preflight
from plugpull.commands.nightly_preflight import preflight, wrong_disks
from plugpull.errors import RigError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig

PYTHON = sys.executable
KILLS = int(os.environ.get("PLUGPULL_KILLS", "3"))
"""Random moments at which a night is killed."""
QUICK = rigs_dir() / "quick.toml"
TEMPLATES = Path(nightly.__file__).parents[1] / "archive/templates"

RUN = """\
#!/usr/bin/env python3
import datetime, json, os, pathlib, sys
words = sys.argv[1:]
out, rig = (words[words.index(option) + 1] for option in ("--out", "--rig"))
now = datetime.datetime.now(datetime.timezone.utc)
verdict = os.environ["VERDICT"]
if verdict == "crash":
    sys.exit(3)
scenario = {"id": "test_a.py::test_b", "verdict": verdict, "seconds": 1.0}
found = {"schema": 1, "rig": "quick", "dut": {"kernel": "6.1.0"}, "verdict": verdict, "started": now.isoformat(),
         "scenarios": [scenario], "words": words}
run = pathlib.Path(out) / now.strftime("%Y%m%dT%H%M%S%fZ-quick")
run.mkdir()
(run / "results.json").write_text(json.dumps(found))
print("ran", *words)
sys.exit({"PASS": 0, "FAIL": 1, "UNKNOWN": 3}[verdict])
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """``plugpull run`` replaced by a program that stores results with the verdict ``VERDICT``."""
    program = tmp_path / "program"
    program.write_text(RUN)
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setattr(nightly_preflight, "_left_off", lambda rig: ())
    return monkeypatch


def night(archive: Path, verdict: str, *options: str) -> int:
    os.environ["VERDICT"] = verdict
    return main(["nightly", "--rig", str(QUICK), "--archive", str(archive), *options])


def test_the_exit_status_says_what_is_new(
    tmp_path: Path, runs: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.setenv("VERDICT", "")
    archive = tmp_path / "archive"
    assert night(archive, "PASS") == EXIT_PASS
    assert night(archive, "FAIL") == EXIT_FAIL, "a new failure"
    assert night(archive, "FAIL") == EXIT_PASS, "it is not new any more"
    assert night(archive, "FAIL", "--fail-on", "any") == EXIT_FAIL
    assert night(archive, "UNKNOWN") == EXIT_UNKNOWN
    assert night(archive, "crash") == EXIT_UNKNOWN
    seen = capsys.readouterr()
    assert "5 nights: 1 ongoing" in seen.out
    assert {path.name for path in archive.iterdir() if path.is_file()} >= {"index.html", "index.txt", "index.md"}


def test_a_run_gets_its_options(tmp_path: Path, runs: pytest.MonkeyPatch) -> None:
    runs.setenv("VERDICT", "")
    archive = tmp_path / "archive"
    assert night(archive, "PASS", "--kernel", "6.1", "--kernel", "~/linux", "-k", "writing") == EXIT_PASS
    said = (archive / ".nightly/quick.log").read_text().split()
    assert said[: said.index("run") + 1] == ["ran", "-m", "plugpull", "run"]
    words = " ".join(said)
    assert f"--rig {QUICK} --out {archive} --rotate today --kernel 6.1 --kernel ~/linux -k writing" in words


def test_a_rig_that_fails_its_check_does_not_stop_the_others(
    tmp_path: Path, runs: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def silent(rig: Rig, file: Path) -> list[str]:
        raise RigError("the DUT does not answer")

    runs.setenv("VERDICT", "")
    runs.setattr(nightly_preflight, "seen_on_bench", silent)
    archive, broken = tmp_path / "archive", tmp_path / "broken.toml"
    broken.write_text("[rig]\n")
    others = ["--rig", str(shelf(tmp_path)), "--rig", str(broken)]
    assert night(archive, "PASS", *others) == EXIT_UNKNOWN
    seen = capsys.readouterr()
    assert "rig quick: ready" in seen.err
    assert "left out: the DUT does not answer" in seen.err
    assert "rig broken: left out: " in seen.err
    troubles = {one.rig: (one.state, one.reason) for one in trend_of(archive).bench}
    assert troubles[load_rig(shelf(tmp_path)).rig.name] == ("failing", "the DUT does not answer")
    assert {one.name for one in trend_of(archive).series} == {"passing"}


def test_nights_without_a_run_do_not_make_a_scenario_gone(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PPP"})
    for number in range(3, 8):
        put(tmp_path, results(number, [], dut={"kernel": ""}, verdict="UNKNOWN", unknowns=["no disk"], complete=False))
    trend = trend_of(tmp_path)
    assert [one.name for one in trend.series] == ["passing"]
    (bench,) = trend.bench
    assert (bench.kernel, bench.k, bench.n, bench.reason) == ("6.1", 5, 8, "no disk")
    put_nights(tmp_path, {"a": "P" * 25}, begin=8)
    assert trend_of(tmp_path).bench == ()


def test_no_rig(tmp_path: Path) -> None:
    assert main(["nightly", "--archive", str(tmp_path)]) == EXIT_USAGE


NIGHT = """\
import sys
from plugpull.cli import main
from plugpull.commands import nightly_preflight
nightly_preflight._left_off = lambda rig: ()
sys.executable = sys.argv[1]
sys.exit(main(["nightly", "--rig", sys.argv[2], "--archive", sys.argv[3], "--keep-runs", "5"]))
"""


def test_a_night_that_is_killed_loses_nothing(tmp_path: Path, runs: pytest.MonkeyPatch) -> None:
    """Killed at random moments. The runs that ended are in the archive, and the next night goes on."""
    program = str(tmp_path / "program")
    command, draw = [PYTHON, "-c", NIGHT, program, str(QUICK), str(tmp_path / "archive")], random.Random(1)
    runs.setenv("VERDICT", "PASS")
    for _ in range(KILLS):
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            started.wait(draw.uniform(0.2, 2.5))
        started.kill()
        started.wait()
    ended = len(list((tmp_path / "archive").glob("*/results.json")))
    assert subprocess.run(command, capture_output=True, check=False).returncode == EXIT_PASS
    trend = trend_of(tmp_path / "archive")
    assert trend.nights >= ended + 1
    assert trend.updated.unreadable == ()
    assert [one.name for one in trend.series] == ["passing"]


# --- the check before ------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_left_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly_preflight, "_left_off", lambda rig: ())


@pytest.mark.usefixtures("nothing_left_off")
def test_a_full_disk_is_seen(tmp_path: Path) -> None:
    assert preflight(QUICK, tmp_path, 0).troubles == ()
    (trouble,) = preflight(QUICK, tmp_path, 10**18).troubles
    assert trouble.endswith(f"are free in {tmp_path}, and 1000000000.0 GB are wanted")


@pytest.mark.usefixtures("nothing_left_off")
def test_a_bench_that_is_as_declared_is_ready(tmp_path: Path) -> None:
    file = shelf(tmp_path)
    assert preflight(file, tmp_path, 0, lambda rig, at: ()).troubles == ()
    assert preflight(file, tmp_path, 0, lambda rig, at: ("disk1.cable is off",)).troubles == ("disk1.cable is off",)


def test_disks_that_are_missing_or_other_ones(tmp_path: Path) -> None:
    rig = load_rig(shelf(tmp_path))
    places = {disk.name: f"place of {disk.name}" for disk in rig.disk}
    there = [{"place": places[disk.name], "serial": disk.serial, "size": disk.size} for disk in rig.disk]
    assert list(wrong_disks(rig, places, there)) == []
    first = rig.disk[0]
    assert list(wrong_disks(rig, places, there[1:])) == [f"{first.name} is not there: nothing at place of {first.name}"]
    (other,) = wrong_disks(rig, places, [{**there[0], "serial": "other"}, *there[1:]])
    assert other.startswith(f"{first.name} is another disk: serial number 'other'")
    (smaller,) = wrong_disks(rig, places, [{**there[0], "size": 512}, *there[1:]])
    assert "512 bytes" in smaller


def test_a_port_that_a_killed_run_left_off_is_a_trouble_of_its_rig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = load_rig(shelf(tmp_path))
    mine = f"power could not be restored: {rig.switch[0].name}.2 was left off: no answer"
    lines = [mine, "power could not be restored: another.1 was left off", "power restored: it.3 was left off"]
    monkeypatch.setattr("plugpull.left_off.restore_what_was_left_off", lambda cache, notify: list(map(notify, lines)))
    assert list(nightly_preflight._left_off(rig)) == [mine]


# --- what is removed -------------------------------------------------------------------------------------------------


def kept(archive: Path) -> list[int]:
    there = {path.name for path in archive.iterdir() if path.is_dir()}
    return [number for number in range(30) if folder(number) in there]


def test_the_oldest_go_but_not_the_first_of_an_open_failure(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "P" * 10 + "F" * 20, "b": "P" * 30})
    before = trend_of(tmp_path)
    removed = prune(tmp_path, Retention(runs=5), 0.0)
    assert kept(tmp_path) == [10, 26, 27, 28, 29]
    assert removed == [folder(number) for number in range(30) if number not in kept(tmp_path)]
    assert trend_of(tmp_path).series == before.series, "what was learned is still known"
    put(tmp_path, results(30, [scenario("a"), scenario("b")]))
    assert {one.scenario: one.name for one in trend_of(tmp_path).series} == {"a": "passing again", "b": "passing"}


def test_by_age_and_size(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "P" * 30})
    shutil.copytree(tmp_path, tmp_path.parent / "second")
    now = FIRST.timestamp() + 29 * 86400
    prune(tmp_path, Retention(days=7), now)
    assert kept(tmp_path) == list(range(22, 30))
    prune(tmp_path, Retention(days=0), now + 10**9)
    assert kept(tmp_path) == [29], "the newest stays"
    (tmp_path.parent / "second" / folder(29) / "big").write_bytes(b"x" * 1_000_000)
    prune(tmp_path.parent / "second", Retention(bytes=1_010_000), now)
    assert len(kept(tmp_path.parent / "second")) <= 3
    assert kept(tmp_path.parent / "second")[-1] == 29
    assert prune(tmp_path, Retention(), now) == []


def test_a_removal_that_was_killed(tmp_path: Path) -> None:
    """The index is marked first. If the run is still there afterwards, it counts again."""
    put_nights(tmp_path, {"a": "PPFF"})
    expected = trend_of(tmp_path).series
    shutil.copytree(tmp_path / folder(0), tmp_path.parent / "saved")
    prune(tmp_path, Retention(runs=3), 0.0)
    shutil.copytree(tmp_path.parent / "saved", tmp_path / folder(0))
    (tmp_path / f"{HALF_GONE}old").mkdir()
    trend = trend_of(tmp_path)
    assert (trend.series, trend.updated.runs, trend.updated.unreadable) == (expected, 4, ())
    prune(tmp_path, Retention(runs=3), 0.0)
    assert not (tmp_path / f"{HALF_GONE}old").exists()
    make_index(tmp_path)
    assert trend_of(tmp_path).nights == 3


@pytest.mark.parametrize(
    ("text", "bytes"), [("500M", 500_000_000), ("200G", 200_000_000_000), ("1.5T", 1.5e12), ("7", 7)]
)
def test_sizes(text: str, bytes: float) -> None:
    assert nightly.size(text) == bytes


def test_the_units_are_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("plugpull-nightly.service", "plugpull-nightly.timer"):
        shutil.copy(TEMPLATES / name, tmp_path)
    units = [str(tmp_path / name) for name in ("plugpull-nightly.service", "plugpull-nightly.timer")]
    done = verify(units)
    said = [line for line in done.stderr.splitlines() if "plugpull-nightly" in line]
    assert (done.returncode, said) == (0, [])
    wrong = tmp_path / "plugpull-nightly.timer"
    wrong.write_text(wrong.read_text().replace("02:00:00", "25:00:00"))
    assert "Failed to parse calendar" in verify(units).stderr


def verify(units: list[str]) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "verify", "--man=no", *units]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_stub_is_what_a_run_writes(tmp_path: Path, runs: pytest.MonkeyPatch) -> None:
    runs.setenv("VERDICT", "")
    night(tmp_path / "archive", "PASS")
    (written,) = (tmp_path / "archive").glob("*-quick/results.json")
    assert json.loads(written.read_text())["schema"] == 1
