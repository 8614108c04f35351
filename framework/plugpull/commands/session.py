"""One run of the scenarios: one pytest session, on one kernel."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.exit_status import EXIT_USAGE

if TYPE_CHECKING:
    from plugpull.rig.model import Rig


@dataclass(frozen=True)
class Session:
    """A run that ended. ``directory`` is ``None`` if it never began; ``interrupted`` says by what, if it was."""

    status: int
    directory: Path | None
    interrupted: str


def session(arguments: argparse.Namespace, rig: Rig, kernel: str | None, words: Sequence[str]) -> Session:
    """One pytest session. ``words`` is the command that repeats it. Raises UsageError if no scenario is left to run."""
    import pytest

    from plugpull.commands.run_plugin import RunPlugin, root_of
    from plugpull.locate import scenarios_dir, stock_dir

    line = ["--rig", str(rig_file(arguments)), "--plugpull-accel", arguments.accel]
    line += ["--tb=short", "-p", "no:cacheprovider", "-q", "--no-header"]
    line += arguments.path or [str(scenarios_dir())]
    studies = studies_of(arguments)
    line += ["--plugpull-studies", studies]
    if getattr(arguments, "repeats", None):
        line += ["--plugpull-repeats", str(arguments.repeats)]
    if arguments.expression:
        line += ["-k", arguments.expression]
    elif rig.rig.rows and not arguments.path and studies != "only":
        line += ["--plugpull-rows", ",".join(rig.rig.rows)]
    if arguments.every_victim:
        line.append("--plugpull-every-victim")
    values = (("kernel", kernel), ("out", arguments.out), ("seed", arguments.seed), ("rotate", arguments.rotate))
    for option, value in values:
        if value is not None:
            line += [f"--plugpull-{option}", str(value)]
    for module in arguments.module:
        line += ["--plugpull-module", module]
    for word in ("plugpull", *_dated(words, arguments.rotate)):
        line.append(f"--plugpull-command={word}")
    plugin = RunPlugin(rig, Path(arguments.out or "runs"), getattr(arguments, "repeats", None))
    status = int(pytest.main(["--rootdir", str(root_of(arguments.path, stock_dir())), *line], plugins=[plugin]))
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise plugin.nothing_to_run(arguments)
    status = EXIT_USAGE if status == pytest.ExitCode.USAGE_ERROR else status
    return Session(status, plugin.directory, plugin.interrupted)


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
