"""Commands that run a recorded run, or one scenario of it, again with the same random choices."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

PREFIX = "--plugpull-"
"""What the options of ``plugpull run``, except ``--rig``, begin with when the scenarios are started by pytest."""
BENCH = ("rig", "kernel", "module", "accel", "rotate", "repeats")
"""Options with a value that a single scenario needs too: they choose the bench and the turn."""


def run_again(argv: Sequence[str], scenario_ids: Sequence[str], seed: int) -> str:
    """The command line that repeats the run. ``argv`` is the recorded command line; without one, the first three
    scenarios are named."""
    words = list(argv) or ["plugpull", "run", *scenario_ids[:3]]
    option = _spelled("seed", words)
    given = any(word == option or word.startswith(f"{option}=") for word in words)
    return shlex.join(words if given else [*words, option, str(seed)])


def scenario_again(argv: Sequence[str], scenario_id: str, seed: int) -> str:
    """The command line that repeats one scenario on the same bench."""
    command = ["plugpull", *(argv[1:2] or ["run"])] if _by_plugpull(argv) else [argv[0]]
    every = _spelled("every-victim", argv)
    flags = [every] if every in argv else []
    return shlex.join([*command, scenario_id, *_bench(argv), *flags, _spelled("seed", argv), str(seed)])


def _by_plugpull(argv: Sequence[str]) -> bool:
    return not argv or list(argv[1:2]) in (["run"], ["measure"])


def _spelled(option: str, argv: Sequence[str]) -> str:
    return f"--{option}" if option == "rig" or _by_plugpull(argv) else f"{PREFIX}{option}"


def _bench(argv: Sequence[str]) -> Iterator[str]:
    """The options of ``argv`` that choose the bench, with their values."""
    options = {_spelled(name, argv) for name in BENCH}
    for word, value in zip(argv, [*argv[1:], ""], strict=False):
        if word in options and value:
            yield from (word, value)
        elif word.partition("=")[0] in options and "=" in word:
            yield word
