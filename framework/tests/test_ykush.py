"""The YKUSH driver against the device's bytes, and every wrong answer of a device. USB is in the guest."""

from __future__ import annotations

import time

import pytest
from boards import give
from hid_doubles import SHORT, HidHost, YkushDevice, opened, refused, ykush
from hypothesis import example, given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, survives

from fixtures.boards.board import Lie
from fixtures.gadgets import Ykush as Double
from plugpull.errors import RigError
from plugpull.rig.model import Mechanism
from plugpull.switches import ykush as driver
from plugpull.switches.kinds import kind_named

PRODUCTS = {0xF2F7: ("vbus", 3), 0x0042: ("vbus", 3), 0xF11B: ("data+vbus", 3), 0xF0CD: ("vbus", 1)}


@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_each_port_off_and_on(product: int) -> None:
    host = HidHost()
    device = ykush(host, product=product)
    mechanism, count = PRODUCTS[product]
    with opened(host, "ykush", count, mechanism=mechanism) as switch:
        assert switch.capabilities.mechanism == mechanism
        assert switch.capabilities.read_back
        assert switch.capabilities.simultaneous == (count > 1)
        assert (switch.identity.serial, switch.identity.place) == ("YK12345", "3-1:1.0")
        assert switch.identity.firmware == ("1.0" if product == 0x0042 else "2.1")
        for number in range(1, count + 1):
            for on in (False, True):
                before = time.monotonic()
                edge = switch.set(str(number), on)
                assert before <= edge.commanded <= edge.acknowledged <= time.monotonic()
                assert device.board.energised == [on or port != number for port in range(1, count + 1)]
                assert switch.read(str(number)) is on
        switch.close()
        switch.close()
    assert device.opened == 0


def test_all_ports_go_at_once_and_some_one_after_the_other() -> None:
    host = HidHost()
    device = ykush(host)
    said: list[int] = []
    plain = device.board.answer

    def listening(report: bytes) -> bytes | None:
        said.append(report[0])
        return plain(report)

    device.board.answer = listening  # type: ignore[method-assign]
    with opened(host, "ykush", 3) as switch:
        said.clear()
        edges = switch.set_many(["1", "2", "3"], False)
        assert said == [0x0A, 0x21, 0x22, 0x23]
        assert len({edge.acknowledged for edge in edges}) == 1
        assert device.board.energised == [False] * 3
        said.clear()
        edges = switch.set_many(["1", "3"], True)
        assert said == [0x11, 0x21, 0x13, 0x23]
        assert edges[0].acknowledged <= edges[1].commanded
        assert device.board.energised == [True, False, True]


def test_fewer_ports_than_it_has_never_make_the_others_move() -> None:
    host = HidHost()
    device = ykush(host)
    with opened(host, "ykush", 2) as switch:
        assert not switch.capabilities.simultaneous
        switch.set_many(["1", "2"], False)
        assert device.board.energised == [False, False, True]
        with refused("has no port 3"):
            switch.set("3", False)


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (Lie.SILENT, "gave no answer to the command 01"),
        (Lie.LATE, "gave no answer to the command 01"),
        (Lie.HALF, "gave only 10 bytes of an answer to the command 01"),
        (Lie.OTHER, "it answered the command 01 with the answer to 02"),
        (Lie.STALE, "port 1 was switched off, and the YKUSH says it is on"),
        (Lie.STUCK, "port 1 was switched off, and the YKUSH says it is on"),
        (Lie.UNPLUGGED, "does not work any more"),
    ],
)
def test_it_begins_to_lie(lie: Lie, says: str) -> None:
    host = HidHost()
    device = ykush(host)
    with opened(host, "ykush", 3) as switch:
        device.board.lie = lie
        if lie in (Lie.SILENT, Lie.LATE):
            give(switch, SHORT)
        with refused(says):
            switch.set("1", False)
        give(switch, 20)
        device.board.lie = Lie.NONE
        device.queue.clear()
        switch.set("1", True)
        switch.set("1", False)
        assert switch.read("1") is False


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF, Lie.OTHER, Lie.LATE, Lie.UNPLUGGED])
def test_it_lies_from_the_beginning(lie: Lie) -> None:
    host = HidHost()
    device = ykush(host)
    device.board.lie = lie
    with refused("YKUSH YK12345 at 3-1:1.0"), opened(host, "ykush", 3, timeout=SHORT):
        pass
    assert device.opened == 0


def test_it_lies_about_all_ports() -> None:
    for lie in (Lie.SILENT, Lie.HALF, Lie.STUCK, Lie.OTHER):
        host = HidHost()
        device = ykush(host)
        with opened(host, "ykush", 3) as switch:
            device.board.lie = lie
            give(switch, SHORT)
            with refused("YKUSH YK12345 at 3-1:1.0"):
                switch.set_many(["1", "2", "3"], False)


def test_a_report_nobody_asked_for_is_no_answer() -> None:
    """Another program's, or one that came late: port 1 is said to be on, and it is off."""
    host = HidHost()
    device = ykush(host)
    with opened(host, "ykush", 3) as switch:
        switch.set("1", False)
        device.queue.append((0.0, bytes((1, 0x11)).ljust(64, b"\0")))
        assert switch.read("1") is False


def test_a_late_answer_while_the_next_one_is_awaited() -> None:
    host = HidHost()
    device = ykush(host, late=SHORT + 0.3)
    with opened(host, "ykush", 3) as switch:
        device.board.lie = Lie.LATE
        give(switch, SHORT)
        with refused("gave no answer"):
            switch.read("1")
        device.board.lie = Lie.NONE
        device.board.energised[0] = False  # what the late answer does not know
        give(switch, 20)
        late = device.queue.pop()[1]
        plain = device.write

        def with_the_late_one_first(report: bytes) -> None:
            device.queue.append((0.0, late))
            device.write = plain  # type: ignore[method-assign]
            plain(report)

        device.write = with_the_late_one_first  # type: ignore[method-assign]
        with refused("come late, and do not agree"):
            switch.read("1")
        assert switch.read("1") is False


def test_a_device_that_never_stops_talking() -> None:
    class Chatty(YkushDevice):
        def read(self, count: int, timeout: float) -> bytes:
            return b"\x01\x01".ljust(64, b"\0")

    host = HidHost()
    device = ykush(host)
    host.devices[0] = (host.devices[0][0], Chatty(device.board))
    with refused("does not stop sending"), opened(host, "ykush", 3, timeout=SHORT):
        pass


def test_early_firmware_does_not_know_its_version_and_may_say_nothing_about_it() -> None:
    class Early(Double):
        def answer(self, report: bytes) -> bytes | None:
            return None if report[0] >= 0xF0 else (super().answer(report) or b"")[:5]

    host = HidHost()
    device = ykush(host, serial="YK20001", product=0x0042)
    device.board = Early(0x0042)
    with opened(host, "ykush", 3, timeout=0.5) as switch:
        assert switch.identity.firmware == "1.2"
        give(switch, 20)
        switch.set("2", False)
        assert device.board.energised == [True, False, True]


def test_which_device_is_meant() -> None:
    host = HidHost()
    with refused("no YKUSH on this machine"), opened(host, "ykush", 3):
        pass
    ykush(host, "YK1")
    ykush(host, "YK2", 0xF11B)
    with refused("no YKUSH with the serial number YK3"), opened(host, "ykush", 3, serial="YK3"):
        pass
    with pytest.raises(RigError) as caught, opened(host, "ykush", 3, serial="YK3"):
        pass
    assert "the serial number YK1 at 3-1:1.0, the serial number YK2 at 3-2:1.0" in caught.value.hint
    with refused("more than one YKUSH"), opened(host, "ykush", 3):
        pass
    with opened(host, "ykush", 3, model="ykush3", mechanism="data+vbus") as switch:
        assert switch.identity.serial == "YK2"
    with refused("no YKUSH XS"), opened(host, "ykush", 1, model="ykush-xs"):
        pass
    ykush(host, "YK1")
    with refused("3-1:1.0 and 3-3:1.0 both have the serial number YK1"), opened(host, "ykush", 3, serial="YK1"):
        pass


def test_what_it_does_not_have() -> None:
    host = HidHost()
    device = ykush(host, product=0xF0CD)
    with refused("a YKUSH XS has 1 port, and the rig file says ports = 3"), opened(host, "ykush", 3):
        pass
    with refused("a YKUSH XS interrupts vbus"), opened(host, "ykush", 1, mechanism="data+vbus"):
        pass
    assert device.opened == 0


def test_permission_denied() -> None:
    host = HidHost(forbidden=True)
    ykush(host)
    says = "cannot open the YKUSH YK12345 at 3-1:1.0 on this machine"
    with pytest.raises(RigError, match=says) as caught, opened(host, "ykush", 3):
        pass
    assert 'ATTRS{idVendor}=="04d8", ATTRS{idProduct}=="f2f7"' in caught.value.hint


def test_a_serial_number_that_may_not_be_read() -> None:
    """The error of hidapi for a user who may not open the device."""
    host = HidHost()
    ykush(host, "")
    with refused("that of the one at 3-1:1.0 cannot be read"), opened(host, "ykush", 3, serial="YK12345"):
        pass


def test_what_is_attached() -> None:
    host = HidHost()
    ykush(host)
    ykush(host, "", 0xF0CD)
    find = kind_named("ykush").find
    assert find is not None
    desk, small = find(host)
    assert (desk.model, desk.ports, desk.options, desk.mechanism) == ("YKUSH", 3, {"serial": "YK12345"}, Mechanism.VBUS)
    assert 'ATTRS{idProduct}=="f2f7"' in desk.udev
    assert (small.model, small.ports, small.options) == ("YKUSH XS", 1, {})
    assert "cannot be read" in small.note


ANSWERS = st.binary(max_size=70) | st.tuples(st.sampled_from([0, 1, 255]), st.integers(0, 255)).map(
    lambda head: bytes(head).ljust(64, b"\0")
)


@settings(max_examples=FUZZ, deadline=None, database=None)
@given(ANSWERS, st.integers(1, 3))
def test_states_of_arbitrary_bytes(answer: bytes, port: int) -> None:
    state = survives(driver.parse_state, answer, port)
    assert state == {bytes((1, port)): False, bytes((1, 0x10 | port)): True}.get(answer[:2])


@settings(max_examples=FUZZ, deadline=None, database=None)
@given(ANSWERS, st.sampled_from([1, 2, 3, 0x0A, 0x11, 0x12, 0x13, 0x1A]))
def test_acknowledgements_of_arbitrary_bytes(answer: bytes, command: int) -> None:
    survives(driver.parse_acknowledgement, answer, command)


class Mad(YkushDevice):
    """Answers whatever it has been given."""

    answers: list[bytes]

    def write(self, report: bytes) -> None:
        if self.answers:
            self.queue.append((0.0, self.answers.pop(0)))


@settings(max_examples=max(30, FUZZ // 10), deadline=None, database=None)
@given(st.lists(st.binary(max_size=70), max_size=12))
@example([b"\x01\x11".ljust(64, b"\0"), b"", b"\xff" * 64])
def test_a_device_that_answers_anything(answers: list[bytes]) -> None:
    host = HidHost()
    mad = Mad(ykush(host).board)
    mad.answers = answers
    host.devices = [(host.devices[0][0], mad)]

    def answered_state() -> bool | None:
        with opened(host, "ykush", 3, timeout=0.001) as switch:
            return switch.read("1")

    assert survives(answered_state) in (True, False, None)
