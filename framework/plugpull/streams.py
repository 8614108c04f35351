"""Named streams of a scenario's random choices."""

from __future__ import annotations

import random

VICTIMS = "victims"
"""Which disk or hub is cut."""
FAULTS = "faults"
"""What a turn of a soak does to the rig."""
TRIGGERS = "triggers"
"""When it is cut."""
ORDER = "order"
"""In which order a study measures its conditions."""
DATA = "data"
"""What is written, and where."""


class Streams:
    """Seeded generators, one per name.

    A stream depends only on the run's seed, the scenario's id and its own name. An additional draw from one stream does
    not change the others, so a scenario that chooses a second victim still cuts at the same moment.
    """

    def __init__(self, seed: int, scenario: str) -> None:
        self._root = f"{seed}:{scenario}"
        self._streams: dict[str, random.Random] = {}

    def of(self, name: str) -> random.Random:
        """The stream of that name. Each call returns the same generator in its current state."""
        if name not in self._streams:
            self._streams[name] = random.Random(f"{self._root}:{name}")
        return self._streams[name]
