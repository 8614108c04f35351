"""Switches that are a shell command, a program or a person."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, opened, said_of

from plugpull.errors import RigError, UsageError
from plugpull.switches import command, port_disable, sispmctl
from plugpull.switches.human import Human


def state_commands(folder: Path) -> dict[str, str]:
    return {
        "on": f"echo on > {folder}/port-{{port}}",
        "off": f"echo off > {folder}/port-{{port}}",
        "read": f"cat {folder}/port-{{port}}",
    }


def test_commands_switch_and_are_read_back(tmp_path: Path) -> None:
    commands: dict[str, Any] = dict(state_commands(tmp_path))
    switch = opened("command", tmp_path, **commands)
    edge = switch.set("1", False)
    assert (tmp_path / "port-1").read_text() == "off\n"
    assert switch.read("1") is False
    assert edge.commanded < edge.acknowledged
    first, second = switch.set_many(("1", "2"), True)
    assert (switch.read("1"), switch.read("2")) == (True, True)
    assert first.acknowledged <= second.commanded
    assert switch.capabilities.read_back


def test_commands_without_reading_back(tmp_path: Path) -> None:
    commands = state_commands(tmp_path)
    switch = opened("command", tmp_path, on=commands["on"], off=commands["off"])
    switch.set("1", False)
    assert switch.read("1") is None
    assert not switch.capabilities.read_back


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"off": "echo no such relay >&2; exit 3"}, "status 3: no such relay"),
        ({"off": "true"}, "was switched off, and reading it back says it is on"),
        ({"read": "echo perhaps"}, "neither on nor off"),
        ({"read": "true"}, "neither on nor off"),
        ({"off": "no-such-program-here"}, "status 127"),
        ({"off": "sleep 60 & sleep 60"}, "s; it was killed"),
    ],
)
def test_commands_that_do_not_work(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    (tmp_path / "port-1").write_text("on\n")
    timeout = 1.0 if "sleep" in changed.get("off", "") else 20.0
    commands: dict[str, Any] = {**state_commands(tmp_path), **changed}
    switch = opened("command", tmp_path, timeout=timeout, **commands)
    begun = time.monotonic()
    with pytest.raises(RigError) as raised:
        switch.set("1", False)
    assert said in str(raised.value)
    assert "switch sw" in str(raised.value)
    assert time.monotonic() - begun < 30


def test_a_ports_name_is_no_command(tmp_path: Path) -> None:
    switch = opened("command", tmp_path, on="true", off=f"echo {{port}} > {tmp_path}/said")
    switch.set("$(touch /tmp/never);x", False)
    assert (tmp_path / "said").read_text() == "$(touch /tmp/never);x\n"


class Helpful:
    """A person who does what is asked, after a moment."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def do(self, request: str, timeout: float) -> float:
        self.asked.append(request)
        return 2.5

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        return answers[0]


def test_a_person_is_asked_in_words_that_fit_and_the_wait_is_kept(tmp_path: Path) -> None:
    person = Helpful()
    switch = opened("human", tmp_path, person=person, labels=["the red disk"])
    switch.set("1", False)
    switch.set("2", True)
    assert person.asked == ["sw: PULL OUT the power lead of the red disk", "sw: plug in the power lead of port 2"]
    assert isinstance(switch, Human)
    assert switch.waited == [2.5, 2.5]
    assert switch.read("1") is None


def test_nobody_is_there(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="port 1 was not switched: nobody is there"):
        opened("human", tmp_path).set("1", False)


ASK = """
import os, sys
from plugpull.switches.person import TerminalPerson
os.setsid()
import fcntl, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
try:
    print(TerminalPerson().ask("does the lamp go out?", ("yes", "no"), float(sys.argv[2])), flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


def asked_on_a_terminal(answers: Sequence[bytes], patience: float) -> str:
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", ASK, str(slave), str(patience)],
            pass_fds=[slave],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        seen = b""
        for answer in answers:
            while not seen.endswith(b"[yes/no] "):
                seen += os.read(master, 100)
            seen = b""
            os.write(master, answer)
        out, _ = process.communicate(timeout=60)
        return out.strip()
    finally:
        os.close(master)
        os.close(slave)


def test_a_terminal_is_asked_until_the_answer_is_one() -> None:
    assert asked_on_a_terminal([b"what?\n", b"N\n"], 60) == "no"


def test_a_terminal_that_nobody_sits_at() -> None:
    assert "nobody answered within" in asked_on_a_terminal([], 0.2)


SCAN = """\
Gembird #0
USB information:  bus 001, device 004
device type:      4-socket SiS-PM
serial number:    01:01:51:4c:e3

Gembird #1
USB information:  bus 001, device 005
device type:      4-socket mSiS-PM
serial number:    01:02:03:04:05
"""


def test_strips_are_known_by_their_serial_numbers() -> None:
    assert sispmctl.parse_scan(SCAN) == ("01:01:51:4c:e3", "01:02:03:04:05")
    assert sispmctl.parse_state("1\n") is True
    assert sispmctl.parse_state("0\n") is False


def test_the_real_sispmctl_without_a_strip(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="no strip with this serial number is attached to this machine; found: none"):
        opened("sispmctl", tmp_path, serial="01:01:51:4c:e3")


@settings(max_examples=FUZZ, deadline=None)
@given(st.text())
def test_whatever_programs_print_is_a_state_or_an_error(text: str) -> None:
    for parse in (command.parse_state, sispmctl.parse_state, port_disable.parse_disable):
        found = said_of(parse, text)
        assert found in (True, False) or "neither" in str(found)
    sispmctl.parse_scan(text)


def test_keys_that_are_wrong_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="switch sw: location"):
        opened("uhubctl", tmp_path, mechanism="vbus", location="somewhere")
    with pytest.raises(UsageError, match="switch sw: off"):
        opened("command", tmp_path, on="true")
