"""USB hubs that switch their ports: uhubctl, and the kernel's own attribute."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, opened

from plugpull.errors import RigError
from plugpull.switches import port_disable, uhubctl
from plugpull.switches.host_local import LocalHost
from plugpull.switches.usb_hub import HubPort, halves_of, port_of

TWO_HALVES = """\
Current status for hub 2-1 [2109:0817 VIA Labs, Inc. USB3.0 Hub, USB 3.20, 4 ports, ppps]
  Port 1: 02a0 power 5gbps Rx.Detect
Sent power off request
New status for hub 2-1 [2109:0817 VIA Labs, Inc. USB3.0 Hub, USB 3.20, 4 ports, ppps]
  Port 1: 0080 off
Current status for hub 1-1 [2109:2817 VIA Labs, Inc. USB2.0 Hub 0001, USB 2.10, 4 ports, ganged]
  Port 1: 0503 power highspeed enable connect [0781:5583 SanDisk Ultra Fit 4C530]
  Port 2: 0000 off
"""


def test_the_newest_state_of_each_hub_counts() -> None:
    hubs = uhubctl.parse_hubs(TWO_HALVES)
    assert hubs["2-1"].powered == {1: False}
    assert hubs["1-1"].powered == {1: True, 2: False}
    assert (hubs["2-1"].per_port, hubs["1-1"].per_port, hubs["1-1"].ports) == (True, False, 4)


def test_without_a_hub_uhubctl_has_nothing_to_switch(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"switch sw.*uhubctl .* status 1: No compatible devices") as raised:
        opened("uhubctl", tmp_path, mechanism="vbus", location="9-9")
    assert "is the hub plugged in there" in str(raised.value)


def test_a_program_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RigError, match="cannot run uhubctl: No such file or directory"):
        opened("uhubctl", tmp_path, mechanism="vbus", location="1-1")


class Sysfs(LocalHost):
    """This machine, with another sysfs."""

    def __init__(self, files: dict[str, str], links: dict[str, str] | None = None, stuck: bool = False) -> None:
        self.files = files
        self.links = links or {}
        self.stuck = stuck

    def glob(self, pattern: str) -> tuple[str, ...]:
        known = {*self.files, *self.links, *(path.rpartition("/")[0] for path in self.files)}
        return (pattern,) if pattern in known else ()

    def real_path(self, path: str) -> str:
        return self.links.get(path, path)

    def read_text(self, path: str) -> str:
        return self.files[path]

    def write_text(self, path: str, text: str) -> None:
        if not self.stuck:
            self.files[path] = f"{text}\n"


USB2, USB3 = HubPort("1-1", 2), HubPort("2-1", 3)


def usb3_hub(stuck: bool = False) -> Sysfs:
    files = {f"{half.path}/disable": "0\n" for half in (HubPort("1-1", 1), USB2, USB3)}
    return Sysfs(files, {f"{USB2.path}/peer": USB3.path}, stuck)


def test_halves_of_a_socket_are_what_the_kernel_says() -> None:
    assert halves_of(usb3_hub(), "1-1", 2) == (USB2, USB3)
    assert halves_of(usb3_hub(), "1-1", 1) == (HubPort("1-1", 1),)
    assert HubPort("2", 1).path == "/sys/bus/usb/devices/2-0:1.0/usb2-port1"
    assert port_of("usb2-port1") == HubPort("2", 1)
    assert port_of("2-1.4-port3") == HubPort("2-1.4", 3)
    assert port_of("peer") is None
    with pytest.raises(RigError, match="there is no port 7 of hub 1-1 on this machine"):
        halves_of(usb3_hub(), "1-1", 7)


def test_the_kernels_attribute_disables_both_halves(tmp_path: Path) -> None:
    sysfs = usb3_hub()
    switch = opened("port-disable", tmp_path, sysfs, mechanism="logical", location="1-1")
    switch.set("2", False)
    assert (sysfs.files[f"{USB2.path}/disable"], sysfs.files[f"{USB3.path}/disable"]) == ("1\n", "1\n")
    assert switch.read("2") is False
    switch.set("2", True)
    assert switch.read("2") is True
    with pytest.raises(RigError, match="has no port 3"):
        switch.set("3", False)


def test_an_attribute_that_does_not_take_what_is_written(tmp_path: Path) -> None:
    switch = opened("port-disable", tmp_path, usb3_hub(stuck=True), mechanism="logical", location="1-1")
    with pytest.raises(RigError, match="was switched off, and reading it back says it is on"):
        switch.set("2", False)


def test_the_kernels_attribute_is_logical_and_nothing_else() -> None:
    assert {mechanism.value for mechanism in port_disable.KIND.mechanisms} == {"logical"}


def test_how_uhubctl_cuts_has_its_own_mechanism(tmp_path: Path) -> None:
    with pytest.raises(RigError, match='by a request to the hub is cut by vbus, and the rig file says "logical"'):
        opened("uhubctl", tmp_path, mechanism="logical", location="1-1")
    with pytest.raises(RigError, match='is cut by logical, and the rig file says "vbus"'):
        opened("uhubctl", tmp_path, mechanism="vbus", location="1-1", raw=False)


@settings(max_examples=FUZZ, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(TWO_HALVES.splitlines()), max_size=8).map("\n".join)))
def test_whatever_uhubctl_prints_is_read(text: str) -> None:
    for hub in uhubctl.parse_hubs(text).values():
        assert all(isinstance(state, bool) for state in hub.powered.values())
        assert hub.ports >= 0
