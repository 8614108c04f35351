"""The meters that are attached to a machine, and their tables for a rig file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from plugpull.errors import PlugpullError
from plugpull.meters.kinds import FoundMeter, all_kinds
from plugpull.rig.toml_text import toml_key, toml_value
from plugpull.switches.host import Host


@dataclass(frozen=True)
class MeterListing:
    """All meters that were found. ``looked`` are the kinds that can be found, ``unseen`` the others, ``failed`` errors.

    ``unseen`` are on the network, or on a serial port that shows nothing of what is behind it."""

    found: tuple[FoundMeter, ...]
    looked: tuple[str, ...]
    unseen: tuple[str, ...]
    failed: tuple[str, ...]


def find_meters(host: Host) -> MeterListing:
    """Find the meters of every kind that can be found. Reads only. An error of one kind does not stop the others."""
    found: list[FoundMeter] = []
    looked, unseen, failed = [], [], []
    for kind in all_kinds():
        if kind.find is None:
            if not kind.virtual:
                unseen.append(kind.name)
            continue
        looked.append(kind.name)
        try:
            found += kind.find(host)
        except PlugpullError as error:
            failed.append(f"{kind.name}: {error.what}")
    return MeterListing(tuple(found), tuple(looked), tuple(unseen), tuple(failed))


def meter_tables(found: tuple[FoundMeter, ...], *, via: str = "controller") -> list[str]:
    """A ``[[meter]]`` table for each, with names that differ. Which disks are behind it, only a person can say."""
    seen: Counter[str] = Counter()
    made = []
    for each in found:
        base = re.sub(r"[^a-z0-9]", "", each.model.lower()).lstrip("0123456789")[:20] or each.kind
        seen[base] += 1
        name = base if seen[base] == 1 else f"{base}-{seen[base]}"
        lines = ["[[meter]]", f'name = "{name}"', f"driver = {toml_value(each.kind)}"]
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in each.options.items()]
        lines += [f'side = "{each.side}"', "disks = [] # the disks behind it"]
        if via != "controller":
            lines.append(f'via = "{via}"')
        made.append("\n".join(lines))
    return made
