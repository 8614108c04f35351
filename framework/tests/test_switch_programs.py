"""Switches reached through programs, servers and people: the real ones, and what each does wrong."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boards import Nobody
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.peers import peers_python
from plugpull.cache import Cache
from plugpull.errors import RigError, UsageError
from plugpull.rig import model
from plugpull.switches import command, labgrid, port_disable, sispmctl, uhubctl
from plugpull.switches.base import Switch
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.human import Human
from plugpull.switches.kinds import open_switch
from plugpull.switches.usb_hub import HubPort, halves_of, port_of

FUZZ = int(os.environ.get("PLUGPULL_FUZZ", "300"))


def opened(
    driver: str,
    folder: Path,
    host: Host | None = None,
    person: Person | None = None,
    ports: int = 2,
    mechanism: str = "mains",
    timeout: float = 20.0,
    **options: Any,
) -> Switch:
    table = {"name": "sw", "driver": driver, "ports": ports, "mechanism": mechanism, "timeout": timeout, **options}
    return open_switch(model.Switch.model_validate(table), host or LocalHost(), person or Nobody(), folder)


# --- shell commands -------------------------------------------------------------------------------------------


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


# --- people ---------------------------------------------------------------------------------------------------


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


# --- pdudaemon and labgrid, the real ones ---------------------------------------------------------------------

PDUDAEMON = "import sys, pdudaemon; sys.argv = ['pdudaemon', *sys.argv[1:]]; sys.exit(pdudaemon.main())"


@pytest.fixture(scope="module")
def python() -> Path:
    return peers_python(Cache.default())


@contextmanager
def running_pdudaemon(python: Path, folder: Path) -> Iterator[int]:
    """A pdudaemon on loopback with a strip whose outlets are files; its port."""
    import json
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    strip = {"driver": "localcmdline", "cmd_on": f"echo on > {folder}/%s", "cmd_off": f"echo off > {folder}/%s"}
    daemon = {"hostname": "127.0.0.1", "port": port, "logging_level": "DEBUG", "listener": "http"}
    (folder / "pdu.json").write_text(json.dumps({"daemon": daemon, "pdus": {"strip": strip}}))
    with (folder / "pdu.log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-c", PDUDAEMON, "--conf", str(folder / "pdu.json")], stdout=log, stderr=log, cwd=folder
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "pdu.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)  # another process: it listens when it is ready and tells nobody
        yield port
    finally:
        process.kill()
        process.wait()


def wait_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_text() != text:
        assert time.monotonic() < deadline, f"{path} is not {text!r}"
        time.sleep(0.02)  # another process's file


def test_pdudaemon_switches_an_outlet_and_says_when_it_cannot(python: Path, tmp_path: Path) -> None:
    with running_pdudaemon(python, tmp_path) as port:
        server = f"http://someone:secret@127.0.0.1:{port}"
        switch = opened("pdudaemon", tmp_path, pdu="strip", server=server)
        switch.set("2", False)
        wait_text(tmp_path / "2", "off\n")
        switch.set("2", True)
        wait_text(tmp_path / "2", "on\n")
        assert switch.read("2") is None
        assert "secret" not in repr(switch.identity)
        with pytest.raises(RigError, match="is other in its configuration"):
            opened("pdudaemon", tmp_path, pdu="other", server=server).set("1", False)
    with pytest.raises(RigError, match="cannot reach pdudaemon") as raised:
        switch.set("2", False)
    assert "secret" not in str(raised.value)


def test_pdudaemon_that_does_not_answer(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        switch = opened("pdudaemon", tmp_path, pdu="strip", server=address, timeout=0.5)
        with pytest.raises(RigError, match=r"did not answer within 0\.5 s; the strip may still obey"):
            switch.set("1", False)


LABGRID = """
targets:
  main:
    resources:
      NetworkPowerPort: {{model: rest, host: "http://127.0.0.1:1/{{index}}", index: 1}}
    drivers:
      ExternalPowerDriver:
        name: outlet
        cmd_on: sh -c 'echo on > {folder}/outlet'
        cmd_off: sh -c 'echo off > {folder}/outlet'
"""


def test_a_driver_of_labgrids(python: Path, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(LABGRID.format(folder=tmp_path))
    switch = opened(
        "labgrid", tmp_path, ports=1, timeout=60, environment="env.yaml", names=["outlet"], python=str(python)
    )
    try:
        switch.set("1", False)
        assert (tmp_path / "outlet").read_text() == "off\n"
        switch.set("1", True)
        assert (tmp_path / "outlet").read_text() == "on\n"
        assert switch.read("1") is None, "it has no way to ask, and must not make an answer up"
        assert switch.identity.model == "ExternalPowerDriver"
        (tmp_path / "outlet").unlink()
        (tmp_path / "outlet").mkdir()
        with pytest.raises(RigError, match="labgrid could not"):
            switch.set("1", False)
    finally:
        switch.close()
    with pytest.raises(RigError, match="labgrid ended"):
        switch.set("1", False)


def test_labgrid_that_is_not_there_or_not_right(python: Path, tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot run /no/python"):
        opened("labgrid", tmp_path, ports=1, environment="env.yaml", python="/no/python")
    with pytest.raises(RigError, match=r"labgrid ended: .*env\.yaml"):
        opened("labgrid", tmp_path, ports=1, timeout=60, environment="env.yaml", python=str(python))
    with pytest.raises(RigError, match="1 names for 2 ports"):
        opened("labgrid", tmp_path, environment="env.yaml", names=["a"], python=str(python))


# --- hubs and strips ------------------------------------------------------------------------------------------

TWO_HALVES = """\
Current status for hub 2-1 [2109:0817 VIA Labs, Inc. USB3.0 Hub, USB 3.20, 4 ports, ppps]
  Port 1: 02a0 power 5gbps Rx.Detect
Sent power off request
New status for hub 2-1 [2109:0817 VIA Labs, Inc. USB3.0 Hub, USB 3.20, 4 ports, ppps]
  Port 1: 0080 off
Current status for hub 1-1 [2109:2817 VIA Labs, Inc. USB2.0 Hub 0001, USB 2.10, 4 ports, ganged]
  Port 1: 0503 power highspeed enable connect [0781:5583 SanDisk Ultra Fit 4C530]
  Port 2: 0000 off
"""


def test_the_newest_state_of_each_hub_counts() -> None:
    hubs = uhubctl.parse_hubs(TWO_HALVES)
    assert hubs["2-1"].powered == {1: False}
    assert hubs["1-1"].powered == {1: True, 2: False}
    assert (hubs["2-1"].per_port, hubs["1-1"].per_port, hubs["1-1"].ports) == (True, False, 4)


def test_without_a_hub_uhubctl_has_nothing_to_switch(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"switch sw.*uhubctl .* status 1: No compatible devices") as raised:
        opened("uhubctl", tmp_path, mechanism="vbus", location="9-9")
    assert "is the hub plugged in there" in str(raised.value)


def test_a_program_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RigError, match="cannot run uhubctl: No such file or directory"):
        opened("uhubctl", tmp_path, mechanism="vbus", location="1-1")


class Sysfs(LocalHost):
    """This machine, with another sysfs."""

    def __init__(self, files: dict[str, str], links: dict[str, str] | None = None, stuck: bool = False) -> None:
        self.files = files
        self.links = links or {}
        self.stuck = stuck

    def glob(self, pattern: str) -> tuple[str, ...]:
        known = {*self.files, *self.links, *(path.rpartition("/")[0] for path in self.files)}
        return (pattern,) if pattern in known else ()

    def real_path(self, path: str) -> str:
        return self.links.get(path, path)

    def read_text(self, path: str) -> str:
        return self.files[path]

    def write_text(self, path: str, text: str) -> None:
        if not self.stuck:
            self.files[path] = f"{text}\n"


USB2, USB3 = HubPort("1-1", 2), HubPort("2-1", 3)


def usb3_hub(stuck: bool = False) -> Sysfs:
    files = {f"{half.path}/disable": "0\n" for half in (HubPort("1-1", 1), USB2, USB3)}
    return Sysfs(files, {f"{USB2.path}/peer": USB3.path}, stuck)


def test_halves_of_a_socket_are_what_the_kernel_says() -> None:
    assert halves_of(usb3_hub(), "1-1", 2) == (USB2, USB3)
    assert halves_of(usb3_hub(), "1-1", 1) == (HubPort("1-1", 1),)
    assert HubPort("2", 1).path == "/sys/bus/usb/devices/2-0:1.0/usb2-port1"
    assert port_of("usb2-port1") == HubPort("2", 1)
    assert port_of("2-1.4-port3") == HubPort("2-1.4", 3)
    assert port_of("peer") is None
    with pytest.raises(RigError, match="there is no port 7 of hub 1-1 on this machine"):
        halves_of(usb3_hub(), "1-1", 7)


def test_the_kernels_attribute_disables_both_halves(tmp_path: Path) -> None:
    sysfs = usb3_hub()
    switch = opened("port-disable", tmp_path, sysfs, mechanism="logical", location="1-1")
    switch.set("2", False)
    assert (sysfs.files[f"{USB2.path}/disable"], sysfs.files[f"{USB3.path}/disable"]) == ("1\n", "1\n")
    assert switch.read("2") is False
    switch.set("2", True)
    assert switch.read("2") is True
    with pytest.raises(RigError, match="has no port 3"):
        switch.set("3", False)


def test_an_attribute_that_does_not_take_what_is_written(tmp_path: Path) -> None:
    switch = opened("port-disable", tmp_path, usb3_hub(stuck=True), mechanism="logical", location="1-1")
    with pytest.raises(RigError, match="was switched off, and reading it back says it is on"):
        switch.set("2", False)


def test_the_kernels_attribute_is_logical_and_nothing_else() -> None:
    assert {mechanism.value for mechanism in port_disable.KIND.mechanisms} == {"logical"}


def test_how_uhubctl_cuts_has_its_own_mechanism(tmp_path: Path) -> None:
    with pytest.raises(RigError, match='by a request to the hub is cut by vbus, and the rig file says "logical"'):
        opened("uhubctl", tmp_path, mechanism="logical", location="1-1")
    with pytest.raises(RigError, match='is cut by logical, and the rig file says "vbus"'):
        opened("uhubctl", tmp_path, mechanism="vbus", location="1-1", raw=False)


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


# --- anything -------------------------------------------------------------------------------------------------


@settings(max_examples=FUZZ, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(TWO_HALVES.splitlines()), max_size=8).map("\n".join)))
def test_whatever_uhubctl_prints_is_read(text: str) -> None:
    for hub in uhubctl.parse_hubs(text).values():
        assert all(isinstance(state, bool) for state in hub.powered.values())
        assert hub.ports >= 0


def said_of(parse: Callable[[Any], object], said: object) -> object:
    """What a parser makes of it, or the words of its error."""
    try:
        return parse(said)
    except RigError as error:
        return error.what


@settings(max_examples=FUZZ, deadline=None)
@given(st.text())
def test_whatever_programs_print_is_a_state_or_an_error(text: str) -> None:
    for parse in (command.parse_state, sispmctl.parse_state, port_disable.parse_disable):
        found = said_of(parse, text)
        assert found in (True, False) or "neither" in str(found)
    sispmctl.parse_scan(text)


@settings(max_examples=FUZZ, deadline=None)
@given(st.binary())
def test_whatever_labgrids_process_says_is_an_answer_or_an_error(line: bytes) -> None:
    found = said_of(labgrid.parse_answer, line)
    assert found
    assert isinstance(found, str) or found == {**found, "ok": True}  # type: ignore[dict-item]


def test_keys_that_are_wrong_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="switch sw: location"):
        opened("uhubctl", tmp_path, mechanism="vbus", location="somewhere")
    with pytest.raises(UsageError, match="switch sw: off"):
        opened("command", tmp_path, on="true")
