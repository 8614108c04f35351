"""The check ``kept_while_powered``: completed writes of disks that lost their data lines, their power, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledgers import Book, stamped
from sessions_on_record import on_record, session
from stories import SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import decode_check, encode_check, kept_while_powered, nothing_lost
from plugpull.history import events as ev


def completed_and_gone(disk: str = VICTIM) -> Bench:
    """Sector 5 was written over, which completed and was not flushed; the version before it is there."""
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs, disk=disk)
    return bench


def test_what_was_completed_is_there() -> None:
    bench = healthy()
    book, runs = session()
    runs[5] = stamped(book.write(5))
    on_record(bench, book, *runs)
    judgement = bench.judge(kept_while_powered())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "completed writes kept on 1 disks with power"


@pytest.mark.parametrize("disk", [VICTIM, SURVIVORS[0]])
def test_a_completed_write_that_is_gone_is_a_finding_while_the_disk_has_power(disk: str) -> None:
    """A cut of the data lines took none of it, and a survivor was not cut at all."""
    bench = completed_and_gone(disk)
    assert bench.judge(nothing_lost()).findings == (), "no flush had promised it"
    (finding,) = bench.judge(kept_while_powered()).findings
    assert (finding.check, finding.subject) == ("kept_while_powered", disk)
    assert f"{disk} kept its power, and lacks what it had completed (1 durable lost)" in finding.summary
    assert "expected write 9, completed at" in finding.summary


def test_a_write_in_flight_at_the_cut_may_be_gone() -> None:
    bench = healthy()
    book, runs = session()
    book.issue(5)
    book.write(6, error=5)
    on_record(bench, book, *runs)
    assert bench.judge(kept_while_powered()).findings == ()


@pytest.mark.parametrize(
    ("mechanism", "point", "own_supply"),
    [
        ("mains", f"{VICTIM}.power", True),
        ("data+vbus", f"{VICTIM}.cable", False),
        ("data", f"{VICTIM}.cable", False),
        ("data+vbus", f"{VICTIM}.cable", True),
        ("logical", f"{VICTIM}.cable", True),
    ],
)
def test_a_disk_that_may_have_lost_its_power_is_not_accused(mechanism: str, point: str, own_supply: bool) -> None:
    bench = completed_and_gone()
    bench.replace(ev.CutArmed, mechanism=mechanism, point=point)
    story = bench.story()
    tables = [table | {"self_powered": own_supply} for table in story.rig["disk"]]
    assert kept_while_powered().judge(replace(story, rig=story.rig | {"disk": tables})).findings == ()


def test_an_outlet_that_feeds_the_disk_as_well_takes_its_power() -> None:
    bench = completed_and_gone()
    story = bench.story()
    outlets = {"cable": "strip.1", "power": "strip.1"}
    tables = [table | (outlets if table["name"] == VICTIM else {}) for table in story.rig["disk"]]
    assert kept_while_powered().judge(replace(story, rig=story.rig | {"disk": tables})).findings == ()


@pytest.mark.parametrize(
    ("mechanism", "outlet", "accused"),
    [("data", "cables.1", True), ("mains", "cables.1", False), ("data", "cables.2", False)],
)
def test_a_cut_that_the_rig_file_contradicts_accuses_nobody(mechanism: str, outlet: str, accused: bool) -> None:
    """The record says that cables.1 cut the data lines."""
    bench = completed_and_gone()
    story = bench.story()
    tables = [table | ({"cable": outlet} if table["name"] == VICTIM else {}) for table in story.rig["disk"]]
    switch = [{"name": "cables", "mechanism": mechanism}]
    judgement = kept_while_powered().judge(replace(story, rig=story.rig | {"disk": tables, "switch": switch}))
    assert bool(judgement.findings) == accused


def test_a_cut_whose_switch_is_in_doubt_accuses_nobody() -> None:
    bench = completed_and_gone()
    bench.replace(ev.Edge, lambda edge: (edge.state, edge.phase) == ("off", "read-back"), agrees=False)
    assert bench.judge(kept_while_powered()).findings == ()


def test_a_loss_that_a_flush_had_promised_is_not_reported_twice() -> None:
    bench = healthy()
    book, runs = session()
    book.write(5)
    book.flush()
    on_record(bench, book, *runs)
    assert len(bench.judge(nothing_lost()).findings) == 1
    assert bench.judge(kept_while_powered()).findings == ()


def test_a_record_that_lacks_something_is_unknown() -> None:
    bench = completed_and_gone()
    bench.drop(ev.ReadBackBegun)
    judgement = bench.judge(kept_while_powered())
    assert judgement.findings == ()
    assert judgement.unknowns


def test_nothing_stamped_is_nothing_to_judge() -> None:
    judgement = healthy().judge(kept_while_powered())
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_it_can_be_judged_again() -> None:
    assert decode_check(encode_check(kept_while_powered("disk1"))) == kept_while_powered("disk1")


def test_an_untouched_book_is_nothing_to_keep() -> None:
    """A round in which nothing was ever written beyond the fill."""
    bench = healthy()
    book = Book()
    for sector in range(8):
        book.write(sector)
    book.flush()
    on_record(bench, book, *[stamped(write) for write in book.made.writes], fill=True)
    assert bench.judge(kept_while_powered()).findings == ()
