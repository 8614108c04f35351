"""``plugpull run --for`` and ``--resume``: runs that last."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugpull.errors import UsageError

if TYPE_CHECKING:
    from plugpull.rig.model import Rig
    from plugpull.soak.state import SoakState

Parse = Callable[[Sequence[str]], argparse.Namespace]
"""Parses the words of ``plugpull run``."""


def add_soak(parser: argparse.ArgumentParser) -> None:
    """Add the options of runs that last."""
    parser.add_argument(
        "--for",
        dest="lasting",
        metavar="LENGTH",
        type=_length,
        help="a soak of this length: 90s, 30m, 2h, 4d. All disks are written, and one random fault follows another at "
        "random moments; a disk that does not come back is set aside, and the others go on. plugpull check RUN and "
        "plugpull report RUN show what happened so far",
    )
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with the soak in this run directory after it was killed or interrupted, for the time that is left "
        "and with the options that it was started with",
    )


def _length(text: str) -> str:
    from plugpull.soak.length import parse_length

    try:
        parse_length(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.what}: {error.hint}") from None
    return text


def resumed(given: argparse.Namespace, parse: Parse) -> argparse.Namespace:
    """The arguments of the soak that is to be resumed. Changes to the directory that it was started in.

    Raises UsageError if there is none, if it is over or still running, or if other options are given as well.
    """
    from plugpull.soak.state import read_state

    run = Path(given.resume).resolve()
    others = [word for word in given.words[1:] if word not in ("--resume", given.resume, f"--resume={given.resume}")]
    if others:
        raise UsageError(
            f"--resume goes on with the options that the run was started with, so {' '.join(others)} cannot be given",
            hint=f"plugpull run --resume {given.resume}",
        )
    state = read_state(run)
    _check_state(state, given.resume)
    assert state.begun is not None  # as read_state returns it
    assert state.soak is not None
    program, *words = state.begun.argv or ("",)
    if program != "plugpull" or words[:1] != ["run"]:
        raise UsageError(
            f"{given.resume} was not started with plugpull run", hint="start pytest with --plugpull-resume=RUN"
        )
    try:
        os.chdir(state.soak.directory)
    except OSError as error:
        raise UsageError(
            f"the run was started in {state.soak.directory}, which cannot be entered: {error.strerror}",
            hint="the paths of its command begin there",
        ) from None
    arguments = parse(words)
    arguments.resume, arguments.words = str(run), given.words
    return arguments


def _check_state(state: SoakState, run: str) -> None:
    if state.running:
        raise UsageError(f"{run} is still running", hint=f"plugpull check {run} shows what happened so far")
    if state.ended and not state.interrupted:
        raise UsageError(f"{run} is over, so there is nothing to resume", hint=f"plugpull check {run}")


def check_soak(arguments: argparse.Namespace, rig: Rig) -> None:
    """Check that this run can last, or go on. Raises UsageError."""
    if not arguments.lasting:
        return
    others = {
        "--jobs": arguments.jobs > 1,
        "--shard": arguments.shard is not None,
        "--calibrate": bool(arguments.calibrate),
        "--every-victim": arguments.every_victim,
        "--rotate": arguments.rotate is not None,
    }
    wrong = [name for name, given in others.items() if given]
    if wrong:
        raise UsageError(f"--for and {wrong[0]} exclude each other", hint=f"leave {wrong[0]} out")
    if arguments.resume:
        _check_rig(Path(arguments.resume), rig, str(arguments.rig or "the stock rig file"))


def _check_rig(run: Path, rig: Rig, file: str) -> None:
    """Check that the rig file says what it said when the run began. Raises UsageError."""
    from plugpull.rig.credentials import recorded
    from plugpull.soak.state import read_state

    begun = read_state(run).begun
    if begun is not None and _plain(begun.rig) != _plain(recorded(rig)):
        raise UsageError(
            f"{file} has changed since the run began", hint="start a new run: another bench cannot go on with this one"
        )


def _plain(rig: dict[str, Any]) -> Any:
    """A rig file as data, as it comes out of a history: with lists, and with times rounded."""
    return json.loads(json.dumps(rig), parse_float=lambda text: round(float(text), 6))
