"""Shows the state of a fleet as text and as JSON. Both are safe for a terminal, whatever files and coordinators say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from plugpull.coordination.holders import PortLeftOff
from plugpull.coordination.place_process import since
from plugpull.fleet.status import FleetStatus, RigStatus, RigUser
from plugpull.plain import clean_json, clean_line

LONGEST = 300
"""Characters of a line at most."""


def as_text(fleet: FleetStatus) -> Iterator[str]:
    """A few lines for each rig."""
    return (clean_line(line)[:LONGEST] for line in _lines(fleet))


def _lines(fleet: FleetStatus) -> Iterator[str]:
    width = max((len(one.rig) for one in fleet.rigs), default=0)
    for one in fleet.rigs:
        place = f" (place {one.place})" if one.place else ""
        first, *others = list(map(_user, one.users)) or [""]
        yield f"{one.rig:{width}}  {one.state:8}{first}{place}"
        yield from (f"{'':{width}}  {'':8}{other}" for other in others)
        yield from (f"{'':{width}}  {word:8}{text}" for word, text in (("last", _last(one)), *_health(one)))
    yield from (f"left off by a killed run: {_port(port)}" for port in fleet.left_off)
    if not fleet.rigs:
        yield "no rig is known: name rig files, or an archive with --archive"


def _user(user: RigUser) -> str:
    run = f", {user.run}" if user.run else ""
    return f"by {user.who}{_for(user.since)} ({user.source}{run})"


def _last(one: RigStatus) -> str:
    if one.last is None:
        return "no run is known"
    verdict = f"{one.last.verdict} at {one.last.started}"
    return f"{verdict}, {one.last.run}" + (f": {one.last.sentence}" if one.last.sentence else "")


def _health(one: RigStatus) -> Iterator[tuple[str, str]]:
    if one.preflight is None:
        yield "health", "not checked by a nightly run yet"
    elif not one.preflight.troubles:
        yield "health", f"ready at {one.preflight.at}"
    else:
        yield "health", f"not ready at {one.preflight.at}:"
        yield from (("", f"  {trouble}") for trouble in one.preflight.troubles)
    yield from (("", f"left off by a killed run: {_port(port)}; the next start restores it") for port in one.left_off)
    yield from (("", trouble) for trouble in one.troubles)


def _port(port: PortLeftOff) -> str:
    return f"{port.switch}.{port.port} ({Path(port.run).name or 'unknown run'})"


def _for(moment: str) -> str:
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return ""
    return f" {since(at.replace(tzinfo=at.tzinfo or UTC).timestamp())}, since {moment}"


def as_json(fleet: FleetStatus) -> str:
    """The same as JSON, in ASCII: ``{"rigs": [...], "left_off": [...]}``."""
    found: Any = msgspec.to_builtins(fleet)
    return clean_json(json.dumps(found, indent=2, ensure_ascii=True)) + "\n"
