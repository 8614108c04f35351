"""Kinds of meter that other packages bring, rig files with meters, and what the meters' README says."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from rig_builder import RigBuilder, a_rig
from rig_texts import mistakes

from plugpull.errors import RigError, UsageError
from plugpull.meters import kinds
from plugpull.meters.kinds import kind_named, names, open_meter
from plugpull.rig.credentials import recorded
from plugpull.rig.load import load_rig
from plugpull.rig.model import DeclaredMeter, Rig
from plugpull.rig.tree import tree_text
from plugpull.switches.host_local import LocalHost

README = Path(kinds.__file__).parent / "README.md"
Install = Callable[[str], None]


def shelf(*meters: Mapping[str, object], kind: str = "local") -> RigBuilder:
    """A rig file with two disks and these meters."""
    rig = a_rig("shelf", kind).controller().disk("disk1").disk("disk2")
    for meter in meters:
        rig = rig.table("meter", **meter)
    return rig


PLUG: dict[str, object] = {
    "name": "plug",
    "driver": "shelly",
    "side": "mains",
    "disks": ["disk1"],
    "url": "http://10.0.0.7",
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """An installed distribution with the README's example, whose entry points are given."""
    (example,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)

    def put(entry_points: str) -> None:
        (tmp_path / "file_meter.py").write_text(example)
        info = tmp_path / "file_meter-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: file-meter\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[plugpull.meters]\n{entry_points}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "file_meter", raising=False)

    return put


def test_the_example_of_the_readme_is_a_meter(install: Install, tmp_path: Path) -> None:
    install("file = file_meter:KIND")
    assert "file" in names()
    table = {"name": "m", "driver": "file", "side": "mains", "disks": ["disk1"], "file": f"{tmp_path}/watts"}
    meter = open_meter(load_rig(shelf(table).write(tmp_path)).meter[0], LocalHost())
    (tmp_path / "watts").write_text("14.5")
    reading = meter.read()
    assert reading.power is not None
    assert reading.power.watts == 14.5
    assert reading.uncertainty >= 1.0
    for lie in ("nan", "inf", "-2", "5000", "much"):
        (tmp_path / "watts").write_text(lie)
        assert meter.read().power is None, lie
    text = shelf({**table, "fille": 1}).text.replace("fille", "^fille")
    assert mistakes(text) == ['unknown key "fille" in [[meter]]; did you mean "file"?']


@pytest.mark.parametrize(
    ("entry_points", "said"),
    [
        ("file = no_such_module:KIND", "cannot be loaded"),
        ("file = file_meter:NOTHING", "cannot be loaded"),
        ("file = file_meter:FileMeter", "is not a plugpull.meters.kinds.MeterKind"),
    ],
)
def test_a_broken_package_is_named_and_harms_nobody_else(install: Install, entry_points: str, said: str) -> None:
    install(entry_points)
    with pytest.raises(UsageError, match=re.escape(said)):
        kind_named("file")
    assert kind_named("hwmon").name == "hwmon"
    assert "hwmon" in {kind.name for kind in kinds.all_kinds()}


def test_every_kind_and_each_of_its_keys_is_in_the_table() -> None:
    part = README.read_text().partition("## Kinds")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \|(.*)$", part, re.MULTILINE))
    assert set(rows) == set(names())
    for kind in kinds.all_kinds():
        assert set(kind.options.model_fields) <= set(re.findall(r"`([a-z_]+)`", rows[kind.name])), kind.name
        assert kind.summary
        assert DeclaredMeter.model_fields.keys() & kind.options.model_fields.keys() == set()


def test_a_rig_file_with_meters(tmp_path: Path) -> None:
    chip = {"name": "chip", "driver": "hwmon", "side": "usb", "disks": ["disk1", "disk2"], "chip": "ina226"}
    rig = load_rig(shelf(PLUG, {**chip, "via": "dut", "rate": 4.0}).write(tmp_path))
    assert [(one.name, one.side, one.disks, one.via, one.rate) for one in rig.meter] == [
        ("plug", "mains", ("disk1",), "controller", None),
        ("chip", "usb", ("disk1", "disk2"), "dut", 4.0),
    ]
    assert load_rig(shelf().write(tmp_path)).meter == ()


def test_meters_are_in_the_tree() -> None:
    chip = {"name": "chip", "driver": "hwmon", "side": "usb", "disks": ["disk1", "disk2"], "chip": "ina226"}
    lines = [line.strip("├└─│ ") for line in tree_text(shelf(PLUG, chip).load()).splitlines()]
    assert lines[-2:] == [
        "meter plug  shelly, before the power supply of disk1",
        "meter chip  hwmon, on the USB side of disk1, disk2",
    ]


SPOILT: list[tuple[str, str, str]] = [
    ('driver = "shelly"', 'driver = ^"shely"', 'there is no meter driver "shely"; did you mean "shelly"?'),
    ('"disk1"]', '^"disk3"]', 'there is no disk named "disk3"; did you mean "disk2"?'),
    ('"disk1"]', '"disk1", ^"disk1"]', '"disk1" is given twice'),
    ('["disk1"]', "^[]", '[[meter]] "plug" has no disks behind it: name at least one'),
    ('side = "mains"', 'side = ^"main"', '"side" cannot be "main": it is one of "mains", "usb"; did you mean "mains"?'),
    ('url = "http://10.0.0.7"', "channel = 1", '[[meter]] "plug" has no "url"'),
    (
        '"http://10.0.0.7"',
        '^"http://me:secret@10.0.0.7"',
        '"url": write the user and the password as keys of their own',
    ),
    ('"http://10.0.0.7"', '^"https://10.0.0.7"', '"url": write url = "http://HOST" or "http://HOST:PORT"'),
    ('"http://10.0.0.7"', '^"http://10.0.0.7/cm?x"', '"url": write url = "http://HOST" or "http://HOST:PORT"'),
    ('"http://10.0.0.7"', '"http://10.0.0.7"\n^rtae = 1', 'unknown key "rtae" in [[meter]]; did you mean "rate"?'),
    ('"http://10.0.0.7"', '"http://10.0.0.7"\nrate = ^0', '"rate" must be more than 0'),
    ('"http://10.0.0.7"', '"http://10.0.0.7"\nchannel = ^"1"', '"channel" must be a whole number, not text in quotes'),
    ('name = "plug"', 'name = ^"disk1"', 'the name "disk1" is already used by [[disk]] at line 9'),
]


@pytest.mark.parametrize(("old", "new", "what"), SPOILT)
def test_mistakes_have_places(old: str, new: str, what: str) -> None:
    text = shelf(PLUG).text
    assert old in text
    marked = text.replace(old, new, 1)
    if "has no" in what and "disks" not in what:
        marked = marked.replace("[[meter]]", "^[[meter]]")
    assert mistakes(marked) == [what]


def test_a_real_meter_cannot_measure_emulated_disks() -> None:
    text = shelf(PLUG, kind="virtual").text.replace('driver = "shelly"', 'driver = ^"shelly"')
    (what,) = mistakes(text)
    assert what.startswith('the driver "shelly" cannot measure emulated disks')


def test_computed_watts_are_not_for_real_disks() -> None:
    table = {"name": "m", "driver": "virtual", "side": "mains", "disks": ["disk1"], "idle": 3.5}
    assert shelf(table, kind="virtual").load().meter[0].options == {"idle": 3.5}
    (what,) = mistakes(shelf(table).text.replace('driver = "virtual"', 'driver = ^"virtual"'))
    assert what.startswith('the driver "virtual" computes the power of emulated disks')


def test_no_password_of_a_meter_is_recorded() -> None:
    rig = shelf({**PLUG, "password": "hunter2", "user": "s3cret"}).load()
    text = json.dumps(recorded(rig))
    assert "hunter2" not in text
    assert "s3cret" not in text
    assert "http://10.0.0.7" in text
    again = Rig.model_validate_json(text)
    assert again.meter[0].disks == ("disk1",)


def test_a_meter_that_cannot_be_opened_is_named() -> None:
    table = {"name": "m", "driver": "um25c", "side": "usb", "disks": ["disk1"], "device": "/dev/nothing"}
    with pytest.raises(RigError, match=r"^meter m: .*/dev/nothing"):
        open_meter(DeclaredMeter.model_validate(table), LocalHost())
    with pytest.raises(UsageError, match="meter m: device"):
        open_meter(DeclaredMeter.model_validate({**table, "device": 5}), LocalHost())
