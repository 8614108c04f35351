"""How long a scenario takes that nobody has timed here yet. Pure."""

from __future__ import annotations

import re

USUAL = 18.0
"""Seconds: the mean of the others on rigs/quick.toml, two benches side by side on two CPUs without KVM."""
LONGER = {"raid": 36.0, "array": 36.0, "files": 30.0, "filesystem": 30.0}
"""The same of scenarios that make an array or a filesystem first, by a word in the name of their file. 125 scenarios
took 27 s on average."""


def usual_seconds(scenario: str) -> float:
    """Seconds for the scenario with this id, such as ``scenarios/test_raid_hub.py::test_...``."""
    words = re.split(r"[^a-z]+", scenario.partition("::")[0].rpartition("/")[2])
    return max((LONGER[word] for word in words if word in LONGER), default=USUAL)
