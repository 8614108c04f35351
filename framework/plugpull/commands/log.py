"""``plugpull log``: analyses kernel logs of any machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS
from plugpull.plain import clean_line

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.kernel.diagnosis.log_reader import LogEvent

EPILOG = """\
examples:
  dmesg | plugpull log -                  this machine's log
  plugpull log console.log kern.log       several files, one after the other
  plugpull log --json kern.log | jq .     an object for each message that is about storage, USB or a broken kernel
  plugpull log --story kern.log           device by device, with the probable cause

Lines can have any prefix: dmesg, dmesg -T, syslog, the journal, a serial console with caller ids, or none.

exit status:
  0  the logs were read, even if they contain errors
  2  a file could not be read"""


def add(commands: Commands) -> None:
    """Adds the parser of the subcommand."""
    parser = add_command(
        commands,
        "log",
        help="show what happened in a kernel log",
        description="Read kernel logs of any origin and show what happened to disks, USB devices, filesystems, arrays "
        "and the kernel itself: in order, with repeats combined, then counted by kind and device.",
        epilog=EPILOG,
    )
    parser.add_argument("file", nargs="+", metavar="FILE", help="a log; - is standard input")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--story",
        action="store_true",
        help="show what happened to each device that had errors, in order and with the time between; then the probable "
        "cause: medium, bridge, its firmware, cable or port, hub, controller or kernel, with the evidence",
    )
    form.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each message: file, line, kind, severity, subject, time, text",
    )
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    from plugpull.kernel.diagnosis.show import as_json, as_text

    if arguments.story:
        return _story(arguments.file)
    events = _events(arguments.file)
    if arguments.json:
        for found in events:
            sys.stdout.buffer.write(as_json(found) + b"\n")
    else:
        for line in as_text(events):
            print(line)
    sys.stdout.flush()
    return EXIT_PASS


def _story(names: list[str]) -> int:
    """One story per log: a device name identifies a device only within one log."""
    from plugpull.kernel.diagnosis.error_story import story_of_log
    from plugpull.kernel.diagnosis.show import story_text

    for number, name in enumerate(names):
        if len(names) > 1:
            print(f"{'' if number == 0 else chr(10)}{clean_line(name)}:")
        for line in story_text(story_of_log(_events([name]))):
            print(line)
    sys.stdout.flush()
    return EXIT_PASS


def _events(names: list[str]) -> Iterator[LogEvent]:
    from plugpull.kernel.diagnosis.log_reader import read_log

    for name in names:
        if name == "-":
            yield from read_log(sys.stdin.buffer, name)
            continue
        try:
            with open(name, "rb") as file:
                yield from read_log(file, name)
        except OSError as error:
            raise UsageError(f"cannot read {name}: {error.strerror}") from None
