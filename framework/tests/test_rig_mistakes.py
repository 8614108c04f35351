"""Every mistake in a rig file is reported at its place, in plain words, together with all the others.

``rig_texts.py`` says what the ``^`` in these texts are.
"""

from __future__ import annotations

import pytest
from rig_texts import BENCH, REAL, Edits, edited, mistakes

from plugpull.rig.load import RigFileErrors, parse_rig
from plugpull.rig.model import Disk, DiskLimits


def test_the_benches_these_tests_spoil_are_good() -> None:
    assert parse_rig(BENCH).rig.name == "bench"
    assert parse_rig(REAL).dut.kind == "local"


MECHANISMS = '"data", "vbus", "data+vbus", "mains", "logical"'


CONTROLLERS = '"qemu-xhci", "nec-usb-xhci", "ich9-usb-ehci1", "virtio-scsi-pci"'


PLACE = 'write the name of a hub or controller, a dot and a port number, such as "hub1.2"'


OUTLET = 'write the name of a switch, a dot and a port, such as "cables.3"'


DISK_KEYS = ", ".join(Disk.model_fields)


LIMITS = ", ".join(DiskLimits.model_fields)


ONE_TABLE: list[tuple[str, str, str]] = [
    ('serial = "S1"', '^seriel = "S1"', 'unknown key "seriel" in [[disk]]; did you mean "serial"?'),
    (
        'name = "bench"',
        'name = "bench"\n^colour = 1',
        'unknown key "colour" in [rig]: it can have name, description, rows',
    ),
    ("ports = 4\nmech", 'ports = ^"4"\nmech', '"ports" must be a whole number, not text in quotes'),
    ("ports = 4\nmech", "ports = ^true\nmech", '"ports" must be a whole number, not true'),
    ("ports = 4\nmech", "ports = ^4.0\nmech", '"ports" must be a whole number, not a number with a fraction'),
    ('serial = "S1"', "serial = ^1", '"serial" must be text in quotes, not a whole number'),
    ('serial = "S1"', "serial = ^1999-12-31", '"serial" must be text in quotes, not a date or time'),
    ('serial = "S1"', 'serial = ^["S1"]', '"serial" must be text in quotes, not an array'),
    ('serial = "S1"', 'serial = ^""', '"serial" must not be empty'),
    ('serial = "S1"', 'serial = "S1"\nscratch = ^1', '"scratch" must be true or false, not a whole number'),
    ("ports = 4\nmech", "ports = ^65\nmech", '"ports" must be at most 64'),
    ("ports = 4\nmech", "ports = ^0\nmech", '"ports" must be at least 1'),
    ('"64 MiB"', '^"64M"', 'the size "64M" has the unknown unit "M"; did you mean "64 MiB"?'),
    ('"64 MiB"', "^-5", "a size must be more than 0"),
    ('"64 MiB"', '^"2 MiB/s"', '"2 MiB/s" is a rate, but a size is wanted; did you mean "2 MiB"?'),
    (
        '"64 MiB"',
        '"64 MiB"\nrate = ^"2 mib/s"',
        'the rate "2 mib/s" has the unknown unit "mib/s"; did you mean "2 MiB/s"?',
    ),
    (
        '"64 MiB"',
        '"64 MiB"\nprotocol = ^"usa"',
        '"protocol" cannot be "usa": it is one of "usb-storage", "uas", "scsi"; did you mean "uas"?',
    ),
    (
        'kind = "virtual"',
        'kind = ^"virtul"',
        '"kind" cannot be "virtul": it is one of "virtual", "local", "ssh"; did you mean "virtual"?',
    ),
    (
        'mechanism = "data"',
        'mechanism = ^"date"',
        f'"mechanism" cannot be "date": it is one of {MECHANISMS}; did you mean "data"?',
    ),
    ('mechanism = "data"', "mechanism = ^1", '"mechanism" must be text in quotes, not a whole number'),
    (
        'model = "qemu-xhci"',
        'model = ^"xhci"',
        f'"model" cannot be "xhci": it is one of {CONTROLLERS}; did you mean "qemu-xhci"?',
    ),
    ('"disk1"', '^"1st disk"', '"1st disk" is not a name: write letters, digits, "-" and "_", beginning with a letter'),
    ('"disk1"', f'^"{"d" * 41}"', '"name" must be at most 40 characters long'),
    (
        '"usb.2"',
        '^"usb"',
        f'"usb" is not a place to plug into: {PLACE}',
    ),
    (
        '"cables.1"',
        '^"cables"',
        f'"cables" is not a switch port: {OUTLET}',
    ),
    (
        '"S1"',
        '"S1"\nlimits = { ^returns = "30 s" }',
        'unknown key "returns" in the limits of [[disk]]; did you mean "returned"?',
    ),
    (
        '"S1"',
        '"S1"\nlimits = { ^colour = "30 s" }',
        f'unknown key "colour" in the limits of [[disk]]: it can have {LIMITS}',
    ),
    (
        '"S1"',
        '"S1"\nlimits = { returned = ^"30 sec" }',
        'the duration "30 sec" has the unknown unit "sec"; did you mean "30 s"?',
    ),
    ('"S1"', '"S1"\nlimits = { min_ratio = ^1.5 }', '"min_ratio" must be at most 1'),
    (
        '"S1"',
        '"S1"\nlimits = ^"30 s"',
        '"limits" must be a table in braces, such as { returned = "30 s" }, not text in quotes',
    ),
    (
        '"S1"',
        '"S1"\nlimits = ^{ max_stall = 3, all_stalls = "2 s" }',
        '"max_stall" is 3 s, which is more than the 2 s of "all_stalls"',
    ),
    (
        '"S1"',
        '"S1"\n^sub.key = 1',
        f'unknown key "sub" in [[disk]]: it can have {DISK_KEYS}',
    ),
]


@pytest.mark.parametrize(("old", "new", "what"), ONE_TABLE)
def test_a_table_that_is_wrong_by_itself(old: str, new: str, what: str) -> None:
    assert mistakes(edited(BENCH, (old, new))) == [what]


def test_a_missing_key_is_reported_at_the_header_of_its_table() -> None:
    text = edited(BENCH, ('[[disk]]\nname = "disk1"', '^[[disk]]\nname = "disk1"'), ('serial = "S1"\n', ""))
    assert mistakes(text) == ['[[disk]] "disk1" has no "serial"']


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("^[labgrid]", ['[labgrid] has no "place"']),
        (
            '[labgrid]\nplace = ^"rig 1"',
            ['"rig 1" is not a name: write letters, digits, ".", "-" and "_", as labgrid-'],
        ),
        (
            '[labgrid]\nplace = "r"\ncoordinator = ^"http://lab"',
            ['"http://lab" is not a coordinator\'s address: write a host and a port, such as "lab:20408"'],
        ),
        ('[labgrid]\nplace = "r"\nwait = ^"2"', ['the duration "2" has no unit; did you mean "2 s"?']),
        ('^[[labgrid]]\nplace = "r"', ['"labgrid" must be one table, in single brackets']),
    ],
)
def test_a_place_of_labgrid(table: str, what: list[str]) -> None:
    found = mistakes(f"{REAL}\n{table}\n")
    assert len(found) == len(what)
    assert all(one.startswith(said) for one, said in zip(found, what, strict=True)), found


def test_a_virtual_rig_is_not_a_place_of_labgrid() -> None:
    (found,) = mistakes(f'{BENCH}\n^[labgrid]\nplace = "r"\n')
    assert found.startswith("a place of labgrid stands for a real rig, and this DUT is virtual")


def test_missing_and_unknown_tables() -> None:
    assert mistakes(edited(BENCH, ("[rig]", "^[rigg]"))) == ['unknown table "rigg"; did you mean "[rig]"?']
    assert mistakes("^" + edited(BENCH, ('[rig]\nname = "bench"\n', ""))) == ["the table [rig] is missing"]
    assert mistakes(BENCH + "^[[cat]]\n")[0].startswith('unknown table "cat": there are [rig], [dut], [[switch]],')


def test_tables_in_the_wrong_brackets() -> None:
    assert mistakes(edited(BENCH, ("[dut]", "^[[dut]]"))) == ['"dut" must be one table, in single brackets: [dut]']
    text = edited(BENCH, ("[[hub]]", "^[hub]"))
    assert mistakes(text) == ['"hub" must be tables, in double brackets: [[hub]]']
    assert mistakes(edited(BENCH, ("[rig]", "disk = ^3\n[rig]")).partition("[[disk]]")[0])[0].startswith(
        '"disk" must be'
    )


def test_columns_count_characters_and_keys_may_be_quoted() -> None:
    text = edited(BENCH, ('serial = "S1"', '"seri\\u0061l" = "ÄÖ" # é'), ('size = "64 MiB"', '"s\\u0069ze" =  ^[ 1 ]'))
    assert mistakes(text) == ['this is not a size: write a whole number of bytes, or text such as "64 MiB"']
    text = 'rig = {description = "äöü", name = ^7}\n' + edited(BENCH, ('[rig]\nname = "bench"\n', ""))
    assert mistakes(text) == ['"name" must be text in quotes, not a whole number']


SHARE = ': if it feeds both, write shared = ["1"] in that [[switch]]'


TWO_TABLES: list[tuple[str, Edits, list[str]]] = [
    ("name twice", (('name = "disk2"', 'name = ^"hub1"'),), ['the name "hub1" is already used by [[hub]] at line 20']),
    (
        "name dut",
        (('name = "disk2"', 'name = ^"dut"'),),
        ['"dut" cannot be a name: it is the device under test itself'],
    ),
    ("serial twice", (('"S2"', '^"S1"'),), ['the serial number "S1" is already used by disk1 at line 26']),
    ("odd serial", (('"S2"', '^"S\\u001b2"'),), ["a serial number has printable characters only"]),
    ("dangling", (('"hub1.1"', '^"hub2.1"'),), ['there is no hub or controller named "hub2"; did you mean "hub1.1"?']),
    ("dangling, no idea", (('"hub1.1"', '^"zz.1"'),), ['there is no hub or controller named "zz"']),
    (
        "at a disk",
        (('"hub1.1"', '^"disk1.1"'),),
        ['"disk1" is a disk: devices are plugged into a hub or a controller'],
    ),
    ("port beyond", (('"hub1.1"', '^"hub1.5"'),), ['there is no port 5 at "hub1": it has ports 1 to 4']),
    ("port 0", (('"usb.2"', '^"usb.0"'),), ['there is no port 0 at "usb": it has ports 1 to 4']),
    (
        "leading zero",
        (('"usb.2"', '^"usb.02"'),),
        ['port numbers are written without leading zeros, not as "02"; did you mean "usb.2"?'],
    ),
    ("port taken", (('"usb.2"', '^"usb.1"'),), ['port 1 of "usb" is already used by hub1 at line 21']),
    ("hub at itself", (('"usb.1"', '^"hub1.2"'),), ["these hubs are plugged into each other in a loop: hub1 -> hub1"]),
    ("no such switch", (('"cables.1"', '^"cable.1"'),), ['there is no switch named "cable"; did you mean "cables.1"?']),
    ("no such outlet", (('"mains.1"', '^"mains.5"'),), ['there is no port 5 at "mains": it has ports 1 to 4']),
    ("outlet with a word", (('"mains.1"', '^"mains.a"'),), ['the ports of "mains" are numbers, not "a"']),
    (
        "outlet twice",
        (('"mains.2"', '^"mains.1"'),),
        ['port 1 of switch "mains" is already used by the power of disk1 at line 29' + SHARE],
    ),
    (
        "outlet for two leads",
        (('mechanism = "data"', 'mechanism = "vbus"'), ('"mains.1"', '^"cables.1"')),
        ['port 1 of switch "cables" is already used by the cable of disk1 at line 28' + SHARE],
    ),
    (
        "cable through mains",
        (('"cables.1"', '^"mains.3"'),),
        ['the switch "mains" interrupts mains, which cannot cut a data cable'],
    ),
    (
        "power through data",
        (('"mains.1"', '^"cables.3"'),),
        ['the switch "cables" interrupts data, which cannot cut a power lead'],
    ),
    (
        "members of what is not scratch",
        (('"64 MiB"', '"64 MiB"\nerase_members = ^true'),),
        ['"erase_members" has no effect on a disk that may not be erased: it needs scratch = true'],
    ),
    ("odd size", (('"64 MiB"', "^1000"),), ["a disk's size is a multiple of 512 bytes, and 1000 is not"]),
]


@pytest.mark.parametrize(("edits", "whats"), [pytest.param(*case[1:], id=case[0]) for case in TWO_TABLES])
def test_tables_that_do_not_go_together(edits: Edits, whats: list[str]) -> None:
    assert mistakes(edited(BENCH, *edits)) == whats


def test_a_power_outlet_of_the_dut_is_an_outlet_like_the_others() -> None:
    text = edited(
        BENCH,
        ('kind = "virtual"', 'kind = "virtual"\npower = "mains.1"'),
        ('power = "mains.1"\n[[d', 'power = ^"mains.1"\n[[d'),
    )
    assert mistakes(text) == ['port 1 of switch "mains" is already used by the power of [dut] at line 5' + SHARE]


def test_a_rig_without_disks() -> None:
    assert mistakes("^" + BENCH.partition("[[disk]]")[0]) == ["this rig has no disks: declare at least one [[disk]]"]


def hub(name: str, at: str, more: str = "") -> str:
    return f'[[hub]]\nname = "{name}"\nat = {at}\n{more}'


def test_a_loop_of_hubs_is_reported_once() -> None:
    text = BENCH + hub("a", '^"b.1"') + hub("b", '"c.1"') + hub("c", '"a.1"') + hub("tail", '"c.2"')
    assert mistakes(text) == ["these hubs are plugged into each other in a loop: a -> b -> c -> a"]


def test_hubs_in_a_row() -> None:
    chain = "".join(hub(f"h{number}", f'"h{number - 1}.1"') for number in range(2, 6))
    five = BENCH + hub("h1", '"usb.3"') + chain
    assert len(parse_rig(five).hub) == 6
    six = five + hub("h6", '^"h5.1"') + hub("h7", '"h6.1"')
    assert mistakes(six) == [
        "this is the 6th hub in a row (h1 -> h2 -> h3 -> h4 -> h5 -> h6): USB allows 5",
    ]


def test_mistakes_of_all_sorts_are_reported_at_once() -> None:
    text = edited(
        BENCH,
        ('kind = "virtual"', "kind = ^1"),
        ('"usb.1"', '^"usb.9"'),
        ('[[disk]]\nname = "disk1"', '^[[disk]]\nname = "disk1"'),
        ('serial = "S1"\n', ""),
        ('"64 MiB"', '^"64"'),
        ('"cables.1"', '^"cables.7"'),
        ('"hub1.1"', '^"usb.2"'),
        ('"cables.2"', '^"cables.4"'),
    )
    assert [what.split(" ")[0] for what in mistakes(text)] == [
        '"kind"', "there", "[[disk]]", "the", "there", "port", "port"
    ]  # fmt: skip


def test_a_broken_table_is_not_blamed_on_those_that_refer_to_it() -> None:
    assert len(mistakes(edited(BENCH, ('name = "hub1"', "name = ^1")))) == 1
    assert len(mistakes(edited(BENCH, ('name = "hub1"\n', ""), ("[[hub]]", "^[[hub]]")))) == 1
    assert len(mistakes(edited(BENCH, ("ports = 4\nmech", 'ports = ^"4"\nmech')))) == 1
    assert (
        len(
            mistakes(
                edited(BENCH, ("[[switch]]", "^[switch]")).replace(
                    '[[switch]]\nname = "mains"\ndriver = "virtual"\nports = 4\nmechanism = "mains"\n', ""
                )
            )
        )
        == 1
    )


JARGON = ("input should", "pydantic", "dictionary", "tuple", "valid string", "instance of", "permitted", "nonetype")


ODD_VALUES = ("1", "1.5", "nan", "true", '"x"', "[]", "[1]", "{}", "{a = 1}", "1999-12-31", "12:00:00", "[[{}]]")


@pytest.mark.parametrize(
    "old", ['"virtual"', '"cables"', "4", '"data"', '"usb.2"', '"S1"', '"64 MiB"', '"cables.1"', '"qemu-xhci"']
)
def test_nothing_speaks_of_python(old: str) -> None:
    for new in ODD_VALUES:
        said = what_is_said(edited(BENCH, (f"= {old}", f"= {new}"))).lower()
        assert not [word for word in JARGON if word in said], said


def what_is_said(text: str) -> str:
    try:
        parse_rig(text)
    except RigFileErrors as error:
        return str(error)
    return ""


def test_all_syntax_errors_are_reported() -> None:
    text = '[rig]\nname = ^\n[dut]\nkind = ^= "virtual"\ncpus = 2\n^[[disk\nname = "d"\n'
    assert [what.split(":")[0] for what in mistakes(text)] == ["not valid TOML"] * 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[rig]\nname = "x"\n^name = "y"\n', '"rig.name" is given twice: already at line 2'),
        ('[rig]\nname = "x"\n^[rig]\n', '"rig" is given twice: already at line 1'),
        ('[[disk]]\nname = "x"\n[[disk]]\nname = "x"\n^name = "y"\n', '"disk.name" is given twice: already at line 4'),
        ('[rig]\nname = "x^\n', "not valid TOML: illegal character '\\n'"),
        ("a = [1,\n^", "not valid TOML: invalid value"),
        (
            "a = 1\n[b]\n[[b^]]\n",
            "not valid TOML: this is given twice, or as a table in one place and as something else in another",
        ),
        ('[rig]\nname = "ä" ^; x', "not valid TOML: expected newline or end of document after a statement"),
        ("a = " + "1" * 2 + "\nb =   ^" + "9" * 5000, "this number has too many digits"),
        ("^a = " + "[" * 3000, "arrays or tables are nested too deeply in this file"),
    ],
)
def test_text_that_is_not_toml(text: str, what: str) -> None:
    assert mistakes(text) == [what]
