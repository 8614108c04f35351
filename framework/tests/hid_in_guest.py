"""Runs in the lab's guest: a driver does what a list of steps says, and this prints what came of each.

``python3 hid_in_guest.py`` with a JSON array on its command line; each step is an array. It is a script and no
module of tests, because hidapi has to run where the devices are.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plugpull.errors import RigError
from plugpull.rig.model import DeclaredSwitch
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import kind_named, open_switch

NOBODY = 65534
FOUND = 30.0
"""Seconds until a device that was plugged in is on the list."""


class NoPerson:
    def do(self, request: str, timeout: float) -> float:
        raise RigError(request)

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        raise RigError(question)


class Steps:
    def __init__(self) -> None:
        self.host = LocalHost()
        self.switch: Any = None

    def open(self, table: dict[str, Any]) -> Any:
        self.switch = open_switch(DeclaredSwitch.model_validate({"name": "sw", **table}), self.host, NoPerson())
        return asdict(self.switch.identity)

    def set(self, port: str, on: bool) -> float:
        edge = self.switch.set(port, on)
        return float(edge.acknowledged - edge.commanded)

    def set_many(self, ports: list[str], on: bool) -> int:
        return len({edge.acknowledged for edge in self.switch.set_many(ports, on)})

    def read(self, port: str) -> Any:
        return self.switch.read(port)

    def close(self) -> None:
        self.switch.close()

    def patience(self, seconds: float) -> None:
        from dataclasses import replace

        self.switch._context = replace(self.switch._context, timeout=seconds)

    def lie(self, control: str, lie: str) -> None:
        Path(control).write_text(lie)

    def until(self, vendor: int, count: int) -> int:
        """Wait until there are so many devices of a vendor."""
        deadline = time.monotonic() + FOUND
        while len(self.host.hid_devices(vendor)) != count and time.monotonic() < deadline:
            time.sleep(0.05)  # hidapi can only be asked
        return len(self.host.hid_devices(vendor))

    def found(self, kind: str) -> Any:
        find = kind_named(kind).find
        return [(found.model, found.serial, found.ports) for found in find(self.host)] if find else []

    def as_nobody(self, table: dict[str, Any]) -> Any:
        os.seteuid(NOBODY)
        try:
            return self.open(table)
        finally:
            os.seteuid(0)


def main() -> None:
    steps = Steps()
    for name, *arguments in json.loads(sys.argv[1]):
        begun = time.monotonic()
        outcome: dict[str, Any] = {"step": name}
        try:
            outcome["came"] = getattr(steps, name)(*arguments)
        except RigError as error:
            outcome |= {"error": error.what, "hint": error.hint}
        print(json.dumps({**outcome, "seconds": time.monotonic() - begun}), flush=True)


if __name__ == "__main__":
    main()
