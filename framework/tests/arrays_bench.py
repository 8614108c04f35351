"""A virtual bench for arrays: four disks with volatile caches, one of them behind a hub."""

from __future__ import annotations

from rig_builder import RigBuilder, a_rig

DISKS = ("one", "two", "three", "four")
SERIAL = "ARRAYS-{n}"


def arrays_rig(serial: str = SERIAL, name: str = "arrays") -> RigBuilder:
    """Each disk has a cable and a power lead of its own; ``one`` is behind the hub."""
    rig = a_rig(name).switch(ports=5).switch("mains", ports=4, mechanism="mains").controller(ports=4)
    rig = rig.hub("hub1", "usb.4", ports=2, cable="cables.5")
    for number, disk in enumerate(DISKS, 1):
        rig = rig.disk(
            disk,
            "hub1.1" if disk == "one" else f"usb.{number - 1}",
            serial.format(n=number),
            "16 MiB",
            rate="1 MiB/s" if disk == "one" else "2 MiB/s",
            cache="1 MiB",
            scratch=True,
            cable=f"cables.{number}",
            power=f"mains.{number}",
        )
    return rig
