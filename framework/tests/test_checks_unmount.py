"""The check ``unmountable``: the filesystem of a disk that was cut can be unmounted."""

from __future__ import annotations

import pytest
from stories import CUT, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import unmountable
from plugpull.history import events as ev


def mounted(at: float = 12.0, *, ok: bool = True) -> Bench:
    bench = healthy()
    bench.add(ev.Acted(at=at, action="mount", disk=VICTIM, ok=ok, seconds=0.1))
    return bench


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("tried", [True, False])
def test_a_filesystem_that_was_never_mounted_proves_nothing(tried: bool, ok: bool) -> None:
    bench = mounted(ok=False) if tried else healthy()
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=ok, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns == (f"the filesystem on {VICTIM} was not mounted, so nothing is known of unmounting it",)
    assert judgement.worst == ""


@pytest.mark.parametrize(("mount", "umount"), [(12.0, CUT - 0.5), (20.0, 21.0)])
def test_a_filesystem_that_was_not_mounted_at_the_cut_proves_nothing(mount: float, umount: float) -> None:
    bench = mounted(mount)
    bench.add(ev.Acted(at=umount, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns == (f"the filesystem on {VICTIM} was not mounted when {VICTIM}.cable was cut",)


def test_a_filesystem_that_was_unmounted_twice_was_not_mounted_the_second_time() -> None:
    bench = mounted()
    for at in (20.0, 21.0):
        bench.add(ev.Acted(at=at, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    assert "was not mounted" in bench.judge(unmountable(VICTIM)).unknowns[0]


def test_an_unmounting_that_worked_at_the_second_try() -> None:
    bench = mounted()
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail="target is busy"))
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_a_dead_filesystem_that_the_kernel_held_until_it_was_back() -> None:
    bench = mounted()
    held = "Device or resource busy; held by nobody visible"
    bench.add(ev.Acted(at=16.5, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail=held))
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    (finding,) = bench.judge(unmountable(VICTIM)).findings
    assert finding.summary == f"{VICTIM} could be unmounted only later: {held}"
    assert finding.at == 16.5


@pytest.mark.parametrize(
    ("at", "holder"), [(16.5, "python3 (pid 12)"), (CUT - 1.0, "nobody visible")], ids=["process", "before the cut"]
)
def test_a_filesystem_that_was_held_for_a_reason(at: float, holder: str) -> None:
    bench = mounted(10.5)
    detail = f"Device or resource busy; held by {holder}"
    bench.add(ev.Acted(at=at, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail=detail))
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_a_survivor_is_unmounted_without_a_cut_of_its_own() -> None:
    bench = healthy()
    bench.add(ev.Acted(at=12.0, action="mount", disk=SURVIVORS[0], ok=True, seconds=0.1))
    bench.add(ev.Acted(at=14.0, action="umount", disk=SURVIVORS[0], ok=True, seconds=0.1))
    judgement = bench.judge(unmountable(SURVIVORS[0]))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_unmounting() -> None:
    bench = mounted()
    assert bench.judge(unmountable(VICTIM)).unknowns == ("nobody tried to unmount disk1",)
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    judgement = bench.judge(unmountable(VICTIM))
    assert not judgement.findings
    assert not judgement.unknowns
    assert "took 0.20 s" in bench.judge(unmountable(VICTIM, within=0.1)).findings[0].summary
    bench.add(ev.Acted(at=21.0, action="umount", disk=VICTIM, ok=False, seconds=0.2, detail="target is busy"))
    assert "target is busy" in bench.judge(unmountable(VICTIM)).findings[0].summary


def test_unmounting_that_took_long() -> None:
    bench = mounted()
    bench.add(ev.Acted(at=24.0, action="umount", disk=VICTIM, ok=True, seconds=5.5))
    assert "took 5.50 s (limit 5 s)" in bench.judge(unmountable(VICTIM)).findings[0].summary
    assert not bench.judge(unmountable(VICTIM, within=30)).findings
    bench.starved = ((20.0, 22.0),)
    assert "the DUT was starved meanwhile" in bench.judge(unmountable(VICTIM)).unknowns[0]
