"""Rig files for tests, put together table by table instead of written by hand.

rig = a_rig("desk", "local").switch("relay", "command", on="true", off="true").controller().disk("disk1")
rig.text            # the TOML
rig.write(folder)   # rig.toml in that folder
rig.load()          # the checked Rig
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from plugpull.rig.drivers import DriverBook
from plugpull.rig.load import parse_rig
from plugpull.rig.model import Rig
from plugpull.rig.toml_text import toml_key, toml_value

PCI = "0000:00:14.0"
"""The address of a real rig's first controller, unless a test says otherwise."""
SINGLE = ("rig", "dut")
"""Tables in single brackets: a rig file has one of each."""


@dataclass(frozen=True)
class RigBuilder:
    """The tables of a rig file so far. Every method returns a new builder, so that tests can share a beginning.

    Keys whose value is None are left out.
    """

    kind: str
    """The kind of the DUT: a virtual rig's tables get other keys by default than a real one's."""
    tables: tuple[tuple[str, Mapping[str, object]], ...] = ()

    def table(self, header: str, **keys: object) -> RigBuilder:
        """Any table: ``table("defect", kind="stalls", disk="disk1")``."""
        return replace(self, tables=(*self.tables, (header, keys)))

    def switch(
        self, name: str = "cables", driver: str | None = None, ports: int = 4, mechanism: str = "data", **keys: object
    ) -> RigBuilder:
        """By default the driver ``virtual``, on a real rig ``human``."""
        driver = driver or ("virtual" if self.kind == "virtual" else "human")
        return self.table("switch", name=name, driver=driver, ports=ports, mechanism=mechanism, **keys)

    def controller(self, name: str = "usb", **keys: object) -> RigBuilder:
        """By default an emulated xHCI, on a real rig the one at ``PCI``."""
        usual: dict[str, object] = {"model": "qemu-xhci"} if self.kind == "virtual" else {"path": PCI}
        return self.table("controller", name=name, **{**usual, **keys})

    def stock_controller(self, **keys: object) -> RigBuilder:
        """The emulated controller of the stock rigs. Guests with it are restored from one image, which is booted once;
        for any other machine, one more has to be booted."""
        return self.controller("usb", ports=4, **keys)

    def hub(self, name: str, at: str, **keys: object) -> RigBuilder:
        return self.table("hub", name=name, at=at, **keys)

    def disk(
        self,
        name: str,
        at: str | None = None,
        serial: str | None = None,
        size: str | int = "64 MiB",
        **keys: object,
    ) -> RigBuilder:
        """``disk2`` is by default plugged into ``usb.2`` and has the serial number ``S2``."""
        number = name.removeprefix("disk")
        return self.table("disk", name=name, at=at or f"usb.{number}", serial=serial or f"S{number}", size=size, **keys)

    def disks(self, *names: str, **keys: object) -> RigBuilder:
        """A disk per name, in the ports ``usb.1``, ``usb.2``, ... ``{n}`` in a value becomes the number of the port:
        ``disks("one", "two", serial="TWO-{n}", cable="cables.{n}")``."""
        rig = self
        for number, name in enumerate(names, start=1):
            own = {key: value.format(n=number) if isinstance(value, str) else value for key, value in keys.items()}
            rig = rig.table("disk", **{"name": name, "at": f"usb.{number}", "serial": f"S{number}", **own})
        return rig

    def having(self, name: str, **keys: object) -> RigBuilder:
        """The same rig, with these keys in the table of this name."""
        tables = ((header, {**table, **(keys if table.get("name") == name else {})}) for header, table in self.tables)
        return replace(self, tables=tuple(tables))

    @property
    def text(self) -> str:
        return "".join(_table_text(header, keys) for header, keys in self.tables)

    def write(self, folder: Path, name: str = "rig.toml") -> Path:
        """Write the file into a folder; its path."""
        file = folder / name
        file.write_text(self.text)
        return file

    def load(self, drivers: DriverBook | None = None) -> Rig:
        """The rig, checked as if the file had been read."""
        return parse_rig(self.text, drivers=drivers)


def a_rig(name: str = "bench", kind: str = "virtual", **dut: object) -> RigBuilder:
    """A rig of which only the DUT is known; ``dut`` are further keys of its table."""
    return RigBuilder(kind).table("rig", name=name).table("dut", kind=kind, **dut)


def _table_text(header: str, keys: Mapping[str, object]) -> str:
    brackets = f"[{header}]" if header in SINGLE else f"[[{header}]]"
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in keys.items() if value is not None]
    return "\n".join([brackets, *lines, ""])
