"""What must hold in every scenario, whatever it asks for and however it ends.

Each of these is an ordinary check without required parameters that works out its subjects from the story. One that the
scenario asks for itself is judged as asked, and not a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plugpull.checks.base import Check, check_name
from plugpull.checks.cuts_made import CutsMade
from plugpull.checks.kernel_clean import KernelClean

STANDING: tuple[Check, ...] = (
    KernelClean(),
    CutsMade(),
)


def standing_checks(asked: Iterable[dict[str, Any]]) -> tuple[Check, ...]:
    """The standing checks, apart from those that the scenario ``asked`` for (checks as data, as in ``Judged``)."""
    names = {str(data.get("check")) for data in asked}
    return tuple(check for check in STANDING if check_name(check) not in names)
