"""What the sessions of a run have in common: pytest's command line, and how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.exit_status import EXIT_PASS

if TYPE_CHECKING:
    from plugpull.rig.model import Rig


@dataclass(frozen=True)
class Session:
    """A run that ended. ``directory`` is ``None`` if it never began; ``interrupted`` says by what, if it was."""

    status: int
    directory: Path | None
    interrupted: str


def pytest_line(arguments: argparse.Namespace, rig: Rig, kernel: str | None, words: Sequence[str]) -> list[str]:
    """The arguments of pytest for a run."""
    from plugpull.commands.run_plugin import root_of
    from plugpull.locate import scenarios_dir, stock_dir

    line = ["--rootdir", str(root_of(arguments.path, stock_dir()))]
    line += ["--rig", str(rig_file(arguments)), "--plugpull-accel", arguments.accel]
    line += ["--tb=short", "-p", "no:cacheprovider", "-q", "--no-header"]
    line += arguments.path or [str(scenarios_dir())]
    studies = studies_of(arguments)
    line += ["--plugpull-studies", studies]
    if getattr(arguments, "repeats", None):
        line += ["--plugpull-repeats", str(arguments.repeats)]
    markers = getattr(arguments, "markers", None)
    line += ["-k", arguments.expression] if arguments.expression else []
    line += ["-m", markers] if markers else []
    lasting, resume = getattr(arguments, "lasting", None), getattr(arguments, "resume", None)
    if rig.rig.rows and not (arguments.path or arguments.expression or markers or lasting):
        line += ["--plugpull-rows", ",".join(rig.rig.rows)]
    if arguments.every_victim:
        line.append("--plugpull-every-victim")
    values = (("kernel", kernel), ("out", arguments.out), ("seed", arguments.seed), ("rotate", arguments.rotate))
    soak = (("for", lasting), ("resume", resume))
    for option, value in (*values, *soak, ("shard", getattr(arguments, "shard", None))):
        if value is not None:
            line += [f"--plugpull-{option}", str(value)]
    for module in arguments.module:
        line += ["--plugpull-module", module]
    return line + [f"--plugpull-command={word}" for word in ("plugpull", *_dated(words, arguments.rotate))]


def nothing_collected(arguments: argparse.Namespace, rig: Rig, deselected: Sequence[str], whole: int | None) -> Session:
    """The end of a run without scenarios: right for a shard if there are fewer scenarios than shards.

    Raises UsageError otherwise.
    """
    from plugpull.commands.run_plugin import nothing_to_run

    if not whole:
        raise nothing_to_run(arguments, rig, deselected)
    count = f"only {whole} scenario{'s' * (whole != 1)}"
    print(f"plugpull: nothing is left for shard {arguments.shard}: {count} in all", file=sys.stderr)
    return Session(EXIT_PASS, None, "")


def studies_of(arguments: argparse.Namespace) -> str:
    """Whether studies are run: by ``plugpull measure`` only they, by ``plugpull run`` only if a file is named."""
    if hasattr(arguments, "repeats"):
        return "only"
    return "too" if any(not Path(path).is_dir() for path in arguments.path) else "none"


def _dated(words: Sequence[str], turn: int | None) -> list[str]:
    """The command that repeats the run on another day."""
    plain = [f"--rotate={turn}" if word == "--rotate=today" else word for word in words]
    return [
        str(turn) if word == "today" and before == "--rotate" else word
        for before, word in zip(["", *plain], plain, strict=False)
    ]


def rig_file(arguments: argparse.Namespace) -> Path:
    """The rig file that was asked for, or the stock one."""
    from plugpull.locate import rigs_dir

    return Path(arguments.rig) if arguments.rig else rigs_dir() / "quick.toml"
