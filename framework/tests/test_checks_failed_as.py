"""What the kernel reports to the users of a disk that is gone."""

from __future__ import annotations

import pytest
from ledgers import Book
from sessions_on_record import on_record
from stories import CUT, GONE, RIG, SURVIVORS, Bench, healthy
from watched import real

from plugpull.checks import nothing_lost
from plugpull.checks.victims.users_told import UsersTold
from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.history.story import Story

FIRST_SESSION = 12.0
"""When ``on_record`` begins its first session, DUT seconds."""


def failed(status: str, at: float = CUT + 0.05, kname: str = "sdb", op: str = "0x1:(WRITE)") -> Bench:
    bench = healthy()
    text = f"{status} error, dev {kname}, sector 4096 op {op} flags 0x8800 phys_seg 1 prio class 2"
    bench.add(ev.KernelMessage(at=at, text=text, level=3), ev.KernelMessage(at=at + 0.001, text=text, level=3))
    return bench


def found(bench: Bench) -> tuple[Finding, ...]:
    return bench.judge(UsersTold()).findings


@pytest.mark.parametrize("status", ["I/O", "device offline", "recoverable transport"])
def test_a_disk_that_is_gone_fails_with_an_io_error(status: str) -> None:
    assert found(failed(status)) == ()


def test_a_disk_that_is_gone_is_not_a_full_one() -> None:
    (finding,) = found(failed("critical space allocation"))
    assert finding.summary == (
        "the kernel failed a request to disk1, which was cut, with a critical space allocation error, which means a "
        "full disk (ENOSPC) instead of an I/O error (and 1 more)"
    )
    assert finding.evidence[0].startswith("critical space allocation error, dev sdb")


@pytest.mark.parametrize(
    ("status", "means"),
    [
        ("operation not supported", "an operation not supported error, which means a disk that cannot do this"),
        ("device resource", "a device resource error, which means a busy disk"),
        ("invalid", "an invalid error, which means a wrong request"),
        ("dm internal retry", "a dm internal retry error instead"),
    ],
)
def test_a_disk_that_is_gone_is_nothing_else_either(status: str, means: str) -> None:
    (finding,) = found(failed(status))
    assert means in finding.summary
    assert found(real(failed(status)))


def test_what_a_disk_never_could_do_says_nothing_of_its_loss() -> None:
    assert found(failed("operation not supported", op="0x9:(WRITE_ZEROES)")) == ()
    assert found(failed("operation not supported", op="0x3:(DISCARD)")) == ()


def written(at: float) -> Bench:
    """A write of the victim that was completed without an error at that time, in a record that agrees with it."""
    bench, book = healthy(), Book()
    book.write(0)
    on_record(bench, book, start=at, later=at - FIRST_SESSION)
    return bench


@pytest.mark.parametrize("later", [0.9, -0.5], ids=["while it was gone", "before"])
def test_writes_that_succeed_on_a_disk_that_the_kernel_has_removed(later: float) -> None:
    bench = written(GONE + later)
    what = [finding.summary for finding in found(bench) if "had removed it" in finding.summary]
    assert len(what) == (later > 0)
    assert all(one.startswith("writes to disk1 were completed without an error until ") for one in what)


def test_a_ledger_whose_writer_had_ended_before_tells_nothing_of_a_removed_disk() -> None:
    bench = written(GONE + 0.9)
    bench.replace(ev.LedgerEnded, lambda event: True, at=CUT - 3.0)
    assert not [finding for finding in found(bench) if "had removed it" in finding.summary]
    for check in (nothing_lost(), UsersTold()):
        assert any("and its writer ended at" in what for what in bench.judge(check).unknowns)


def test_a_ledger_of_another_disk_tells_nothing_of_a_removed_disk() -> None:
    bench = written(GONE + 0.9)
    bench.replace(ev.LedgerBegun, lambda event: True, device=99)
    assert not [finding for finding in found(bench) if "had removed it" in finding.summary]
    for check in (nothing_lost(), UsersTold()):
        assert any("its ledger is of another session, disk or run" in what for what in bench.judge(check).unknowns)


def test_a_ledger_of_another_disk_leaves_a_question_also_if_nothing_was_read_back() -> None:
    bench = written(GONE + 0.9)
    bench.replace(ev.LedgerBegun, lambda event: True, device=99)
    bench.drop(ev.ReadBackBegun)
    bench.drop(ev.ReadBackPart)
    bench.drop(ev.ReadBackEnded)
    assert any("its ledger is of another session" in what for what in bench.judge(UsersTold()).unknowns)


def test_a_ledger_that_agrees_with_the_record_leaves_nothing_open() -> None:
    assert not any("session 1" in what for what in written(GONE - 0.5).judge(UsersTold()).unknowns)


def test_errors_of_others_are_judged_elsewhere() -> None:
    assert found(failed("critical space allocation", kname="sdc")) == ()
    assert SURVIVORS[0] == "disk2"


def test_a_bridge_that_outlives_its_disk_may_report_a_medium_error() -> None:
    assert found(failed("critical medium"))
    assert found(real(failed("critical medium"))) == ()
    assert found(real(failed("critical space allocation")))


def test_a_disk_with_a_defect_may_fail_as_it_likes() -> None:
    story = failed("critical medium").story()
    rig = RIG | {"defect": [{"disk": "disk1", "kind": "bad-sectors"}]}
    assert UsersTold().judge(with_rig(story, rig)).findings == ()


def with_rig(story: Story, rig: dict[str, object]) -> Story:
    return Story(story.begun, story.events, rig=rig)
