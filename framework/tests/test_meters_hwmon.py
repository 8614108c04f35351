"""Chips of the kernel's hardware monitoring, as a tree of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from meter_doubles import hwmon_tree, opened_meter
from pydantic import ValidationError

from plugpull.errors import RigError
from plugpull.meters.base import Meter, PowerValue
from plugpull.meters.hwmon import HwmonOptions, chips, find
from plugpull.meters.kinds import open_meter
from plugpull.rig.model import DeclaredMeter
from plugpull.switches.host_local import LocalHost


def root_of(folder: Path) -> str:
    return str(folder / "class/hwmon")


def power_of(meter: Meter) -> PowerValue:
    reading = meter.read()
    assert reading.power is not None, reading.why
    return reading.power


def test_power_in_microwatts(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 3, "ina226", "6-0040", power1_input=2_175_000, in1_input=5012, update_interval=140)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="ina226") as meter:
        assert power_of(meter).watts == pytest.approx(2.175)
        assert str(meter.identity) == "ina226 at 6-0040"
        assert meter.capabilities.age == pytest.approx(0.14), "the chip says how often it measures"
        assert meter.capabilities.rate == pytest.approx(1 / 0.14)
        assert meter.read().uncertainty >= 0.14


def test_volts_by_amperes(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 0, "ltc4151", "0-006f", in1_input=12_000, curr1_input=1500)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="ltc4151") as meter:
        power = power_of(meter)
        assert (power.watts, power.volts, power.amps) == pytest.approx((18.0, 12.0, 1.5))
        assert meter.capabilities.rate == pytest.approx(6.0), "its driver keeps values for a sixth of a second"


def test_the_attributes_that_the_rig_file_names(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 0, "odd", "1-0001", in0_input=1, in2_input=5000, curr3_input=400, power2_input=1_000_000)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="odd", volts="in2", amps="curr3") as meter:
        assert power_of(meter).watts == pytest.approx(2.0)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="odd", power="power2") as meter:
        assert power_of(meter).watts == pytest.approx(1.0)


def test_volts_are_not_guessed(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 0, "odd", "1-0001", in0_input=1, curr1_input=400)
    with (
        pytest.raises(RigError, match="not known which attributes") as raised,
        opened_meter("hwmon", root=root_of(tmp_path), chip="odd"),
    ):
        pass
    assert 'volts = "in1"' in raised.value.hint


def test_the_energy_counter(tmp_path: Path) -> None:
    real = hwmon_tree(tmp_path, 0, "rapl-like", "x", power1_input=1_000_000, energy1_input=7_000_000)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="rapl-like") as meter:
        assert power_of(meter).joules == pytest.approx(7.0)
        (real / "energy1_input").write_text("7500000\n")
        assert power_of(meter).joules == pytest.approx(7.5)


def test_two_chips_of_one_name(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 0, "ina226", "6-0040", power1_input=1_000_000)
    hwmon_tree(tmp_path, 1, "ina226", "6-0041", power1_input=2_000_000)
    with (
        pytest.raises(RigError, match="2 chips named ina226") as raised,
        opened_meter("hwmon", root=root_of(tmp_path), chip="ina226"),
    ):
        pass
    assert 'device = "6-0040" or device = "6-0041"' in raised.value.hint
    with opened_meter("hwmon", root=root_of(tmp_path), chip="ina226", device="6-0041") as meter:
        assert power_of(meter).watts == 2.0


def test_a_chip_that_is_missing(tmp_path: Path) -> None:
    hwmon_tree(tmp_path, 0, "coretemp", "coretemp.0", temp1_input=40_000)
    with (
        pytest.raises(RigError, match="no chip ina226 on this machine") as raised,
        opened_meter("hwmon", root=root_of(tmp_path), chip="ina226"),
    ):
        pass
    assert "coretemp at coretemp.0" in raised.value.hint


def test_a_chip_that_was_replugged_has_another_number(tmp_path: Path) -> None:
    real = hwmon_tree(tmp_path, 4, "powerz", "1-3:1.0", in0_input=5000, curr1_input=100)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="powerz") as meter:
        assert power_of(meter).watts == pytest.approx(0.5)
        (tmp_path / "class/hwmon/hwmon4").unlink()
        for file in real.iterdir():
            file.unlink()
        # Another chip gets its number, and its values must not be taken for the meter's.
        hwmon_tree(tmp_path, 4, "amdgpu", "gpu", in0_input=12_000, curr1_input=9000)
        assert meter.read().power is None
        hwmon_tree(tmp_path, 5, "powerz", "1-3:1.1", in0_input=5000, curr1_input=300)
        assert power_of(meter).watts == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a number"),
        ("nan\n", "not a number"),
        ("1e6\n", "not a number"),
        ("12 34\n", "not a number"),
        ("9" * 400, "not a number"),
        ("\x1b[31m\u202e5\n", "not a number"),
        ("-1500000\n", "wrong way round"),
        ("999000000\n", "more than the 240 W"),
    ],
)
def test_a_lie_is_no_reading(tmp_path: Path, text: str, words: str) -> None:
    real = hwmon_tree(tmp_path, 0, "ina226", "6-0040", power1_input=1_000_000)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="ina226") as meter:
        (real / "power1_input").write_text(text)
        reading = meter.read()
        assert reading.power is None
        assert words in reading.why
        assert "\x1b" not in reading.why
        assert len(reading.why) <= 200
        (real / "power1_input").write_text("3000000\n")
        assert power_of(meter).watts == 3.0


def test_a_read_that_fails_is_no_reading(tmp_path: Path) -> None:
    """As EIO or ENODATA of the kernel: the file is there and cannot be read."""
    real = hwmon_tree(tmp_path, 0, "powerz", "1-3:1.0", in0_input=5000, curr1_input=100)
    with opened_meter("hwmon", root=root_of(tmp_path), chip="powerz") as meter:
        (real / "curr1_input").unlink()
        (real / "curr1_input").mkdir()
        reading = meter.read()
        assert reading.power is None
        assert "curr1_input: Is a directory" in reading.why


def test_the_shunt_of_a_meter_on_the_mains_side(tmp_path: Path) -> None:
    """What is too much over USB is possible behind a socket."""
    hwmon_tree(tmp_path, 0, "corsairpsu", "hid", power1_input=340_000_000)
    with opened_meter("hwmon", root=root_of(tmp_path), side="mains", chip="corsairpsu") as meter:
        assert power_of(meter).watts == 340.0


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"chip": "../x"},
        {"chip": "ina226", "volts": "in1"},
        {"chip": "ina226", "power": "power1", "volts": "in1", "amps": "curr1"},
        {"chip": "ina226", "power": "../../etc/passwd"},
        {"chip": "ina226", "root": "sys"},
    ],
)
def test_keys_that_do_not_fit(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HwmonOptions.model_validate(keys)


class Tree(LocalHost):
    """This machine with another /sys/class/hwmon."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def glob(self, pattern: str) -> tuple[str, ...]:
        return super().glob(pattern.replace("/sys/class/hwmon", root_of(self._root)))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    hwmon_tree(tmp_path, 0, "coretemp", "coretemp.0", temp1_input=40_000)
    hwmon_tree(tmp_path, 1, "ina226", "6-0040", power1_input=1_000_000)
    hwmon_tree(tmp_path, 2, "powerz", "1-3:1.0", in0_input=5000, curr1_input=100)
    hwmon_tree(tmp_path, 3, "nct6775", "nct", in0_input=900, curr1_input=3)
    return Tree(tmp_path)


def test_chips_with_a_known_power_are_found(tree: Tree) -> None:
    found = list(find(tree))
    assert [(one.model, one.place) for one in found] == [("ina226", "6-0040"), ("powerz", "1-3:1.0")]
    assert len(list(chips(tree))) == 4
    for one in found:
        table = {"name": "m", "driver": one.kind, "side": one.side, "disks": ["disk1"], **one.options}
        meter = open_meter(DeclaredMeter.model_validate(table), tree)
        assert meter.read().power is not None, "the keys that were found open it"
        meter.close()
