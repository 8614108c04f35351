"""``framework/API.md`` says what the docstrings say, and its examples use the API as it is."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import MagicMock, create_autospec

import pytest
from api_reference import API, COMMAND, reference

import plugpull.checks
import plugpull.faults
import plugpull.integrity.patterns
import plugpull.load
import plugpull.studies
from plugpull.faults import cut
from plugpull.faults.injection import Injection
from plugpull.integrity.writing.load import RunningStamps
from plugpull.load.load import RunningLoad
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.part import Part
from plugpull.rig.topology import Topology
from plugpull.scenario import ScenarioRig
from plugpull.soak import Soak, Turn
from plugpull.targets.disk import RigDisk
from plugpull.targets.filesystem import Filesystem

EXAMPLES = [
    text
    for text in re.findall(r"```python\n(.*?)\n```", API.read_text(encoding="utf-8"), re.DOTALL)
    if re.search(r"\brig\.\w+\(", text)
]


def test_the_reference_is_what_the_docstrings_say() -> None:
    assert API.read_text(encoding="utf-8") == reference(), f"run: {COMMAND}"


def test_every_check_and_trigger_is_in_it() -> None:
    text = API.read_text(encoding="utf-8")
    for name in (*plugpull.checks.__all__, *plugpull.faults.__all__, *plugpull.load.__all__):
        tool = name in {"check_name", "decode_check", "encode_check"}
        assert tool or name[0].isupper() or f"### {name}\n" in text


def rig_double() -> Any:
    """A rig that checks the signatures of what is called, on the disks of the stock rig."""
    topology = Topology(load_rig(rigs_dir() / "quick.toml"))
    disks = tuple(RigDisk(f"disk{number}", topology) for number in (1, 2, 3))
    rig = create_autospec(ScenarioRig, instance=True)
    rig.disks, rig.bystanders, rig.hubs = disks, (), (Part("hub1", topology),)
    rig.choose_victim.return_value = (disks[0], disks[1:])
    rig.whole_tree.return_value = (disks[0].cable,)
    for method, kind in (("load", RunningLoad), ("stamp", RunningStamps), ("load_on_volume", RunningLoad)):
        running = create_autospec(kind, instance=True)
        running.__enter__.return_value = running
        getattr(rig, method).return_value = running
    rig.cut.return_value = rig.fault.return_value = create_autospec(Injection, instance=True)
    rig.judged_by.return_value = ()
    rig.metered_disks.return_value = disks[:2]
    rig.filesystem.return_value = create_autospec(Filesystem, instance=True)
    return rig


def soak_double(rig: Any) -> Any:
    """A soak of one turn on this rig."""
    turn = MagicMock(spec=Turn, fault=cut("disk1.cable"))
    turn.__enter__.return_value = rig
    return MagicMock(spec=Soak, turns=lambda: iter([turn]))


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str) -> None:
    names: dict[str, Any] = {}
    for module in (plugpull.checks, plugpull.faults, plugpull.load, plugpull.integrity.patterns, plugpull.studies):
        names |= {name: value for name, value in vars(module).items() if not name.startswith("_")}
    rig = rig_double()
    names |= {"rig": rig, "victim": rig.disks[0], "survivors": rig.disks[1:]}
    whole = re.match(r"def (\w+)\((rig|soak)\)", example)
    exec(example, names)
    if whole:
        names[whole[1]](rig if whole[2] == "rig" else soak_double(rig))
    assert rig.mock_calls


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6
