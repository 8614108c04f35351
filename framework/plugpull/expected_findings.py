"""Reads the findings that kernels are known to cause, from the file beside the scenarios."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from plugpull.errors import UsageError
from plugpull.history.events import ExpectedFinding, ExpectedShape
from plugpull.judging.expected import entry_faults

FILE = "expected_findings.toml"
"""In the directory of the scenarios that it is about."""


class _Shape(ExpectedShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Entry(ExpectedFinding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    findings: tuple[_Shape, ...] = msgspec.field(name="finding")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    expected: tuple[_Entry, ...] = ()


def read_expected(directories: Iterable[Path]) -> tuple[ExpectedFinding, ...]:
    """The entries of the files in these directories, which need not have one. Raises UsageError for a file that cannot
    be read or has a mistake."""
    found: dict[str, ExpectedFinding] = {}
    for directory in dict.fromkeys(directories):
        file = directory / FILE
        if not file.is_file():
            continue
        for entry in _read(file):
            if entry.name in found:
                raise UsageError(f"{file}: two expected findings are called {entry.name!r}")
            found[entry.name] = entry
    return tuple(found.values())


def _read(file: Path) -> tuple[ExpectedFinding, ...]:
    try:
        read = msgspec.convert(tomllib.loads(file.read_text()), _File)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=f"scenarios/README.md explains {FILE}") from None
    for entry in read.expected:
        if faults := entry_faults(entry):
            raise UsageError(f"{file}: the expected finding {entry.name!r}: {faults[0]}")
    return msgspec.convert(msgspec.to_builtins(read.expected), tuple[ExpectedFinding, ...])
