"""``plugpull switch`` as a person uses it, on switches whose state is a file."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from boards import PATIENCE
from desks import described

from fixtures.boards import KmTronic, Lie, Port
from plugpull.cli import main
from plugpull.commands.switch_ports import _toml
from plugpull.discover.switches import find_all, tables
from plugpull.rig.load import load_rig
from plugpull.rig.model import Mechanism
from plugpull.switches.command import CommandSwitch
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import FoundSwitch, kind_named

SHELL = {
    "on": "echo on > {folder}/{{port}}",
    "off": "echo off > {folder}/{{port}}",
    "read": "cat {folder}/{{port}}",
}
RIG = """\
[rig]
name = "desk"
[dut]
kind = "local"
[[switch]]
name = "plugs"
driver = "command"
on = "{on}"
off = "{off}"
read = "{read}"
ports = 2
mechanism = "mains"
[[controller]]
name = "usb"
path = "0000:00:99.0"
[[disk]]
name = "disk1"
at = "usb.1"
serial = "SWITCH-CLI-{pid}"
size = "1 MiB"
power = "plugs.1"
"""


def desk(folder: Path, extra: str = "") -> Path:
    file = folder / "desk.toml"
    # A rig is leased by its disks' serial numbers, and another checkout may be testing at the same time.
    shell = {key: value.format(folder=folder) for key, value in SHELL.items()}
    file.write_text(RIG.format(pid=os.getpid(), **shell) + extra)
    for port in "12":
        (folder / port).write_text("on\n")
    return file


def environment(folder: Path) -> dict[str, str]:
    """With a cache of its own, and so journals of its own."""
    return {**os.environ, "PLUGPULL_CACHE": str(folder / "cache")}


def line_of(*words: str) -> list[str]:
    return [sys.executable, "-m", "plugpull", "switch", *words]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line_of(*words),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
        env=environment(folder),
    )


@contextmanager
def cycling(folder: Path, *ports: str) -> Iterator[subprocess.Popen[str]]:
    """``plugpull switch cycle`` that has turned its first port off and stays so for longer than any test."""
    words = ("cycle", *ports, "--off", "600", "--rig", "desk.toml")
    process = subprocess.Popen(
        line_of(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment(folder)
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"{ports[0]}: off")
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # another process's files: nothing tells when they change


def test_on_off_and_status_by_cut_point_and_by_port(tmp_path: Path) -> None:
    rig = str(desk(tmp_path))
    off = run(tmp_path, "off", "disk1.power", "plugs.2", "--rig", rig)
    assert off.returncode == 0, off.stderr
    first, second = off.stdout.splitlines()
    assert re.fullmatch(
        r"disk1.power: off \(mains\), commanded \d\d:\d\d:\d\d.\d{3}, acknowledged after [\d.]+ ms, reads off", first
    )
    assert second.startswith("plugs.2: off (mains)")
    assert (tmp_path / "1").read_text() == "off\n"
    assert run(tmp_path, "status", "plugs.1", "--rig", rig).stdout == "plugs.1: off (mains)\n"
    assert run(tmp_path, "on", "disk1.power", "plugs.2", "--rig", rig).returncode == 0
    assert [(tmp_path / port).read_text() for port in "12"] == ["on\n", "on\n"]


def test_a_cycle_ends_with_power(tmp_path: Path) -> None:
    done = run(tmp_path, "cycle", "plugs.2", "--off", "0.1", "--rig", str(desk(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == ["plugs.2: off", "plugs.2: on"]
    assert (tmp_path / "2").read_text() == "on\n"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("off", "disk9.power", "--rig", "desk.toml"), 2, "it has disk1.power, plugs.PORT"),
        (("off", "plugs.1"), 2, "say which switch: --rig FILE, or --driver KIND"),
        (("off", "1", "--driver", "ykushh"), 2, "there is no switch driver 'ykushh'"),
        (("off", "1", "--driver", "command", "--option", "on=true"), 2, "off"),
        (("off", "1", "--driver", "command", "--option", "on"), 2, "write KEY=VALUE"),
        (
            ("off", "1", "--driver", "kmtronic", "--option", "device=/dev/no-such-board"),
            3,
            "cannot open /dev/no-such-board",
        ),
        (("off", "1", "--rig", "quick.toml"), 2, "there is no such rig file"),
        (("off", "9", "--driver", "kmtronic", "--option", "device=/dev/x", "--ports", "4"), 2, "its ports are 1 to 4"),
        (("off", "0", "--driver", "kmtronic", "--option", "device=/dev/x"), 2, "has no port '0'"),
        (("off", "plugs.1", "--rig", "desk.toml", "--ports", "2"), 2, "go with --driver"),
        (("cycle", "plugs.1", "--rig", "desk.toml", "--off", "-1"), 2, "invalid seconds value"),
        (("cycle", "plugs.1", "--rig", "desk.toml", "--off", "nan"), 2, "invalid seconds value"),
        (("status", "1", "--driver", "uhubctl", "--option", "location=9-9"), 3, "switch it (hub 9-9)"),
        (("qualify", "disk1.power", "--rig", "desk.toml", "-n", "0"), 2, "from 1 on"),
        (("qualify", "disk1.power", "--rig", "desk.toml", "--out", "no/such/x.json"), 2, "there is no directory no"),
        (("qualify", "disk9.power", "--rig", "desk.toml"), 2, 'no cut point "disk9.power"'),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    try:
        ended = main(["switch", *words])
    except SystemExit as left:  # argparse does
        ended = int(str(left.code))
    told = capsys.readouterr().err
    assert (ended, said.lower() in told.lower()) == (status, True), told
    assert (tmp_path / "1").read_text() == "on\n"


def test_the_switches_of_a_virtual_rig_are_not_there(tmp_path: Path) -> None:
    rig = Path(__file__).resolve().parents[2] / "rigs" / "quick.toml"
    done = run(tmp_path, "off", "disk1.cable", "--rig", str(rig))
    assert done.returncode == 2
    assert "they are there only while a run has them" in done.stderr


def test_a_board_without_a_rig_file_and_one_that_lies(tmp_path: Path) -> None:
    board = KmTronic(channels=2)
    with Port(board) as port:
        words = (
            "1",
            "--driver",
            "kmtronic",
            "--option",
            f"device={port.path}",
            "--option",
            "channels=2",
            "--ports",
            "2",
        )
        done = run(tmp_path, "on", *words)
        assert done.returncode == 0, done.stderr
        assert board.energised == [True, False]
        board.lie = Lie.STUCK
        lied = run(tmp_path, "off", *words)
        assert lied.returncode == 3
        assert "was switched off, and the board says it is on" in lied.stderr


def test_a_rig_in_use_is_left_alone(tmp_path: Path) -> None:
    rig = desk(tmp_path)
    with cycling(tmp_path, "plugs.2"):
        refused = run(tmp_path, "off", "plugs.1", "--rig", str(rig))
        assert refused.returncode == 3
        assert "in use" in refused.stderr
        folder = str(tmp_path)
        same = [f"{key}={value.format(folder=folder)}" for key, value in SHELL.items()]
        alone = run(tmp_path, "off", "1", "--driver", "command", *(w for each in same for w in ("--option", each)))
        assert alone.returncode == 3, "the same switch without a rig file"
        assert "in use" in alone.stderr
        assert (tmp_path / "1").read_text() == "on\n"


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


TWO = """
[[switch]]
name = "second"
driver = "command"
on = "echo on > {folder}/s{{port}}"
off = "echo off > {folder}/s{{port}}; touch {folder}/cut"
read = "cat {folder}/s{{port}}"
ports = 2
mechanism = "mains"
"""
"""A second switch: what is printed of the first one must not keep it from being switched."""


def two_switches(folder: Path) -> tuple[str, ...]:
    """Their ports' files; they are switched in this order."""
    desk(folder, TWO.format(folder=folder))
    (folder / "s1").write_text("on\n")
    return ("1", "s1")


def states(folder: Path, files: tuple[str, ...]) -> list[str]:
    return [(folder / name).read_text().strip() for name in files]


def cycle_to(folder: Path, output: int, off: str = "0.1") -> subprocess.Popen[bytes]:
    line = line_of("cycle", "plugs.1", "second.1", "--off", off, "--rig", "desk.toml")
    return subprocess.Popen(line, stdout=output, stderr=output, cwd=folder, env=environment(folder))


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


def test_what_a_person_turns_off_stays_off(tmp_path: Path) -> None:
    desk(tmp_path)
    assert run(tmp_path, "off", "plugs.2", "--rig", "desk.toml").returncode == 0
    assert run(tmp_path, "on", "plugs.1", "--rig", "desk.toml").stderr == ""
    assert (tmp_path / "2").read_text() == "off\n"


def test_a_cycle_whose_second_switch_fails_turns_the_first_one_on_again(tmp_path: Path) -> None:
    broken = f"""
[[switch]]
name = "broken"
driver = "command"
on = "echo on > {tmp_path}/b{{port}}"
off = "exit 7"
ports = 1
mechanism = "mains"
"""
    desk(tmp_path, broken)
    done = run(tmp_path, "cycle", "plugs.2", "broken.1", "--off", "0", "--rig", "desk.toml")
    assert done.returncode == 3
    assert "switch broken" in done.stderr
    assert (tmp_path / "2").read_text() == "on\n"
    assert (tmp_path / "b1").read_text() == "on\n"


def test_a_switch_that_fails_is_opened_anew_to_turn_power_on(tmp_path: Path) -> None:
    file = desk(tmp_path)
    once = f"test -e {tmp_path}/tried || {{ touch {tmp_path}/tried; exit 1; }}; "
    file.write_text(file.read_text().replace('on = "', f'on = "{once}', 1))
    done = run(tmp_path, "cycle", "plugs.2", "--off", "0", "--rig", "desk.toml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tried").exists()
    assert (tmp_path / "2").read_text() == "on\n"


@pytest.mark.parametrize(("action", "status"), [("off", 2), ("cycle", 2), ("on", 0)])
def test_what_the_system_runs_from_is_not_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], action: str, status: int
) -> None:
    desk(tmp_path)
    root = described("ROOT-DISK", "sda", place="0000:00:99.0/1:0")
    monkeypatch.setattr("plugpull.dut.opened_switches.all_disks", lambda: [root])
    monkeypatch.setattr("plugpull.dut.opened_switches.system_disks", lambda: ["sda"])
    monkeypatch.setattr("plugpull.dut.opened_switches.used_disks", lambda: {"sda": "/"})
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    assert main(["switch", action, "plugs.1", "--rig", str(tmp_path / "desk.toml")]) == status
    told = capsys.readouterr().err
    assert ("disk1.power would take sda away, which the DUT's own system runs from" in told) == (status == 2), told
    assert (tmp_path / "1").read_text() == "on\n"


def test_a_port_with_two_names_is_switched_once(tmp_path: Path) -> None:
    desk(tmp_path)
    done = run(tmp_path, "off", "disk1.power", "plugs.1", "--rig", "desk.toml")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["disk1.power"]


def test_what_nobody_said_about_a_switch_is_not_claimed(tmp_path: Path) -> None:
    command = ("1", "--driver", "command", "--option", "on=true", "--option", "off=true")
    assert "(what it interrupts was not said)" in run(tmp_path, "off", *command).stdout
    assert "(vbus)" in run(tmp_path, "off", *command, "--mechanism", "vbus").stdout


def test_options_on_the_command_line_are_of_the_kind_their_key_takes() -> None:
    ykush, kmtronic, human = kind_named("ykush"), kind_named("kmtronic"), kind_named("human")
    assert _toml(ykush, "serial", "0012") == '"0012"'
    assert _toml(kmtronic, "channels", "02") == "2"
    assert _toml(kmtronic, "wiring", "nc") == '"nc"'
    assert _toml(human, "labels", '["a", "b"]') == '["a", "b"]'
    assert _toml(ykush, "no_such_key", "x") == '"x"'


def test_list_says_where_it_looked(tmp_path: Path) -> None:
    done = run(tmp_path, "list")
    assert done.returncode == 0, done.stderr
    assert "ykush" in done.stdout
    listing = find_all(LocalHost())
    assert {"ykush", "uhubctl", "numato", "sispmctl"} <= set(listing.looked)


def test_what_is_listed_can_be_pasted(tmp_path: Path) -> None:
    found = FoundSwitch("ykush", "YKUSH", 'odd "serial"', "1-1", 3, {"serial": 'odd "serial"'}, Mechanism.VBUS)
    hub = FoundSwitch("uhubctl", "hub", "", "1-1", 4, {"location": "1-1"}, Mechanism.VBUS, "a rule")
    one, two, three = tables((found, found, hub))
    assert 'name = "ykush"' in one
    assert 'name = "ykush2"' in two
    file = desk(tmp_path, "\n".join((one, two.replace('odd "serial"'.replace('"', '\\"'), "other"), three)))
    assert [switch.driver for switch in load_rig(file).switch] == ["command", "ykush", "ykush", "uhubctl"]
    assert json.loads(json.dumps(found.options)) == {"serial": 'odd "serial"'}
