"""Drivers of serial relay boards, each against a board on a real pty, through pyserial."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from boards import MECHANISM, Nobody, ToldHost, a_board, attached, declared, wait_for

from fixtures.boards import BOARDS, Devantech, Icse, KmTronic, Lcus, Numato, Port
from plugpull.errors import RigError, UsageError
from plugpull.switches import icse, relays
from plugpull.switches.host import SerialInfo
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import kind_named, open_switch
from plugpull.switches.relays import Contact
from plugpull.switches.serial_board import BoardOptions

FIRST = {"numato": 0}
READ_BACK = {"lcus", "numato", "kmtronic", "devantech"}
AT_ONCE = {"numato", "devantech", "icse"}
LATCHING = {"dlp-ior4"}
DRIVERS = sorted(BOARDS)


def names(driver: str, count: int) -> list[str]:
    return [str(FIRST.get(driver, 1) + number) for number in range(count)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_each_port_on_and_off(driver: str) -> None:
    board = a_board(driver)
    count = len(board.energised)
    with attached(driver, board) as (switch, port):
        assert (switch.name, switch.mechanism) == ("relays", MECHANISM)
        assert switch.identity.driver == driver
        assert switch.identity.place == port.path
        for number, name in enumerate(names(driver, count)):
            alone = [channel == number for channel in range(count)]
            for on in (True, False):
                before = time.monotonic()
                edge = switch.set(name, on)
                assert before <= edge.commanded <= edge.acknowledged <= time.monotonic()
                assert edge.port == name
                wait_for(board.energised, alone if on else [False] * count)
                assert switch.read(name) == (on if driver in READ_BACK else None)
        switch.close()
        switch.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_each_board_can_do(driver: str) -> None:
    with attached(driver, a_board(driver)) as (switch, _):
        found = switch.capabilities
        assert found.mechanism is MECHANISM
        assert found.read_back == (driver in READ_BACK)
        assert found.simultaneous == (driver in AT_ONCE)
        assert found.latching == (driver in LATCHING)
        assert found.ganged == ()


@pytest.mark.parametrize("driver", DRIVERS)
def test_several_ports(driver: str) -> None:
    board = a_board(driver)
    count = len(board.energised)
    ports = names(driver, count)
    with attached(driver, board) as (switch, _):
        switch.set(ports[0], True)
        edges = switch.set_many(ports[-2:] if count > 2 else ports, True)
        wanted = [True, *[False] * (count - 3), True, True] if count > 2 else [True, True]
        wait_for(board.energised, wanted)
        assert len({edge.acknowledged for edge in edges}) == (1 if driver in AT_ONCE else len(edges))
        switch.set_many(ports, False)
        wait_for(board.energised, [False] * count)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_load_on_the_normally_closed_contact(driver: str) -> None:
    board = a_board(driver)
    with attached(driver, board, wiring="nc") as (switch, _):
        port = names(driver, 1)[0]
        switch.set(port, False)
        wait_for(board.energised[:1], [True]) if driver in READ_BACK else wait_for_first(board.energised)
        assert switch.read(port) == (False if driver in READ_BACK else None)
        switch.set(port, True)
        assert switch.read(port) == (True if driver in READ_BACK else None)


def wait_for_first(state: list[bool]) -> None:
    wait_for(state, [True, *[False] * (len(state) - 1)])


def test_contact() -> None:
    for wiring, energised in (("no", True), ("nc", False)):
        contact = Contact(wiring)  # type: ignore[arg-type]
        assert contact.energised(on=True) == energised
        assert contact.on(contact.energised(on=True))
        assert not contact.on(contact.energised(on=False))


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_program_at_a_time(driver: str) -> None:
    with attached(driver, a_board(driver)) as (_, port):
        with pytest.raises(RigError, match="switch relays: cannot open") as caught:
            open_switch(declared(driver, 1, device=port.path), LocalHost(), Nobody())
        assert caught.value.hint == f"another program has {port.path} open: end it"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_port_it_has_not(driver: str) -> None:
    with attached(driver, a_board(driver), ports=2) as (switch, _):
        for port in ("9", "", "-1", "x", "\u0661"):
            for action in (lambda port=port: switch.set(port, False), lambda port=port: switch.read(port)):
                with pytest.raises(RigError, match="has no port") as caught:
                    action()
                first, last = names(driver, 2)
                assert caught.value.hint == f"its ports are {first} to {last}"


@pytest.mark.parametrize(
    ("driver", "board", "ports"),
    [
        ("numato", Numato(), 33),
        ("kmtronic", KmTronic(channels=8), 9),
        ("icse", Icse(channels=2), 3),
        ("devantech", Devantech(channels=2), 3),
        ("sainsmart", a_board("sainsmart"), 17),
        ("dlp-ior4", a_board("dlp-ior4"), 5),
    ],
)
def test_more_ports_than_relays(driver: str, board: Any, ports: int) -> None:
    with pytest.raises(RigError, match=f"the rig file says ports = {ports}"), attached(driver, board, ports=ports):
        pass


def test_identities() -> None:
    with attached("devantech", Devantech()) as (switch, _):
        assert (switch.identity.model, switch.identity.firmware) == ("USB-RLY08", "3")
    with attached("devantech", Devantech(channels=2)) as (switch, _):
        assert switch.identity.model == "USB-RLY02"
    with attached("numato", Numato()) as (switch, _):
        assert (switch.identity.serial, switch.identity.firmware) == ("00000007", "A0M08.01")
    for channels, model in ((2, "ICSE013A"), (4, "ICSE012A"), (8, "ICSE014A")):
        with attached("icse", Icse(channels=channels), model=model) as (switch, _):
            assert switch.identity.model == model


@pytest.mark.parametrize("channels", [1, 2, 4, 8])
def test_every_size_of_kmtronic(channels: int) -> None:
    board = KmTronic(channels)
    with attached("kmtronic", board, ports=1, channels=channels) as (switch, _):
        switch.set("1", True)
        assert (switch.read("1"), board.energised[0]) == (True, True)


@pytest.mark.parametrize("channels", [1, 2, 4, 16, 32])
def test_every_size_of_numato(channels: int) -> None:
    board = Numato(channels)
    with attached("numato", board) as (switch, _):
        last = str(channels - 1)
        switch.set(last, True)
        assert (switch.read(last), board.energised[-1]) == (True, True)
        switch.set_many(names("numato", channels), True)
        assert board.energised == [True] * channels


def test_a_numato_without_readall_switches_one_after_the_other() -> None:
    board = Numato(2, readall=False)
    with attached("numato", board) as (switch, _):
        assert not switch.capabilities.simultaneous
        first, second = switch.set_many(["0", "1"], True)
        assert first.acknowledged <= second.commanded
        assert board.energised == [True, True]


def test_an_lcus_without_read_back() -> None:
    board = Lcus(2, answers=False)
    with attached("lcus", board, timeout=0.2) as (switch, _):
        assert not switch.capabilities.read_back
        switch.set("2", True)
        wait_for(board.energised, [False, True])
        assert switch.read("2") is None
    with attached("lcus", Lcus(2), read_back=False) as (switch, _):
        assert not switch.capabilities.read_back
    with (
        pytest.raises(RigError, match="did not answer FF"),
        attached("lcus", Lcus(2, answers=False), timeout=0.2, read_back=True),
    ):
        pass


def test_an_lcus_with_more_relays_than_ports() -> None:
    with attached("lcus", Lcus(8), ports=2, channels=8) as (switch, _):
        for on in (True, False, True):
            switch.set("2", on)
            assert switch.read("2") == on


# --- the ICSE, which can be greeted once ------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(icse, "lease_directory", lambda: tmp_path / "memory")
    return tmp_path / "memory"


def on_usb(path: str, number: str = "7") -> ToldHost:
    """A host on which a pty looks like the port of a USB device."""
    tty = f"/sys/class/tty/{Path(path).name}/device"
    device = "/sys/devices/pci0/usb1/1-2"
    files = {f"{device}/busnum": "1\n", f"{device}/devnum": f"{number}\n"}
    return ToldHost(files=files, links={tty: f"{device}/1-2:1.0/ttyUSB0"})


def test_a_started_icse_is_not_greeted_again(memory: Path) -> None:
    board = Icse(4)
    with Port(board) as port:
        table = declared("icse", 4, device=port.path)
        host = on_usb(port.path)
        first = open_switch(table, host, Nobody())
        first.set("1", True)
        first.close()
        second = open_switch(table, host, Nobody())
        assert second.identity.model == "ICSE012A"
        second.set("3", True)
        wait_for(board.energised, [True, False, True, False])
        second.close()
        board.power_cycle()
        third = open_switch(table, on_usb(port.path, "8"), Nobody())
        third.set("4", True)
        wait_for(board.energised, [False, False, False, True])
        third.close()
    assert len(list(memory.iterdir())) == 2


def test_an_icse_that_another_program_started(memory: Path) -> None:
    board = Icse(4)
    board.feed(b"\x50\x51")
    with pytest.raises(RigError, match="did not answer the greeting") as caught, attached("icse", board, timeout=0.3):
        pass
    assert "unplug it from USB and from any supply of its own" in caught.value.hint


def test_an_icse_of_another_model() -> None:
    with pytest.raises(RigError, match="is an ICSE013A, not an ICSE014A"), attached("icse", Icse(2), model="ICSE014A"):
        pass


def test_an_icse_whose_state_cannot_be_remembered_is_not_started(memory: Path) -> None:
    memory.write_text("in the way")
    board = Icse(4)
    with Port(board) as port:
        with pytest.raises(RigError, match="cannot write") as caught:
            open_switch(declared("icse", 4, device=port.path), on_usb(port.path), Nobody())
        assert str(memory) in caught.value.hint
    assert not board.started


# --- which port it is ----------------------------------------------------------------------------------------


def usb(device: str, serial: str, **more: Any) -> SerialInfo:
    return SerialInfo(device, 0x2A19, 0x0C01, serial, more.get("model", "Numato Lab 8 Channel USB Relay Module"))


def test_found_by_its_serial_number() -> None:
    with Port(Numato()) as port, Port(Numato()) as other:
        host = ToldHost(ports=(usb(other.path, "A"), usb(port.path, "B")))
        switch = open_switch(declared("numato", 8, serial="B"), host, Nobody())
        assert (switch.identity.place, switch.identity.serial) == (port.path, "B")
        switch.set("3", True)
        assert port.board.energised[3]
        assert not any(other.board.energised)
        switch.close()


@pytest.mark.parametrize(
    ("options", "what", "hint"),
    [
        ({"serial": "C"}, "no serial port with the serial number C on this machine", "/dev/x (the serial number A)"),
        ({"serial": "B"}, "/dev/y and /dev/z both have the serial number B", "by-path"),
        ({"device": "/dev/x", "serial": "B"}, "the board at /dev/x has the serial number A, not", "/dev/y"),
        ({"device": "/dev/none", "serial": "B"}, "the board at /dev/none has no serial number", "/dev/y"),
        ({"device": "/dev/none"}, "cannot open /dev/none: No such file", "is the board plugged in?"),
    ],
)
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_wrong_board(driver: str, options: Mapping[str, Any], what: str, hint: str) -> None:
    host = ToldHost(ports=(usb("/dev/x", "A"), usb("/dev/y", "B"), usb("/dev/z", "B")))
    with pytest.raises(RigError, match=r"^switch relays: ") as caught:
        open_switch(declared(driver, 2, **options), host, Nobody())
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_options_that_say_nothing() -> None:
    with pytest.raises(UsageError, match="it needs device"):
        open_switch(declared("lcus", 2), LocalHost(), Nobody())
    with pytest.raises(UsageError, match="device"):
        open_switch(declared("lcus", 2, device="ttyUSB0"), LocalHost(), Nobody())
    assert BoardOptions(device="/dev/x").baud == 9600


# --- what is attached -------------------------------------------------------------------------------------------

ATTACHED = (
    SerialInfo("/dev/ttyS0"),
    SerialInfo("/dev/ttyACM0", 0x2A19, 0x0C01, "N1", "Numato Lab 8 Channel USB Relay Module"),
    SerialInfo("/dev/ttyACM1", 0x04D8, 0xFFEE, "00011925", "USB-RLY08"),
    SerialInfo("/dev/ttyUSB0", 0x1A86, 0x7523, "", "USB Serial"),
    SerialInfo("/dev/ttyUSB1", 0x0403, 0x6001, "12345678", "DLP-IOR4"),
    SerialInfo("/dev/ttyUSB2", 0x067B, 0x2303, "", "USB-Serial Controller"),
    SerialInfo("/dev/ttyUSB3", 0x0403, 0x6001, "A50285BI", "FT232R USB UART"),
)
LINKS = {
    "/dev/serial/by-id/usb-Numato_N1-if00": "/dev/ttyACM0",
    "/dev/serial/by-path/pci-0-usb-0:3:1.0-port0": "/dev/ttyUSB0",
    "/dev/serial/by-id/usb-DLP_Design_DLP-IOR4_12345678-if00-port0": "/dev/ttyUSB1",
    "/dev/serial/by-path/pci-0-usb-0:4:1.0-port0": "/dev/ttyUSB1",
}


@pytest.mark.parametrize(
    ("driver", "places", "ports"),
    [
        ("numato", ["/dev/serial/by-id/usb-Numato_N1-if00"], 8),
        ("devantech", ["/dev/ttyACM1"], 8),
        ("lcus", ["/dev/serial/by-path/pci-0-usb-0:3:1.0-port0"], 1),
        ("sainsmart", ["/dev/serial/by-path/pci-0-usb-0:3:1.0-port0"], 16),
        ("dlp-ior4", ["/dev/serial/by-path/pci-0-usb-0:4:1.0-port0"], 4),
        ("icse", ["/dev/ttyUSB2"], 2),
        ("kmtronic", ["/dev/ttyUSB3"], 1),
    ],
)
def test_boards_that_are_attached(driver: str, places: list[str], ports: int) -> None:
    kind = kind_named(driver)
    assert kind.find is not None
    found = list(kind.find(ToldHost(ports=ATTACHED, links=LINKS)))
    assert [(one.kind, one.place, one.options, one.ports) for one in found] == [
        (driver, place, {"device": place}, ports) for place in places
    ]
    for one in found:
        kind.options.model_validate(one.options)
        assert one.udev.startswith('SUBSYSTEM=="tty", ATTRS{idVendor}=="')
        assert ("may be" in one.note) == (driver in {"lcus", "sainsmart", "icse", "kmtronic"})
    assert list(kind.find(ToldHost())) == []


@pytest.mark.parametrize("driver", DRIVERS)
def test_each_kind_says_what_it_is(driver: str) -> None:
    kind = kind_named(driver)
    assert kind.name == driver
    assert kind.mechanisms == relays.MECHANISMS
    assert kind.port_names == str(FIRST.get(driver, 1))
    assert kind.summary


# --- the boards themselves --------------------------------------------------------------------------------------


def test_a_port_ends_its_thread() -> None:
    with Port(Lcus()) as port:
        assert any(port.path in thread.name for thread in threading.enumerate())
        port.close()
    assert not any(port.path in thread.name for thread in threading.enumerate())
