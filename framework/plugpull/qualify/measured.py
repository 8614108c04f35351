"""What was measured of one switch port."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.rig.model import Mechanism


@dataclass(frozen=True)
class PortEdge:
    """One edge, in seconds from its command. None: it did not happen before the deadline."""

    acknowledged: float
    seen: float | None
    """When the kernel had removed all disks behind the port from its list, or had all of them back."""
    reads: bool | None
    """What the port read back as, once the switch had acknowledged. None without read-back."""


@dataclass(frozen=True)
class PortCycle:
    """The port turned off and on again."""

    off: PortEdge
    on: PortEdge
    others: tuple[str, ...] = ()
    """Disks and USB devices outside the blast radius that went away meanwhile."""
    errors: tuple[str, ...] = ()
    """Kernel messages about devices outside the blast radius."""


@dataclass(frozen=True)
class Vbus:
    """VBUS at the device's end: volts from a meter, or a person's answer to whether there is still power."""

    volts_off: float | None = None
    volts_on: float | None = None
    powered_off: bool | None = None

    def text(self) -> str:
        """How VBUS was measured, and the result. Empty if it was not measured."""
        if self.volts_off is not None:
            on = f", {self.volts_on:.2f} V on" if self.volts_on is not None else ""
            return f"by a meter: {self.volts_off:.2f} V off{on}"
        return "" if self.powered_off is None else f"by a person: {'still there' if self.powered_off else 'gone'}"


@dataclass(frozen=True)
class MeasuredPort:
    """All measurements of one port."""

    point: str
    mechanism: Mechanism
    victims: tuple[str, ...]
    cycles: tuple[PortCycle, ...]
    held: float = 0.0
    """Seconds that the port was left off after the cycles."""
    came_back: float | None = None
    """After how many of these seconds power came back by itself. None if it did not."""
    vbus: Vbus | None = None
    went: bool | None = None
    """Whether the disks left the kernel's list when the port was left off."""
    returned: bool | None = None
    """Whether the disks returned when the port was turned on at the end."""
    lost: tuple[str, ...] = ()
    """Missing evidence, in sentences."""
