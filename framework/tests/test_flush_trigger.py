"""The trigger that fires while a flush of a disk is under way, by its ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugpull.errors import UsageError
from plugpull.faults.triggers import Flushing
from plugpull.integrity.oracle.ledger import SHORT, LedgerKind
from plugpull.integrity.writing.session import Tally


def record(kind: LedgerKind, number: int) -> bytes:
    return SHORT.pack(kind, 0, 0, number, 0, 0)


def test_a_flush_is_under_way_from_its_submission_to_its_completion() -> None:
    tally = Tally()
    tally.take(record(LedgerKind.FLUSH_SUBMITTED, 1))
    assert tally.flushes == 0, "the flush that ends the fill does not count"
    tally.take(record(LedgerKind.FLUSH_COMPLETED, 1))
    tally.take(record(LedgerKind.FLUSH_SUBMITTED, 2))
    assert tally.flushes == 1
    tally.take(record(LedgerKind.FLUSH_COMPLETED, 2))
    assert tally.flushes == 0


def test_without_stamps_no_flush_can_be_seen() -> None:
    context: Any = SimpleNamespace(flushing={})
    with pytest.raises(UsageError, match="no flush of disk1 can be seen"):
        Flushing("disk1").watch(context)
