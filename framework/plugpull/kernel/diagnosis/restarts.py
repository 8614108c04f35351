"""Boots in the middle of a log: a machine that restarted without a last word has died.

A kernel that restarts in order says so (kernel/reboot.c), and a broken one prints a report. A machine that was reset or
lost its power says nothing: its log ends, and the next line is the first of a new boot.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plugpull.kernel.catalogue.classify import KernelEvent
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.prefix import split_prefix, time_of

DIED = "fatal.reset"
"""The machine restarted without a last word."""
RESTARTED = "log.restart"
"""The machine restarted in order or after a report, or the log cannot show which."""
BACK = 16 << 10
"""Bytes before a boot in which its cause is looked for."""
RAN = 1.0
"""Seconds that the boot before must have lasted. The first lines of a boot have all the time 0."""

LINES = 20
"""Lines before a boot in which the last message of the boot before is looked for."""

_BANNER = re.compile(r"^Linux version \d+\.\d+\S* \(")
_LAST_WORDS = re.compile(
    rb"reboot: |Restarting system|System halted|Power down\.|Starting new kernel|systemd-shutdown|exiting on signal 15"
    rb"|Reached target [^\n]{0,30}(?:[Rr]eboot|[Ss]hutdown|[Pp]ower|[Hh]alt)|Kernel logging \(proc\) stopped"
    rb"|The system (?:is going down|will (?:reboot|power off))|[Rr]equesting system (?:reboot|poweroff|halt)"
    rb"|[Ss]ys[Rr]q ?: (?:Resetting|Power Off|Trigger a crash)|Journal stopped"
    rb"|systemd\[1\]: (?:Stopp|Unmount|Shutting)"
    rb"|Rebooting in \d+ seconds|Kernel panic|kexec|PM: hibernation"
)
_DAEMON = re.compile(r"^(?:imklog|klogd|rsyslogd) |^Kernel logging |^Inspecting /boot/")
"""What a daemon logs in the kernel's name when it begins, often just before the first line of a boot."""
_WALL = re.compile(r"\d\d:\d\d:\d\d")
_PROCESS = re.compile(rb"(?m)^[^\n]{0,80}\d\d:\d\d:\d\d[^\n]{0,60} (?!kernel)[\w.()@/-]+\[\d+\]: ")


class Restart(NamedTuple):
    """The first line of a new boot. ``start`` is its offset; ``headline`` quotes the last message before it."""

    start: int
    event: KernelEvent
    headline: str


def restart_at(text: bytes, start: int, begun: int, tail: bytes = b"") -> Restart | None:
    """The restart of which the line at ``start`` is the first, if that is certain. ``begun`` is the offset of the last
    one in ``text``, or 0; ``tail`` is the end of the text before it."""
    line = _line(text, start)
    prefix, body = split_prefix(line)
    if (time_of(prefix) or 0.0) > RAN or (time_of(prefix) is None and not _BANNER.match(body)):
        return None
    before = text[max(begun, start - BACK) : start]
    if not begun:
        before = (tail + before)[-BACK:]
    last = _last_of(before)
    return _restart(start, line, before, *last) if last is not None else None


def _last_of(before: bytes) -> tuple[str, float | None] | None:
    """The last message before a boot and its time; ``None`` if it is part of the same boot or there is none."""
    end = len(before)
    for _ in range(LINES):
        start = before.rfind(b"\n", 0, max(0, end - 1)) + 1
        prefix, body = split_prefix(_line(before, start))
        at = time_of(prefix)
        if at is not None:
            return (body.strip(), at) if at > RAN else None
        banner = body.startswith("Linux version ")
        if "kernel" in prefix and body.strip() and not banner and not _DAEMON.match(body):
            return body.strip(), None
        if start == 0 or banner:
            return None
        end = start
    return None


def _restart(start: int, line: str, before: bytes, last: str, at: float | None) -> Restart:
    dated = bool(_WALL.search(split_prefix(line)[0]))
    # A file that syslog writes holds no last words of the kernel, but those of the processes, if it has any at all.
    silent = not _LAST_WORDS.search(before) and (not dated or bool(_PROCESS.search(before)))
    when = f" at {at:.6f} s" if at is not None else ""
    what = "restarted without a last word" if silent else "restarted"
    headline = f"the machine {what}; its last message{when}: {last}"
    event = KernelEvent(DIED if silent else RESTARTED, Severity.FATAL if silent else Severity.INFO, "", line)
    return Restart(start, event, headline)


def _line(text: bytes, start: int) -> str:
    end = text.find(b"\n", start, start + 4096)
    return text[start : end if end >= 0 else start + 4096].decode("utf-8", "replace").rstrip("\r")
