"""What a program that failed printed, as one line for an error message."""

from __future__ import annotations

from plugpull.plain import clean_line
from plugpull.switches.host import Completed

LONGEST = 300
"""Characters of a program's output that go into an error message."""


def error_line(done: Completed) -> str:
    """The first line that the program wrote to standard error, or else to standard output."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return clean_line(lines[0][:LONGEST]) if lines else "it printed nothing"
