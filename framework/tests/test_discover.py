"""Drafting a rig file from what a machine's sysfs says."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugpull.discover.rig_file import DEVICES, draft, usb_tree
from plugpull.discover.switches import tables
from plugpull.rig.load import load_rig
from plugpull.rig.model import Mechanism
from plugpull.rig.toml_text import toml_string, toml_value
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import FoundSwitch

PCI = "/sys/devices/pci0000:00"


class Machine(LocalHost):
    """A sysfs with two controllers: one with a USB 3 hub that has another hub in its second port, and a bare one."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.device("usb1", f"{PCI}/0000:00:14.0/usb1", 16, "xHCI Host Controller")
        self.device("usb2", f"{PCI}/0000:00:14.0/usb2", 10, "xHCI Host Controller")
        self.device("usb3", f"{PCI}/0000:00:1a.0/usb3", 2, "EHCI Host Controller")
        self.device("1-3", f"{PCI}/0000:00:14.0/usb1/1-3", 4, "USB2.0 Hub")
        self.device("2-3", f"{PCI}/0000:00:14.0/usb2/2-3", 4, "USB3.0 Hub")
        self.device("1-3.2", f"{PCI}/0000:00:14.0/usb1/1-3/1-3.2", 7, "Hub\x1b[31m")
        self.device("1-5", f"{PCI}/0000:00:14.0/usb1/1-5", 0, "Keyboard", "00")

    def device(self, name: str, real: str, ports: int, product: str, kind: str = "09") -> None:
        path = f"{DEVICES}/{name}"
        self.links[path] = real
        self.files |= {f"{path}/maxchild": f"{ports}\n", f"{path}/product": product, f"{path}/bDeviceClass": kind}

    def glob(self, pattern: str) -> tuple[str, ...]:
        if pattern.endswith("*"):
            return tuple(sorted(self.links))
        return (pattern,) if pattern in self.files or pattern in self.links else ()

    def read_text(self, path: str) -> str:
        return self.files[path]

    def real_path(self, path: str) -> str:
        return self.links[path]


def disk(kname: str, serial: str, place: str, driver: str = "usb-storage") -> dict[str, Any]:
    model = "Acme Disk\n\x1b[2J"
    return {"kname": kname, "serial": serial, "place": place, "driver": driver, "size": 64 << 20, "model": model}


def drafted(folder: Path, *disks: dict[str, Any], switches: tuple[str, ...] = ()) -> Path:
    file = folder / "draft.toml"
    file.write_text(draft("bench", {"kind": "local"}, usb_tree(Machine()), disks, switches))
    return file


def test_a_draft_is_a_rig_file_in_which_nothing_is_scratch(tmp_path: Path) -> None:
    disks = (
        disk("sda", "S1", "0000:00:14.0/1:0", "uas"),
        disk("sdb", 'S"2', "0000:00:14.0/3.2.4:0"),
        disk("sdc", "S3", "0000:00:14.0/3.1:0"),
        disk("nvme0n1", "N", "pci0000:00/0000:00:1d.0/nvme"),
    )
    table = '[[switch]]\nname = "hub"\ndriver = "uhubctl"\nlocation = "1-3"\nports = 4\nmechanism = "vbus"'
    file = drafted(tmp_path, *disks, switches=(table,))
    rig = load_rig(file)
    assert [(c.path, c.ports) for c in rig.controller] == [("0000:00:14.0", 16)], "the bare controller is no part of it"
    assert [(hub.name, hub.at, hub.ports) for hub in rig.hub] == [("hub1", "usb1.3", 4), ("hub2", "hub1.2", 7)]
    assert [(d.at, d.serial, d.protocol, d.scratch) for d in rig.disk] == [
        ("usb1.1", "S1", "uas", False),
        ("hub2.4", 'S"2', "usb-storage", False),
        ("hub1.1", "S3", "usb-storage", False),
    ]
    assert [switch.driver for switch in rig.switch] == ["uhubctl"]
    assert "\x1b" not in file.read_text()
    assert "nvme" not in file.read_text()


@pytest.mark.parametrize(
    ("doubtful", "why"),
    [
        (disk("sdb", "", "0000:00:14.0/2:0"), "it has no serial number"),
        (disk("sdb", "S1", "0000:00:14.0/2:0"), "another disk has the same serial number"),
        (disk("sdb", "S2", "0000:00:14.0/2:0.1.0"), "its unit 0.1.0 cannot be declared"),
        ({**disk("sr0", "S2", "0000:00:14.0/2:1"), "type": 5}, "it is not a disk: a CD-ROM"),
        (disk("sdb", "S2", "0000:00:14.0/9.9:0"), "its place could not be determined"),
    ],
)
def test_a_disk_that_cannot_be_told_is_left_out_with_the_reason(
    tmp_path: Path, doubtful: dict[str, Any], why: str
) -> None:
    first = disk("sda", "S0" if doubtful["serial"] != "S1" else "S1", "0000:00:14.0/1:0")
    third = disk("sdc", "S3", "0000:00:14.0/4:0")
    file = drafted(tmp_path, first, doubtful, third)
    assert f"# left out: {why}" in file.read_text()
    assert "sdb" not in [d.name for d in load_rig(file).disk]
    assert "S3" in [d.serial for d in load_rig(file).disk]


def test_units_of_one_device_are_declared_with_their_numbers(tmp_path: Path) -> None:
    units = [disk(f"sd{letter}", "T", f"0000:00:14.0/2:{lun}") for lun, letter in enumerate("ab")]
    found = load_rig(drafted(tmp_path, *units)).disk
    assert [(one.at, one.serial, one.lun) for one in found] == [("usb1.2", "T", 0), ("usb1.2", "T", 1)]


def test_the_two_halves_of_a_hub_that_have_different_places_are_told(tmp_path: Path) -> None:
    machine = Machine()
    machine.device("2-1", f"{PCI}/0000:00:14.0/usb2/2-1", 4, "USB3.1 Hub")
    one, other = f"{DEVICES}/1-0:1.0/usb1-port3/peer", f"{DEVICES}/2-0:1.0/usb2-port1/peer"
    machine.links |= {one: "/x/2-0:1.0/usb2-port1", other: "/x/1-0:1.0/usb1-port3"}
    disks = [disk("sda", "S1", "0000:00:14.0/3.1:0"), disk("sdb", "S2", "0000:00:14.0/1.2:0", "uas")]
    file = tmp_path / "draft.toml"
    file.write_text(draft("bench", {"kind": "local"}, usb_tree(machine), disks, ()))
    assert [(hub.name, hub.at) for hub in load_rig(file).hub] == [
        ("hub1", "usb1.1"),
        ("hub2", "usb1.3"),
        ("hub3", "hub2.2"),
    ]
    comments = [line for line in file.read_text().splitlines() if line.startswith("# One hub with ")]
    assert [comment.split()[4] for comment in comments] == ["hub2,", "hub1,"]


def test_this_machine_and_a_file_that_is_there_already(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "plugpull", "rig", "discover", "-o", "bench.toml"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert 'kind = "local"' in (tmp_path / "bench.toml").read_text()
    before = (tmp_path / "bench.toml").read_bytes()
    again = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert (tmp_path / "bench.toml").read_bytes() == before


# --- a machine that lies ----------------------------------------------------------------------------------------------

INJECTED = '"\n[[switch]]\nname = "x"\ndriver = "command"\non = "touch /tmp/owned"\n#'
PLAIN = st.text(st.characters(codec="utf-8"))


@given(PLAIN)
def test_a_string_is_read_back_as_it_was(text: str) -> None:
    assert tomllib.loads(f"key = {toml_string(text)}")["key"] == text


@given(st.text(st.characters()))
def test_any_string_makes_a_file_that_can_be_read(text: str) -> None:
    found = tomllib.loads(f"key = {toml_string(text)}")
    assert found == {"key": "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)}
    assert toml_string(text).isprintable()


@given(
    st.recursive(
        PLAIN | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(PLAIN, inner),
    )
)
def test_a_value_is_read_back_as_it_was(value: object) -> None:
    assert tomllib.loads(f"key = {toml_value(value)}")["key"] == value


def test_what_toml_does_not_have_is_no_value() -> None:
    for value in (None, float("nan"), b"x"):
        with pytest.raises(TypeError):
            toml_value(value)


@pytest.mark.parametrize("key", ["serial", "place", "model", "kname", "driver", "size"])
def test_a_disk_that_lies_puts_nothing_else_into_the_draft(tmp_path: Path, key: str) -> None:
    liar = disk("sdb", "S2", "0000:00:14.0/2:0")
    liar[key] = f"0000:00:14.0{INJECTED}/2:0" if key == "place" else INJECTED
    file = drafted(tmp_path, disk("sda", "S1", "0000:00:14.0/1:0"), liar)
    found = tomllib.loads(file.read_text())
    assert set(found) == {"rig", "dut", "controller", "hub", "disk"}
    assert found["disk"][0]["serial"] == "S1"
    assert "\ndriver" not in file.read_text()


@given(PLAIN)
def test_whatever_a_controller_is_called_the_draft_is_toml(name: str) -> None:
    machine = Machine()
    name = name.replace("/", "") + "x"
    machine.links = {path: real.replace("0000:00:14.0", name) for path, real in machine.links.items()}
    machine.files = {path: INJECTED if path.endswith("product") else text for path, text in machine.files.items()}
    text = draft("bench", {"kind": "local"}, usb_tree(machine), [disk("sda", "S1", f"{name}/3.1:0")], ())
    found = tomllib.loads(text)
    assert "switch" not in found
    assert all(each["path"] == name for each in found.get("controller", ()))


def test_a_switch_that_lies_is_only_the_switch_it_is() -> None:
    options: dict[str, Any] = {"serial": INJECTED, "channels": 2, 'odd "key"\n[[switch]]': "x"}
    (table,) = tables((FoundSwitch("ykush", "YKUSH", INJECTED, INJECTED, 3, options, Mechanism.VBUS),), via="dut")
    (found,) = tomllib.loads(table)["switch"]
    assert (found["driver"], found["serial"], found["channels"], found["via"]) == ("ykush", INJECTED, 2, "dut")
