"""A real bench whose switch is a file for each port."""

from __future__ import annotations

from pathlib import Path

from rig_builder import a_rig


def shelf(folder: Path, kind: str = "local", scratch: bool = True, **dut: object) -> Path:
    """A rig file with a switch whose ports are files: port 3 feeds a hub, ports 1 and 2 a disk each."""
    states = f"{folder}/state-{{port}}"
    return (
        a_rig("shelf", kind, **dut)
        .switch(
            "relay", "command", 4, "mains", on=f"echo on > {states}", off=f"echo off > {states}", read=f"cat {states}"
        )
        .controller()
        .hub("hub1", "usb.2", power="relay.3")
        .disk("disk1", "usb.1", "S-1", "1 GiB", scratch=scratch, power="relay.1")
        .disk("disk2", "hub1.4", "S-2", "1 GiB", scratch=scratch, power="relay.2")
        .write(folder)
    )
