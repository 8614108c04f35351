"""The ``plugpull`` command. Each subcommand imports its own modules only when it is called."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull import __version__
from plugpull.commands.base import EXIT_STATUS, add_command
from plugpull.errors import PlugpullError, UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.plain import clean

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

MODULES = {
    "run": "run",
    "measure": "measure",
    "rig": "",
    "check": "check",
    "report": "check:add_report",
    "export": "export",
    "compare": "compare",
    "merge": "merge",
    "bisect-step": "bisect",
    "archive": "archive",
    "trend": "trend",
    "nightly": "nightly",
    "fleet": "fleet",
    "log": "log",
    "switch": "switch",
    "meter": "meter",
    "cache": "",
    "test": "",
}
"""The module in ``commands/`` of each subcommand, and the function of it that adds its parser if that is not ``add``;
empty if the subcommand is in this module. They are in the order of the help."""

TOP_EPILOG = f"""\
examples:
  plugpull run                          scenarios on the stock virtual bench
  plugpull rig check rigs/quick.toml    check a rig file, and show which disks each cut takes away
  plugpull check runs/latest            judge the newest run again
  plugpull run --help                   all options and examples of one command

{EXIT_STATUS}"""


# --- rig files -------------------------------------------------------------------------------


def _add_rig(commands: Commands) -> None:
    from plugpull.commands import discover

    parser = add_command(commands, "rig", help="check or draft rig files", description="Check or draft rig files.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    checked = add_command(
        actions,
        "check",
        help="report every mistake in a rig file, or show what each cut would take away",
        description="Check a rig file without touching any hardware. Prints every mistake as FILE:LINE:COLUMN. Without "
        "mistakes, prints the tree of the bench with each cut point's blast radius: the disks that its cut takes away.",
        epilog="exit status:\n  0  no mistakes\n  2  mistakes",
    )
    checked.add_argument("file", metavar="FILE", type=Path, help="the rig file")
    checked.set_defaults(action=_rig_check)
    discover.add(actions)


def _rig_check(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.commands.rig_check import rig_check

    return rig_check(arguments.file, Console())


def _add_cache(commands: Commands) -> None:
    parser = add_command(
        commands,
        "cache",
        help="show or clear the cache: kernels, snapshots, environments",
        description="Show or clear the cache of kernels, snapshots and environments. Its directory is PLUGPULL_CACHE, "
        "or plugpull in XDG_CACHE_HOME, or ~/.cache/plugpull. Missing entries are made again when they are needed.",
    )
    parser.set_defaults(action=_cache_show)
    actions = parser.add_subparsers(metavar="ACTION")
    clear = add_command(
        actions, "clear", help="remove unused entries", description="Remove entries that are not in use."
    )
    clear.add_argument("--older-than", metavar="AGE", help="only entries not used for this long, such as 14d or 12h")
    clear.add_argument("--kind", metavar="KIND", help="only entries of this kind, such as snapshot")
    clear.set_defaults(action=_cache_clear)


def _cache_show(_: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.cache import Cache, show

    show(Cache.default(), Console())
    return EXIT_PASS


def _cache_clear(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.cache import Cache, clear, parse_age

    age = parse_age(arguments.older_than) if arguments.older_than else None
    clear(Cache.default(), Console(), age, arguments.kind)
    return EXIT_PASS


def _add_test(commands: Commands) -> None:
    parser = add_command(
        commands,
        "test",
        help="run the framework's own tests and linters, as CI does",
        description="Run the framework's own tests: linters, types, quick tests, and tests that boot guests. With "
        "arguments, such as -k rig, run only pytest with these arguments. Needs a checkout.",
        epilog="exit status:\n  0  everything passed\n  1  something failed",
    )
    parser.usage = "%(prog)s [-h] [ARGUMENT ...]"
    parser.set_defaults(action=_test)


def _test(arguments: argparse.Namespace) -> int:
    from plugpull.setup.selftest import run_tests

    return EXIT_PASS if run_tests(arguments.rest) else EXIT_FAIL


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Build the parser of the command line, with one subcommand or with all. Tests use it to check the commands in the
    documentation."""
    top = argparse.ArgumentParser(
        prog="plugpull",
        description=textwrap.fill(
            "Pull-the-plug testing for storage on Linux: cut a cable, a hub or a disk's power under load, and judge "
            "kernel recovery, data integrity and the throughput of the disks that survive.",
            80,
        ),
        epilog=TOP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"plugpull {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name in MODULES if only is None else (only,):
        _adder(name)(commands)
    return top


def _adder(name: str) -> Callable[[Commands], None]:
    """The function that adds the parser of a subcommand."""
    if not MODULES[name]:
        return {"rig": _add_rig, "cache": _add_cache, "test": _add_test}[name]
    module, _, function = MODULES[name].partition(":")
    add: Callable[[Commands], None] = getattr(import_module(f"plugpull.commands.{module}"), function or "add")
    return add


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    # All arguments after "test" go to pytest, options included; argparse would take some of them.
    rest = words[1:] if words[:1] == ["test"] and not {"-h", "--help"} & set(words) else []
    try:
        # The parsers of the others would take longer than many a command.
        only = words[0] if words and words[0] in MODULES else None
        arguments = parser(only).parse_args(words[:1] if rest else words)
    except SystemExit as refused:
        if words[:1] == ["bisect-step"] and refused.code == EXIT_USAGE:
            from plugpull.commands.bisect import STOP

            return STOP
        raise
    arguments.words, arguments.rest = words, rest
    # While ports are off, plugpull must not depend on the reader of its output.
    if words[0] not in ("run", "measure", "switch"):
        return _act(arguments)
    from plugpull.output import steady_output

    with steady_output():
        return _act(arguments)


def _act(arguments: argparse.Namespace) -> int:
    try:
        return int(arguments.action(arguments))
    except UsageError as error:
        print(f"plugpull: {clean(str(error))}", file=sys.stderr)
        return EXIT_USAGE
    except PlugpullError as error:
        print(f"plugpull: {clean(str(error))}", file=sys.stderr)
        return EXIT_UNKNOWN
    except KeyboardInterrupt:
        print("plugpull: interrupted", file=sys.stderr)
        return EXIT_UNKNOWN
    except BrokenPipeError:
        return EXIT_FAIL
