"""From a rig file to a ``Rig``, or to every mistake in it at once."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from plugpull.rig.draft import draft_of
from plugpull.rig.lint import lint
from plugpull.rig.mistakes import Mistake, RigFileErrors
from plugpull.rig.model import Rig
from plugpull.rig.source import KeyPath, Source, parse_source, read_source
from plugpull.rig.wording import mistakes_of

__all__ = ["Mistake", "RigFileErrors", "load_rig", "parse_rig"]


def load_rig(path: Path) -> Rig:
    """Read and check a rig file. No hardware is touched.

    Raises ``RigFileErrors``, a ``UsageError``, with every mistake in the file, one a line.
    """
    return _rig(read_source(path))


def parse_rig(text: str, path: Path = Path("rig.toml")) -> Rig:
    """As ``load_rig``, for a rig file's text; ``path`` is only for messages."""
    return _rig(parse_source(path, text))


def _rig(source: Source) -> Rig:
    if not source.values:
        what = "the file is empty: a rig file has at least [rig], [dut] and a [[disk]]"
        raise RigFileErrors((Mistake(source.path, 1, 1, what),))
    rig, mistakes, wrong = _validate(source)
    mistakes = (*mistakes, *lint(draft_of(source, wrong)))
    if rig is None or mistakes:
        raise RigFileErrors(mistakes)
    return rig


def _validate(source: Source) -> tuple[Rig | None, tuple[Mistake, ...], frozenset[KeyPath]]:
    try:
        return Rig.model_validate(source.values), (), frozenset()
    except ValidationError as error:
        wrong = frozenset(detail["loc"] for detail in error.errors(include_url=False))
        return None, tuple(mistakes_of(error, source)), wrong
