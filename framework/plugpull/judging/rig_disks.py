"""Which disks a rig had: by its file, and by what the kernel said of them."""

from __future__ import annotations

from typing import Any

from plugpull.history.events import DiskAttached
from plugpull.history.reader import History
from plugpull.judging.results import DiskIdentity


def disks_of(history: History) -> tuple[DiskIdentity, ...]:
    """The disks of a run's rig, as far as its history says."""
    declared: Any = history.begun.rig.get("disk") if history.begun else None
    models: dict[str, str] = {}
    for story in history.stories:
        for attached in story.of(DiskAttached):
            if attached.disk and attached.model:
                models.setdefault(attached.disk, attached.model)
    found = [each for each in declared if isinstance(each, dict)] if isinstance(declared, list) else []
    return tuple(_identity(each, models) for each in found if isinstance(each.get("name"), str))


def _identity(disk: dict[str, Any], models: dict[str, str]) -> DiskIdentity:
    serial, lun, size = disk.get("serial"), disk.get("lun"), disk.get("size")
    return DiskIdentity(
        name=disk["name"],
        serial=serial if isinstance(serial, str) else "",
        lun=lun if isinstance(lun, int) else 0,
        model=models.get(disk["name"], ""),
        size=size if isinstance(size, int) else 0,
    )
