"""The commands of ``plugpull switch``, on switches whose state is a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from desks import described
from switch_desks import (
    cycling,
    desk,
    run,
    shell,
)

from fixtures.boards import KmTronic, Lie, Port
from plugpull.cli import main
from plugpull.commands.options import option_value
from plugpull.discover.switches import find_all, tables
from plugpull.rig.load import load_rig
from plugpull.rig.model import Mechanism
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import FoundSwitch, kind_named


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
    printed = capsys.readouterr().err
    assert (ended, said.lower() in printed.lower()) == (status, True), printed
    assert (tmp_path / "1").read_text() == "on\n"


def test_the_switches_of_a_virtual_rig_are_not_there(tmp_path: Path) -> None:
    rig = Path(__file__).resolve().parents[2] / "rigs" / "quick.toml"
    done = run(tmp_path, "off", "disk1.cable", "--rig", str(rig))
    assert done.returncode == 2
    assert "they exist only during a run" in done.stderr


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
        same = [f"{key}={value}" for key, value in shell(tmp_path).items()]
        alone = run(tmp_path, "off", "1", "--driver", "command", *(w for each in same for w in ("--option", each)))
        assert alone.returncode == 3, "the same switch without a rig file"
        assert "in use" in alone.stderr
        assert (tmp_path / "1").read_text() == "on\n"


def test_what_a_person_turns_off_stays_off(tmp_path: Path) -> None:
    desk(tmp_path)
    assert run(tmp_path, "off", "plugs.2", "--rig", "desk.toml").returncode == 0
    assert run(tmp_path, "on", "plugs.1", "--rig", "desk.toml").stderr == ""
    assert (tmp_path / "2").read_text() == "off\n"


@pytest.mark.parametrize(("action", "status"), [("off", 2), ("cycle", 2), ("on", 0)])
def test_what_the_system_runs_from_is_not_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], action: str, status: int
) -> None:
    desk(tmp_path)
    root = described("ROOT-DISK", "sda", place="0000:00:99.0/1:0")
    monkeypatch.setattr("plugpull.dut.real.opened_switches.all_disks", lambda: [root])
    monkeypatch.setattr("plugpull.dut.real.opened_switches.system_disks", lambda: ["sda"])
    monkeypatch.setattr("plugpull.dut.real.opened_switches.used_disks", lambda: {"sda": "/"})
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    assert main(["switch", action, "plugs.1", "--rig", str(tmp_path / "desk.toml")]) == status
    printed = capsys.readouterr().err
    assert ("disk1.power would take sda away, which the DUT's own system runs from" in printed) == (status == 2), (
        printed
    )
    assert (tmp_path / "1").read_text() == "on\n"


def test_a_port_with_two_names_is_switched_once(tmp_path: Path) -> None:
    desk(tmp_path)
    done = run(tmp_path, "off", "disk1.power", "plugs.1", "--rig", "desk.toml")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["disk1.power"]


def test_what_nobody_said_about_a_switch_is_not_claimed(tmp_path: Path) -> None:
    command = ("1", "--driver", "command", "--option", "on=true", "--option", "off=true")
    assert "(its mechanism was not given)" in run(tmp_path, "off", *command).stdout
    assert "(vbus)" in run(tmp_path, "off", *command, "--mechanism", "vbus").stdout


def test_options_on_the_command_line_are_of_the_kind_their_key_takes() -> None:
    ykush, kmtronic, human = kind_named("ykush"), kind_named("kmtronic"), kind_named("human")
    assert option_value(ykush.options, "serial", "0012") == '"0012"'
    assert option_value(kmtronic.options, "channels", "02") == "2"
    assert option_value(kmtronic.options, "wiring", "nc") == '"nc"'
    assert option_value(human.options, "labels", '["a", "b"]') == '["a", "b"]'
    assert option_value(ykush.options, "no_such_key", "x") == '"x"'


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
