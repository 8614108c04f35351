"""How long a scenario takes that nobody has timed here yet. Pure."""

from __future__ import annotations

import re

USUAL = 18.0
"""Seconds. On rigs/quick.toml, two benches on two busy CPUs without KVM, 52 such scenarios took 20 s on average."""
LONGER = {"raid": 36.0, "array": 36.0, "files": 30.0, "filesystem": 30.0}
"""The same of scenarios that make an array or a filesystem first, by a word in the name of their file. There, 31 with
an array took 36 s on average, and 42 with a filesystem 27 s."""


def usual_seconds(scenario: str) -> float:
    """Seconds for the scenario with this id, such as ``scenarios/test_raid_hub.py::test_...``."""
    words = re.split(r"[^a-z]+", scenario.partition("::")[0].rpartition("/")[2])
    return max((LONGER[word] for word in words if word in LONGER), default=USUAL)
