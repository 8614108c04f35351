"""Censuses for the checks of what is left over and of leaks."""

from __future__ import annotations

from plugpull.checks import Check
from plugpull.checks.base import Judgement
from plugpull.history import events as ev
from plugpull.history.story import Story

HOST = "usb-storage at 0000:00:10.0/1"
AT_FIRST = {"scsi host": (HOST,), "usb device": ("1-1", "usb1"), "mount": ()}


def counted(moment: ev.CensusMoment, slab: int = 1000, **more: tuple[str, ...]) -> ev.Census:
    things = {**AT_FIRST, **{kind.replace("_", " "): names for kind, names in more.items()}}
    return ev.Census(at=1.0, moment=moment, things=things, slab={"kmalloc-4k": slab})


def judged(check: Check, *events: ev.Event) -> Judgement:
    begun = ev.ScenarioBegun(at=0.0, id="made-up", wall="2026-01-01T00:00:00Z", seed=1)
    return check.judge(Story(begun, events, rig={}))
