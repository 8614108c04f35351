"""Which values of a rig file may be recorded and shown.

Histories, reports and error messages are sent to other people, and a rig file may contain the password of a PDU, an
SNMP community or a command line with a token. A secret cannot be recognised by its form, so the text of a driver's key
is recorded only if the key is known not to hold secrets.
"""

from __future__ import annotations

import re
from typing import Any

from plugpull.rig.model import DeclaredMeter, DeclaredSwitch, Rig

WITHHELD = "(not recorded)"
OPEN_KEYS = frozenset(
    {
        "amps",
        "chip",
        "component",
        "device",
        "eviction",
        "environment",
        "labels",
        "location",
        "model",
        "names",
        "path",
        "pdu",
        "power",
        "product",
        "protocol",
        "serial",
        "target",
        "vendor",
        "volts",
        "wiring",
    }
)
"""Keys of drivers whose text only says which device it is, or how it is wired."""
ADDRESS_KEYS = frozenset({"host", "server", "url"})
"""Keys that hold an address, which is recorded without the part before the @."""
_SECRET = re.compile(r"pass|secret|token|communit|credential|auth|\bpin\b|\bkey\b|user", re.IGNORECASE)
_USERINFO = re.compile(r"(://|^)[^/@\s]+@")


def recorded(rig: Rig) -> dict[str, Any]:
    """The rig as it is recorded in a history: everything except possible credentials."""
    data: dict[str, Any] = rig.model_dump(mode="json")
    for table, switch in zip(data["switch"], rig.switch, strict=True):
        table |= recorded_options(switch)
    for table, meter in zip(data["meter"], rig.meter, strict=True):
        table |= recorded_options(meter)
    data["dut"]["ssh_options"] = [WITHHELD for _ in data["dut"].get("ssh_options", ())]
    return data


def recorded_options(declared: DeclaredSwitch | DeclaredMeter) -> dict[str, Any]:
    """The driver's own keys of a switch or a meter, each with its value or with ``WITHHELD``."""
    return {key: _recorded(key, value) for key, value in declared.options.items()}


def without_userinfo(text: str) -> str:
    """``text`` without ``USER:PASSWORD@`` in its addresses."""
    return _USERINFO.sub(r"\1...@", text)


def _recorded(key: str, value: Any) -> Any:
    if _SECRET.search(key.replace("_", " ")):
        return WITHHELD
    if isinstance(value, bool | int | float) or value is None:
        return value
    if key in ADDRESS_KEYS and isinstance(value, str):
        return without_userinfo(value)
    return value if key in OPEN_KEYS else WITHHELD
