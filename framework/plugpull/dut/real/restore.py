"""Restores the outlets that a killed run has left off."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from plugpull.dut.real.connect import connect, ignore
from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.real.reach import reach_of
from plugpull.errors import RigError
from plugpull.rig import model
from plugpull.switches.host import Host
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch
from plugpull.switches.person import TerminalPerson


def restore(entry: model.DeclaredSwitch, dut: model.Dut, folder: Path, port: str) -> None:
    """Turn on a port that a killed run has left off. Raises RigError and UsageError."""
    if entry.via == "controller" or dut.kind == "local":
        _turn_on(entry, LocalHost(), folder, port)
        return
    with ExitStack() as held:
        link, _ = connect(reach_of(dut), ignore, held, {})
        _turn_on(entry, DutHost(link), folder, port)


def _turn_on(entry: model.DeclaredSwitch, host: Host, folder: Path, port: str) -> None:
    switch = open_switch(entry, host, TerminalPerson(), folder)
    try:
        switch.set(port, True)
        if switch.read(port) is False:
            raise RigError(f"port {port} was turned on and reads back off")
    finally:
        switch.close()
