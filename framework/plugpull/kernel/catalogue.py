"""The kernel messages that matter to storage on a cable, as a table, and the classifier that reads it.

Wording from the kernel's own sources (6.12, and older forms that are still in the field): ``drivers/usb/core/hub.c``,
``drivers/usb/host/xhci*.c``, ``drivers/usb/storage/``, ``drivers/scsi/``, ``block/blk-core.c``, ``fs/buffer.c``,
``kernel/panic.c``, ``kernel/hung_task.c``, ``kernel/watchdog.c``, ``kernel/rcu/tree_stall.h``, ``lib/dump_stack.c``,
``arch/x86/mm/fault.c``, ``arch/x86/kernel/dumpstack.c``, ``mm/kasan/report.c``, ``lib/ubsan.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    FATAL = "fatal"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"


@dataclass(frozen=True)
class KernelEvent:
    """One kernel message, recognised. ``subject`` is what it is about, such as ``sdb`` or ``1-2.3``; may be empty."""

    kind: str
    severity: Severity
    subject: str
    text: str

    @property
    def alarming(self) -> bool:
        """Whether a healthy kernel never says this, whatever is unplugged."""
        return self.severity in {Severity.FATAL, Severity.WARNING}


@dataclass(frozen=True)
class Rule:
    """``pattern`` is searched in the message without its time stamp. The first rule that matches wins."""

    kind: str
    severity: Severity
    pattern: str


F, W, E, N = Severity.FATAL, Severity.WARNING, Severity.ERROR, Severity.INFO

# What only the kernel prints at the start of a line is anchored: a process may print such words too.
RULES: tuple[Rule, ...] = (
    Rule("warn.sanitizer", W, r"^BUG: (?:KASAN|KFENCE|KMSAN|KCSAN): |^(?:UBSAN|KCSAN|KMSAN): "),
    Rule("warn.lockdep", W, r"^(?:WARNING: |INFO: |\[ (?:BUG|INFO): )?possible (?:circular|recursive|irq lock inv)"),
    Rule("warn.lockdep", W, r"^(?:WARNING: |INFO: |\[ (?:BUG|INFO): )(?:inconsistent lock state|suspicious RCU usage)"),
    Rule("warn.lockdep", W, r"^(?:WARNING: |\[ BUG: )(?:bad unlock balance|held lock freed|\S+-safe -> |Invalid wait)"),
    Rule("fatal.lockup", F, r"^(?:NMI )?(?:watchdog: )?BUG: (?:soft|workqueue) lockup|Watchdog detected hard LOCKUP"),
    Rule("fatal.lockup", F, r"^(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stall"),
    Rule("fatal.hung-task", F, r"^INFO: task \S.* blocked (?:in I/O wait )?for more than \d+ seconds"),
    Rule("fatal.oops", F, r"^BUG: (?:kernel NULL pointer|unable to handle)|^Oops: |^Internal error: "),
    Rule("fatal.oops", F, r"^(?:traps: )?general protection fault[,:].*(?:SMP|PREEMPT|\[#|canonical)"),
    Rule("fatal.oops", F, r"^Unable to handle kernel |^PANIC: double fault"),
    Rule("fatal.oops", F, r"^(?:divide error|invalid opcode|stack segment|int3): \S+ \[#\d+\]"),
    Rule("fatal.bug", F, r"^kernel BUG at |^BUG: "),
    Rule("fatal.bug", F, r"^(?:list_(?:add|del)|slab) corruption|^VFS: Busy inodes after unmount"),
    Rule("fatal.panic", F, r"^Kernel panic - not syncing"),
    Rule("warn.warning", W, r"^WARNING: (?:CPU: \d+ PID: \d+ at |\S+:\d+ at )|^refcount_t: |^ODEBUG: (?!Out of mem)"),
    Rule("hcd.died", E, r"xHCI host controller not responding, assume dead|HC died; cleaning up"),
    Rule("hcd.error", E, r"xHCI host not responding to stop endpoint|Host System Error|for unknown stream ring"),
    Rule("usb.disconnect", N, r"USB disconnect, (?:device number|address) \d+"),
    Rule("usb.reset", E, r"reset (?:[\w-]+ )+USB device (?:number|using)"),
    Rule("usb.connect", N, r"new (?:[\w-]+ )+USB device (?:number|using)|New USB device found, idVendor="),
    Rule("usb.enumeration-error", E, r"device descriptor read/\S+, error|device not accepting address"),
    Rule("usb.enumeration-error", E, r"unable to enumerate|Cannot enable\. Maybe the USB cable is bad"),
    Rule("usb.enumeration-error", E, r"connect-debounce failed|attempt power cycle"),
    Rule("usb.overcurrent", E, r"(?<!no )over-current condition"),
    Rule("usb.link-error", E, r"not running at top speed|disabled by hub \(EMI\?\)|device firmware changed"),
    Rule("uas.error", E, r"uas_eh_\w+_handler|uas_zap_pending|(?:cmd|data) cmplt err|stat urb: status"),
    Rule("scsi.offline", E, r"Device offlined - not ready after error|rejecting I/O to (?:offline|dead) device"),
    Rule("scsi.reset", E, r"Power-on or device reset occurred"),
    Rule("storage.cache-error", E, r"Synchronize Cache\(\d+\) failed|No Caching mode page found"),
    Rule("scsi.error", E, r"FAILED Result: |\] (?:tag#\d+ )?(?:UNKNOWN\(\S+\) )?Result: hostbyte="),
    Rule("scsi.error", E, r"Sense Key ?: |Add\. Sense: |\bCDB: |timing out command"),
    Rule("block.error", E, r" error, dev \S+, sector \d+|attempt to access beyond end of device"),
    Rule("block.error", E, r"Buffer I/O error on dev|lost async page write|unable to read partition table"),
    Rule("block.error", E, r"detected capacity change from [1-9]\d* to 0\b"),
    Rule("storage.quirk", N, r"Quirks match for vid|UAS is (?:ignored|blacklisted) for this device"),
    Rule("storage.cache", N, r"Write cache: |Assuming drive cache: |Synchronizing SCSI cache"),
    Rule("storage.attach", N, r"USB Mass Storage device detected|\d+-byte logical blocks|Attached SCSI (?:\w+ )?disk"),
    Rule("storage.attach", N, r"^scsi host\d+: (?:uas|usb-storage)"),
)

_COMPILED = tuple((rule, re.compile(rule.pattern)) for rule in RULES)
_ANY = re.compile("|".join(f"(?:{rule.pattern})" for rule in RULES))
"""Most lines of a log match nothing: one search instead of one for each rule."""

_STAMP = re.compile(r"^(?:<\d+>)?(?:\[[ \d.]+\](?:\[ *[TC]\d+\])? ?)?")
_SUBJECTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(sd[a-z]+|sr\d+)\]",
        r"\bdev(?:ice)? ((?:sd|nvme|md|dm-|mmcblk|loop)\w+)",
        r"^(sd[a-z]+\d*|nvme\d+n\d+): ",
        r"\busb (\d+-[\d.]+|usb\d+)\b",
        r"^(?:usb-storage|uas|hub) (\d+-[\d.]+)",
        r"^(?:sd|scsi) (\d+:\d+:\d+:\d+)",
        r"^\w+_hcd (\S+): ",
    )
)
"""The nearer to the disk, the earlier: "sd 2:0:0:0: [sdb]" is about sdb."""


def classify(text: str) -> KernelEvent | None:
    """What a line of the kernel log says; ``None`` if nothing that is in the table.

    ``text`` may carry its stamp (``<4>[   12.345678] ``) or not.
    """
    body = text[_stamp_length(text) :]
    if not _ANY.search(body):
        return None
    rule = next(rule for rule, pattern in _COMPILED if pattern.search(body))
    subject = next((found.group(1) for pattern in _SUBJECTS if (found := pattern.search(body))), "")
    return KernelEvent(rule.kind, rule.severity, subject, text)


def _stamp_length(text: str) -> int:
    stamp = _STAMP.match(text)
    return stamp.end() if stamp else 0


_PLACE = re.compile(r"^(?:RIP: [\da-f]+:|EIP: |EIP is at |pc : )(\w[\w.]*)\+0x")


def panic_headline(lines: Iterable[str]) -> str:
    """The line of ``lines`` that a kernel developer would quote; empty if none is alarming.

    The first fatal line is the cause and what follows its consequence: an oops before the panic it ends in. A warning
    is quoted only if nothing worse is there, or if it is what the kernel panicked on. An oops is given
    the function it happened in.
    """
    warning = ""
    bodies = [line[_stamp_length(line) :].strip() for line in lines]
    for position, body in enumerate(bodies):
        event = classify(body)
        if event is None or not event.alarming:
            continue
        if event.severity is Severity.FATAL:
            if warning and "panic_on_warn" in body:
                return warning
            return body + _function(bodies[position:]) if event.kind in {"fatal.oops", "fatal.bug"} else body
        warning = warning or body
    return warning


def _function(bodies: Iterable[str]) -> str:
    for body in bodies:
        place = _PLACE.match(body)
        if place:
            return f" in {place.group(1)}"
    return ""
