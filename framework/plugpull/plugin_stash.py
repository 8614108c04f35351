"""What the pytest plugin and the run behind a session share: keys of pytest's stash, and two defaults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plugpull.output import SteadyOutput

STDOUT: pytest.StashKey[SteadyOutput] = pytest.StashKey()
ITEMS: pytest.StashKey[list[pytest.Item]] = pytest.StashKey()
"""Everything that was collected and not deselected."""
WHOLE: pytest.StashKey[tuple[str, ...]] = pytest.StashKey()
"""The ids of the scenarios of all shards, if this session is one of several."""
SKIPPED: pytest.StashKey[list[tuple[pytest.Item, str]]] = pytest.StashKey()
"""Scenarios that were skipped before the run began, with the reason."""
VERDICT = "plugpull_verdict"
"""The attribute of pytest's report that holds a scenario's verdict."""


def stock_rig() -> Path:
    from plugpull.locate import rigs_dir

    return rigs_dir() / "quick.toml"


def argv_of(config: pytest.Config) -> tuple[str, ...]:
    """The command that repeats this run, reconstructed from pytest's options."""
    return tuple(config.getoption("--plugpull-command")) or tuple(sys.argv)
