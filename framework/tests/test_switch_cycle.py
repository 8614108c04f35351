"""``plugpull switch cycle`` restores power, whatever ends it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from boards import PATIENCE
from switch_desks import (
    cycle_to,
    cycling,
    desk,
    environment,
    line_of,
    more_switches,
    run,
    shell,
    states,
    two_switches,
    wait_for,
)

from plugpull.cli import main
from plugpull.switches.command import CommandSwitch


def test_a_cycle_ends_with_power(tmp_path: Path) -> None:
    done = run(tmp_path, "cycle", "plugs.2", "--off", "0.1", "--rig", str(desk(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == ["plugs.2: off", "plugs.2: on"]
    assert (tmp_path / "2").read_text() == "on\n"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM]
)
def test_a_cycle_that_is_ended_turns_power_on_first(tmp_path: Path, number: signal.Signals) -> None:
    desk(tmp_path)
    with cycling(tmp_path, "plugs.2") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.splitlines()[-1]) == (3, "plugpull: interrupted")
    assert out.startswith("plugs.2: on")
    assert (tmp_path / "2").read_text() == "on\n"


def test_a_cycle_into_a_closed_pipe_ends_with_power(tmp_path: Path) -> None:
    """`plugpull switch cycle a.1 b.1 | head -1` left b off."""
    files = two_switches(tmp_path)
    reading, writing = os.pipe()
    process = cycle_to(tmp_path, writing, "1")
    os.close(writing)
    first = os.read(reading, 10)
    os.close(reading)
    assert process.wait(PATIENCE) == 0
    assert (first, states(tmp_path, files)) == (b"plugs.1: o", ["on", "on"])


def test_a_cycle_into_a_pipe_that_nobody_reads_restores_power(tmp_path: Path) -> None:
    files = two_switches(tmp_path)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 65536)
    os.set_blocking(writing, True)
    process = cycle_to(tmp_path, writing, "0")
    os.close(writing)
    try:
        wait_for(lambda: (tmp_path / "cut").exists() and states(tmp_path, files) == ["on", "on"])
        assert process.poll() is None, "it waits for its reader, with the power on"
    finally:
        os.close(reading)
        process.wait(PATIENCE)


def test_a_cycle_onto_a_full_disk_ends_with_power(tmp_path: Path) -> None:
    files = two_switches(tmp_path)
    with open("/dev/full", "wb") as full:
        assert cycle_to(tmp_path, full.fileno()).wait(PATIENCE) == 0
    assert states(tmp_path, files) == ["on", "on"]


@pytest.mark.parametrize("action", ["on", "off"])
def test_output_that_fails_keeps_no_switch_from_being_switched(tmp_path: Path, action: str) -> None:
    files = two_switches(tmp_path)
    for name in files:
        (tmp_path / name).write_text("neither\n")
    line = line_of(action, "plugs.1", "second.1", "--rig", "desk.toml")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdout=full, stderr=full, cwd=tmp_path, env=environment(tmp_path), check=False)
    assert (done.returncode, states(tmp_path, files)) == (0, [action, action])


def test_a_driver_that_raises_anything_keeps_no_other_port_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Port 1 of the first switch cannot be turned on: its port 2 and the second switch are."""
    two_switches(tmp_path)
    command = CommandSwitch._command

    def fails(switch: CommandSwitch, port: str, on: bool) -> None:
        if on and (switch.name, port) == ("plugs", "1"):
            raise ValueError("a defect of the driver")
        command(switch, port, on)

    monkeypatch.setattr(CommandSwitch, "_command", fails)
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    words = ["cycle", "plugs.1", "plugs.2", "second.1", "--off", "0", "--rig", str(tmp_path / "desk.toml")]
    assert main(["switch", *words]) == 3
    assert states(tmp_path, ("1", "2", "s1")) == ["off", "on", "on"]
    assert "switch plugs: ValueError('a defect of the driver')" in capsys.readouterr().err
    monkeypatch.undo()
    assert "power restored: plugs.1 was left off" in run(tmp_path, "on", "plugs.2", "--rig", "desk.toml").stderr
    assert states(tmp_path, ("1", "2", "s1")) == ["on", "on", "on"]


def test_a_terminal_that_is_closed_in_mid_cycle_restores_power(tmp_path: Path) -> None:
    files = two_switches(tmp_path)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is ignored and inherited if the tests run under nohup
        line = line_of("cycle", "plugs.1", "second.1", "--off", "600", "--rig", "desk.toml")
        os.execve(line[0], line, environment(tmp_path))
    try:
        wait_for(lambda: states(tmp_path, files) == ["off", "off"])
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert states(tmp_path, files) == ["on", "on"]


def test_the_next_start_turns_on_what_a_killed_cycle_left_off(tmp_path: Path) -> None:
    desk(tmp_path)
    with cycling(tmp_path, "plugs.2") as process:
        process.kill()
    assert (tmp_path / "2").read_text() == "off\n"
    seen = run(tmp_path, "status", "plugs.2", "--rig", "desk.toml")
    assert seen.stdout == "plugs.2: off (mains)\n", "looking changes nothing"
    done = run(tmp_path, "on", "plugs.1", "--rig", "desk.toml")
    assert done.returncode == 0
    assert "power restored: plugs.2 was left off" in done.stderr
    assert (tmp_path / "2").read_text() == "on\n"
    again = run(tmp_path, "on", "plugs.1", "--rig", "desk.toml")
    assert again.stderr == ""


def test_a_cycle_whose_second_switch_fails_turns_the_first_one_on_again(tmp_path: Path) -> None:
    desk(tmp_path, more_switches("broken", 1, on=f"echo on > {tmp_path}/b{{port}}", off="exit 7"))
    done = run(tmp_path, "cycle", "plugs.2", "broken.1", "--off", "0", "--rig", "desk.toml")
    assert done.returncode == 3
    assert "switch broken" in done.stderr
    assert (tmp_path / "2").read_text() == "on\n"
    assert (tmp_path / "b1").read_text() == "on\n"


def test_a_switch_that_fails_is_opened_again_to_turn_power_on(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; exit 1; }}; "
    desk(tmp_path, on=once + shell(tmp_path)["on"])
    done = run(tmp_path, "cycle", "plugs.2", "--off", "0", "--rig", "desk.toml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tried").exists()
    assert (tmp_path / "2").read_text() == "on\n"
