"""The driver for hwmon chips through the guest's own kernel: its ltc4151 driver on an emulated I2C chip (i2c-stub)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from long_tests import only_if_asked
from meter_doubles import opened_meter

from fixtures.lab import Lab, LabUnavailable, desk, lab
from plugpull.dut.real.dut_host import DutHost
from plugpull.errors import RigError
from plugpull.meters.base import Meter
from plugpull.meters.hwmon import find

pytestmark = [pytest.mark.bench, only_if_asked]
ADDRESS = 0x6F
SOON = 60.0
"""Seconds in which a chip must have a value; generous, because the machine may be busy."""
SET = """
import ctypes, fcntl, os, sys
bus, registers = sys.argv[1], sys.argv[2:]
class Message(ctypes.Structure):
    _fields_ = [("write", ctypes.c_uint8), ("command", ctypes.c_uint8)]
    _fields_ += [("size", ctypes.c_uint32), ("data", ctypes.c_void_p)]
fd = os.open("/dev/i2c-" + bus, os.O_RDWR)
fcntl.ioctl(fd, 0x0706, %d)  # I2C_SLAVE_FORCE: the kernel's driver has the address
for each in registers:
    number, value = map(int, each.split("="))
    data = (ctypes.c_uint8 * 34)(value)
    fcntl.ioctl(fd, 0x0720, Message(0, number, 2, ctypes.addressof(data)))  # I2C_SMBUS, a byte of data
"""
"""Writes registers of the chip, as include/uapi/linux/i2c-dev.h has it: BUS NUMBER=VALUE..."""


@pytest.fixture(scope="module")
def made() -> Iterator[Lab]:
    try:
        with lab(desk(1, size="16 MiB").replace("LAB-", "MET-"), frozenset({"hwmon"})) as made:
            yield made
    except LabUnavailable as why:
        pytest.skip(str(why))


@pytest.fixture
def chip(made: Lab) -> Iterator[DutHost]:
    host = DutHost(made.link)
    attach(host)
    yield host
    detach(host)


def bus_of(host: DutHost) -> str:
    buses = [path for path in host.glob("/sys/bus/i2c/devices/i2c-*") if "stub" in host.read_text(f"{path}/name")]
    assert len(buses) == 1, buses
    return buses[0].rpartition("-")[2]


def attach(host: DutHost) -> None:
    host.write_text(f"/sys/bus/i2c/devices/i2c-{bus_of(host)}/new_device", f"ltc4151 {ADDRESS:#x}")


def detach(host: DutHost) -> None:
    host.write_text(f"/sys/bus/i2c/devices/i2c-{bus_of(host)}/delete_device", f"{ADDRESS:#x}")


def draws(host: DutHost, volts: float, amps: float) -> None:
    """Set what the chip measures: 12 bits to the left of two bytes, 25 mV and 20 mA per step of a shunt of 1 mOhm."""
    registers = []
    for first, steps in ((0, round(amps / 0.020)), (2, round(volts / 0.025))):
        registers += [f"{first}={steps >> 4}", f"{first + 1}={(steps & 15) << 4}"]
    done = host.run(["python3", "-c", SET % ADDRESS, bus_of(host), *registers], 60.0)
    assert done.status == 0, done


def reads(meter: Meter, watts: float) -> None:
    """The driver keeps a value for a sixth of a second."""
    deadline, power = time.monotonic() + SOON, None
    while power is None or power.watts != pytest.approx(watts):
        assert time.monotonic() < deadline, power
        time.sleep(0.2)
        power = meter.read().power


def test_what_the_kernels_driver_says_is_read(chip: DutHost) -> None:
    draws(chip, 12.0, 1.5)
    (found,) = [one for one in find(chip) if one.model == "ltc4151"]
    assert (found.place, found.note) == (f"{bus_of(chip)}-{ADDRESS:04x}", "power is in1 by curr1")
    with opened_meter("hwmon", chip, **found.options) as meter:
        reads(meter, 18.0)
        draws(chip, 5.0, 0.9)
        reads(meter, 4.5)
        draws(chip, 12.0, 0.0)
        reads(meter, 0.0)


def test_a_chip_that_goes_gives_no_reading_and_is_found_again(chip: DutHost) -> None:
    draws(chip, 12.0, 2.0)
    with opened_meter("hwmon", chip, chip="ltc4151") as meter:
        reads(meter, 24.0)
        detach(chip)
        for _ in range(2):
            reading = meter.read()
            assert reading.power is None, "no reading is not 0 W"
            assert reading.why
        attach(chip)
        reads(meter, 24.0)


def test_a_chip_that_is_not_there_is_named(made: Lab) -> None:
    with (
        pytest.raises(RigError, match="there is no chip ltc4151"),
        opened_meter("hwmon", DutHost(made.link), chip="ltc4151"),
    ):
        pass
