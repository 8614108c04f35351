"""The switches that are attached to a machine, and their tables for a rig file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from plugpull.errors import PlugpullError
from plugpull.rig.toml_text import toml_key, toml_value
from plugpull.switches.host import Host
from plugpull.switches.kinds import FoundSwitch, all_kinds


@dataclass(frozen=True)
class Listing:
    """All switches that were found. ``looked`` are the kinds that can be found, ``failed`` their errors."""

    found: tuple[FoundSwitch, ...]
    looked: tuple[str, ...]
    failed: tuple[str, ...]


def find_all(host: Host) -> Listing:
    """Find the switches of every kind that can be found. An error of one kind does not stop the others."""
    found: list[FoundSwitch] = []
    looked, failed = [], []
    for kind in all_kinds():
        if kind.find is None:
            continue
        looked.append(kind.name)
        try:
            found += kind.find(host)
        except PlugpullError as error:
            failed.append(f"{kind.name}: {error.what}")
    return Listing(tuple(found), tuple(looked), tuple(failed))


def tables(found: tuple[FoundSwitch, ...], *, via: str = "controller", seen: Counter[str] | None = None) -> list[str]:
    """A ``[[switch]]`` table for each, with names that differ. ``via`` is the machine they were found on; ``seen``
    counts the names that are taken, for switches of several machines."""
    seen = Counter() if seen is None else seen
    made = []
    for each in found:
        base = re.sub(r"[^a-z0-9]", "", each.kind.lower()) or "switch"
        seen[base] += 1
        name = base if seen[base] == 1 else f"{base}{seen[base]}"
        lines = ["[[switch]]", f'name = "{name}"', f"driver = {toml_value(each.kind)}"]
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in each.options.items()]
        lines += [f"ports = {max(1, each.ports)}", f'mechanism = "{each.mechanism.value}"']
        if via != "controller":
            lines.append(f'via = "{via}"')
        made.append("\n".join(lines))
    return made
