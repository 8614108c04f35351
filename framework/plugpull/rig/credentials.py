"""What of a rig file may be recorded and shown.

A history, its report and an error message are sent to others; a rig file may hold the password of a PDU, an SNMP
community or a command line with a token in it. Nobody can recognise a secret by its looks, so text of a switch driver
is recorded only where its key is known to hold none.
"""

from __future__ import annotations

import re
from typing import Any

from plugpull.rig.model import Rig, Switch

WITHHELD = "(not recorded)"
OPEN_KEYS = frozenset(
    {
        "device",
        "eviction",
        "environment",
        "labels",
        "location",
        "model",
        "names",
        "path",
        "pdu",
        "product",
        "protocol",
        "serial",
        "target",
        "vendor",
        "wiring",
    }
)
"""Keys of switch drivers whose text says which device it is, or how it is wired."""
ADDRESS_KEYS = frozenset({"host", "server", "url"})
"""Keys that hold an address, of which what is before the @ is withheld."""
_SECRET = re.compile(r"pass|secret|token|communit|credential|auth|\bpin\b|\bkey\b|user", re.IGNORECASE)
_USERINFO = re.compile(r"(://|^)[^/@\s]+@")


def recorded(rig: Rig) -> dict[str, Any]:
    """The rig as it stands in a history: everything but what may be a credential."""
    data: dict[str, Any] = rig.model_dump(mode="json")
    for table, switch in zip(data["switch"], rig.switch, strict=True):
        table |= recorded_options(switch)
    data["dut"]["ssh_options"] = [WITHHELD for _ in data["dut"].get("ssh_options", ())]
    return data


def recorded_options(switch: Switch) -> dict[str, Any]:
    """The driver's own keys of a switch, each with its value or with ``WITHHELD``."""
    return {key: _recorded(key, value) for key, value in switch.options.items()}


def without_userinfo(text: str) -> str:
    """``text`` with ``USER:PASSWORD@`` left out of the addresses in it."""
    return _USERINFO.sub(r"\1...@", text)


def _recorded(key: str, value: Any) -> Any:
    if _SECRET.search(key.replace("_", " ")):
        return WITHHELD
    if isinstance(value, bool | int | float) or value is None:
        return value
    if key in ADDRESS_KEYS and isinstance(value, str):
        return without_userinfo(value)
    return value if key in OPEN_KEYS else WITHHELD
