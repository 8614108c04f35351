"""Takes processors of the DUT out of use, and gives them back."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any, Dict, List

from .attributes import SYS, read_attribute
from .disks import Refused

_CPU = re.compile(r"^cpu(\d+)$")


class CpuHotplug:
    """The processors that this agent took offline (Documentation/core-api/cpu_hotplug.rst). The first one stays."""

    def __init__(self, root: str = SYS) -> None:
        self._folder = os.path.join(root, "devices/system/cpu")
        self._taken: List[str] = []

    def keep(self, count: int) -> Dict[str, Any]:
        """Let only so many processors run. Raises Refused, with all of them back, if the kernel does not do it."""
        self.restore()
        if count < 1:
            raise Refused("a machine needs a processor, and %d were asked for" % count)
        names = [entry for entry in os.listdir(self._folder) if _CPU.match(entry)]
        online = sorted((name for name in names if self._is_online(name)), key=lambda name: int(name[3:]))
        for name in reversed(online[count:]):
            try:
                self._switch(name, "0")
            except OSError as error:
                self.restore()
                raise Refused("%s cannot be taken offline: %s" % (name, error.strerror)) from None
            self._taken.append(name)
        return {"online": len(online) - len(self._taken), "of": len(online)}

    def restore(self) -> None:
        """Give every processor back that was taken."""
        while self._taken:
            name = self._taken.pop()
            with suppress(OSError):  # it is gone, as in a machine that shuts down
                self._switch(name, "1")

    def _is_online(self, name: str) -> bool:
        # The boot processor has no such file on most machines: it cannot be taken.
        return read_attribute(self._folder, name, "online") in ("", "1")

    def _switch(self, name: str, state: str) -> None:
        with open(os.path.join(self._folder, name, "online"), "w") as file:
            file.write(state)
