"""What the agent reads from the kernel: sysfs trees as kernels make them, records of the kernel log, uevents."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sysfs_tree import Sysfs

from plugpull.dut.agent.attributes import read_attribute, read_attributes, read_lines
from plugpull.dut.agent.disks import (
    Refused,
    all_disks,
    compare,
    describe,
    refuse_twins,
    scsi_place,
    usb_place,
)
from plugpull.dut.agent.kmsg import parse_record
from plugpull.dut.agent.properties import properties
from plugpull.dut.agent.timers import Timers
from plugpull.dut.agent.uevents import parse_uevent

PCI = "pci0000:00/0000:00:05.0"


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def described(sysfs: Sysfs, kname: str) -> dict[str, object]:
    found = describe(kname, str(sysfs.root))
    assert found is not None
    return found


def test_a_usb_disk_is_described_by_the_usb_device_it_hangs_off(sysfs: Sysfs) -> None:
    base = sysfs.usb_disk("sda", f"{PCI}/usb2/2-1", "uas", "SERIAL-1")
    assert described(sysfs, "sda") == {
        "kname": "sda",
        "devt": "8:16",
        "diskseq": 1,
        "size": 16 << 20,
        "serial": "SERIAL-1",
        "place": "0000:00:05.0/1:0",
        "sockets": [],
        "driver": "uas",
        "speed": "5000",
        "model": "QEMU QEMU HARDDISK",
        "read_only": False,
        "type": 0,
        "sysfs": str(base),
    }


def test_a_disk_that_is_leaving_has_no_driver(sysfs: Sysfs) -> None:
    sysfs.usb_disk("sda", f"{PCI}/usb2/2-1", "uas", "SERIAL-1")
    (link,) = (sysfs.root / "devices").rglob("2-1:1.0/driver")
    link.unlink()
    assert described(sysfs, "sda")["driver"] == ""


def test_behind_hubs_the_nearest_usb_device_counts_and_every_port_is_given(sysfs: Sysfs) -> None:
    sysfs.write(sysfs.root / "devices" / f"{PCI}/usb1/1-3", serial="THE-HUB", speed="480")
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-3/1-3.2/1-3.2.4", "usb-storage", "BEHIND-HUBS")
    found = described(sysfs, "sda")
    assert (found["place"], found["serial"]) == ("0000:00:05.0/3.2.4:0", "BEHIND-HUBS")
    assert found["driver"] == "usb-storage"


def test_two_disks_in_one_enclosure_differ_by_their_lun(sysfs: Sysfs) -> None:
    usb = f"{PCI}/usb1/1-1"
    sysfs.usb_disk("sda", usb, "usb-storage", "ENCLOSURE", lun=0)
    interface = f"{usb}/1-1:1.0/host0/target0:0:0/0:0:0:1"
    sysfs.write(sysfs.root / "devices" / interface, vendor="X", model="Y")
    sysfs.disk("sdb", interface)
    places = {str(disk["kname"]): disk["place"] for disk in all_disks(str(sysfs.root))}
    assert places == {"sda": "0000:00:05.0/1:0", "sdb": "0000:00:05.0/1:1"}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0/usb3/3-2/3-2:1.0/block/sda", "0000:01:00.0/2:0"),
        ("/sys/devices/platform/soc/fd500000.pcie/pci0000:00/0000:01:00.0/usb2/2-1/2-1:1.0", "0000:01:00.0/1:0"),
        ("/sys/devices/platform/axi/1f00200000.usb/xhci-hcd.0/usb1/1-2/1-2:1.0/block/sda", "xhci-hcd.0/2:0"),
        ("/sys/devices/platform/axi/1f00300000.usb/xhci-hcd.1/usb3/3-2/3-2:1.0/block/sda", "xhci-hcd.1/2:0"),
        ("/sys/devices/platform/vhci_hcd.0/usb5/5-1/5-1:1.0/host0/target0:0:0/0:0:0:0", "vhci_hcd.0/1:0"),
        ("/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda", None),
        ("/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1", None),
        ("/sys/devices/virtual/block/loop0", None),
    ],
)
def test_the_place_names_the_controller_whatever_bus_it_is_on(path: str, place: str | None) -> None:
    assert usb_place(path) == place


def test_a_disk_that_hangs_off_no_usb_has_its_path_and_its_scsi_serial(sysfs: Sysfs) -> None:
    scsi = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0"
    device = sysfs.write(
        sysfs.root / "devices" / scsi, vendor="ATA", model="DISK", vpd_pg80=b"\x00\x80\x00\x0a    SATA-1  "
    )
    sysfs.driver(device, "sd")
    sysfs.disk("sda", scsi)
    found = described(sysfs, "sda")
    assert (found["serial"], found["driver"], found["speed"]) == ("SATA-1", "sd", "")
    assert found["place"] == scsi + "/block"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("pci0000:00/0000:00:11.0/virtio3/host0/target0:0:3/0:0:3:0", "0000:00:11.0/3:0"),
        ("pci0000:00/0000:00:01.0/0000:03:00.0/host2/port-2:0/end_device-2:0/target2:0:7/2:0:7:1", "0000:03:00.0/7:1"),
        ("pci0000:00/0000:00:07.0/host0/target0:2:5/0:2:5:0", "0000:00:07.0/2.5:0"),
        ("pci0000:00/0000:00:1f.2/ata4/host3/target3:0:0/3:0:0:0", "0000:00:1f.2/2:0"),
    ],
)
def test_a_disk_of_a_scsi_or_sata_controller_is_at_its_target_or_port(sysfs: Sysfs, path: str, place: str) -> None:
    devices = sysfs.root / "devices"
    sysfs.write(devices / "pci0000:00/0000:00:1f.2/ata4/ata_port/ata4", port_no="2")
    sysfs.driver(sysfs.write(devices / path), "sd")
    (function,) = [one for one in (devices / path).parents if one.name == place.partition("/")[0]]
    sysfs.driver(function, "the_hba")
    sysfs.disk("sda", path)
    found = described(sysfs, "sda")
    assert (found["place"], found["driver"], found["sockets"]) == (place, "the_hba", [])


def test_without_the_number_of_its_port_a_sata_disk_has_no_such_place() -> None:
    assert scsi_place("/sys/devices/pci0000:00/0000:00:1f.2/ata4/host3/target3:0:0/3:0:0:0") is None


def test_only_disks_with_a_device_behind_them_are_listed(sysfs: Sysfs) -> None:
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "REAL")
    for kname in ("loop0", "md127", "dm-0", "ram0", "zram0"):
        sysfs.disk(kname, "")
    assert [disk["kname"] for disk in all_disks(str(sysfs.root))] == ["sda"]


def test_a_disk_that_goes_while_it_is_looked_at_is_left_out(sysfs: Sysfs) -> None:
    base = sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "GOING")
    sysfs.usb_disk("sdb", f"{PCI}/usb1/1-2", "uas", "STAYING")
    (base / "dev").unlink()
    assert describe("sda", str(sysfs.root)) is None
    assert describe("sdz", str(sysfs.root)) is None
    assert [disk["kname"] for disk in all_disks(str(sysfs.root))] == ["sdb"]


def test_a_link_that_goes_between_seeing_and_reading_it(sysfs: Sysfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """``os.path.realpath`` raises then, of whatever Python it is."""
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "GOING")
    timers, disk = Timers(str(sysfs.root)), describe("sda", str(sysfs.root))
    assert disk is not None
    timers.shorten(["GOING"], guarded=False)

    def gone(path: str, **_: object) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("os.path.realpath", gone)
    found = properties("sda", str(sysfs.root))
    assert found["size"]
    assert "driver" not in found
    assert timers.attached(disk) == {"changed": [], "failed": {}}


def test_a_kernel_before_5_15_gives_no_sequence_number(sysfs: Sysfs) -> None:
    (sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "OLD") / "diskseq").unlink()
    assert described(sysfs, "sda")["diskseq"] == 0


@pytest.mark.parametrize(
    ("page", "serial"),
    [
        (b"  SPACES  \n", "SPACES"),
        (b"NUL\0\0\n", "NUL"),
        (b"\n", ""),
        (b"\xff\xfe\n", "\ufffd\ufffd"),
        ("ÄÖ-1\n".encode(), "ÄÖ-1"),
    ],
)
def test_a_strange_serial_number_is_read_all_the_same(sysfs: Sysfs, page: bytes, serial: str) -> None:
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", page)
    assert described(sysfs, "sda")["serial"] == serial


def test_a_write_protected_disk_says_so(sysfs: Sysfs) -> None:
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "RO", ro="1")
    assert described(sysfs, "sda")["read_only"] is True


# --- which socket -----------------------------------------------------------------------------------------------------


def bus(sysfs: Sysfs, number: int, version: str, pci: str = PCI) -> Path:
    """A bus of a controller; ``version`` is what its root hub says of itself."""
    return sysfs.write(sysfs.root / "devices" / pci / f"usb{number}", version=version)


def port(sysfs: Sysfs, usb: str, peer: str = "") -> None:
    """The link from a device to the port it is plugged into, and from there to the other half of its socket."""
    device = sysfs.root / "devices" / usb
    hub = device.parent
    above = f"{hub.name.removeprefix('usb')}-0:1.0" if hub.name.startswith("usb") else f"{hub.name}:1.0"
    number = device.name.replace("-", ".").rpartition(".")[2]
    there = sysfs.write(hub / above / f"{hub.name}-port{number}")
    (device / "port").symlink_to(there)
    if peer:
        (there / "peer").symlink_to(sysfs.write(sysfs.root / "devices" / peer))


def test_port_1_of_one_bus_is_not_port_1_of_the_other(sysfs: Sysfs) -> None:
    bus(sysfs, 1, " 2.00")
    bus(sysfs, 2, " 3.10")
    for kname, usb in (("sda", f"{PCI}/usb1/1-1"), ("sdb", f"{PCI}/usb2/2-1")):
        sysfs.usb_disk(kname, usb, "uas", "FACTORY")
        port(sysfs, usb)
    one, other = described(sysfs, "sda"), described(sysfs, "sdb")
    assert one["place"] == other["place"] == "0000:00:05.0/1:0"
    assert (one["sockets"], other["sockets"]) == (["0000:00:05.0/usb2-1:0"], ["0000:00:05.0/usb3-1:0"])


def test_a_disk_that_falls_back_to_high_speed_is_in_the_same_socket(sysfs: Sysfs) -> None:
    for number, version in ((1, " 2.00"), (2, " 3.20")):
        bus(sysfs, number, version)
        sysfs.write(sysfs.root / "devices" / PCI / f"usb{number}/{number}-{'3' if number == 1 else '4'}")
    fast, slow = f"{PCI}/usb2/2-4/2-4.2", f"{PCI}/usb1/1-3/1-3.2"
    sysfs.usb_disk("sda", fast, "uas", "S")
    port(sysfs, fast, peer=f"{PCI}/usb1/1-3/1-3:1.0/1-3-port2")
    sysfs.usb_disk("sdb", slow, "usb-storage", "S")
    port(sysfs, slow, peer=f"{PCI}/usb2/2-4/2-4:1.0/2-4-port2")
    before, after = described(sysfs, "sda"), described(sysfs, "sdb")
    assert before["sockets"] == ["0000:00:05.0/usb3-4.2:0", "0000:00:05.0/usb2-3.2:0"]
    assert after["sockets"] == ["0000:00:05.0/usb2-3.2:0", "0000:00:05.0/usb3-4.2:0"]
    wanted = {key: before[key] for key in ("serial", "place", "size", "sockets")}
    compare("sdb", after, wanted)
    with pytest.raises(Refused, match=r"place is '0000:00:05.0/3.2:0', expected '0000:00:05.0/4.2:0'"):
        compare("sdb", after, {**wanted, "sockets": []})
    with pytest.raises(Refused, match=r"place is '0000:00:05.0/3.2:0', expected '0000:00:05.0/7:0'"):
        compare("sdb", after, {**wanted, "place": "0000:00:05.0/7:0"})


def test_a_bridge_with_the_same_serial_number_in_another_socket_is_another_disk(sysfs: Sysfs) -> None:
    test_port_1_of_one_bus_is_not_port_1_of_the_other(sysfs)
    one, other = described(sysfs, "sda"), described(sysfs, "sdb")
    wanted = {key: one[key] for key in ("serial", "place", "size", "sockets")}
    compare("sda", one, wanted)
    with pytest.raises(Refused, match=r"it is in the socket 0000:00:05.0/usb3-1:0, expected 0000:00:05.0/usb2-1:0"):
        compare("sdb", other, wanted)


def test_two_bridges_with_one_serial_number_and_size_are_both_refused(sysfs: Sysfs) -> None:
    root = str(sysfs.root)
    sysfs.usb_disk("sda", f"{PCI}/usb1/1-1", "uas", "FACTORY")
    refuse_twins(described(sysfs, "sda"), root)
    sysfs.usb_disk("sdb", f"{PCI}/usb1/1-2", "uas", "OTHER")
    sysfs.usb_disk("sdc", f"{PCI}/usb1/1-3", "uas", "FACTORY", size="65536")
    refuse_twins(described(sysfs, "sda"), root)
    sysfs.usb_disk("sdd", f"{PCI}/usb2/2-1", "uas", "FACTORY")
    for kname in ("sda", "sdd"):
        with pytest.raises(Refused, match=r"both have the serial number FACTORY and 16777216 bytes"):
            refuse_twins(described(sysfs, kname), root)


def test_two_disks_behind_one_bridge_are_told_apart_by_their_places(sysfs: Sysfs) -> None:
    test_two_disks_in_one_enclosure_differ_by_their_lun(sysfs)
    refuse_twins(described(sysfs, "sda"), str(sysfs.root))


@pytest.mark.parametrize(
    ("address", "place"), [("0:0:0:2", "1:2"), ("7:0:1:0", "1:0.1.0"), ("7:1:0:3", "1:1.0.3"), ("12:0:0:0", "1:0")]
)
def test_targets_of_one_bridge_have_places_of_their_own(address: str, place: str) -> None:
    assert usb_place(f"/sys/devices/{PCI}/usb1/1-1/1-1:1.0/host7/target7:0:0/{address}") == f"0000:00:05.0/{place}"


# --- the kernel log ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "record"),
    [
        # As in Documentation/ABI/testing/dev-kmsg.
        (
            b"7,160,424069,-;pci_root PNP0A03:00: host bridge window\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n",
            (7, 160, 0.424069, "pci_root PNP0A03:00: host bridge window", 0),
        ),
        (
            b"6,339,5140900,-;NET: Registered protocol family 10\n",
            (6, 339, 5.1409, "NET: Registered protocol family 10", 0),
        ),
        (b"30,340,5690716,-;udevd[80]: starting\n", (6, 340, 5.690716, "udevd[80]: starting", 3)),
        (b"6,1,0,-,caller=T1;text; with; semicolons\n", (6, 1, 0.0, "text; with; semicolons", 0)),
        (rb"4,2,1000000,c;a \x5c b \x0a c \xc3\xa4" + b"\n", (4, 2, 1.0, "a \\ b \n c ä", 0)),
        (rb"4,3,1000000,-;half \xc3 a letter" + b"\n", (4, 3, 1.0, "half \ufffd a letter", 0)),
        (b"4,4,1000000,-;\n", (4, 4, 1.0, "", 0)),
        (b"12,5,1000000,-;a process wrote this\n", (4, 5, 1.0, "a process wrote this", 1)),
        (b"", None),
        (b"no record\n", None),
        (b"6,1;too few\n", None),
        (b"six,1,2,-;text\n", None),
    ],
)
def test_records_of_the_kernel_log(data: bytes, record: tuple[int, int, float, str, int] | None) -> None:
    assert parse_record(data) == record


def test_uevents_are_told_from_other_messages_on_the_socket() -> None:
    data = b"remove@/devices/a\0ACTION=remove\0DEVPATH=/devices/a\0SUBSYSTEM=block\0DEVNAME=s=d\0\0"
    assert parse_uevent(data) == {
        "ACTION": "remove",
        "DEVPATH": "/devices/a",
        "SUBSYSTEM": "block",
        "DEVNAME": "s=d",
    }
    assert parse_uevent(b"libudev\0\xfe\xed\xca\xfeACTION=add\0") == {}
    assert parse_uevent(b"") == {}


# --- files of the kernel ----------------------------------------------------------------------------------------------


def test_an_attribute_is_read_at_once_and_a_file_of_lines_to_its_end(tmp_path: Path) -> None:
    """A second read of an attribute may return the tail of a later value; a list is longer than one read."""
    path = tmp_path / "array_state"
    os.mkfifo(path)

    def write() -> None:
        with open(path, "wb", buffering=0) as file:
            file.write(b"active\n")
            time.sleep(0.3)  # so that it is not one read
            with suppress(BrokenPipeError):
                file.write(b"idle\n")

    def read_one(path: str) -> str:
        return read_attributes(os.path.dirname(path), {"state": os.path.basename(path)})["state"]

    for read, expected in ((read_attribute, "active"), (read_one, "active"), (read_lines, ["active", "idle"])):
        writer = threading.Thread(target=write)
        writer.start()
        assert read(str(path)) == expected
        writer.join()
    assert read_attribute(str(tmp_path), "gone") == ""
    assert read_lines(str(tmp_path), "gone") == []


def test_attributes_of_one_folder_are_those_that_can_be_read(tmp_path: Path) -> None:
    Sysfs(tmp_path).write(tmp_path / "queue", depth="30", empty="")
    (tmp_path / "link").symlink_to("queue")
    paths = {"depth": "queue/depth", "linked": "link/depth", "empty": "queue/empty", "gone": "gone", "folder": "queue"}
    assert read_attributes(str(tmp_path), paths) == {"depth": "30", "linked": "30"}
    assert read_attributes(str(tmp_path / "gone"), paths) == {}
    assert read_attributes(str(tmp_path / "queue" / "depth"), paths) == {}
