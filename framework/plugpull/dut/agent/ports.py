"""How the kernel sets up what is plugged into a USB port."""

from __future__ import annotations

import glob
import os
from typing import Dict, List, Set, Tuple

from .attributes import read_attribute

PORTS = "sys/bus/usb/devices/*/*-port*/quirks"
"""One file for each port (Documentation/ABI/testing/sysfs-bus-usb), in hexadecimal."""


def set_quirks(quirks: str, root: str = "/") -> Dict[str, object]:
    """Give every USB port these quirks. Returns what was changed, for all ports together; what the kernel refused, by
    file. A port whose hub is unplugged meanwhile is neither."""
    before: Set[str] = set()
    failed: Dict[str, str] = {}
    for path in glob.glob(os.path.join(root, PORTS)):
        was = read_attribute(path)
        if not was or int(was, 16) == int(quirks, 16):
            continue
        try:
            with open(path, "w") as file:
                file.write(quirks)
            before.add(was)
        except OSError as error:
            if os.path.exists(path):
                failed[path] = error.strerror or str(error)
    changed: List[Tuple[str, str, str]] = [(os.path.join(root, PORTS), was, quirks) for was in sorted(before)]
    return {"changed": changed, "failed": failed}
