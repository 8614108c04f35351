"""The driver of HID relay boards against the board's bytes, and every wrong answer of a board. USB is in the guest."""

from __future__ import annotations

import pytest
from hid_doubles import HidHost, opened, refused, relay
from hypothesis import given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, survives

from fixtures.boards.board import Lie
from plugpull.switches import hid_relay as driver
from plugpull.switches.host import HidInfo
from plugpull.switches.kinds import kind_named


@pytest.mark.parametrize("wiring", ["no", "nc"])
@pytest.mark.parametrize("relays", [1, 2, 4, 8])
def test_each_port_on_and_off(relays: int, wiring: str) -> None:
    host = HidHost()
    device = relay(host, relays=relays)
    with opened(host, "hid-relay", relays, wiring=wiring) as switch:
        assert switch.capabilities.read_back
        assert switch.capabilities.simultaneous == (relays > 1)
        assert (switch.identity.model, switch.identity.serial) == (f"USBRelay{relays}", "ABCDE")
        for number in range(relays):
            for on in (True, False):
                edge = switch.set(str(number + 1), on)
                assert edge.commanded <= edge.acknowledged
                assert device.board.energised[number] is (on == (wiring == "no"))
                assert switch.read(str(number + 1)) is on
        switch.set_many([str(number + 1) for number in range(relays)], True)
        assert device.board.energised == [wiring == "no"] * relays
        switch.close()
        switch.close()
    assert device.opened == 0


def test_all_relays_go_at_once_and_some_one_after_the_other() -> None:
    host = HidHost()
    device = relay(host, relays=4)
    with opened(host, "hid-relay", 4) as switch:
        edges = switch.set_many(["1", "2", "3", "4"], True)
        assert len({edge.acknowledged for edge in edges}) == 1
        edges = switch.set_many(["2", "4"], False)
        assert edges[0].acknowledged <= edges[1].commanded
        assert device.board.energised == [True, False, True, False]


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (Lie.SILENT, "does not answer"),
        (Lie.LATE, "does not answer"),
        (Lie.HALF, "it answered 41 42 43 44, not the 8 bytes"),
        (Lie.OTHER, "port 1 was switched on, and the board says it is off"),
        (Lie.STALE, "port 1 was switched on, and the board says it is off"),
        (Lie.STUCK, "port 1 was switched on, and the board says it is off"),
        (Lie.UNPLUGGED, "does not work any more"),
    ],
)
def test_it_begins_to_lie(lie: Lie, says: str) -> None:
    host = HidHost()
    device = relay(host)
    with opened(host, "hid-relay", 2) as switch:
        device.board.lie = lie
        with refused(says):
            switch.set("1", True)
        device.board.lie = Lie.NONE
        switch.set("1", False)
        assert switch.read("1") is False


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF, Lie.LATE, Lie.UNPLUGGED])
def test_it_lies_from_the_beginning(lie: Lie) -> None:
    host = HidHost()
    device = relay(host)
    device.board.lie = lie
    with refused("4-1:1.0"), opened(host, "hid-relay", 2):
        pass
    assert device.opened == 0


def test_another_board_answers() -> None:
    host = HidHost()
    device = relay(host)
    with opened(host, "hid-relay", 2) as switch:
        device.board.serial = "OTHER"
        with refused("its serial number is OTHER"):
            switch.set("1", True)


def test_which_board_is_meant() -> None:
    host = HidHost()
    with refused("no HID relay board on this machine"), opened(host, "hid-relay", 2):
        pass
    relay(host, "AAAAA")
    silent = relay(host, "BBBBB")
    with refused("more than one HID relay board"), opened(host, "hid-relay", 2):
        pass
    with refused("with the serial number CCCCC"), opened(host, "hid-relay", 2, serial="CCCCC"):
        pass
    silent.board.lie = Lie.SILENT
    with opened(host, "hid-relay", 2, serial="AAAAA") as switch:
        assert switch.identity.serial == "AAAAA"
    with refused("4-2:1.0"), opened(host, "hid-relay", 2, serial="BBBBB"):
        pass
    silent.board.lie = Lie.NONE
    relay(host, "AAAAA")
    with refused("4-1:1.0 and 4-3:1.0 both have"), opened(host, "hid-relay", 2, serial="AAAAA"):
        pass


def test_other_things_made_with_v_usb_are_passed_over() -> None:
    host = HidHost()
    device = relay(host)
    host.devices.insert(0, (HidInfo(0x16C0, 0x05DF, "", "5-1:1.0", "a lamp"), relay(HidHost())))
    with opened(host, "hid-relay", 2) as switch:
        assert switch.identity.place == "4-1:1.0"
        assert device.opened == 1


def test_what_it_does_not_have() -> None:
    host = HidHost()
    device = relay(host)
    with refused("a USBRelay2 has 2 ports, and the rig file says ports = 4"), opened(host, "hid-relay", 4):
        pass
    assert device.opened == 0


def test_permission_denied() -> None:
    host = HidHost(forbidden=True)
    relay(host)
    with refused("cannot open the HID relay board at 4-1:1.0 on this machine"), opened(host, "hid-relay", 2):
        pass
    find = kind_named("hid-relay").find
    assert find is not None
    (found,) = find(host)
    assert 'ATTRS{idVendor}=="16c0", ATTRS{idProduct}=="05df"' in found.udev
    assert (found.options, found.note[:25]) == ({}, "its serial number cannot ")


def test_what_is_attached() -> None:
    host = HidHost()
    relay(host, "ABCDE", 4)
    find = kind_named("hid-relay").find
    assert find is not None
    (found,) = find(host)
    assert (found.model, found.ports, found.options) == ("USBRelay4", 4, {"serial": "ABCDE"})


def test_what_is_written_is_what_the_sources_show() -> None:
    assert driver.command(0, True) == bytes.fromhex("00 ff01 000000000000")
    assert driver.command(7, False) == bytes.fromhex("00 fd08 000000000000")
    assert driver.command_all(True)[:2] == b"\x00\xfe"
    assert driver.command_all(False)[:2] == b"\x00\xfc"


@settings(max_examples=FUZZ, deadline=None, database=None)
@given(st.binary(max_size=12) | st.binary(min_size=8, max_size=8))
def test_reports_of_arbitrary_bytes(report: bytes) -> None:
    parsed = survives(driver.parse_report, report)
    assert (parsed is None) == (len(report) != 8 or not any(report[:5]))
    if parsed is not None:
        assert parsed[0].isprintable()
        assert parsed[1] == report[7]


@given(st.text(max_size=30))
def test_names_of_arbitrary_text(model: str) -> None:
    assert 1 <= driver.relays_of(HidInfo(0, 0, "", "", model)) <= 8
