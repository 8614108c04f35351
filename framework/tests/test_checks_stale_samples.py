"""Samples that repeat one another while disks are written by their ledgers, and samples that come twice."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from ledgers import Book, ledger_bytes
from msgspec.structs import replace
from paces import between, only, resampled
from sessions_on_record import ledger_begun
from stories import CUT, DISKS, SURVIVORS, Bench, healthy
from test_answered import story as waiting

from plugpull.checks import answered, kept_pace
from plugpull.checks.record.coherent import coherent
from plugpull.history import events as ev
from plugpull.history.medians import usual_of
from plugpull.history.story import Story

DISK = SURVIVORS[0]
BEGUN, ENDED, EACH = 11.0, 23.0, 0.05
SECTORS = 1953
"""Of each write: what the disk of the healthy story moves in ``EACH`` seconds."""


def stamped(disk: str = DISK, until: float = ENDED, halved_from: float = ENDED) -> Bench:
    """A survivor of the healthy story is written by a ledger, a write for each sample, and for every second one from
    ``halved_from`` on."""
    bench, book = healthy(), Book()
    for number in range(round((until - BEGUN) / EACH)):
        if number % 2 and BEGUN + number * EACH >= halved_from:
            continue
        write = book.write(0, SECTORS)
        write.issued_at = number * EACH - 0.02 if number else 0.0
        write.completed_at = number * EACH + 0.01
    data, job = ledger_bytes(book.made, start=BEGUN), f"load-{disk}"
    begun = replace(ledger_begun(book, BEGUN, disk, job, fill=False), extents=((0, 1 << 17),))
    part = ev.LedgerPart(at=ENDED, disk=disk, job=job, offset=0, data=base64.b64encode(data).decode())
    bench.add(begun, part, ev.LedgerEnded(at=ENDED, disk=disk, job=job, asked=True, received=len(data), status=0))
    return bench


def frozen(bench: Bench, begin: float, end: float, disks: tuple[str, ...] = DISKS) -> Bench:
    """The samples of these disks repeat the first one from ``begin`` to ``end``."""
    knames = {one.kname for one in bench.story().all_attachments if one.disk in disks}
    first: dict[str, ev.Sampled] = {}

    def change(one: ev.Sampled) -> ev.Sampled:
        if not begin <= (one.at or 0.0) < end:
            return one
        known = first.setdefault("", one)
        return replace(one, disks={k: known.disks[k] if k in knames else v for k, v in one.disks.items()})

    return resampled(bench, change)


def repeated(bench: Bench) -> list[str]:
    """What the record says of samples that repeat one another."""
    return [one for one in bench.judge(coherent()).unknowns if "repeat one another" in one]


def test_samples_that_fit_the_ledger() -> None:
    assert repeated(stamped()) == []
    for check in (kept_pace(SURVIVORS), answered()):
        judged = stamped().judge(check)
        assert (judged.findings, judged.unknowns) == ((), ()), check


def test_samples_that_repeat_one_another_while_a_disk_is_written_accuse_nobody() -> None:
    bench = frozen(stamped(), 18.5, 21.5)
    judged = bench.judge(kept_pace(SURVIVORS))
    assert judged.findings == ()
    assert all(f"the pace of {disk} is not known" in "".join(judged.unknowns) for disk in SURVIVORS)
    (doubt,) = repeated(bench)
    assert doubt.startswith("the record contradicts itself: the samples from 18.50 s to 21.45 s repeat one another")
    assert doubt.endswith(f"and {DISK} completed {57 * SECTORS * 512} bytes of writes meanwhile")


@pytest.mark.parametrize(
    "bench",
    [
        pytest.param(lambda: frozen(healthy(), 18.5, 21.5), id="no ledger says that anything was written"),
        pytest.param(lambda: frozen(stamped(until=17.0), 18.5, 21.5), id="the ledger had ended"),
    ],
)
def test_disks_that_stand_still_are_accused(bench: Callable[[], Bench]) -> None:
    assert f"{DISK} stood still for 2." in bench().judge(kept_pace(DISK)).findings[0].summary
    assert repeated(bench()) == []


def test_counters_of_one_disk_that_stand_still_while_it_is_written_accuse_nobody() -> None:
    """Its ledger says that it did not stand still. What is said of the others is known."""
    bench = frozen(stamped(), 18.5, 21.5, (DISK,))
    judged = bench.judge(kept_pace(SURVIVORS))
    assert judged.findings == ()
    (doubt,) = judged.unknowns
    said = "its counters did not change from 18.50 s to 21.45 s, and by its ledger it completed"
    assert doubt == f"the pace of {DISK} is not known: {said} {57 * SECTORS * 512} bytes of writes meanwhile"
    assert repeated(bench) == []


@pytest.mark.parametrize("written", [True, False])
def test_counters_that_lag_a_little_hide_no_slow_disk(written: bool) -> None:
    """Half of its rate is left from the cut on, by its counters. Its ledger agrees, or says that all was written."""
    bench = stamped(halved_from=ENDED if written else CUT)
    bench.pace = only(DISK, between(CUT, ENDED, 0.5))
    judged = frozen(bench, 18.5, 19.3, (DISK,)).judge(kept_pace(SURVIVORS))
    assert f"the pace of {DISK} is not known: its counters did not change" in judged.unknowns[0]
    if written:
        assert judged.findings == ()
        assert any(one.endswith("by its ledger it completed more than its counters say") for one in judged.unknowns)
    else:
        (finding,) = judged.findings
        assert finding.summary.startswith(f"{DISK} took")
        assert "to get back to 85% of its" in finding.summary


@pytest.mark.parametrize("stale", [True, False])
def test_requests_that_the_samples_do_not_show_completed(stale: bool) -> None:
    bench = stamped()
    if stale:
        frozen(bench, 18.5, 22.0)
    judged = answered().judge(waiting(bench, 18.5, 21.9))
    assert bool(judged.findings) is not stale
    assert any("is not known" in one for one in judged.unknowns) is stale


# --- samples of one moment --------------------------------------------------------------------------------------------


def doubled(story: Story, later: float) -> Story:
    """Every sample is there twice, the second one so many seconds later."""
    events: list[ev.Event] = []
    for event in story.events:
        events.append(event)
        if isinstance(event, ev.Sampled):
            events.append(replace(event, at=(event.at or 0.0) + later))
    return Story(story.begun, tuple(events), rig=story.rig)


def test_samples_that_come_twice_do_not_make_the_others_late() -> None:
    for bench in (healthy(), stamped()):
        story = doubled(bench.story(), 2e-6)
        assert story.sample_interval == pytest.approx(EACH, rel=0.01)
        judged = kept_pace(SURVIVORS).judge(story)
        assert (judged.findings, judged.unknowns) == ((), ())


@pytest.mark.parametrize(
    ("steps", "usual"),
    [((0.1, 0.1, 0.3), 0.1), ((2e-6, 0.1) * 5, 0.1), ((2e-6,) * 9 + (0.1, 0.3), 0.2), ((1e-6, 2e-6), 1.5e-6)],
)
def test_the_usual_step_is_between_moments(steps: tuple[float, ...], usual: float) -> None:
    assert usual_of(steps) == pytest.approx(usual)
