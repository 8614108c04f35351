"""``--shard I/N``: every N-th scenario of a run, so that N machines share it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from plugpull.errors import UsageError
from plugpull.plugin_session import is_scenario, scenario_id
from plugpull.plugin_stash import WHOLE

MOST = 10_000


class Shard(NamedTuple):
    """One of ``of`` shards; ``number`` counts from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard_of(text: str) -> Shard:
    """The shard that ``I/N`` names. Raises UsageError."""
    number, slash, of = text.partition("/")
    if slash and all(part.isascii() and part.isdigit() and len(part) < 6 for part in (number, of)):
        shard = Shard(int(number), int(of))
        if 1 <= shard.number <= shard.of <= MOST:
            return shard
    raise UsageError(f"{text!r} is not a shard", hint="write it as I/N, such as 2/4 for the second of four shards")


class ShardPlugin:
    """Deselects what other shards run, after all other choices of scenarios."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.stash[WHOLE] = tuple(scenario_id(item) for item in items if is_scenario(item))
        mine = items[self._shard.number - 1 :: self._shard.of]
        kept = set(mine)
        others = [item for item in items if item not in kept]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = mine
