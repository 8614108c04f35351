"""``plugpull switch`` as a person uses it, on switches whose state is a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from boards import PATIENCE

from fixtures.boards import KmTronic, Lie, Port
from plugpull.rig.load import load_rig
from plugpull.rig.model import Mechanism
from plugpull.switches.find import find_all, tables
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import Found

RIG = """\
[rig]
name = "desk"
[dut]
kind = "local"
[[switch]]
name = "plugs"
driver = "command"
on = "echo on > {folder}/{{port}}"
off = "echo off > {folder}/{{port}}"
read = "cat {folder}/{{port}}"
ports = 2
mechanism = "mains"
[[controller]]
name = "usb"
path = "0000:00:99.0"
[[disk]]
name = "disk1"
at = "usb.1"
serial = "SWITCH-CLI-1"
size = "1 MiB"
power = "plugs.1"
"""


def desk(folder: Path, extra: str = "") -> Path:
    file = folder / "desk.toml"
    file.write_text(RIG.format(folder=folder) + extra)
    for port in "12":
        (folder / port).write_text("on\n")
    return file


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "plugpull", "switch", *words]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    return subprocess.run(line, capture_output=True, text=True, cwd=folder, timeout=120, check=False, env=environment)


def test_on_off_and_status_by_cut_point_and_by_port(tmp_path: Path) -> None:
    rig = str(desk(tmp_path))
    off = run(tmp_path, "off", "disk1.power", "plugs.2", "--rig", rig)
    assert off.returncode == 0, off.stderr
    first, second = off.stdout.splitlines()
    assert first.startswith("disk1.power: off (mains), acknowledged after ")
    assert first.endswith(" ms, reads off")
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
        (("qualify", "disk9.power", "--rig", "desk.toml"), 2, 'no cut point "disk9.power"'),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...], status: int, said: str) -> None:
    desk(tmp_path)
    done = run(tmp_path, *words)
    assert (done.returncode, said.lower() in done.stderr.lower()) == (status, True), done.stderr
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
    held = subprocess.Popen(
        [sys.executable, "-m", "plugpull", "switch", "cycle", "plugs.2", "--off", "60", "--rig", str(rig)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    try:
        assert held.stdout is not None
        assert held.stdout.readline().startswith("plugs.2: off")
        refused = run(tmp_path, "off", "plugs.1", "--rig", str(rig))
        assert refused.returncode != 0
        assert "in use" in refused.stderr
        assert (tmp_path / "1").read_text() == "on\n"
    finally:
        held.terminate()
        held.wait(PATIENCE)


def test_list_says_where_it_looked(tmp_path: Path) -> None:
    done = run(tmp_path, "list")
    assert done.returncode == 0, done.stderr
    assert "ykush" in done.stdout
    listing = find_all(LocalHost())
    assert {"ykush", "uhubctl", "numato", "sispmctl"} <= set(listing.looked)


def test_what_is_listed_can_be_pasted(tmp_path: Path) -> None:
    found = Found("ykush", "YKUSH", 'odd "serial"', "1-1", 3, {"serial": 'odd "serial"'}, Mechanism.VBUS)
    hub = Found("uhubctl", "hub", "", "1-1", 4, {"location": "1-1"}, Mechanism.VBUS, "a rule")
    one, two, three = tables((found, found, hub))
    assert 'name = "ykush"' in one
    assert 'name = "ykush2"' in two
    file = desk(tmp_path, "\n".join((one, two.replace('odd "serial"'.replace('"', '\\"'), "other"), three)))
    assert [switch.driver for switch in load_rig(file).switch] == ["command", "ykush", "ykush", "uhubctl"]
    assert json.loads(json.dumps(found.options)) == {"serial": 'odd "serial"'}
