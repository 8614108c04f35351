"""The driver for EnerGenie strips through the real sispmctl, its libusb and the guest's kernel, to a strip's bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boards import Nobody
from chains import EVERYTHING, run_here
from long_tests import only_if_asked
from test_lab_chains import assert_cut_and_passed

from fixtures.boards.board import Lie
from fixtures.gadgets.plugged import Plugged, plugged
from fixtures.lab import Lab, LabUnavailable, desk, lab
from plugpull.dut.real.dut_host import DutHost
from plugpull.errors import RigError
from plugpull.rig.model import DeclaredSwitch
from plugpull.switches.base import Switch
from plugpull.switches.host import Completed
from plugpull.switches.kinds import kind_named, open_switch

pytestmark = pytest.mark.bench
SERIAL, OTHER = "01:01:51:4c:e3", "01:02:03:04:05"
PATIENT, HASTY = 30.0, 1.0
"""Seconds a strip gets where it answers, and where it does not."""
SLACK = 10.0
"""Seconds beyond a deadline, for a guest on a busy machine."""
LATE = 2.0
DISOBEYED = "port 1 was switched off, and reading it back says it is on"
LIES = {
    Lie.SILENT: (HASTY, "sispmctl did not end within"),
    Lie.HALF: (PATIENT, "ended with status 251: Error performing requested action"),
    Lie.OTHER: (PATIENT, DISOBEYED),
    Lie.STUCK: (PATIENT, DISOBEYED),
    Lie.STALE: (PATIENT, DISOBEYED),
    Lie.LATE: (HASTY, "sispmctl did not end within"),
}
RIG = f"""\
[[switch]]
name = "strip"
driver = "sispmctl"
via = "dut"
ports = 4
mechanism = "mains"
serial = "{SERIAL}"
timeout = {PATIENT}
"""


@pytest.fixture(scope="module")
def made() -> Iterator[Lab]:
    # Serial numbers of its own: a rig is leased by those of its disks.
    rig = desk(2, size="16 MiB").replace("LAB-", "SIS-")
    try:
        with lab(rig, EVERYTHING) as made:
            yield made
    except LabUnavailable as why:
        pytest.skip(str(why))


class UserHost(DutHost):
    """The guest, for somebody who is not root."""

    def run(self, argv: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        become = (
            "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execvp(sys.argv[1], sys.argv[1:])"
        )
        return super().run(["python3", "-c", become, *argv], timeout, environment)


def opened(host: DutHost, timeout: float = PATIENT, **options: Any) -> Switch:
    table = {"driver": "sispmctl", "ports": 4, "mechanism": "mains", "serial": SERIAL, "timeout": timeout, **options}
    return open_switch(DeclaredSwitch.model_validate({"name": "sw", **table}), host, Nobody())


@contextmanager
def refused(says: str, within: float = PATIENT) -> Iterator[None]:
    """The block ends in a RigError that says which switch and how to fix it, in time."""
    begun = time.monotonic()
    with pytest.raises(RigError) as caught:
        yield
    assert says in caught.value.what
    assert caught.value.what.startswith("switch sw (EnerGenie strip, serial ")
    assert caught.value.hint
    assert time.monotonic() - begun < within + SLACK


def found(host: DutHost) -> list[tuple[str, int]]:
    """Serial numbers and outlets of the strips that ``plugpull switch list`` would name."""
    find = kind_named("sispmctl").find
    assert find is not None
    return sorted((strip.serial, strip.ports) for strip in find(host))


def wait_found(host: DutHost, *wanted: tuple[str, int]) -> None:
    deadline = time.monotonic() + PATIENT
    while (last := found(host)) != list(wanted):
        assert time.monotonic() < deadline, last
        time.sleep(0.1)  # sispmctl can only be asked


def hears_the_truth_again(host: DutHost, double: Plugged) -> Switch:
    double.lie(Lie.NONE)
    wait_found(host, (SERIAL, 4))
    return opened(host)


def test_a_strip_obeys_and_its_lies_are_found(made: Lab) -> None:
    host = DutHost(made.link)
    with plugged(made, "energenie", "--late", str(LATE), serial=SERIAL) as double:
        wait_found(host, (SERIAL, 4))
        switch = opened(host, serial=SERIAL.upper())
        assert switch.capabilities.read_back
        edge = switch.set("3", False)
        assert edge.commanded < edge.acknowledged
        assert [switch.read(port) for port in "1234"] == [True, True, False, True]
        switch.set_many(["1", "3"], True)
        switch.set("4", False)
        assert [switch.read(port) for port in "1234"] == [True, True, True, False]
        moved = [line for line in double.said().splitlines() if line.startswith("port")]
        assert moved == ["port 3 off", "port 3 on", "port 4 off"]
        for lie, (within, says) in LIES.items():
            switch.set("1", True)
            hasty = opened(host, within)
            double.lie(lie)
            with refused(says, within):
                hasty.set("1", False)
            switch = hears_the_truth_again(host, double)
        double.lie(Lie.UNPLUGGED)
        with refused("ended with status"):
            switch.set("1", True)
        with refused("no strip with this serial number is attached to the DUT; found: none"):
            opened(host)
        switch = hears_the_truth_again(host, double)
        switch.set("1", True)
        assert switch.read("1") is True


def test_strips_that_are_not_the_one_that_is_meant(made: Lab) -> None:
    host = DutHost(made.link)
    with plugged(made, "energenie", "--product", "fd15", serial=SERIAL):
        wait_found(host, (SERIAL, 4))
        with refused(f"found: {SERIAL}"):
            opened(host, serial=OTHER)
        with refused("found: none (sispmctl: No GEMBIRD SiS-PM found"):
            opened(UserHost(made.link))
        made.run(["sh", "-c", "chmod 664 /dev/bus/usb/*/*"])  # as udev does, which does not run here
        with refused("could not set config 1: Operation not permitted"):
            opened(UserHost(made.link))
        with plugged(made, "energenie", "--product", "fd12", serial=OTHER) as small:
            wait_found(host, (SERIAL, 4), (OTHER, 1))
            with refused("has 1 port, and the rig file says ports = 4"):
                opened(host, serial=OTHER)
            opened(host, ports=1, serial=OTHER).set("1", False)
            assert opened(host).read("1") is True
            assert "port 1 off" in small.said()
        with (
            plugged(made, "energenie", serial=SERIAL),
            refused("2 strips with this serial number are attached to the DUT"),
        ):
            wait_found(host, (SERIAL, 4), (SERIAL, 4))
            opened(host)


@only_if_asked
def test_ssh_dut_and_a_strip_that_feeds_its_disks(made: Lab, tmp_path: Path) -> None:
    rig = made.rig_file("ssh", RIG, powers={"disk1": "strip.1", "disk2": "strip.2"})
    with plugged(made, "energenie", serial=SERIAL, cuts={1: "disk1 power", 2: "disk2 power"}) as double:
        assert_cut_and_passed(run_here(rig, "test_a_disk_dies_in_use", tmp_path / "out"), "mains")
        said = double.said()
    assert [cut[1:] for cut in made.cuts] == [("power", False), ("power", True)], said
