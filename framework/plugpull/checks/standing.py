"""The checks that stand for every scenario, whatever it asks for and however it ends.

Each is an ordinary check without required parameters, which finds its subjects in the story. If the scenario asks for
one of them itself, it is judged as asked, and only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plugpull.checks.base import Check, check_name
from plugpull.checks.data.data_sound import DataSound
from plugpull.checks.data.flushed_for_sleep import FlushedForSleep
from plugpull.checks.data.kept_while_powered import KeptWhilePowered
from plugpull.checks.dut.blocked import NothingBlocked
from plugpull.checks.dut.cpus_answer import CpusAnswer
from plugpull.checks.dut.kernel_between import KernelBetween
from plugpull.checks.dut.kernel_clean import KernelClean
from plugpull.checks.dut.kernel_state import StateKept
from plugpull.checks.dut.nothing_stuck import NothingStuck
from plugpull.checks.dut.residue import NothingLeft
from plugpull.checks.dut.spinning import NothingSpins
from plugpull.checks.raid.arrays_sound import ArraysSound
from plugpull.checks.record.coherent import Coherent
from plugpull.checks.record.cuts_made import CutsMade
from plugpull.checks.record.on_record import OnRecord
from plugpull.checks.survivors.answered import Answered
from plugpull.checks.survivors.undisturbed import Undisturbed
from plugpull.checks.victims.as_declared import AsDeclared
from plugpull.checks.victims.found_again import FoundAgain
from plugpull.checks.victims.properties import SameProperties
from plugpull.checks.victims.removed import Removed
from plugpull.checks.victims.returned import Returned
from plugpull.checks.victims.users_told import UsersTold

STANDING: tuple[Check, ...] = (
    KernelClean(),
    AsDeclared(),
    CutsMade(),
    Coherent(),
    OnRecord(),
    Undisturbed(),
    KeptWhilePowered(),
    DataSound(),
    FoundAgain(None),
    FlushedForSleep(),
    ArraysSound(),
    NothingBlocked(),
    NothingSpins(),
    CpusAnswer(),
    Answered(),
    NothingStuck(),
    SameProperties(),
    NothingLeft(required=False),
    StateKept(),
    KernelBetween(),
)
"""Standing checks that are judged only as asked if the scenario asks for them."""


def standing_checks(asked: Sequence[dict[str, Any]]) -> tuple[Check, ...]:
    """The standing checks of a scenario that ``asked`` for these checks (as data, as in ``Judged``).

    All victims are judged for every cut: those that the scenario names as it asks, the others by their limits.
    """
    names = {str(data.get("check")) for data in asked}
    checks = [check for check in STANDING if check_name(check) not in names]
    named = [data.get("disks") for data in asked if data.get("check") == "ended_with_error"]
    checks.append(UsersTold(besides=_names(named)))
    for kind in (Removed, Returned):
        named = [data.get("disks") for data in asked if data.get("check") == check_name(kind)]
        if None not in named:
            checks.append(kind(None, besides=_names(named)))
    return tuple(checks)


def _names(asked: Iterable[object]) -> tuple[str, ...]:
    """The disks of several checks as data."""
    return tuple(str(disk) for disks in asked if isinstance(disks, list | tuple) for disk in disks)
