"""What holds for all tests of the framework."""

from __future__ import annotations

import signal


def _hang_up(*_: object) -> None:
    """Do nothing."""


# What is ignored is inherited by the programs that tests start, and a handler is not: with `nohup plugpull test`, they
# would not notice that their terminal is closed, which some tests are about.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, _hang_up)
