"""The lab does what chains of real drivers rest on: its guest is reached, and its disks are cut from inside."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from chains import chain
from long_tests import only_if_asked

from fixtures.lab import Lab, desk, lab
from plugpull.switches.host import Completed

pytestmark = pytest.mark.bench
SOON = 60.0
"""Seconds for what takes one or two when the machine is not busy."""


def _within(seconds: float, what: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)  # the guest is asked from outside; it has no way to call back
    return True


def _serials(made: Lab) -> set[str]:
    script = "cat /sys/bus/usb/devices/*/serial"
    return {line for line in made.run(["sh", "-c", script]).stdout.split() if line.startswith("LAB-")}


@only_if_asked
def test_a_guest_without_extras_has_no_network_and_cuts_its_own_disks() -> None:
    with lab(desk(2)) as made:
        assert _within(SOON, lambda: _serials(made) == {"LAB-000001", "LAB-000002"})
        assert made.run(["lab-cut", "off", "disk1"]).status == 0
        assert _within(SOON, lambda: _serials(made) == {"LAB-000002"})
        assert made.run(["lab-cut", "on", "disk1"]).status == 0
        assert _within(SOON, lambda: len(_serials(made)) == 2)
        firmware = made.bench._firmware["disk2"].process.pid
        made.cut("disk2", "power")
        assert _within(SOON, lambda: _serials(made) == {"LAB-000001"})
        made.cut("disk2", "power", on=True)
        assert _within(SOON, lambda: len(_serials(made)) == 2)
        assert made.bench._firmware["disk2"].process.pid != firmware
        assert made.cuts == [
            ("disk1", "cable", False),
            ("disk1", "cable", True),
            ("disk2", "power", False),
            ("disk2", "power", True),
        ]
        refused = made.run(["lab-cut", "off", "disk9"])
        assert refused.status != 0
        assert "disk9" in refused.stderr
        assert made.run(["ls", "/sys/class/net"]).stdout.split() == ["lo"]


@pytest.fixture(scope="module")
def everything() -> Iterator[Lab]:
    with chain(desk(2, hub=True)) as made:
        yield made


def test_files_and_programs_of_the_guest_are_within_reach(everything: Lab) -> None:
    data = os.urandom(1_500_000)
    everything.put("/tmp/folder/data", data)
    assert everything.get("/tmp/folder/data") == data
    job = everything.start(["sh", "-c", "echo here; sleep 1000"])
    assert _within(SOON, lambda: everything.output(job) == "here\n")
    assert everything.stop(job).stdout == "here\n"
    assert everything.run(["sh", "-c", "echo $A; exit 3"], env={"A": "b"}) == Completed(3, "b\n", "")


def test_every_extra_is_there(everything: Lab) -> None:
    made = everything
    _ssh_works(made)
    assert _within(SOON, lambda: len(_serials(made)) == 2)
    ppps = made.run(["uhubctl"])
    assert "LAB-000002" in ppps.stdout, ppps
    assert made.run(["ls", "/sys/class/udc"]).stdout.split() == [f"dummy_udc.{n}" for n in range(4)]
    assert made.run(["ls", "-d", "/sys/kernel/config/usb_gadget"]).status == 0
    listed = made.run(["python3", "-c", "import hid, pykush; print(len(hid.enumerate()))"])
    assert listed.status == 0, listed
    made.put("/root/rig.toml", desk(1).encode())
    checked = made.run(["python3", "-m", "plugpull", "rig", "check", "/root/rig.toml"])
    assert "cut disk1.cable (data by cables.1) takes disk1" in checked.stdout, checked


def _ssh_works(made: Lab) -> None:
    ssh = ["ssh", *made.ssh.options, "-o", "BatchMode=yes", made.ssh.host]
    done = subprocess.run([*ssh, "id -u; which python3 fio"], capture_output=True, text=True, timeout=SOON, check=False)
    assert done.stdout.split() == ["0", "/usr/bin/python3", "/usr/bin/fio"], done
    made.ssh.stop()
    assert not made.ssh.greets()
    made.ssh.start()
    made.ssh.new_host_key()
    refused = subprocess.run([*ssh, "true"], capture_output=True, text=True, timeout=SOON, check=False)
    assert refused.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in refused.stderr
