"""What killed runs left off: restored at the next start of plugpull, before anything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugpull.cache import Cache
from plugpull.coordination.journal import sweep
from plugpull.errors import RigError


def _restore(switch: dict[str, Any], dut: dict[str, Any], folder: Path, port: str) -> None:
    """Restore one port for the journal's sweep. Raises RigError and UsageError."""
    from plugpull.dut.real.restore import restore
    from plugpull.rig import model

    try:
        declared, machine = model.DeclaredSwitch.model_validate(switch), model.Dut.model_validate(dut)
    except ValueError as error:
        raise RigError(f"the journal of a killed run cannot be read: {error}") from None
    restore(declared, machine, folder, port)


def restore_what_was_left_off(cache: Cache, notify: Callable[[str], None], place: str = "") -> None:
    """Restore what killed runs left off; ``notify`` gets a sentence for each. ``place`` is the place of labgrid that
    the caller holds."""
    sweep(cache.journals(make=False), notify, _restore, place)
