"""Qualifying relays of a bench, one in a disk's power lead and one that is not; and the draft of its rig file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chains import chain, relays_cutting_power
from long_tests import only_if_asked

from fixtures.boards import KmTronic, Port
from fixtures.lab import desk
from plugpull.qualify.qualification import read_qualification
from plugpull.rig.load import load_rig

pytestmark = pytest.mark.bench
# Serial numbers of its own: a rig is leased by those of its disks.
DESK = desk(2).replace("LAB-", "QUAL-")
POWERS = {f"disk{n}": f"relay.{n}" for n in (1, 2)}


def qualify(rig: Path, out: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "plugpull", "switch", "qualify", "disk1.power", "--rig", str(rig)]
    line += ["-n", "1", "--hold", "2", "--out", str(out)]
    return subprocess.run(line, capture_output=True, text=True, timeout=240, check=False, cwd=out.parent)


def test_a_relay_is_qualified_by_what_it_does(tmp_path: Path) -> None:
    with chain(DESK) as made, relays_cutting_power(made) as relay:
        done = qualify(made.rig_file("ssh", relay, powers=POWERS), tmp_path / "good.json")
    assert done.returncode == 0, done.stdout + done.stderr
    good = read_qualification(tmp_path / "good.json")
    assert (good.verdict, good.cycles, good.switch.driver, good.mechanism) == ("PASS", 1, "kmtronic", "mains")
    assert set(good.latencies) == {"off acknowledged", "off seen", "on acknowledged", "on seen"}


@only_if_asked
def test_a_relay_that_is_not_in_the_power_lead_is_not_qualified(tmp_path: Path) -> None:
    with chain(DESK) as made, relays_cutting_power(made, connected=False) as relay:
        done = qualify(made.rig_file("ssh", relay, powers=POWERS), tmp_path / "bad.json")
    assert done.returncode == 1, done.stdout + done.stderr
    bad = read_qualification(tmp_path / "bad.json")
    assert bad.findings[0] == "it did not cut: disk1 stayed, 1 of 1 times"


@only_if_asked
def test_a_relay_that_takes_a_neighbour_along_and_an_end_in_mid_cut(tmp_path: Path) -> None:
    with chain(DESK) as made:

        def moved(channel: int, energised: bool) -> None:
            for name in ("disk1", "disk2"):
                made.cut(name, "power", on=not energised)

        board = KmTronic(channels=1, on_change=moved)
        with Port(board) as port:
            relay = (
                f'[[switch]]\nname = "relay"\ndriver = "kmtronic"\ndevice = "{port.path}"\nports = 1\nchannels = 1\n'
                'mechanism = "mains"\nwiring = "nc"\n'
            )
            rig = made.rig_file("ssh", relay, powers={"disk1": "relay.1"})
            done = qualify(rig, tmp_path / "ganged.json")
            assert done.returncode == 1, done.stdout + done.stderr
            (finding,) = read_qualification(tmp_path / "ganged.json").findings
            assert finding.startswith("it is ganged with others, or disturbs them: ")
            assert "QUAL-000002" in finding
            line = [sys.executable, "-m", "plugpull", "switch", "qualify", "disk1.power", "--rig", str(rig)]
            line += ["-n", "1", "--hold", "600", "--out", str(tmp_path / "ended.json")]
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                while not (said := process.stdout.readline()).startswith("left off for"):
                    assert said, "it ended too early"
                assert board.energised == [True]
                process.terminate()
                err = process.communicate(timeout=120)[1]
            assert (process.returncode, "interrupted" in err) == (3, True), err
            assert board.energised == [False], "power came back"
            assert not (tmp_path / "ended.json").exists()


def test_a_machine_behind_ssh_is_drafted(tmp_path: Path) -> None:
    with chain(desk(2, hub=True)) as made:
        line = [
            sys.executable,
            "-m",
            "plugpull",
            "rig",
            "discover",
            "--dut",
            made.ssh.host,
            "-o",
            str(tmp_path / "x.toml"),
        ]
        line += [f"--ssh-option={option}" for option in made.ssh.options]
        done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        rig, declared = load_rig(tmp_path / "x.toml"), made.rig
    assert [(disk.serial, disk.size) for disk in rig.disk] == [(disk.serial, disk.size) for disk in declared.disk]
    assert [disk.at.partition(".")[2] for disk in rig.disk] == ["1", "2"]
    assert rig.hub[0].at.endswith(f".{declared.hub[0].at.partition('.')[2]}")
    assert not any(disk.scratch for disk in rig.disk)
