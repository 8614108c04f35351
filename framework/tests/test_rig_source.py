"""Places of keys and values in TOML text."""

from __future__ import annotations

from pathlib import Path

from plugpull.rig.source import TOP, Source, TextPosition, parse_source

TEXT = """\
top = 1
[rig]
name = "x"
a.b.c = [1, # comment
  {x = 1, "y z" = "ü"}]

[[disk]]
"näm\\u0065" = "é" # comment
[disk.sub]
k = 2
[[disk.part]]
z = '''
two lines'''
[[disk.part]]
[[disk]]
  last = true
"""


def source() -> Source:
    return parse_source(Path("f.toml"), TEXT)


def test_values_are_tomllibs() -> None:
    values = source().values
    assert values["rig"]["a"]["b"]["c"][1] == {"x": 1, "y z": "ü"}
    assert values["disk"][0]["part"] == [{"z": "two lines"}, {}]


def test_keys() -> None:
    found = source()
    assert found.key(("top",)) == TextPosition(1, 1)
    assert found.key(("rig",)) == TextPosition(2, 1)
    assert found.key(("rig", "a", "b", "c")) == TextPosition(4, 1)
    assert found.key(("rig", "a", "b")) == TextPosition(4, 1), "a table that only exists as part of a dotted key"
    assert found.key(("rig", "a", "b", "c", 1, "y z")) == TextPosition(5, 11)
    assert found.key(("disk",)) == TextPosition(7, 1)
    assert found.key(("disk", 0, "näme")) == TextPosition(8, 1)
    assert found.key(("disk", 0, "sub")) == TextPosition(9, 1)
    assert found.key(("disk", 0, "part", 1)) == TextPosition(14, 1)
    assert found.key(("disk", 1, "last")) == TextPosition(16, 3)


def test_values() -> None:
    found = source()
    assert found.value(("rig", "name")) == TextPosition(3, 8)
    assert found.value(("rig", "a", "b", "c", 0)) == TextPosition(4, 10)
    assert found.value(("rig", "a", "b", "c", 1, "y z")) == TextPosition(5, 19)
    assert found.value(("disk", 0, "näme")) == TextPosition(8, 15)
    assert found.value(("disk", 0, "part", 0, "z")) == TextPosition(12, 5)
    assert found.value(("disk", 1, "last")) == TextPosition(16, 10)


def test_what_is_not_there_is_placed_at_its_table() -> None:
    found = source()
    assert found.value(("disk", 1, "serial")) == TextPosition(15, 1)
    assert found.key(("rig", "a", "q", "r")) == TextPosition(4, 1)
    assert found.key(("dut", "kind")) == TOP
