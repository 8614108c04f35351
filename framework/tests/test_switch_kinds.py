"""Kinds of switch that other packages bring, by entry point; and what the switches' README says of ours."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boards import Nobody
from rig_builder import a_rig

from plugpull.errors import UsageError
from plugpull.qualify.qualification import Qualification, Spread, SwitchDevice
from plugpull.rig.load import RigFileErrors, load_rig
from plugpull.rig.model import DeclaredSwitch
from plugpull.switches import kinds
from plugpull.switches.base import Capabilities
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import kind_named, names, open_switch

README = Path(kinds.__file__).parent / "README.md"


def lamp(folder: Path, **keys: Any) -> Path:
    """A rig file with a lamp that cuts a disk's power."""
    return (
        a_rig("desk", "local")
        .switch("lamp", "lamp", 1, "mains", **keys)
        .controller()
        .disk("disk1", power="lamp.1")
        .write(folder)
    )


Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """An installed distribution with the README's example, whose entry points are given."""
    (example,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)

    def put(entry_points: str) -> None:
        (tmp_path / "desk_lamp.py").write_text(example)
        info = tmp_path / "desk_lamp-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: desk-lamp\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[plugpull.switches]\n{entry_points}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "desk_lamp", raising=False)

    return put


def test_the_example_of_the_readme_is_a_switch(install: Install, tmp_path: Path) -> None:
    install("lamp = desk_lamp:KIND")
    assert "lamp" in names()
    switch = open_switch(load_rig(lamp(tmp_path, file=f"{tmp_path}/state")).switch[0], LocalHost(), Nobody())
    edge = switch.set("1", False)
    assert (tmp_path / "state").read_text() == "off"
    assert edge.commanded <= edge.acknowledged
    assert [each.port for each in switch.set_many(("1",), True)] == ["1"]
    assert switch.read("1") is True
    with pytest.raises(RigFileErrors) as raised:
        load_rig(lamp(tmp_path, fille=1))
    assert "file" in str(raised.value)


@pytest.mark.parametrize(
    ("entry_points", "said"),
    [
        ("lamp = no_such_module:KIND", "cannot be loaded"),
        ("lamp = desk_lamp:NOTHING", "cannot be loaded"),
        ("lamp = desk_lamp:Lamp", "is not a plugpull.switches.kinds.Kind"),
    ],
)
def test_a_broken_package_is_named_and_harms_nobody_else(install: Install, entry_points: str, said: str) -> None:
    install(entry_points)
    with pytest.raises(UsageError, match=re.escape(said)):
        kind_named("lamp")
    assert kind_named("command").name == "command"
    assert "command" in {kind.name for kind in kinds.all_kinds()}


def test_a_kind_there_is_none_of() -> None:
    with pytest.raises(UsageError, match="there is no switch driver 'ykusch'") as raised:
        kind_named("ykusch")
    assert "ykush" in raised.value.hint


def test_every_kind_and_each_of_its_keys_is_in_the_table() -> None:
    kinds_part = README.read_text().partition("## Kinds")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \|(.*)$", kinds_part, re.MULTILINE))
    assert set(rows) == set(names())
    for kind in kinds.all_kinds():
        named = set(re.findall(r"`([a-z_]+)`", rows[kind.name]))
        own = set(kind.options.model_fields) - {"baud"}
        assert own <= named, kind.name


def test_the_tables_of_capabilities_and_of_a_qualification_are_whole() -> None:
    text = README.read_text() + (README.parents[1] / "qualify" / "README.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \|(.*)$", text, re.MULTILINE)
    keys = {key for row, _ in rows for key in re.findall(r"`(\w+)`", row)}
    assert {field.name for field in dataclasses.fields(Capabilities)} <= keys
    assert set(Qualification.__struct_fields__) <= keys
    assert [name for kind in (SwitchDevice, Spread) for name in kind.__struct_fields__ if f"`{name}`" not in text] == []


def test_every_kind_can_be_loaded_and_says_what_it_is() -> None:
    for name in names():
        kind = kind_named(name)
        assert (kind.name, bool(kind.summary), bool(kind.mechanisms)) == (name, True, True)
        assert DeclaredSwitch.model_fields.keys() & kind.options.model_fields.keys() == set(), name
