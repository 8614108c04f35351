"""Mistakes about switches: drivers, their own keys and ports, shared outlets, and the way to the switch itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest
from pydantic import Field, field_validator
from rig_texts import BENCH, REAL, edited, mistakes

from plugpull.errors import UsageError
from plugpull.rig.drivers import Driver, installed
from plugpull.rig.load import parse_rig
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.kinds import Kind


class RelayKeys(Table):
    device: str = Field(pattern="^/dev/")
    channels: int = Field(default=8, ge=1, le=8)
    wiring: Literal["normally-open", "normally-closed"] = "normally-open"
    order: tuple[int, ...] = Field(default=(), strict=False)

    @field_validator("device")
    @classmethod
    def no_console(cls, device: str) -> str:
        if device == "/dev/console":
            raise ValueError("this is the console, not a relay board")
        return device


def kind(name: str, options: type[Table], port_names: str, *mechanisms: Mechanism) -> Kind:
    def open_nothing(wiring: object, options: object) -> None:
        raise NotImplementedError

    return Kind(name, name, options, open_nothing, frozenset(mechanisms), port_names)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Book:
    """Three kinds of switch and one that cannot be loaded."""

    kinds: Mapping[str, Driver] = field(
        default_factory=lambda: {
            "relay": kind("relay", RelayKeys, "1", Mechanism.DATA, Mechanism.VBUS, Mechanism.MAINS),
            "zero": kind("zero", Table, "0", Mechanism.VBUS, Mechanism.MAINS),
            "named": kind("named", Table, "any", Mechanism.MAINS),
        }
    )

    def names(self) -> tuple[str, ...]:
        return (*self.kinds, "spoilt")

    def kind_named(self, name: str) -> Driver:
        if name not in self.kinds:
            raise UsageError(f"the switch driver {name!r} cannot be loaded: no module named usb9000")
        return self.kinds[name]


BOOK = Book()
RELAYS = 'driver = "relay"\ndevice = "/dev/ttyUSB0"'
DESK = edited(REAL, *((('driver = "human"', RELAYS),) * 2))
"""A local DUT, and two relay boards: "cables" for data, "mains" for power, four ports each."""
SSH = edited(DESK, ('kind = "local"', 'kind = "ssh"\nhost = "shelf"'))
CABLES = 'name = "cables"'
MAINS = 'name = "mains"'


def wrong(text: str) -> list[str]:
    return mistakes(text, BOOK)


def test_the_desks_these_tests_spoil_are_good() -> None:
    for text in (DESK, SSH):
        parse_rig(text, drivers=BOOK)


def test_a_driver_there_is_none_of() -> None:
    assert wrong(edited(DESK, ('"relay"', '^"relais"'))) == [
        'there is no switch driver "relais"; did you mean "relay"?'
    ]
    assert wrong(edited(DESK, ('"relay"', '^"ykush"'))) == [
        'there is no switch driver "ykush": there are relay, zero, named, spoilt'
    ]
    assert wrong(edited(DESK, ('"relay"', '^"spoilt"'))) == [
        "the switch driver 'spoilt' cannot be loaded: no module named usb9000"
    ]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("device =", "^devise =", 'unknown key "devise" in [[switch]]; did you mean "device"?'),
        (RELAYS, f"{RELAYS}\n^mechanim = 1", 'unknown key "mechanim" in [[switch]]; did you mean "mechanism"?'),
        ('"/dev/ttyUSB0"', "^7", '"device" must be text in quotes, not a whole number'),
        ('"/dev/ttyUSB0"', '^"COM3"', '"device" cannot be "COM3": it must look like ^/dev/'),
        ('"/dev/ttyUSB0"', '^"/dev/console"', '"device": this is the console, not a relay board'),
        (RELAYS, f"{RELAYS}\nchannels = ^9", '"channels" must be at most 8'),
        (RELAYS, f"{RELAYS}\norder = ^1", '"order" must be an array, in square brackets, not a whole number'),
        (RELAYS, f'{RELAYS}\norder = [1, ^"b"]', '"order" must be a whole number, not text in quotes'),
        (
            RELAYS,
            f'{RELAYS}\nwiring = ^"normaly-open"',
            (
                '"wiring" cannot be "normaly-open": it is one of "normally-open", "normally-closed"; '
                'did you mean "normally-open"?'
            ),
        ),
    ],
)
def test_keys_of_the_driver(old: str, new: str, what: str) -> None:
    assert wrong(edited(DESK, (old, new))) == [what]


def test_keys_the_driver_has_not_and_keys_it_needs() -> None:
    assert wrong(edited(DESK, (RELAYS, f"{RELAYS}\n^colour = 1")))[0].startswith(
        'unknown key "colour" in [[switch]]: it can have name, driver, ports,'
    )
    text = edited(DESK, (f"[[switch]]\n{CABLES}", f"^[[switch]]\n{CABLES}"), ('device = "/dev/ttyUSB0"\n', ""))
    assert wrong(text) == ['[[switch]] "cables" has no "device"']
    assert wrong(edited(BENCH, ('"virtual"\nports', '"virtual"\n^device = 1\nports')))[0].startswith(
        'unknown key "device" in [[switch]]: it can have'
    )


def test_common_keys_of_a_switch() -> None:
    def common(line: str) -> list[str]:
        return wrong(edited(DESK, (CABLES, f"{CABLES}\n{line}")))

    form = 'write the name of a hub or controller, a dot and a port number, such as "hub1.2", or "dut"'
    assert common('control = ^"hub1"') == [f'"hub1" is not a place to plug into: {form}']
    assert common("control = ^1") == ['"control" must be text in quotes, not a whole number']
    assert common('shared = ^"1"') == ['"shared" must be an array, in square brackets, not text in quotes']
    assert common("shared = [^1]") == ['"shared" must be text in quotes, not a whole number']
    assert common("timeout = ^0") == ['"timeout" must be more than 0']
    assert common('via = ^"dutt"') == ['"via" cannot be "dutt": it is one of "controller", "dut"; did you mean "dut"?']


def test_a_mechanism_the_switch_cannot_have() -> None:
    assert wrong(edited(DESK, ('mechanism = "mains"', 'mechanism = ^"logical"'))) == [
        'a relay switch cannot interrupt logical: its ports can be wired to interrupt "data", "vbus", "mains"'
    ]


# --- ports ----------------------------------------------------------------------------------------------------


def test_ports_that_count_from_nought() -> None:
    zero = edited(DESK, (f"{MAINS}\n{RELAYS}", f'{MAINS}\ndriver = "zero"'))
    parse_rig(edited(zero, ('"mains.1"', '"mains.0"')), drivers=BOOK)
    assert wrong(edited(zero, ('"mains.1"', '^"mains.4"'))) == ['there is no port 4 at "mains": it has ports 0 to 3']


def test_ports_that_have_names() -> None:
    named = edited(DESK, (f"{MAINS}\n{RELAYS}\nports = 4", f'{MAINS}\ndriver = "named"\nports = 2'))
    parse_rig(edited(named, ('"mains.1"', '"mains.left"'), ('"mains.2"', '"mains.right"')), drivers=BOOK)
    text = edited(named, ('"mains.1"', '"mains.left"'), ("ports = 2", "ports = ^1"))
    assert wrong(text) == ['2 ports of "mains" are used (left, 2): it has 1']


def sharing(ports: str, *edits: tuple[str, str]) -> str:
    return edited(DESK, (MAINS, f"{MAINS}\nshared = {ports}"), *edits)


def test_a_shared_outlet() -> None:
    parse_rig(sharing('["1"]', ('"mains.2"', '"mains.1"')), drivers=BOOK)
    assert wrong(sharing('[^"1"]')) == [
        'port 1 of switch "mains" is not shared: only the power of disk1 at line 32 uses it'
    ]
    assert wrong(sharing('[^"3"]')) == ['port 3 of switch "mains" is not shared: nothing uses it']
    assert wrong(sharing('[^"9"]')) == ['there is no port 9 at "mains": it has ports 1 to 4']
    assert wrong(sharing('["1", ^"1"]', ('"mains.2"', '"mains.1"'))) == ["port 1 is given twice"]
    assert wrong(edited(DESK, ('"mains.2"', '^"mains.1"'))) == [
        (
            'port 1 of switch "mains" is already used by the power of disk1 at line 31: '
            'if it feeds both, write shared = ["1"] in that [[switch]]'
        )
    ]


# --- the way to the switch ------------------------------------------------------------------------------------


def controlled(text: str, at: str, *edits: tuple[str, str], name: str = CABLES) -> str:
    return edited(text, (name, f"{name}\ncontrol = {at}"), *edits)


ITS_OWN = (
    'the control cable of "cables" is plugged into "hub1", and its own port 4 cuts the cable of hub1 at line 25: '
    "it could never turn it on again"
)


def test_a_switch_below_what_it_cuts() -> None:
    parse_rig(controlled(DESK, '"usb.3"'), drivers=BOOK)
    parse_rig(controlled(DESK, '"hub1.2"', name=MAINS), drivers=BOOK)
    assert wrong(controlled(DESK, '^"hub1.2"')) == [ITS_OWN]
    below = '[[hub]]\nname = "hub2"\nat = "hub1.4"\n[[disk]]'
    assert wrong(controlled(DESK, '^"hub2.2"', ("[[disk]]", below))) == [ITS_OWN.replace('into "hub1"', 'into "hub2"')]


def test_a_switch_that_cuts_the_dut_it_is_reached_through() -> None:
    power = ('host = "shelf"', 'host = "shelf"\npower = "mains.4"')
    parse_rig(edited(SSH, power), drivers=BOOK)
    parse_rig(edited(SSH, power, (CABLES, f'{CABLES}\nvia = "dut"')), drivers=BOOK)
    what = "and its own port 4 cuts the power of [dut] at line 6: it could never turn it on again"
    for lines in ('via = ^"dut"', 'via = "dut"\ncontrol = ^"dut"'):
        assert wrong(edited(SSH, power, (MAINS, f"{MAINS}\n{lines}"))) == [
            f'the switch "mains" is reached through the DUT, {what}'
        ]
    assert wrong(edited(SSH, power, (MAINS, f'{MAINS}\nvia = "dut"\ncontrol = ^"usb.4"'))) == [
        f'the control cable of "mains" is plugged into "usb", {what}'
    ]


def test_where_a_control_cable_cannot_be_plugged_in() -> None:
    assert wrong(controlled(DESK, '^"hub2.1"')) == [
        'there is no hub or controller named "hub2"; did you mean "hub1.1"?'
    ]
    assert wrong(controlled(DESK, '^"usb.9"')) == ['there is no port 9 at "usb": it has ports 1 to 4']
    assert wrong(controlled(DESK, '^"disk1.1"')) == [
        '"disk1" is a disk: devices are plugged into a hub or a controller'
    ]
    assert wrong(controlled(DESK, '^"usb.2"')) == ['port 2 of "usb" is already used by disk1 at line 28']
    assert wrong(controlled(SSH, '^"usb.3"')) == [
        'the control cable of "cables" is plugged into the DUT, so it is reached from there: write via = "dut"'
    ]


# --- the DUT --------------------------------------------------------------------------------------------------


def test_keys_that_only_one_kind_of_dut_has() -> None:
    def dut(text: str, kind: str, line: str) -> list[str]:
        return wrong(edited(text, (f'kind = "{kind}"', f'kind = "{kind}"\n{line}')))

    assert dut(DESK, "local", '^memory = "1 GiB"') == ['"memory" is for a DUT of kind "virtual", and this one is local']
    assert dut(DESK, "local", '^host = "x"') == ['"host" is for a DUT of kind "ssh", and this one is local']
    assert dut(SSH, "ssh", "^cpus = 2") == ['"cpus" is for a DUT of kind "virtual", and this one is ssh']
    assert dut(BENCH, "virtual", "^sudo = true") == [
        '"sudo" is for a DUT of kind "ssh" or "local", and this one is virtual'
    ]
    for line in ("sudo = true", 'python = "python3.11"', 'ssh_options = ["-p", "2222"]'):
        parse_rig(edited(SSH, ('kind = "ssh"', f'kind = "ssh"\n{line}')), drivers=BOOK)
    assert dut(SSH, "ssh", "ssh_options = [^22]") == ['"ssh_options" must be text in quotes, not a whole number']


def test_what_a_dut_needs_and_what_would_end_it() -> None:
    assert wrong(edited(SSH, ('host = "shelf"\n', ""), ("[dut]", "^[dut]")))[0].startswith(
        '[dut] has no "host": the machine'
    )
    assert wrong(edited(DESK, ('kind = "local"', 'kind = "local"\n^power = "mains.4"'))) == [
        "the DUT is this very machine: cutting its power would end plugpull too, and nothing would restore it"
    ]


def test_a_virtual_bench_has_its_switches_itself() -> None:
    assert wrong(edited(BENCH, (CABLES, f'{CABLES}\n^via = "dut"'))) == [
        'the switches of a virtual bench are its own: "via" is for real ones'
    ]


# --- what is installed ----------------------------------------------------------------------------------------


def test_every_driver_that_is_built_in_can_be_loaded_and_is_known_to_rig_files() -> None:
    book = installed()
    assert len(book.names()) >= 16
    for name in book.names():
        driver = book.kind_named(name)
        assert driver.mechanisms
        assert driver.port_names in ("0", "1", "any")
        said = mistakes_or_none(edited(REAL, ('driver = "human"', f'driver = "{name}"\nzzz = 1')))
        assert 'unknown key "zzz" in [[switch]]' in said


def mistakes_or_none(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_rig(text)
    return str(caught.value)
