"""A disk that was cut is gone when its USB device is gone, too."""

from __future__ import annotations

import pytest
from stories import CUT, GONE, RESTORED, VICTIM, Bench, healthy

from plugpull.checks import removed
from plugpull.history import events as ev
from plugpull.history.story import Story

DEVICE = "/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.1"


def uevent(action: str, at: float, device: str = DEVICE) -> ev.Uevent:
    return ev.Uevent(at=at, action=action, subsystem="usb", devtype="usb_device", devpath=device, disks=(VICTIM,))


def seen(*events: ev.Event) -> Bench:
    bench = healthy()
    bench.drop(ev.Uevent)
    bench.add(*events)
    return bench


def findings(bench: Bench, kind: str = "virtual") -> list[str]:
    made = bench.story()
    story = Story(made.begun, made.events, rig={**made.rig, "dut": {"kind": kind}})
    return [finding.summary for finding in removed(VICTIM).judge(story).findings]


def test_a_device_that_goes_long_after_its_disk_is_a_finding() -> None:
    said = f"the kernel let go of the USB device of {VICTIM} 2.90 s after the disk was removed (limit 2 s)"
    assert findings(seen(uevent("remove", GONE + 2.9))) == [said]


@pytest.mark.parametrize(
    "events",
    [
        (uevent("remove", GONE + 0.4),),
        (uevent("remove", CUT + 0.01), uevent("remove", GONE + 5.0, "/devices/usb1/1-1/1-1.3")),
        (uevent("add", RESTORED + 1.0), uevent("remove", GONE + 9.0)),
        (),
    ],
    ids=["soon", "another device", "a later device", "not on record"],
)
def test_what_goes_in_time_or_is_not_it_is_none(events: tuple[ev.Event, ...]) -> None:
    assert findings(seen(*events)) == []


def test_what_the_host_took_away_does_not_count() -> None:
    bench = seen(uevent("remove", GONE + 2.9))
    bench.starved = ((GONE + 0.5, GONE + 2.7),)
    assert findings(bench) == []


def test_a_real_disk_is_not_judged() -> None:
    assert findings(seen(uevent("remove", GONE + 2.9)), "local") == []


# --- a disk that is cut while it is set up ----------------------------------------------------------------------------

SET_UP, AGAIN = RESTORED + 0.3, RESTORED + 0.6
"""When the driver took the device after the first cut, and the second cut, before the disk is attached."""
INTERFACE = f"{DEVICE}/1-1.1:1.0"


def bound(at: float = SET_UP) -> ev.Uevent:
    return ev.Uevent(at=at, action="bind", subsystem="usb", devtype="usb_interface", devpath=INTERFACE)


def cut_while_set_up(*events: ev.Event) -> Bench:
    bench = seen(uevent("remove", GONE + 0.1), uevent("add", SET_UP - 0.1), *events)
    bench.arm(AGAIN - 0.1, cut=2)
    bench.switch("off", AGAIN, cut=2)
    bench.switch("on", AGAIN + 0.3, cut=2)
    return bench


def kept(bench: Bench) -> list[str]:
    return [said for said in findings(bench) if "while it was set up" in said]


def test_a_driver_that_keeps_a_device_whose_disk_was_not_there_yet_is_a_finding() -> None:
    (said,) = kept(cut_while_set_up(bound(), uevent("remove", AGAIN + 3.0)))
    assert said.startswith(f"the kernel let go of the USB device of {VICTIM} 2.9")
    assert said.endswith("s after it was cut (limit 2 s), while it was set up")


@pytest.mark.parametrize(
    "events",
    [
        (bound(), uevent("remove", AGAIN + 0.5)),
        (uevent("remove", AGAIN + 3.0),),
        (bound(AGAIN + 1.0), uevent("remove", AGAIN + 3.0)),
        (bound(), uevent("remove", AGAIN - 0.1), uevent("add", AGAIN + 2.0), uevent("remove", AGAIN + 3.0)),
        (bound(), uevent("add", AGAIN + 2.0), uevent("remove", AGAIN + 3.0)),
        (bound(),),
    ],
    ids=["soon", "no driver had it", "a driver took it later", "it had gone before", "a later one", "not on record"],
)
def test_a_device_that_goes_in_time_while_it_is_set_up_is_none(events: tuple[ev.Event, ...]) -> None:
    assert kept(cut_while_set_up(*events)) == []


@pytest.mark.parametrize(
    ("restored", "third", "accused"), [(0.3, 2.5, False), (0.3, 4.0, True), (2.2, 2.5, True), (9.0, 1.5, False)]
)
def test_what_goes_after_the_next_cut_goes_for_that_if_this_one_was_short(
    restored: float, third: float, accused: bool
) -> None:
    third += AGAIN
    bench = seen(uevent("remove", GONE + 0.1), uevent("add", SET_UP - 0.1), bound(), uevent("remove", AGAIN + 3.0))
    bench.arm(AGAIN - 0.1, cut=2)
    bench.switch("off", AGAIN, cut=2)
    if AGAIN + restored < third:
        bench.switch("on", AGAIN + restored, cut=2)
    bench.arm(third - 0.1, cut=3)
    bench.switch("off", third, cut=3)
    assert bool(kept(bench)) == accused


def test_a_disk_that_was_there_is_judged_from_its_removal_on() -> None:
    bench = cut_while_set_up(bound(), uevent("remove", AGAIN + 3.0))
    bench.attach(VICTIM, AGAIN - 0.05)
    assert kept(bench) == []
