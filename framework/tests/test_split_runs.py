"""``plugpull run --jobs`` and ``--shard``: the same scenarios, choices and verdicts as in one piece."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from split_runs import command, split_run, write

from plugpull.cli import main
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.history.reader import read_history
from plugpull.jobs.shard import Shard, shard_of
from plugpull.locate import rigs_dir

OWN = '''
from pathlib import Path

import pytest

def noted(rig, name):
    """Choose, and write down what was chosen."""
    victim, _ = rig.choose_victim()
    first = rig.context.streams.of("triggers").random()
    Path(name).write_text(f"{victim.name} {first}")
    rig.play()

@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_of(rig, name):
    """It is played."""
    noted(rig, name)

def test_last(rig):
    """It is played, and fails if it is to."""
    noted(rig, "last")
    assert not Path("fail").exists(), "as asked"

@pytest.mark.skip(reason="not today")
def test_skipped(rig):
    """It is skipped before it begins."""
'''
SLOW = '''
import time
from collections.abc import Callable
from pathlib import Path

import pytest

@pytest.mark.parametrize("name", ["a", "b"])
def test_slow(rig, name):
    """It takes a minute, if nobody ends it."""
    Path(name).touch()
    time.sleep(60)

def test_more(rig):
    """It is planned too."""
    rig.play()
'''


def chosen(folder: Path) -> dict[str, str]:
    """What each scenario chose, and forget it."""
    found = {name: folder / name for name in ("a", "b", "c", "last")}
    values = {name: path.read_text() for name, path in found.items() if path.exists()}
    for name in values:
        found[name].unlink()
    return values


def test_the_same_seed_gives_the_same_choices_and_verdicts_however_a_run_is_split(tmp_path: Path) -> None:
    """In one piece, on two benches, and as two shards that are merged: one of them on two benches."""
    (tmp_path / "fail").touch()
    files = {"test_own.py": OWN}
    whole = split_run(tmp_path, files, "test_own.py", "--seed", "5", out="whole")
    choices = chosen(tmp_path)
    assert set(choices) == {"a", "b", "c", "last"}
    assert len(set(choices.values())) > 1
    assert (whole.status, len(whole.results["scenarios"])) == (EXIT_FAIL, 4)

    jobs = split_run(tmp_path, files, "test_own.py", "--seed", "5", "--jobs", "2", out="jobs")
    assert chosen(tmp_path) == choices
    assert (jobs.status, jobs.verdicts()) == (EXIT_FAIL, whole.verdicts()), jobs.output
    assert jobs.results["unknowns"] == []
    assert jobs.results["skipped"] == whole.results["skipped"]
    assert {one["part"] for one in jobs.results["scenarios"]} <= {"bench-1", "bench-2"}

    words = ("test_own.py", "--seed", "5", "--shard")
    one = split_run(tmp_path, files, *words, "1/2", out="one")
    two = split_run(tmp_path, files, *words, "2/2", "--jobs", "2", out="two")
    assert chosen(tmp_path) == choices
    assert len(one.results["scenarios"]) + len(two.results["scenarios"]) == 4
    assert main(["merge", str(tmp_path / "out"), str(one.directory), str(two.directory)]) == EXIT_FAIL
    merged = json.loads((tmp_path / "out/results.json").read_bytes())
    assert [(each["id"].partition("::")[2], each["verdict"]) for each in merged["scenarios"]] == whole.verdicts()
    assert merged["unknowns"] == []
    assert merged["seed"] == 5
    assert merged["skipped"] == whole.results["skipped"]


def test_each_scenario_prints_its_time(tmp_path: Path) -> None:
    run = split_run(tmp_path, {"test_own.py": OWN}, "test_own.py", "-k", "last")
    (seconds,) = (each["seconds"] for each in run.results["scenarios"])
    assert f"PASS    test_own.py::test_last ({seconds:.3f} s)" in run.output, run.output


def test_markers_choose_scenarios(tmp_path: Path) -> None:
    run = split_run(tmp_path, {"test_own.py": OWN}, "test_own.py", "-m", "parametrize and not skip", "--jobs", "2")
    assert run.status == EXIT_PASS, run.output
    assert [name for name, _ in run.verdicts()] == ["test_of[a]", "test_of[b]", "test_of[c]"]
    nothing = split_run(tmp_path, {}, "test_own.py", "-m", "skip and parametrize", "--jobs", "2", out="other")
    assert nothing.status == EXIT_USAGE
    assert "no scenario matches -m 'skip and parametrize'" in nothing.output
    assert not list((tmp_path / "other").iterdir()), "nothing was run, so nothing is left"


def test_a_shard_without_scenarios_is_no_mistake(tmp_path: Path) -> None:
    run = split_run(tmp_path, {"test_own.py": OWN}, "test_own.py", "-k", "last", "--shard", "2/2")
    assert run.status == EXIT_PASS
    assert "nothing is left for shard 2/2: only 1 scenario in all" in run.output


def test_scenarios_that_cannot_be_collected(tmp_path: Path) -> None:
    run = split_run(tmp_path, {"test_own.py": "import nonsense_that_is_not_there\n"}, "test_own.py", "--jobs", "2")
    assert run.status == EXIT_USAGE
    assert "the scenarios could not be collected" in run.output
    assert "nonsense_that_is_not_there" in run.output


# --- ended early -----------------------------------------------------------------------------------------------


def begun(folder: Path) -> subprocess.Popen[str]:
    """A run of two benches, both in the middle of a scenario."""
    write(folder, {"test_slow.py": SLOW})
    line, environment = command(folder, "test_slow.py", "--jobs", "2")
    run = subprocess.Popen(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for(lambda: (folder / "a").exists() and (folder / "b").exists())
    return run


def wait_for(what: Callable[[], bool], timeout: float = 120.0) -> None:
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def bench_processes(run: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_signal_ends_all_benches_and_the_run_says_so(tmp_path: Path) -> None:
    run = begun(tmp_path)
    benches = bench_processes(run)
    assert len(benches) == 2
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == EXIT_UNKNOWN, output
    assert all(map(gone, benches))
    results = json.loads((tmp_path / "runs/latest/results.json").read_bytes())
    assert "the run was interrupted (interrupted: ended by SIGINT)" in results["unknowns"]
    assert "1 of 3 planned scenarios were not run: test_slow.py::test_more" in results["unknowns"]
    for part in ("bench-1", "bench-2"):
        history = read_history(tmp_path / "runs/latest/parts" / part)
        assert history.complete, "it ended in order"
        assert history.ended is not None
        assert history.ended.interrupted == "interrupted: ended by SIGTERM"


def test_a_bench_that_is_killed_leaves_the_others_running(tmp_path: Path) -> None:
    run = begun(tmp_path)
    victim, other = bench_processes(run)
    os.kill(victim, signal.SIGKILL)
    run.send_signal(0)
    wait_for(lambda: gone(victim))
    assert not gone(other)
    assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate(timeout=120)
    results = json.loads((tmp_path / "runs/latest/results.json").read_bytes())
    assert any("was killed by SIGKILL while it ran test_slow.py::test_slow" in text for text in results["unknowns"])
    assert "was killed by SIGKILL" in output
    assert results["verdict"] == "UNKNOWN"


def test_a_bench_that_is_killed_while_its_run_ends_is_said_too(tmp_path: Path) -> None:
    run = begun(tmp_path)
    victim, _ = bench_processes(run)
    run.send_signal(signal.SIGSTOP)  # it learns of the death of its bench after the signal
    os.kill(victim, signal.SIGKILL)
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGCONT)
    output, _ = run.communicate(timeout=120)
    assert "was killed by SIGKILL while it ran test_slow.py::test_slow" in output
    results = json.loads((tmp_path / "runs/latest/results.json").read_bytes())
    assert any("was killed by SIGKILL" in text for text in results["unknowns"])


def test_the_benches_end_when_their_run_is_killed(tmp_path: Path) -> None:
    run = begun(tmp_path)
    benches = bench_processes(run)
    run.kill()
    run.communicate(timeout=60)
    wait_for(lambda: all(map(gone, benches)))
    for part in ("bench-1", "bench-2"):
        assert read_history(tmp_path / "runs/latest/parts" / part).complete, "it healed its bench and ended in order"
    assert main(["check", str(tmp_path / "runs/latest")]) == EXIT_UNKNOWN
    assert main(["report", str(tmp_path / "runs/latest")]) == EXIT_PASS


# --- wrong usage -----------------------------------------------------------------------------------------------


def test_a_real_rig_has_one_bench(capsys: pytest.CaptureFixture[str]) -> None:
    rig = str(rigs_dir() / "shelf-ssh.toml")
    assert main(["run", "--rig", rig, "--jobs", "2"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "--jobs is for virtual rigs" in said
    assert "hint: leave --jobs out" in said


def test_a_calibration_has_one_bench(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--jobs", "2", "--calibrate"]) == EXIT_USAGE
    assert "--calibrate measures one bench at a time" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--jobs", "0"), ("--jobs", "many"), ("--jobs", "-1"), ("--jobs", "100000")])
def test_a_number_of_benches(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", *words])
    assert "is not a number of benches" in capsys.readouterr().err


def test_a_shard() -> None:
    assert shard_of("2/4") == Shard(2, 4)
    assert str(shard_of("02/4")) == "2/4"
    for wrong in ("", "1", "0/2", "3/2", "-1/2", "1/0", "a/b", "1/2/3", "1/99999999", "²/4"):
        with pytest.raises(SystemExit):
            main(["run", f"--shard={wrong}"])
