"""Whether a rig file may cite a qualification file: a rule of rig files, which ``rig/lint.py`` looks up by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from plugpull.errors import UsageError
from plugpull.qualify.qualification import read_qualification
from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.mistakes import Mistake
from plugpull.rig.model import DeclaredSwitch


def cited_qualifications(draft: Draft) -> Iterator[Mistake]:
    """A qualification that a ``[[switch]]`` table cites is a PASS and is about that switch."""
    for switch in draft.of("switch"):
        citation, declared = switch.get("qualification"), _declared(switch)
        if citation is None or declared is None:
            continue
        found = problem(draft.source.path.parent, citation, declared)
        if found:
            yield draft.mistake(switch, "qualification", found)


def problem(folder: Path, citation: str, switch: DeclaredSwitch) -> str | None:
    """Why a ``[[switch]]`` table in ``folder`` may not cite this file, as a sentence. None if it may."""
    path = folder / citation
    try:
        found = read_qualification(path)
    except UsageError as error:
        return error.what
    if found.verdict == "FAIL":
        why = found.findings[0] if found.findings else "no reason given"
        return f"the switch failed its qualification in {citation}: {why}"
    if found.verdict != "PASS":
        why = found.unknowns[0] if found.unknowns else "no reason given"
        return f"the qualification in {citation} came to no verdict: {why}"
    if found.switch.driver != switch.driver:
        return (
            f'{citation} is about a switch with the driver "{found.switch.driver}", but this one has "{switch.driver}"'
        )
    if found.mechanism != switch.mechanism.value:
        return (
            f"{citation} is about {found.mechanism}, but this switch is declared to interrupt {switch.mechanism.value}"
        )
    serial = switch.options.get("serial")
    if serial and found.switch.serial and serial != found.switch.serial:
        return f"{citation} is about the switch with the serial number {found.switch.serial}, but this one has {serial}"
    return None


def _declared(switch: DraftTable) -> DeclaredSwitch | None:
    try:
        return DeclaredSwitch.model_validate(dict(switch.values))
    except ValidationError:  # its mistakes have been reported
        return None
