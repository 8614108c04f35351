"""Loading a rig file: a ``Rig``, or all mistakes in the file at once."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from plugpull.rig.draft import draft_of
from plugpull.rig.drivers import DriverBook, installed
from plugpull.rig.lint import lint
from plugpull.rig.mistakes import Mistake, RigFileErrors
from plugpull.rig.model import Rig
from plugpull.rig.source import KeyPath, Source, parse_source, read_source
from plugpull.rig.validation_messages import mistakes_of

__all__ = ["Mistake", "RigFileErrors", "load_rig", "parse_rig"]


def load_rig(path: Path, drivers: DriverBook | None = None) -> Rig:
    """Read and check a rig file. Touches no hardware.

    ``drivers`` are the kinds of switch that the file may name, by default those that are installed. Raises
    ``RigFileErrors``, a ``UsageError``, with every mistake in the file, one per line.
    """
    return _rig(read_source(path), drivers or installed())


def parse_rig(text: str, path: Path = Path("rig.toml"), drivers: DriverBook | None = None) -> Rig:
    """As ``load_rig``, for the text of a rig file. ``path`` is only used in messages."""
    return _rig(parse_source(path, text), drivers or installed())


def _rig(source: Source, drivers: DriverBook) -> Rig:
    if not source.values:
        what = "the file is empty: a rig file has at least [rig], [dut] and a [[disk]]"
        raise RigFileErrors((Mistake(source.path, 1, 1, what),))
    rig, mistakes, wrong = _validate(source)
    mistakes = (*mistakes, *lint(draft_of(source, wrong, drivers)))
    if rig is None or mistakes:
        raise RigFileErrors(mistakes)
    return rig


def _validate(source: Source) -> tuple[Rig | None, tuple[Mistake, ...], frozenset[KeyPath]]:
    try:
        return Rig.model_validate(source.values), (), frozenset()
    except ValidationError as error:
        wrong = frozenset(detail["loc"] for detail in error.errors(include_url=False))
        return None, tuple(mistakes_of(error, source)), wrong
