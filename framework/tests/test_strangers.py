"""Disks of somebody else that are plugged in at the rig while a scenario runs."""

from __future__ import annotations

import pytest
from stories import CUT, Bench, healthy

from plugpull.checks import undisturbed
from plugpull.checks.survivors.strangers import strangers
from plugpull.history import events as ev


def plugged_in(place: str, at: float, disk: str = "") -> Bench:
    bench = healthy()
    bench.add(ev.Census(at=10.9, moment="begin", things={"usb device": ("usb1",)}))
    known = {"disk": disk, "kname": "sdx", "diskseq": 77, "devt": "65:112", "serial": "ODD", "size": 1 << 30}
    bench.add(ev.DiskAttached(at=at, place=place, **known))  # type: ignore[arg-type]
    return bench


def test_a_stick_in_a_free_port_of_the_rig() -> None:
    bench = plugged_in("0000:00:05.0/1.4:0", CUT + 2)
    said = "a disk that is not of the rig came at 17.00 s at 0000:00:05.0/1.4:0: sdx (serial ODD)"
    assert list(strangers(bench.story())) == [said]
    assert said in bench.judge(undisturbed()).unknowns


@pytest.mark.parametrize(
    ("place", "at"), [("0000:00:1f.2/1:0", CUT + 2), ("0000:00:05.0/1.4:0", 10.5)], ids=["elsewhere", "before it began"]
)
def test_disks_that_are_nobodys_business(place: str, at: float) -> None:
    assert list(strangers(plugged_in(place, at).story())) == []
