"""Timelines: rates from samples, absences, roles, and a decimation that hides no stall."""

from __future__ import annotations

import pytest
import report_stories as made
from hypothesis import given
from hypothesis import strategies as st

from plugpull.history import events as ev
from plugpull.plain import clean
from plugpull.report.sampling import Column, thin
from plugpull.report.svg import ceiling
from plugpull.report.text import natural, title_of
from plugpull.report.timeline import timeline_of


def test_rates_come_from_the_counters_of_one_attachment() -> None:
    timeline = timeline_of(made.run().stories[made.PASSING], made.passing())
    victim, survivor, _ = timeline.disks
    at = dict(zip(timeline.grid, survivor.write, strict=True))
    assert at[timeline.grid[0]] is None, "the first sample has no predecessor"
    assert at[made.START + 7.0] == pytest.approx(30 * made.MB, rel=0.05)
    back = next(index for index, time in enumerate(timeline.grid) if time >= made.RETURNED_AT)
    assert victim.write[back] is None, "counters start again with the attachment"
    assert victim.absent == ((made.CUT_AT + 0.118, made.RETURNED_AT),)
    assert [disk.role for disk in timeline.disks] == ["victim", "survivor", "survivor"]


def test_an_idle_disk_of_the_rig_is_a_bystander() -> None:
    events = [*made.run().stories[made.PASSING], made.attached("disk4", made.START + 0.2)]
    timeline = timeline_of(events, made.passing())
    assert [disk.role for disk in timeline.disks if disk.name == "disk4"] == ["bystander"]


def test_a_permanent_cut_is_shaded_to_the_end() -> None:
    never_back = made.changed(made.CUT, restored_at=None, returned_at=None, permanent=True)
    result = made.changed(made.passing(), cuts=(never_back,))
    timeline = timeline_of(made.run().stories[made.PASSING], result)
    assert (timeline.cuts[0].begin, timeline.cuts[0].end) == (made.CUT_AT, timeline.end)
    assert timeline.cuts[0].open_ended


def test_the_axis_ignores_the_clock_before_a_restored_snapshot() -> None:
    events: list[ev.Event] = [
        ev.ScenarioBegun(id="a", wall="", seed=1, at=900.0),
        ev.DutReady(at=5.0, kernel="6.12", kind="virtual", how="restored", took=1.0),
        ev.Sampled(at=5.5, disks={}),
        ev.Sampled(at=9.0, disks={}),
    ]
    timeline = timeline_of(events, made.unknown())
    assert (timeline.start, timeline.end) == (5.0, 9.0)


def test_what_comes_after_a_second_boot_is_not_drawn_on_the_first_ones_axis() -> None:
    reboot: list[ev.Event] = [
        ev.DutReady(at=4.0, kernel="6.12", kind="virtual", how="booted", took=6.0),
        ev.KernelMessage(at=110.0, text="of the second boot"),
    ]
    timeline = timeline_of([*made.run().stories[made.PASSING], *reboot], made.passing())
    assert timeline.start == made.START
    assert all("second boot" not in message.text for message in timeline.kernel)


def test_thinning_keeps_a_stall_of_one_sample_and_a_gap() -> None:
    column: Column = [30.0] * 1000
    column[357] = 0.0
    column[700] = None
    grid, (thinned,) = thin([index / 10 for index in range(1000)], [column], 100)
    assert len(grid) == len(thinned) <= 100
    assert 0.0 in thinned
    assert None in thinned


values = st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=400)


@given(column=values, limit=st.integers(2, 100))
def test_thinning_keeps_extremes_and_order(column: Column, limit: int) -> None:
    grid, (thinned,) = thin([float(index) for index in range(len(column))], [column], limit)
    known = [value for value in column if value is not None]
    kept = [value for value in thinned if value is not None]
    assert len(grid) == len(thinned)
    assert grid == sorted(set(grid))
    assert not known or min(known) == min(kept)
    assert set(kept) <= set(known)


@pytest.mark.parametrize(("peak", "top"), [(0.0, 1e5), (29.9e6, 3e7), (30.6e6, 4e7), (1e6, 1e6), (9e8, 1e9)])
def test_a_curve_ends_at_a_round_rate(peak: float, top: float) -> None:
    assert ceiling(peak) == pytest.approx(top)


def test_names_in_words_and_in_natural_order() -> None:
    assert title_of("scenarios/test_x.py::test_cable_cut[write-disk1]") == "cable cut (write-disk1)"
    assert title_of("scenarios/test_cable_cut.py::test_while_idle") == "cable cut while idle"
    assert title_of("/srv/test_cable_cut.py::test_under_load[a]") == "cable cut under load (a)"
    assert title_of("while_idle") == "while idle"
    assert sorted(["disk10", "disk9", "a1"], key=natural) == ["a1", "disk9", "disk10"]


@given(st.text(st.characters()))
def test_clean_text_can_be_encoded_and_holds_no_control_characters(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned) == len(text)
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in cleaned)
