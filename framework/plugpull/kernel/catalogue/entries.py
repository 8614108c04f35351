"""Every kernel message that matters to storage on a cable, read from ``messages/*.txt``.

In these files ``[kind severity]`` or ``[nothing: reason]`` is the answer to the wordings behind it, ``@ file`` the
kernel's file that prints them, with the versions in parentheses if later ones do not, and every other line a wording.
Lines with ``#`` are comments; those with ``!`` are for the census (``kernel/census/answers.py``).
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator

from plugpull.kernel.catalogue.entry import Entry, Severity
from plugpull.kernel.catalogue.wording import Beginning

SUBSYSTEMS = (
    "fatal", "machine", "usb", "md", "fs", "storage",
    "usb_core", "usb_storage", "usb_host", "scsi", "scsi_hosts", "ata", "nvme", "thunderbolt", "pci",
    "block", "md_raid", "dm", "ext4", "xfs", "btrfs", "f2fs", "fat", "ntfs3", "udf", "vfs", "core",
    "drivers", "older", "composed", "rarer", "later",
)  # fmt: skip
"""The files in the order in which their entries are tried. The first six hold wordings of all versions that are easily
recognised: fatal messages first, filesystems before the disks they name. The others hold the remaining formats of the
recorded census, one by one; ``scsi_hosts``, ``drivers`` and ``older`` have wordings of other drivers and kernels, from
their source and from public logs; ``composed`` has messages that the kernel puts together from pieces; ``later`` has
words of failure that known drivers may use in any message; ``rarer`` does the same for filesystems and drivers that are
seldom under test."""
_ANSWER = re.compile(r"\[(?:nothing: (.+)|([\w.-]+) (fatal|warning|error|info))\]$")


def read_text(name: str) -> str:
    """The contents of ``messages/NAME.txt``."""
    # importlib.resources would load zipfile and tempfile, which takes as long as all of the messages.
    text = pkgutil.get_data(__package__, f"messages/{name}.txt")
    assert text is not None
    return text.decode()


def read_entries(name: str, text: str) -> Iterator[Entry]:
    """The entries of one file. Raises ValueError for a wording without an answer or a source."""
    kind, severity, reason, source = "", Severity.INFO, "", ""
    for number, line in enumerate(text.split("\n"), 1):
        first = line[:1]
        if first in ("", "#", "!"):
            continue
        if first == "[" and (answer := _ANSWER.match(line)):
            reason, kind = answer[1] or "", answer[2] or ""
            severity = Severity(answer[3]) if kind else Severity.INFO
        elif first == "@":
            source = line[2:]
        elif not source or not (kind or reason):
            raise ValueError(f"{name}.txt:{number}: {line!r} has no answer or no source above it")
        else:
            yield Entry(kind, severity, line, source, reason)


def read_beginnings(text: str) -> dict[str, Beginning]:
    """The table of ``beginnings.txt``."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            left, *examples = line.split(" ; ")
            name, pattern = left.split(None, 1)
            found[name] = Beginning(pattern.strip(), tuple(example.strip() for example in examples))
    return found


BEGINNINGS = read_beginnings(read_text("beginnings"))
ENTRIES: tuple[Entry, ...] = tuple(entry for name in SUBSYSTEMS for entry in read_entries(name, read_text(name)))
"""The first entry that matches a message wins."""
