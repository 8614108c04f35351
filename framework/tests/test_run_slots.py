"""Which runs wait for a bench slot of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugpull.run
from plugpull.coordination.slots import Slots
from plugpull.errors import UsageError
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.run import Options, _slot

QUICK, REAL = rigs_dir() / "quick.toml", rigs_dir() / "shelf-ssh.toml"


@pytest.fixture
def one_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slots:
    """A machine with one slot."""
    slots = Slots(1, tmp_path)
    monkeypatch.setattr(plugpull.run, "Slots", lambda: slots)
    return slots


def test_a_run_on_one_bench_takes_a_slot_and_does_not_wait_for_it(one_slot: Slots) -> None:
    slot = _slot(load_rig(QUICK), Options(QUICK), lambda text: None)
    with slot(), one_slot.hold_if_free() as free:
        assert not free
    with one_slot.hold(), slot() as held:
        assert not held


def test_one_bench_of_several_waits(one_slot: Slots) -> None:
    class Waits(Exception):
        """It would wait."""

    def notify(text: str) -> None:
        raise Waits(text)

    slot = _slot(load_rig(QUICK), Options(QUICK, bench=2), notify)
    with slot(), one_slot.hold_if_free() as free:
        assert not free
    with one_slot.hold(), pytest.raises(Waits, match="all bench slots"), slot():
        pass


def test_a_real_rig_needs_no_slot(one_slot: Slots) -> None:
    with _slot(load_rig(REAL), Options(REAL), lambda text: None)(), one_slot.hold_if_free() as free:
        assert free


def test_a_number_of_slots_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUGPULL_SLOTS", "many")
    with pytest.raises(UsageError, match="PLUGPULL_SLOTS is 'many'"):
        _slot(load_rig(QUICK), Options(QUICK), lambda text: None)
