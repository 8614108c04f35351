"""Multi-line reports of the kernel (oops, WARNING, KASAN, lockdep, hung task, stall) folded into one thing each.

Other messages come in between, from other CPUs and from the same; what belongs to a report is told by its shape, and by
the caller id where the log has one (CONFIG_PRINTK_CALLER), so that two CPUs that die at once are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from plugpull.kernel.catalogue.classify import KernelEvent, classify
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.headline import panic_headline

FRAMES = 6
"""Frames of the call trace that are kept: below these is what every path has in common."""
APART = 60
"""Lines without one of its own after which a report is over."""
LONGEST = 400
"""Lines of one report that are looked at."""

_CALLER = re.compile(r"\[ *([TC]\d+)\]")
_FRAME = re.compile(r"^\s*(?:\[<?[\da-f]+>?\]\s*)*(\? )?([A-Za-z_][\w.]*)\+0x[\da-f]+/0x[\da-f]+(?: \[([\w-]+)\])?")
_PLACE = re.compile(
    r"^(?:RIP: [\da-f]+:|EIP: |EIP is at |pc : |PC is at |NIP \[[\da-f]+\] )"
    r"\s*(?:\[<[\da-f]+>\]\s*)*([A-Za-z_][\w.]*)\+0x"
    r"[\da-f]+(?:/0x[\da-f]+)?(?: \[([\w-]+)\])?"
)
_TRACE = re.compile(r"^\s*(?:Call [Tt]race:|stack backtrace:|Backtrace:|<(?:TASK|IRQ|NMI|SOFTIRQ)>)")
_END = re.compile(r"^---\[ end ")
_CUT = re.compile(r"^-+\[ cut here \]|^={20,}$")
_BODY = re.compile(
    r"^\s*(?:[RE]?(?:[A-D]X|[SD]I|[SB]P|FLAGS|IP)|R\d\d|[CD]R\d|[CDEFG]S|x\d+|sp|lr|pstate)\s*: ?"
    r"|^(?:RIP|EIP|pc|PC|Code|CPU|Hardware name|Modules linked in|Workqueue|Tainted|Kernel Offset|Comm|task|Stack"
    r"|Process|Internal error|invalid opcode|Oops|PGD|Dumping ftrace|Kernel panic|Rebooting in|Sending NMI)\b"
    r"|^\s*</?(?:TASK|IRQ|NMI|SOFTIRQ|#\w+)>"
    r"|^(?:The buggy address|Memory state|Allocated by|Freed by|Read of size|Write of size|page:|flags:|raw:|>?ffff)"
    r"|^(?:which lock|but task|the existing|Possible unsafe|other info|\d+ locks? held|stack backtrace|-> #\d+| #\d+:)"
    r"|^\s*(?:lock\(|\*\*\* DEADLOCK|CPU0 +CPU1|---- +----)"
    r"|^#PF: |^rcu: |^\s*\"echo 0 >|^Call [Tt]race"
)
_MACHINERY = re.compile(
    r"^(?:dump_stack\w*|show_stack|show_trace\w*|__?warn\w*|warn_slowpath\w*|report_bug|fixup_bug\w*|do_trap\w*"
    r"|do_error_trap|handle_bug|(?:asm_)?exc_\w+|do_invalid_op|invalid_op|(?:async_)?page_fault|do_page_fault\w*"
    r"|__bad_area\w*|bad_area\w*|no_context|page_fault_oops|oops_end|die\w*|panic\w*|kasan_\w+|__kasan_\w+|print_\w+"
    r"|__asan_\w+|check_memory_region\w*|nmi_cpu_backtrace\w*|arch_trigger\w*|nmi_trigger\w*|rcu_dump_cpu\w*"
    r"|rcu_sched_clock_irq|print_circular_bug\w*|check_noncircular|debug_\w+|lock_acquire|__lock_acquire"
    r"|ret_from_fork\w*|kthread|entry_SYSCALL\w*|do_syscall_64|SyS_\w+|__[xi]\w+_sys_\w+|system_call\w*|__schedule"
    r"|schedule|io_schedule\w*|schedule_timeout\w*|_raw_\w*lock\w*|__switch_to)$"
)
"""What every report has: the way into the report, and the way into the kernel."""


def _machinery(function: str) -> bool:
    """Also in the pieces that compilers make of functions: ``__warn.cold``, ``dump_stack.part.2``."""
    return bool(_MACHINERY.match(function.partition(".")[0]))


@dataclass(frozen=True)
class Report:
    """One report. ``first`` and ``last`` are the numbers of its first and last line, as they were fed; ``headline`` is
    the line a kernel developer would quote; ``frames`` the functions that matter, the innermost first (``function
    [module]``); ``lines`` what is worth showing of it, without prefixes."""

    event: KernelEvent
    first: int
    last: int
    headline: str
    frames: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass
class _Open:
    event: KernelEvent
    first: int
    last: int
    bodies: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    traced: bool = False
    ended: bool = False

    def take(self, number: int, body: str) -> None:
        self.last = number
        if len(self.bodies) < LONGEST:
            self.bodies.append(body)
        if _TRACE.match(body):
            self.traced = True
        frame = _FRAME.match(body)
        if frame and not frame.group(1) and len(self.frames) < FRAMES and not _machinery(frame.group(2)):
            self._add(len(self.frames), frame.group(2), frame.group(3))
        self.ended = self.ended or bool(_END.match(body))

    def _add(self, at: int, function: str, module: str | None) -> None:
        if all(frame.split()[0] != function for frame in self.frames):
            self.frames.insert(at, f"{function} [{module}]" if module else function)

    def close(self) -> Report:
        headline = panic_headline(self.bodies) or self.bodies[0]
        place = next((found for body in self.bodies if (found := _PLACE.match(body))), None)
        if place is not None and not _machinery(place.group(1)):
            self._add(0, place.group(1), place.group(2))
        worth = [body for body in self.bodies if body == headline or classify(body) is not None or _SHOWN.match(body)]
        frames = tuple(self.frames[:FRAMES])
        shown = tuple(dict.fromkeys(body.strip() for body in worth))
        return Report(self.event, self.first, self.last, headline, frames, shown)


_SHOWN = re.compile(r"^(?:#PF: |CPU: |RIP: |EIP: |pc : |Workqueue: |Hardware name: |task:|CPU\d+ +CPU\d)")


class Folder:
    """Takes a log line by line and gives reports as they end."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def feed(self, number: int, line: str, event: KernelEvent | None = None) -> Iterator[Report]:
        """``event`` is what the line says, if the caller knows already. Gives the reports that are over by now."""
        prefix, body = split_prefix(line)
        body = body.rstrip()
        found = _CALLER.search(prefix)
        caller = found.group(1) if found else ""
        event = event or classify(line)
        for key in [key for key, report in self._open.items() if number - report.last > APART]:
            yield self._open.pop(key).close()
        report = self._open.get(caller)
        alarming = event is not None and event.alarming
        if report is not None and (_CUT.match(body) or (alarming and report.ended)):
            yield self._open.pop(caller).close()
            report = None
        if report is None and alarming and event is not None:
            report = self._open[caller] = _Open(event, number, number)
        elif report is not None and alarming and event is not None and _worse(event, report.event):
            report.event = event
        if report is not None and (alarming or _BODY.match(body) or _FRAME.match(body) or _END.match(body)):
            report.take(number, body)

    def close(self) -> Iterator[Report]:
        """What is still open when the log ends."""
        for report in self._open.values():
            yield report.close()
        self._open.clear()


def fold(lines: Iterable[str]) -> list[Report]:
    """The reports in a log, in the order in which they begin; lines are counted from 1."""
    folder = Folder()
    found = [report for number, line in enumerate(lines, 1) for report in folder.feed(number, line)]
    found += folder.close()
    return sorted(found, key=lambda report: report.first)


def _worse(new: KernelEvent, old: KernelEvent) -> bool:
    """A report is about the first fatal thing in it; a warning only until something fatal is said."""
    return old.severity is not Severity.FATAL and new.severity is Severity.FATAL and "panic" not in new.kind
