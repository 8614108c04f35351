"""Requests that succeed after the disk's cut had made others fail."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stories import BACK, GONE, VICTIM, healthy

from plugpull.checks.data.broken_off import completed_later, outlived
from plugpull.checks.data.stamps import Round
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Flush, Ledger, Write

BEGUN = ev.LedgerBegun(
    disk=VICTIM, job="stamp", run=1, device=1, session=1, extents=((0, 64),), block=8, depth=4, order="random"
)


def ledger(*errors: int, flushed: int = 0) -> Ledger:
    """Writes that end with these errors, one after the other, and then a flush."""
    writes = [
        Write(number=i, sector=8 * i, sectors=8, issued=i, issued_at=0.0, completed=10 + i, error=error)
        for i, error in enumerate(errors)
    ]
    return Ledger(writes=writes, flushes=[Flush(number=1, submitted=9, submitted_at=0.0, completed=30, error=flushed)])


def said(which: Ledger, *, cut: bool = True, disk: str = VICTIM, driver: str = "usb-storage") -> int:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, driver=driver)
    made = bench.story()
    story = Story(made.begun, made.events, rig={**made.rig, "disk": [{"name": VICTIM}]})
    one = Round(begun=replace(BEGUN, disk=disk))
    return len(completed_later(story, one, which, story.cut_records if cut else ()))


@pytest.mark.parametrize(
    ("which", "many"),
    [
        (ledger(0, 0, 5, 5, flushed=5), 0),
        (ledger(0, 5, 0, 5, flushed=5), 1),
        (ledger(0, 0, 5, 5, flushed=0), 1),
        (ledger(0, 0, 0, 0, flushed=0), 0),
        (ledger(0, 0, 0, 0, flushed=5), 0),
    ],
)
def test_nothing_succeeds_after_something_failed(which: Ledger, many: int) -> None:
    assert said(which) == many


def test_an_array_goes_on_and_a_disk_that_was_not_cut_is_judged_elsewhere() -> None:
    assert said(ledger(0, 5, 0, 5), disk="array1") == 0
    assert said(ledger(0, 5, 0, 5), cut=False) == 0


@pytest.mark.parametrize("driver", ["uas", "sd"])
def test_a_disk_with_several_commands_may_complete_the_older_ones_after_a_failure(driver: str) -> None:
    older = ledger(0, 5, 0, 5, flushed=5)
    assert said(older, driver=driver) == 0
    older.writes[2].issued = 12
    assert said(older, driver=driver) == 1


@pytest.mark.parametrize(
    ("at", "error", "found"),
    [
        pytest.param(GONE + 0.9, 0, True, id="while it was gone"),
        pytest.param(GONE + 0.9, 5, False, id="it failed"),
        pytest.param(GONE + 0.3, 0, False, id="two clocks"),
        pytest.param(GONE - 1.0, 0, False, id="before"),
        pytest.param(BACK + 0.5, 0, False, id="after its return"),
    ],
)
def test_nothing_succeeds_on_a_disk_that_is_removed(at: float, error: int, found: bool) -> None:
    began = 12.0
    one = Write(
        number=1, sector=0, sectors=8, issued=1, issued_at=0.0, completed=2, completed_at=at - began, error=error
    )
    last = outlived(healthy().story(), VICTIM, Ledger(writes=[one]), began)
    assert (last is not None) is found
    assert last is None or abs(last - at) < 1e-6


def test_an_array_is_never_removed() -> None:
    one = Write(number=1, sector=0, sectors=8, issued=1, issued_at=0.0, completed=2, completed_at=1.0, error=0)
    assert outlived(healthy().story(), "array1", Ledger(writes=[one]), 12.0) is None
