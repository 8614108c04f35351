"""Switches that are plugged into the DUT: their drivers run on the controller and reach them through the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from plugpull.dut.conversation.link import AgentGone, AgentLink
from plugpull.errors import RigError
from plugpull.switches.host import Closing, Completed, HidDevice, HidInfo, SerialInfo, SerialLine

MARGIN = 10.0
"""Seconds the agent gets on top of what the device gets, before it counts as lost."""


class DutHost:
    """The machine at the other end of an agent's link. RigError and AgentGone as ``AgentLink.call``."""

    name = "the DUT"

    def __init__(self, link: AgentLink) -> None:
        self._link = link

    def ask(self, do: str, wait: float = 0.0, **arguments: Any) -> Any:
        """One operation of ``dut/agent/devices.py``, which may take ``wait`` seconds."""
        try:
            return self._link.call("device", wait + MARGIN, do=do, **arguments)
        except AgentGone:
            raise
        except RigError as error:
            raise RigError(f"on {self.name}: {error.what.partition(': ')[2]}", hint=error.hint) from None

    def serial(self, device: str, baud: int = 9600) -> SerialLine:
        return _Line(self, self.ask("serial_open", device=device, baud=baud))

    def serial_ports(self) -> tuple[SerialInfo, ...]:
        return tuple(SerialInfo(**port) for port in self.ask("serial_ports"))

    def hid_devices(self, vendor: int = 0, product: int = 0) -> tuple[HidInfo, ...]:
        found = (HidInfo(**device) for device in self.ask("hid_devices"))
        return tuple(
            info for info in found if (not vendor or info.vendor == vendor) and (not product or info.product == product)
        )

    def hid(self, info: HidInfo) -> HidDevice:
        return _Hid(self, self.ask("hid_open", path=info.path))

    def run(self, argv: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        return Completed(
            **self.ask("run", timeout, argv=list(argv), timeout=timeout, environment=dict(environment or {}))
        )

    def read_text(self, path: str) -> str:
        return str(self.ask("read_text", path=path))

    def write_text(self, path: str, text: str) -> None:
        self.ask("write_text", path=path, text=text)

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(self.ask("glob", pattern=pattern))

    def real_path(self, path: str) -> str:
        return str(self.ask("real_path", path=path))


class _Device(Closing):
    def __init__(self, host: DutHost, handle: int) -> None:
        self._host = host
        self._handle = handle

    def _ask(self, do: str, wait: float = 0.0, **arguments: Any) -> Any:
        return self._host.ask(do, wait, handle=self._handle, **arguments)

    def close(self) -> None:
        with suppress(AgentGone):  # a device that an agent had open is closed with the agent
            self._ask("close")


class _Line(_Device):
    def write(self, data: bytes) -> None:
        self._ask("write", data=data.hex())

    def read(self, count: int, timeout: float) -> bytes:
        return bytes.fromhex(self._ask("read", timeout, count=count, timeout=timeout))

    def read_until(self, end: bytes, timeout: float) -> bytes:
        return bytes.fromhex(self._ask("read", timeout, count=1 << 12, timeout=timeout, end=end.hex()))

    def drop_input(self) -> bytes:
        return bytes.fromhex(self._ask("drop_input"))


class _Hid(_Device):
    def write(self, report: bytes) -> None:
        self._ask("hid_write", report=report.hex())

    def read(self, count: int, timeout: float) -> bytes:
        return bytes.fromhex(self._ask("hid_read", timeout, count=count, timeout=timeout))

    def get_feature(self, report_id: int, count: int) -> bytes:
        return bytes.fromhex(self._ask("hid_get_feature", report_id=report_id, count=count))

    def send_feature(self, report: bytes) -> None:
        self._ask("hid_send_feature", report=report.hex())
