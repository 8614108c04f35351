"""The agent takes processors out of use and gives them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.processors import CpuHotplug


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Four processors, of which the first cannot be taken offline and the last is offline already."""
    folder = tmp_path / "devices/system/cpu"
    for number, state in enumerate(("", "1\n", "1\n", "0\n")):
        (folder / f"cpu{number}").mkdir(parents=True)
        if state:
            (folder / f"cpu{number}/online").write_text(state)
    (folder / "cpufreq").mkdir()
    return tmp_path


def states(machine: Path) -> list[str]:
    return [path.read_text().strip() for path in sorted(machine.glob("devices/system/cpu/cpu*/online"))]


def test_the_others_are_taken_and_given_back(machine: Path) -> None:
    processors = CpuHotplug(str(machine))
    assert processors.keep(1) == {"online": 1, "of": 3}
    assert states(machine) == ["0", "0", "0"]
    assert processors.keep(2) == {"online": 2, "of": 3}
    assert states(machine) == ["1", "0", "0"]
    processors.restore()
    assert states(machine) == ["1", "1", "0"], "one that was offline before stays so"


def test_more_than_there_are_is_all_of_them(machine: Path) -> None:
    assert CpuHotplug(str(machine)).keep(8) == {"online": 3, "of": 3}


def test_one_that_cannot_be_taken_is_refused_with_all_of_them_back(machine: Path) -> None:
    (machine / "devices/system/cpu/cpu1/online").unlink()
    (machine / "devices/system/cpu/cpu1/online").mkdir()
    with pytest.raises(Refused, match="cpu1 cannot be taken offline"):
        CpuHotplug(str(machine)).keep(1)
    assert (machine / "devices/system/cpu/cpu2/online").read_text() == "1"
    with pytest.raises(Refused, match="needs a processor"):
        CpuHotplug(str(machine)).keep(0)
