"""Which consoles a rig file can declare."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig_texts import REAL, mistakes

from plugpull.rig.load import load_rig

SSH = REAL.replace('kind = "local"', 'kind = "ssh"\nhost = "dut"')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '^console = "192.168.1.5:6666"',
            "plugpull does not listen on the network: write netconsole's output into a named pipe",
        ),
        ('^console = "ttyUSB0"', '"ttyUSB0" is not the path of a serial port'),
        ("^console_speed = 9600", '"console_speed" needs a "console"'),
    ],
)
def test_a_console_that_cannot_be(line: str, said: str) -> None:
    (mistake,) = mistakes(SSH.replace('host = "dut"', f'host = "dut"\n{line}'))
    assert said in mistake


def test_a_console_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "rig.toml").write_text(SSH.replace('host = "dut"', 'host = "dut"\nconsole = "/dev/ttyUSB0"'))
    assert load_rig(tmp_path / "rig.toml").dut.console_speed == 115200


def test_a_console_is_for_a_dut_behind_ssh() -> None:
    (mistake,) = mistakes(REAL.replace('kind = "local"', 'kind = "local"\n^console = "/dev/ttyUSB0"'))
    assert mistake == '"console" is for a DUT of kind "ssh", and this one is local'
