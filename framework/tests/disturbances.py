"""Stories for the check ``undisturbed``: a rig with a tree of hubs, and who is accused."""

from __future__ import annotations

from stories import RIG, Bench

from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.history import events as ev
from plugpull.history.reader import Story

HUB, CONTROLLER = "/devices/pci0000:00/0000:00:05.0/usb1/1-1", "/devices/pci0000:00/0000:00:05.0"
TREE = {
    **RIG,
    "hub": [{"name": "hub1", "at": "usb.1", "ports": 4, "cable": "cables.4"}],
    "disk": [{**disk, "cable": f"cables.{number}"} for number, disk in enumerate(RIG["disk"], 1)],
}


def story(made: Bench) -> Story:
    found = made.story()
    return Story(found.begun, found.events, rig=TREE)


def found(made: Bench) -> list[tuple[str, str]]:
    return [(finding.subject, finding.summary) for finding in undisturbed().judge(story(made)).findings]


def subjects(made: Bench) -> list[str]:
    return [subject for subject, _ in found(made)]


def removed_uevent(path: str, at: float, disks: tuple[str, ...] = ()) -> ev.Uevent:
    return ev.Uevent(at=at, action="remove", subsystem="usb", devtype="usb_device", devpath=path, disks=disks)
