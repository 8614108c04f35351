"""A device as a log or a history shows it."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.kernel.diagnosis.scope import Level


@dataclass(frozen=True)
class Device:
    """A disk, hub, controller or array, or the kernel itself. Empty fields are not known.

    ``key`` identifies the device within one log. ``port`` is its USB path and ``hubs`` are the paths above it, the
    nearest to the root first. ``ids`` is the VID:PID of its bridge. ``identity`` distinguishes two devices that were in
    one port one after the other.
    """

    key: str
    name: str
    level: Level = Level.DISK
    port: str = ""
    hubs: tuple[str, ...] = ()
    controller: str = ""
    ids: str = ""
    driver: str = ""
    identity: str = ""

    @property
    def title(self) -> str:
        """The name, followed by what is known of port, bridge and driver."""
        if self.level is not Level.DISK:
            return self.name
        known = (f"usb {self.port}" if self.port and self.port not in self.name else "", self.ids, self.driver)
        details = ", ".join(part for part in known if part)
        return f"{self.name} ({details})" if details else self.name
