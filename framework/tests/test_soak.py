"""Runs that last, on benches without a DUT: losses are survived, what happened is readable meanwhile, and a killed run
goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from split_runs import SplitRun, command, split_run, write

from plugpull.cli import main
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.history import events as ev
from plugpull.history.reader import read_history

PLAYED = '''
from pathlib import Path

def test_it(soak):
    """Disks are cut, and some of them die."""
    for turn in soak.turns():
        with turn as rig:
            names = [disk.name for disk in rig.disks]
            with Path("turns").open("a") as turns:
                turns.write(f"{turn.fault} {turn.wait:.3f} {' '.join(names)}\\n")
            number = len(Path("turns").read_text().splitlines())
            dies = {DIES}.get(number)
            victim = dies or names[0]
            if number == {BREAKS}:
                raise RuntimeError("the scenario broke")
            rig.cut_cable(victim, returns=dies is None)
            if number == {LAST}:
                soak.progress.total = 0.0
            if number == {HANGS}:
                Path("hangs").touch()
                rig.wait(seconds=60)
'''


def files(*, last: int = 4, dies: dict[int, str] | None = None, breaks: int = 0, hangs: int = 0) -> dict[str, str]:
    """A soak that ends after so many turns. ``dies``: the disks that do not return, by turn."""
    text = PLAYED.replace("{DIES}", repr(dies or {})).replace("{LAST}", str(last))
    return {"test_own.py": text.replace("{BREAKS}", str(breaks)).replace("{HANGS}", str(hangs))}


def soak(folder: Path, *words: str, **kinds: object) -> SplitRun:
    return split_run(folder, files(**kinds), "test_own.py", "--for", "1h", "--seed", "5", *words)  # type: ignore[arg-type]


def test_turns_follow_each_other_until_the_time_is_over(tmp_path: Path) -> None:
    ran = soak(tmp_path)
    assert ran.status == EXIT_PASS, ran.output
    assert ran.verdicts() == [(f"test_it[{number:04}]", "PASS") for number in (1, 2, 3, 4)]
    drawn = (tmp_path / "turns").read_text().splitlines()
    assert len(set(drawn)) == 4
    assert "4 PASS" in ran.output
    assert "of 1 h" in ran.output
    assert "left; turn 4" in ran.output


def test_the_same_seed_draws_the_same_faults(tmp_path: Path) -> None:
    drawn = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        soak(tmp_path / name)
        drawn.append((tmp_path / name / "turns").read_text())
    assert drawn[0] == drawn[1]


def test_disks_that_die_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    ran = soak(tmp_path, last=6, dies={2: "disk2", 4: "disk1"})
    assert ran.status == EXIT_FAIL, ran.output
    assert [verdict for _, verdict in ran.verdicts()] == ["PASS", "FAIL", "PASS", "FAIL", "PASS", "PASS"]
    there = [line.split(" ")[-3:] for line in (tmp_path / "turns").read_text().splitlines()]
    assert [[name for name in names if name.startswith("disk")] for names in there] == [
        ["disk1", "disk2", "disk3"],
        ["disk1", "disk2", "disk3"],
        ["disk1", "disk3"],
        ["disk1", "disk3"],
        ["disk3"],
        ["disk3"],
    ]
    scenarios = ran.results["scenarios"]
    found = [[(one["check"], one["subject"]) for one in scenario["findings"]] for scenario in scenarios]
    assert found == [[], [("returned", "disk2")], [], [("returned", "disk1")], [], []]
    said = [one for one in ran.results["conclusions"] if one["kind"] == "set-aside"]
    assert [one["subject"] for one in said] == ["disk2", "disk1"]
    assert all("counts as dead since 20" in one["text"] for one in said)
    assert "set aside: disk2 since 20" in ran.output


def test_a_turn_that_breaks_does_not_end_the_soak(tmp_path: Path) -> None:
    ran = soak(tmp_path, breaks=2)
    assert ran.status == EXIT_UNKNOWN, ran.output
    assert [verdict for _, verdict in ran.verdicts()] == ["PASS", "UNKNOWN", "PASS", "PASS"]


BETWEEN = '''
from pathlib import Path

def test_it(soak):
    """The bench breaks between two turns, and a disk goes by itself."""
    for turn in soak.turns():
        number = int(turn._opened._name[-5:-1])
        with turn as rig:
            rig.cut_cable(rig.disks[0].name)
        if number == 2:
            Path("broken").touch()
        if number == 4:
            Path("gone").write_text("disk2")
        if number == 6:
            soak.progress.total = 0.0
        soak._pause = lambda: soak._failures and Path("broken").unlink()
'''


def test_a_bench_that_breaks_and_a_disk_that_goes_between_turns(tmp_path: Path) -> None:
    ran = split_run(tmp_path, {"test_own.py": BETWEEN}, "test_own.py", "--for", "1h", "--seed", "5")
    assert [verdict for _, verdict in ran.verdicts()] == ["PASS", "PASS", "UNKNOWN", "PASS", "FAIL", "PASS"], ran.output
    broken, lost = ran.results["scenarios"][2], ran.results["scenarios"][4]
    assert broken["unknowns"][0] == "the bench is broken"
    assert [(one["check"], one["subject"]) for one in lost["findings"]] == [("set_aside", "disk2")]
    assert [len(story.begun.without) for story in read_history(ran.directory).stories] == [0, 0, 0, 0, 0, 1]


def test_a_soak_whose_first_turn_cannot_begin_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "gone").write_text("disk2")
    ran = soak(tmp_path)
    assert ran.status == EXIT_UNKNOWN
    assert [verdict for _, verdict in ran.verdicts()] == ["UNKNOWN"]
    assert "the soak ended early: its first turn could not begin" in ran.results["unknowns"]


# --- killed and resumed -----------------------------------------------------------------------------------------------


def wait_until(condition: Callable[[], bool], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # another process makes it true


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """A soak in a process of its own, in the turn in which it hangs."""
    line, environment = command(folder, "--out", "runs", *words)
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(line, cwd=folder, env=environment, stdout=output, stderr=output)
    wait_until(lambda: (folder / "hangs").exists() or process.poll() is not None)
    assert process.poll() is None, (folder / "output").read_text()
    (folder / "hangs").unlink()
    return process


def resume(folder: Path, run: Path) -> tuple[int, str]:
    line, environment = command(folder, "--resume", str(run))
    line = [word for word in line if word != "--rig" and not word.endswith("quick.toml")]
    done = subprocess.run(line, cwd="/", env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_ended_twice_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    """Turn 2 and turn 4 are ended in the middle; disk2 died in turn 1 and stays out."""
    text = files(last=5, dies={1: "disk2"})["test_own.py"].replace(
        "if number == 0:\n                Path", "if number in (2, 4):\n                Path"
    )
    write(tmp_path, {"test_own.py": text})
    process = started(tmp_path, "test_own.py", "--for", "1h", "--seed", "5")
    run = (tmp_path / "runs/latest").resolve()
    process.send_signal(how)
    process.wait(60)
    line, environment = command(tmp_path, "--resume", str(run))
    with (tmp_path / "output").open("ab") as output:
        line = [word for word in line if word != "--rig" and not word.endswith("quick.toml")]
        process = subprocess.Popen(line, cwd="/", env=environment, stdout=output, stderr=output)
    wait_until(lambda: (tmp_path / "hangs").exists() or process.poll() is not None)
    assert process.poll() is None, (tmp_path / "output").read_text()
    process.send_signal(how)
    process.wait(60)
    status, output_text = resume(tmp_path, run)
    assert ("to go on: plugpull run --resume" in (tmp_path / "output").read_text()) == (how == signal.SIGTERM)
    assert main(["run", "--resume", str(run)]) == EXIT_USAGE, "it is over"
    results = json.loads((run / "results.json").read_text())
    verdicts = [one["verdict"] for one in results["scenarios"]]
    assert verdicts == ["FAIL", "UNKNOWN", "PASS", "UNKNOWN", "PASS"], output_text
    assert status == EXIT_FAIL
    assert "; turn 5; since turn 5: 1 PASS; " in output_text
    assert [one["id"][-6:] for one in results["scenarios"]] == [f"[{number:04}]" for number in range(1, 6)]
    names = [line.split(" ")[-3:] for line in (tmp_path / "turns").read_text().splitlines()]
    assert all("disk2" not in one for one in names[1:])
    history = read_history(run)
    assert sum(isinstance(event, ev.RunResumed) for event in history.stray) == 2
    assert (history.flawed, history.lost_lines) == (False, 0)
    assert history.complete == (how == signal.SIGTERM)  # a killed turn has no end
    # What a run without interruptions draws for the same turns:
    other = tmp_path / "other"
    other.mkdir()
    soak(other, last=5, dies={1: "disk2"})
    assert (other / "turns").read_text() == (tmp_path / "turns").read_text()


def test_a_disk_that_went_while_the_run_was_down_is_not_accused(tmp_path: Path) -> None:
    write(tmp_path, files(last=4, hangs=2))
    process = started(tmp_path, "test_own.py", "--for", "1h", "--seed", "5")
    run = (tmp_path / "runs/latest").resolve()
    process.kill()
    process.wait(60)
    (tmp_path / "gone").write_text("disk3")
    status, output = resume(tmp_path, run)
    assert status == EXIT_UNKNOWN, output
    results = json.loads((run / "results.json").read_text())
    assert [one["verdict"] for one in results["scenarios"]] == ["PASS", "UNKNOWN", "UNKNOWN", "PASS", "PASS"]
    assert "disk3 was gone when the run was resumed, and why is not on record" in results["scenarios"][2]["unknowns"]
    assert [one["subject"] for one in results["conclusions"]] == ["disk3"]


def test_what_happened_so_far_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, files(dies={1: "disk2"}, hangs=3))
    process = started(tmp_path, "test_own.py", "--for", "1h", "--seed", "5")
    run = (tmp_path / "runs/latest").resolve()
    try:
        assert main(["check", str(run)]) == EXIT_FAIL
        said = capsys.readouterr().out
        assert "unknown: the run is still going on" in said
        assert "[0002]" in said
        assert "[0003]" not in said
        assert main(["report", str(run)]) == EXIT_PASS
        assert "still going on" in (run / "report.html").read_text()
        assert main(["run", "--resume", str(run)]) == EXIT_USAGE
        assert "is still running" in capsys.readouterr().err
    finally:
        process.kill()
        process.wait(60)
    assert main(["check", str(run)]) == EXIT_FAIL
    assert "the history ends before the run did" in capsys.readouterr().out


def test_a_healthy_soak_is_unknown_as_long_as_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, files(hangs=2))
    process = started(tmp_path, "test_own.py", "--for", "1h", "--seed", "5")
    try:
        assert main(["check", str((tmp_path / "runs/latest").resolve())]) == EXIT_UNKNOWN
        assert "PASS" in capsys.readouterr().out
    finally:
        process.kill()
        process.wait(60)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "soon"), "is not a length of time"),
        (("--for", "1s"), "a soak cannot last 1s"),
        (("--for", "2h", "--jobs", "2"), "--for and --jobs exclude each other"),
        (("--for", "2h", "--every-victim"), "--for and --every-victim exclude each other"),
        (("--resume", "nothere"), "cannot read the history of"),
        (("--resume", "nothere", "--seed", "4"), "so --seed 4 cannot be given"),
    ],
)
def test_what_cannot_be_asked_for(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["run", *words])
    except SystemExit as refused:
        status = int(str(refused.code))
    assert status == EXIT_USAGE
    assert said in capsys.readouterr().err


def test_without_for_soaks_are_left_out(tmp_path: Path) -> None:
    plain = "def test_plain(rig):\n    rig.play()\n"
    ran = split_run(tmp_path, {**files(), "test_plain.py": plain}, "test_own.py", "test_plain.py")
    assert ran.verdicts() == [("test_plain", "PASS")]
    ran = split_run(tmp_path, {"test_plain.py": plain}, "test_plain.py", "--for", "1h", out="other")
    assert ran.status == EXIT_USAGE
    assert "no soak in test_plain.py" in ran.output


def test_a_changed_rig_is_another_bench(tmp_path: Path) -> None:
    write(tmp_path, files(hangs=2))
    line, environment = command(tmp_path, "--out", "runs", "test_own.py", "--for", "1h")
    rig = tmp_path / "rig.toml"
    stock = Path(line[line.index("--rig") + 1])
    rig.write_text(stock.read_text())
    line[line.index("--rig") + 1] = "rig.toml"
    process = subprocess.Popen(
        line, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: (tmp_path / "hangs").exists() or process.poll() is not None)
    process.kill()
    process.wait(60)
    rig.write_text(stock.read_text().replace("64 MiB", "32 MiB"))
    status, output = resume(tmp_path, (tmp_path / "runs/latest").resolve())
    assert status == EXIT_USAGE
    assert "has changed since the run began" in output
    assert os.path.lexists(tmp_path / "runs/latest/history.jsonl")
