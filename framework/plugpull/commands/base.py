"""Shared parts of the subcommands."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXIT_STATUS = """\
exit status:
  0  PASS
  1  FAIL: the device under test did something wrong
  2  wrong usage: nothing was started
  3  UNKNOWN: the bench did not obey a command, or evidence was lost"""


def add_command(
    commands: Commands, name: str, *, help: str, description: str, epilog: str = ""
) -> argparse.ArgumentParser:
    """Add a subcommand whose epilog is shown without reformatting."""
    return commands.add_parser(
        name,
        help=help,
        description=textwrap.fill(description, 80),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
