"""What signals do to a run, apart from the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from plugpull.interrupts import signals_held, signals_raise


@pytest.fixture
def hangup() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_run_as_an_exception(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt, match=number.name), signals_raise():
        os.kill(os.getpid(), number)


def test_a_run_under_nohup_does_not_end_with_its_terminal(hangup: None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_raise():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_what_is_held_is_done_before_the_signal_counts(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[bool] = []

    def held() -> None:
        with signals_held():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        held()
    assert done
    assert "putting the bench away first" in capsys.readouterr().err
