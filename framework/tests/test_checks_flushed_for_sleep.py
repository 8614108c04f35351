"""Disks with a write cache are flushed before the machine sleeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stories import CUT, RIG, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks.data.flushed_for_sleep import FlushedForSleep
from plugpull.history import events as ev

DISK = SURVIVORS[0]
ENABLED = "Write cache: enabled, read cache: enabled, doesn't support DPO or FUA"
DISABLED = "Write cache: disabled, read cache: enabled, doesn't support DPO or FUA"


def slept(disk: str, many: int, cache: str = ENABLED, *, at: float = CUT - 3.0, ok: bool = True) -> Bench:
    """The machine slept for 2 s, and the disk counted so many flushes."""
    bench = healthy()
    attached = next(event for event in bench.story().all_attachments if event.disk == disk)
    text = f"sd 2:0:0:0: [{attached.kname}] {cache}"
    bench.add(ev.KernelMessage(at=attached.at, text=text, level=5))
    bench.add(ev.DutSuspended(at=at, until=at + 2.0, ok=ok, flushes={disk: many}))
    return bench


def findings(bench: Bench) -> list[str]:
    return [finding.summary for finding in bench.judge(FlushedForSleep()).findings]


def test_a_disk_that_was_not_flushed() -> None:
    assert findings(slept(DISK, 0)) == [f"{DISK} has a write cache, and was not flushed before the machine slept"]


def test_a_disk_that_was_flushed() -> None:
    judged = slept(DISK, 1).judge(FlushedForSleep())
    assert (judged.findings, judged.unknowns) == ((), ())
    assert judged.worst == "1 flushed before the machine slept"


@pytest.mark.parametrize("cache", [DISABLED, "Attached SCSI disk"])
def test_a_disk_without_a_cache_or_of_which_that_is_not_known_need_not_be(cache: str) -> None:
    assert findings(slept(DISK, 0, cache)) == []


def test_a_machine_that_did_not_sleep_need_not_flush() -> None:
    assert findings(slept(DISK, 0, ok=False)) == []


@pytest.mark.parametrize(("at", "many"), [(CUT - 1.0, 0), (CUT - 4.0, 1)])
def test_a_disk_that_is_cut_meanwhile_may_be_gone_before_its_turn(at: float, many: int) -> None:
    assert len(findings(slept(VICTIM, 0, at=at))) == many


def test_a_disk_of_which_that_is_not_on_record_is_a_doubt() -> None:
    bench = slept(DISK, 1)
    cached = {"disk": [table | {"cache": 1 << 20} for table in RIG["disk"] if table["name"] in SURVIVORS]}
    doubts = [f"how often {disk} was flushed before the machine slept is not on record" for disk in SURVIVORS[1:]]
    assert list(FlushedForSleep().judge(replace(bench.story(), rig=RIG | cached)).unknowns) == doubts
    assert bench.judge(FlushedForSleep()).unknowns == (), "disks without a cache"
    bench.replace(ev.DutSuspended, flushes={})
    assert FlushedForSleep().judge(replace(bench.story(), rig=RIG | cached)).unknowns == (), "an earlier version"
