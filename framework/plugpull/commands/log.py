"""``plugpull log``: analyses kernel logs of any machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

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
  plugpull log --summary kern.log         one paragraph to paste into a bug report
  sudo dmesg -x | plugpull log --unknown -    warnings and errors that the catalogue lacks; please report them

Lines can have any prefix: every form of dmesg and journalctl, syslog, a serial console with caller ids, quotes of a
mail, Markdown, or none. Lines that a mail program wrapped are joined where that is certain.

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
        "cause, with the evidence: medium, bridge, its firmware, cable or port, hub, controller, supply or kernel",
    )
    form.add_argument(
        "--summary",
        action="store_true",
        help="print one paragraph to paste into a bug report: which device, what happened in which order, the probable "
        "cause, and the quirk to try",
    )
    form.add_argument(
        "--unknown",
        action="store_true",
        help="list the messages of warning level and worse that are not in the catalogue. Levels are in the output of "
        "dmesg -x and journalctl -o json; without them, messages of storage code are chosen by their words",
    )
    form.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each message: file, line, kind, severity, subject, time, text",
    )
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.story:
        return _story(arguments.file)
    if arguments.summary:
        return _summary(arguments.file)
    if arguments.unknown:
        return _unknown(arguments.file)
    from plugpull.kernel.diagnosis.show import as_json, as_text

    events = _events(arguments.file)
    if arguments.json:
        for found in events:
            sys.stdout.buffer.write(as_json(found) + b"\n")
    else:
        for line in as_text(events, several=len(arguments.file) > 1):
            print(line)
    sys.stdout.flush()
    return EXIT_PASS


def _story(names: list[str]) -> int:
    """One story per log: a device name identifies a device only within one log."""
    from plugpull.kernel.diagnosis.error_story import story_of_log
    from plugpull.kernel.diagnosis.show_story import story_text

    for number, name in enumerate(names):
        if len(names) > 1:
            print(f"{'' if number == 0 else chr(10)}{clean_line(name)}:")
        for line in story_text(story_of_log(_events([name]))):
            print(line)
    sys.stdout.flush()
    return EXIT_PASS


def _summary(names: list[str]) -> int:
    from plugpull.kernel.diagnosis.error_story import story_of_log
    from plugpull.kernel.diagnosis.log_reader import read_log
    from plugpull.kernel.diagnosis.summary import KernelNoting, summary_of

    for number, name in enumerate(names):
        if len(names) > 1:
            print(f"{'' if number == 0 else chr(10)}{clean_line(name)}:")
        with _opened(name) as file:
            log = KernelNoting(file)
            story = story_of_log(read_log(log, name))
            print(summary_of(story, log.kernel))
    sys.stdout.flush()
    return EXIT_PASS


def _unknown(names: list[str]) -> int:
    from plugpull.kernel.diagnosis.unknown import unknown_in, unknown_text

    for name in names:
        with _opened(name) as file:
            for line in unknown_text(unknown_in(file), name if len(names) > 1 else ""):
                print(line)
    sys.stdout.flush()
    return EXIT_PASS


def _events(names: list[str]) -> Iterator[LogEvent]:
    from plugpull.kernel.diagnosis.log_reader import read_log

    for name in names:
        with _opened(name) as file:
            yield from read_log(file, name)


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """The log, closed in the end; standard input stays open. Raises UsageError if it cannot be read."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(name, "rb") as file:
            yield file
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
