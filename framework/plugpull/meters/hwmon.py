"""Any power sensor that the kernel has a driver for: an INA226 beside a disk, a POWER-Z between a disk and its port.

The attributes of a chip are files in /sys/class/hwmon/hwmonN: ``name``, ``powerK_input`` in microwatts, ``inK_input``
in millivolts, ``currK_input`` in milliamperes, ``energyK_input`` in microjoules, ``update_interval`` in milliseconds
(Documentation/hwmon/sysfs-interface.rst). N changes; the chip is recognised by its name, and by its device if there are
several. A read fails with EIO, ETIMEDOUT, EAGAIN or ENODATA if the chip has no value at that moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from plugpull.errors import RigError
from plugpull.meters.base import DeviceMeter, MeterCapabilities, MeterContext, NoReading, PowerValue, device_text
from plugpull.meters.kinds import FoundMeter, MeterKind
from plugpull.rig.model import Table
from plugpull.switches.base import Identity
from plugpull.switches.host import Host

ROOT = "/sys/class/hwmon"
FASTEST = 10.0
"""Readings per second at most."""
UNKNOWN_AGE = 1.0
"""Seconds that a value can be old, if neither the chip nor this file knows."""
AGES = {"ltc4151": 1 / 6, "powerz": 0.05}
"""By chip without ``update_interval``. ltc4151.c keeps values for HZ/6; powerz.c asks the device for each."""
PAIRS = {"ltc4151": ("in1", "curr1"), "powerz": ("in0", "curr1")}
"""Volts and amperes of chips without power of their own. For others the rig file has to say it: ``in0`` of some is the
voltage of a shunt."""
MICRO, MILLI = 1e-6, 1e-3
_NUMBER = re.compile(r"-?[0-9]{1,15}\n?", re.ASCII)


class HwmonOptions(Table):
    """Keys of a chip of the kernel's hardware monitoring."""

    chip: Annotated[str, Field(pattern=r"^[^/\s]{1,60}$")]
    """Its name, as in /sys/class/hwmon/hwmonN/name."""
    device: Annotated[str, Field(pattern=r"^[^/\s]{1,80}$")] | None = None
    """Its device, such as "6-0040", if there are several chips of that name."""
    power: Annotated[str, Field(pattern=r"^power[0-9]{1,2}$")] | None = None
    """Which of its powers: "power1". None: "power1" if there is one, and otherwise volts by amperes."""
    volts: Annotated[str, Field(pattern=r"^in[0-9]{1,2}$")] | None = None
    amps: Annotated[str, Field(pattern=r"^curr[0-9]{1,2}$")] | None = None
    root: Annotated[str, Field(pattern=r"^/.")] = ROOT
    """Where the chips are."""

    @model_validator(mode="after")
    def _one_way(self) -> HwmonOptions:
        if (self.volts is None) != (self.amps is None):
            raise ValueError('"volts" and "amps" go together, such as volts = "in1", amps = "curr1"')
        if self.power is not None and self.volts is not None:
            raise ValueError('"power" makes "volts" and "amps" superfluous: leave them out')
        return self


class Chip(NamedTuple):
    """``folder`` is where its attributes are. ``device`` is the last part of its device's path."""

    folder: str
    name: str
    device: str


class PowerSource(NamedTuple):
    """Which attributes hold the power: ``power``, or ``volts`` and ``amps``; and the counter of energy, if any."""

    power: str = ""
    volts: str = ""
    amps: str = ""
    energy: str = ""


def chips(host: Host, root: str = ROOT) -> Iterator[Chip]:
    """The chips of a machine. One that goes meanwhile is left out."""
    for folder in host.glob(f"{root}/hwmon*"):
        with suppress(RigError):
            name = host.read_text(f"{folder}/name").strip()
            # The resolved path has the device in it: it does not become another chip's when N is used again.
            real = host.real_path(folder)
            yield Chip(real, name, host.real_path(f"{real}/device").rpartition("/")[2])


def source_of(host: Host, chip: Chip, options: HwmonOptions | None = None) -> PowerSource | None:
    """Where a chip has its power. ``None`` if it has none that is known."""
    asked = options or HwmonOptions(chip=chip.name)
    power, volts, amps = asked.power or "", asked.volts or "", asked.amps or ""
    if not power and not volts:
        if host.glob(f"{chip.folder}/power1_input"):
            power = "power1"
        else:
            volts, amps = PAIRS.get(chip.name, ("", ""))
    energy = "energy1" if host.glob(f"{chip.folder}/energy1_input") else ""
    return PowerSource(power, volts, amps, energy) if power or volts else None


class Hwmon(DeviceMeter):
    """A chip. It is looked for again after a failed reading, because a device that was replugged has another number."""

    def __init__(self, context: MeterContext, options: HwmonOptions) -> None:
        self._options = options
        self._host = context.host
        self._chip, self._source = self._find()
        identity = Identity("hwmon", self._chip.name, place=self._chip.device)
        super().__init__(context, identity, MeterCapabilities(1 / UNKNOWN_AGE, UNKNOWN_AGE))
        self._learn()

    def _find(self) -> tuple[Chip, PowerSource]:
        options = self._options
        every = list(chips(self._host, options.root))
        found = [one for one in every if one.name == options.chip and options.device in (None, one.device)]
        what = f"chip {options.chip}" + (f" at {options.device}" if options.device else "")
        if not found:
            there = ", ".join(f"{one.name} at {one.device}" for one in every) or "none"
            raise RigError(f"there is no {what} on {self._host.name}", hint=f"is its driver loaded? There are: {there}")
        if len(found) > 1:
            places = " or ".join(f'device = "{one.device}"' for one in found)
            raise RigError(f"there are {len(found)} chips named {options.chip}", hint=f"write {places}")
        source = source_of(self._host, found[0], options)
        if source is None:
            hint = 'name its attributes, such as volts = "in1" and amps = "curr1"'
            raise RigError(f"it is not known which attributes of the {what} are its power", hint=hint)
        return found[0], source

    def _learn(self) -> None:
        """How often a new value is there."""
        age = AGES.get(self._chip.name, UNKNOWN_AGE)
        with suppress(RigError):
            age = max(MILLI, self._number("update_interval") * MILLI)
        self.capabilities = MeterCapabilities(min(FASTEST, 1 / age), age)

    def _measure(self, deadline: float) -> PowerValue:
        if self._chip.folder == "":
            self._chip, self._source = self._find()
        try:
            return self._power()
        except NoReading:
            raise
        except RigError:
            self._chip = self._chip._replace(folder="")
            raise

    def _power(self) -> PowerValue:
        source = self._source
        joules = self._number(f"{source.energy}_input") * MICRO if source.energy else None
        if source.power:
            return PowerValue(self._number(f"{source.power}_input") * MICRO, joules=joules)
        volts = self._number(f"{source.volts}_input") * MILLI
        amps = self._number(f"{source.amps}_input") * MILLI
        return PowerValue(volts * amps, volts, amps, joules)

    def _number(self, attribute: str) -> float:
        text = self._host.read_text(f"{self._chip.folder}/{attribute}")
        if _NUMBER.fullmatch(text) is None:
            raise NoReading(f"{attribute} is not a number: {device_text(text)}")
        return float(text)


def find(host: Host) -> Iterator[FoundMeter]:
    for chip in chips(host):
        source = source_of(host, chip)
        if source is not None:
            options: Mapping[str, str] = {"chip": chip.name, "device": chip.device}
            note = "" if source.power else f"power is {source.volts} by {source.amps}"
            yield FoundMeter("hwmon", chip.name, chip.device, dict(options), "usb", note)


KIND = MeterKind("hwmon", "sensors that the kernel has a driver for", HwmonOptions, Hwmon, "usb", find)
