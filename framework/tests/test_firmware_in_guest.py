"""Disks with a volatile cache in a real guest: what a data cut and a power cut leave of what was written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guests import Guest, guest
from rig_builder import a_rig

pytestmark = pytest.mark.bench

PORTS = ("1", "2", "3", "4")
DISKS = ("disk1", "disk2", "disk3")
LIAR = "disk4"
RIG = (
    a_rig("caches")
    .switch()
    .switch("mains", mechanism="mains")
    .stock_controller(rate="64 MiB/s")
    .disks(
        *DISKS,
        LIAR,
        serial="CACHE-{n}",
        size="16 MiB",
        cable="cables.{n}",
        power="mains.{n}",
        scratch=True,
        cache="2 MiB",
    )
    .having("disk2", protocol="uas", fua=True, logical_block=4096)
    .having("disk3", fua=True)
    .table("defect", kind="cache-lied", disk=LIAR)
    .text
)
FLUSHED, CACHED, FORCED = (bytes([value]) * 4096 for value in (0x11, 0x22, 0x33))
AT = {FLUSHED: 0, CACHED: 1 << 16, FORCED: 1 << 17}

WRITE = """
import mmap, os, sys
device, at, value, how = sys.argv[1:]
page = mmap.mmap(-1, 4096)
page[:] = bytes([int(value)]) * 4096
disk = os.open(device, os.O_RDWR | os.O_DIRECT | (os.O_DSYNC if how == "forced" else 0))
assert os.pwrite(disk, page, int(at)) == 4096
if how == "flushed":
    os.fsync(disk)
"""
READ = """
import mmap, os, sys
page = mmap.mmap(-1, 4096)
disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
for at in sys.argv[2:]:
    assert os.preadv(disk, [page], int(at)) == 4096
    print(page[:1].hex() if len(set(page[:])) == 1 else "mixed")
"""


@pytest.fixture(scope="module")
def dut() -> Iterator[Guest]:
    with guest(RIG) as started:
        yield started


def run(dut: Guest, *argv: str) -> str:
    answer = dut.call("device", do="run", argv=["python3", "-c", *argv], timeout=60.0)
    assert answer["status"] == 0, answer
    return str(answer["stdout"])


def device(dut: Guest, disk: str) -> str:
    attached = dut.bench.disk_table.attached(disk)
    assert attached is not None
    return f"/dev/{attached.kname}"


def caching(dut: Guest, disk: str) -> str:
    """What the kernel believes of the disk's cache."""
    name = device(dut, disk).removeprefix("/dev/")
    return run(dut, f"print(open('/sys/block/{name}/queue/write_cache').read())").strip()


def write(dut: Guest, disk: str, data: bytes, how: str) -> None:
    run(dut, WRITE, device(dut, disk), str(AT[data]), str(data[0]), how)


def read(dut: Guest, disk: str) -> str:
    return run(dut, READ, device(dut, disk), *map(str, AT.values()))


def on_medium(dut: Guest, disk: str) -> list[bool]:
    medium = dut.medium(disk).read_bytes()
    return [medium[at : at + 4096] == data for data, at in AT.items()]


def plug_all(dut: Guest, outlets: str) -> None:
    for port in PORTS:
        dut.plug(outlets, port)


def test_a_data_cut_keeps_the_cache_and_a_power_cut_loses_it(dut: Guest) -> None:
    assert [caching(dut, disk) for disk in (*DISKS, LIAR)] == ["write back"] * 3 + ["write through"]
    write(dut, LIAR, FLUSHED, "flushed")
    for disk in DISKS:
        write(dut, disk, FLUSHED, "flushed")
        write(dut, disk, CACHED, "")
    before = {disk: dut.bench.firmware(disk).counters() for disk in DISKS}
    for disk in DISKS:
        assert before[disk]["dirty_bytes"] == 4096
        assert on_medium(dut, disk) == [True, False, False]

    dut.unplug("cables", *PORTS)
    # Neither QEMU nor the guest flushed what was unplugged.
    assert {disk: dut.bench.firmware(disk).counters() for disk in DISKS} == before
    plug_all(dut, "cables")
    assert read(dut, LIAR).split() == ["11", "00", "00"]
    for disk in DISKS:
        assert read(dut, disk).split() == ["11", "22", "00"]
        assert dut.bench.firmware(disk).counters()["flushes"] == before[disk]["flushes"]

    for disk in ("disk2", "disk3"):
        write(dut, disk, FORCED, "forced")
    write(dut, "disk2", CACHED, "")  # QEMU makes a flush of FUA, which took this along
    write(dut, "disk3", CACHED, "")
    flushes = {disk: dut.bench.firmware(disk).counters()["flushes"] for disk in DISKS}
    dut.unplug("mains", *PORTS)
    for disk in DISKS:
        counted = dut.bench.firmware(disk).counters()
        assert (counted["flushes"], counted["dirty_bytes"]) == (flushes[disk], 4096)
    # What went with the caches is on record.
    history = (dut.directory / "history.jsonl").read_text()
    assert history.count("4096 bytes were lost with the disk's cache") == len(DISKS) + 1
    assert history.count("defect made on purpose: cache-lied") == 1
    plug_all(dut, "mains")
    assert read(dut, LIAR).split() == ["00", "00", "00"]
    assert read(dut, "disk1").split() == ["11", "00", "00"]
    for disk in ("disk2", "disk3"):
        assert read(dut, disk).split() == ["11", "22", "33"]
        assert dut.bench.firmware(disk).counters()["dirty_bytes"] == 0
