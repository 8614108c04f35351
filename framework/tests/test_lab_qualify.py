"""Qualifying a port for real: a relay in a disk's power lead, one that is not in it, and one that takes another along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chains import chain, relays_cutting_power

from fixtures.lab import desk
from plugpull.rig.qualification import read_qualification

pytestmark = pytest.mark.bench


def qualify(rig: Path, out: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "plugpull", "switch", "qualify", "disk1.power", "--rig", str(rig)]
    line += ["-n", "2", "--hold", "2", "--out", str(out)]
    return subprocess.run(line, capture_output=True, text=True, timeout=240, check=False, cwd=out.parent)


def test_a_relay_is_qualified_by_what_it_does(tmp_path: Path) -> None:
    powers = {f"disk{n}": f"relay.{n}" for n in (1, 2)}
    with chain(desk(2)) as made:
        with relays_cutting_power(made) as relay:
            done = qualify(made.rig_file("ssh", relay, powers=powers), tmp_path / "good.json")
        assert done.returncode == 0, done.stdout + done.stderr
        good = read_qualification(tmp_path / "good.json")
        assert (good.verdict, good.cycles, good.switch.driver, good.mechanism) == ("PASS", 2, "kmtronic", "mains")
        assert set(good.latencies) == {"off acknowledged", "off seen", "on acknowledged", "on seen"}
        with relays_cutting_power(made, connected=False) as relay:
            done = qualify(made.rig_file("ssh", relay, powers=powers), tmp_path / "bad.json")
        assert done.returncode == 1, done.stdout + done.stderr
        bad = read_qualification(tmp_path / "bad.json")
        assert bad.findings[0] == "it did not cut: disk1 stayed, 1 times of 1"
