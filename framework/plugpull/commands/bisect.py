"""``plugpull bisect-step``: a run whose exit status ``git bisect run`` understands."""

from __future__ import annotations

import argparse
import sys
import traceback
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.errors import PlugpullError, UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.plain import clean

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

SKIP = 125
STOP = 128
"""git-bisect(1): 125 leaves a commit out, 128 and more end the bisection, 1 to 127 are bad."""

EPILOG = """\
examples:
  cd ~/linux && git bisect start BAD GOOD
  git bisect run sh -c 'make -j8 || exit 125; plugpull bisect-step --kernel . -k writing'

exit status, as git bisect run takes it:
  0    good: PASS
  1    bad: FAIL
  125  skip this commit: UNKNOWN, or the kernel does not boot
  128  end the bisection: wrong usage, which no commit can fix"""


def add(commands: Commands) -> None:
    """Add the parser of ``bisect-step``."""
    from plugpull.commands import run

    parser = add_command(
        commands,
        "bisect-step",
        help="run scenarios and report good, bad or neither, for git bisect run",
        description="Run scenarios like plugpull run, with the same options, and report the result to git bisect run: "
        "a commit is bad only if the kernel did something wrong. A commit that cannot be judged is skipped.",
        epilog=EPILOG,
    )
    run.add_options(parser)
    parser.set_defaults(action=_step)


def _step(arguments: argparse.Namespace) -> int:
    try:
        return _judged(arguments)
    except UsageError as error:
        return _printed(error, STOP)
    except PlugpullError as error:
        return _printed(error, SKIP)
    except KeyboardInterrupt:
        return STOP
    except Exception:
        # Python would exit with status 1, but a failure of plugpull does not make a commit bad.
        traceback.print_exc()
        return STOP


def _judged(arguments: argparse.Namespace) -> int:
    """The exit status of one step. Raises UsageError for mistakes that no commit can fix."""
    from plugpull.commands import run
    from plugpull.commands.session import session

    rig = run.check(arguments)
    if len(arguments.kernel) > 1:
        raise UsageError("bisect-step takes exactly one kernel", hint="give --kernel once")
    try:
        run.check_kernels(arguments, rig)
    except UsageError as error:
        return _printed(error, SKIP)
    ended = session(arguments, rig, next(iter(arguments.kernel), None), arguments.words)
    if ended.interrupted:
        return STOP
    return ended.status if ended.status in (EXIT_PASS, EXIT_FAIL) and ended.directory is not None else SKIP


def _printed(error: PlugpullError, status: int) -> int:
    print(f"plugpull: {clean(str(error))}", file=sys.stderr)
    return status
