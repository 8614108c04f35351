"""The random choices of a scenario, in streams with names."""

from __future__ import annotations

import random

VICTIMS = "victims"
"""Which disk or hub is cut."""
TRIGGERS = "triggers"
"""When it is cut."""
DATA = "data"
"""What is written, and where."""


class Streams:
    """Seeded generators, one per name.

    A stream depends on the run's seed, the scenario's id and its own name only. One draw more from one stream leaves
    the others as they were, so a scenario that chooses a second victim still cuts at the same moment.
    """

    def __init__(self, seed: int, scenario: str) -> None:
        self._root = f"{seed}:{scenario}"
        self._streams: dict[str, random.Random] = {}

    def of(self, name: str) -> random.Random:
        """The stream of that name. Each call returns the same generator, which goes on from where it was."""
        if name not in self._streams:
            self._streams[name] = random.Random(f"{self._root}:{name}")
        return self._streams[name]
