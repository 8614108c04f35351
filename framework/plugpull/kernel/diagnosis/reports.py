"""Multi-line reports of the kernel (oops, WARNING, KASAN, lockdep, hung task, stall) grouped into one object each.

Other messages are printed in between, by other CPUs and by the same. A line belongs to a report if it has the shape of
a report's line and, if the log has caller ids (CONFIG_PRINTK_CALLER), the caller id of the report. So the reports of
two CPUs that die at once are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from plugpull.kernel.catalogue.classify import KernelEvent
from plugpull.kernel.catalogue.deferred import deferred
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.catalogue.prefix import clock_of, time_of
from plugpull.kernel.diagnosis.headline import headline_of, on_purpose, place_in

FRAMES = 6
"""Frames of the call trace that are kept. The frames below these are the same in most traces."""
APART = 60
"""Lines of others after which a report is complete."""
ONE_REPORT = 5.0
"""Seconds after its last line in which an alarm still belongs to a report: many have no line that ends them."""
SINGLE = frozenset({"warn.memory", "warn.hardware", "warn.iommu"})
"""Kinds of reports in which the kernel does not die itself."""
DYING = frozenset({"fatal.oops", "fatal.bug", "fatal.lockup", "fatal.hung-task"})
DAY = 24 * 60 * 60
LONGEST = 400
"""Lines of one report that are read."""

_CALLER = deferred(r"\[ *([TC]\d+)\]")
_FRAME = deferred(r"^\s*(?:\[<?[\da-f]+>?\]\s*)*(\? )?([A-Za-z_][\w.]*)\+0x[\da-f]+/0x[\da-f]+(?: \[([\w-]+)\])?")
_TRACE = deferred(r"^\s*(?:Call [Tt]race:|stack backtrace:|Backtrace:|<(?:TASK|IRQ|NMI|SOFTIRQ)>)")
_END = deferred(r"^---\[ end ")
_CUT = deferred(r"^-+\[ cut here \]|^={20,}$")
_BODY = deferred(
    r"^\s*(?:[RE]?(?:[A-D]X|[SD]I|[SB]P|FLAGS|IP)|R\d\d|[CD]R\d|[CDEFG]S|x\d+|sp|lr|pstate)\s*: ?"
    r"|^(?:RIP|EIP|pc|PC|Code|CPU|Hardware name|Modules linked in|Workqueue|Tainted|Kernel Offset|Comm|task|Stack"
    r"|Process|Internal error|invalid opcode|Oops|PGD|Dumping ftrace|Kernel panic|Rebooting in|Sending NMI)\b"
    r"|^\s*</?(?:TASK|IRQ|NMI|SOFTIRQ|#\w+)>"
    r"|^(?:The buggy address|Memory state|Allocated by|Freed by|Read of size|Write of size|page:|flags:|raw:|>?ffff)"
    r"|^(?:which lock|but task|the existing|Possible unsafe|other info|\d+ locks? held|stack backtrace|-> #\d+| #\d+:)"
    r"|^\s*(?:lock\(|\*\*\* DEADLOCK|CPU0 +CPU1|---- +----)"
    r"|^#PF: |^rcu: |^\s*\"echo 0 >|^Call [Tt]race"
    r"|^(?:(?:Mem|Data) abort info|(?:user|swapper) pgtable|Faulting instruction|Failing address|Fault in \w+ space)\b"
    r"|^(?:NIP|LR|REGS|MSR|CFAR|epc|era|ERA|[Ss]tatus|Cause|TSTATE|Krnl (?:PSW|GPRS)) *[:\[]"
    r"|^(?:TPC: <|IAOQ\[|[Pp][Cc] is at )"
)
_MACHINERY = deferred(
    r"^(?:dump_stack\w*|show_stack|show_trace\w*|__?warn\w*|warn_slowpath\w*|report_bug|fixup_bug\w*|do_trap\w*"
    r"|do_error_trap|handle_bug|(?:asm_)?exc_\w+|do_invalid_op|invalid_op|(?:async_)?page_fault|do_page_fault\w*"
    r"|__bad_area\w*|bad_area\w*|no_context|page_fault_oops|oops_end|die\w*|panic\w*|kasan_\w+|__kasan_\w+|print_\w+"
    r"|__asan_\w+|check_memory_region\w*|nmi_cpu_backtrace\w*|arch_trigger\w*|nmi_trigger\w*|rcu_dump_cpu\w*"
    r"|rcu_sched_clock_irq|print_circular_bug\w*|check_noncircular|debug_\w+|lock_acquire|__lock_acquire"
    r"|ret_from_fork\w*|kthread|entry_SYSCALL\w*|do_syscall_64|SyS_\w+|__[xi]\w+_sys_\w+|system_call\w*|__schedule"
    r"|__schedule_bug|__+might_(?:sleep|resched)|refcount_warn_\w+|__list_(?:add|del)_\w+|bad_page|warn_alloc"
    r"|schedule|io_schedule\w*|schedule_timeout\w*|_raw_\w*lock\w*|__switch_to)$"
)
"""Frames that every report has: those that print the report, and the entry into the kernel."""


def _machinery(function: str) -> bool:
    """Also true for the parts into which compilers split functions: ``__warn.cold``, ``dump_stack.part.2``."""
    return bool(_MACHINERY.match(function.partition(".")[0]))


@dataclass(frozen=True)
class Report:
    """One report. ``first`` and ``last`` are the numbers of its first and last line; ``headline`` is the line a kernel
    developer would quote; ``frames`` are the most important functions, the innermost first (``function [module]``);
    ``lines`` are the most important lines, without prefixes."""

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
    lines: list[LogLine] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    traced: bool = False
    ended: bool = False

    def take(self, number: int, line: LogLine) -> None:
        self.last, body = number, line.indented
        if len(self.lines) < LONGEST:
            self.lines.append(line)
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
        headline = headline_of(self.lines) or self.lines[0].indented
        place = next((found for line in self.lines if (found := place_in(line.indented))), None)
        if place is not None and not _machinery(place[0]):
            self._add(0, *place)
        shown = (line.body for line in self.lines if line.event or _SHOWN.match(line.indented) or line.body == headline)
        frames = tuple(self.frames[:FRAMES])
        return Report(self.event, self.first, self.last, headline, frames, tuple(dict.fromkeys(shown)))


_SHOWN = deferred(r"^(?:#PF: |CPU: |RIP: |EIP: |pc : |Workqueue: |Hardware name: |task:|CPU\d+ +CPU\d)")


class ReportReader:
    """Takes the lines of a log one by one and yields each report when it is complete."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def feed(self, number: int, line: LogLine) -> Iterator[Report]:
        """Takes the next line. Yields the reports that are complete by now."""
        caller = caller_of(line.prefix)
        for key in [key for key, report in self._open.items() if number - report.last > APART]:
            yield self._open.pop(key).close()
        report = self._open.get(caller)
        alarm = line.event if line.event is not None and line.event.alarming else None
        if report is not None and (_CUT.match(line.indented) or (alarm and _another(report, line, alarm))):
            yield self._open.pop(caller).close()
            report = None
        if report is None and alarm:
            report = self._open[caller] = _Open(alarm, number, number)
        elif report is not None and alarm and _worse(alarm, report.event):
            report.event = alarm
        if report is not None and (alarm or part_of_report(line.indented)):
            report.take(number, line)

    def close(self) -> Iterator[Report]:
        """The reports that are still open when the log ends."""
        for report in self._open.values():
            yield report.close()
        self._open.clear()


def reports_in(lines: Iterable[LogLine]) -> list[Report]:
    """The reports in a log, in the order in which they begin. Lines are counted from 1."""
    reader = ReportReader()
    found = [report for number, line in enumerate(lines, 1) for report in reader.feed(number, line)]
    found += reader.close()
    return sorted(found, key=lambda report: report.first)


def caller_of(prefix: str) -> str:
    """The task or CPU that printed a line, if the kernel notes it (CONFIG_PRINTK_CALLER)."""
    found = _CALLER.search(prefix)
    return found.group(1) if found else ""


def part_of_report(indented: str) -> bool:
    """Whether a message, with the spaces it begins with, has the shape of a report's line: a register, a frame."""
    return bool(_BODY.match(indented) or _FRAME.match(indented) or _END.match(indented))


def _another(report: _Open, line: LogLine, alarm: KernelEvent) -> bool:
    """Whether an alarm begins a report of its own. The kernel prints each task that hangs by itself."""
    if report.ended or alarm.kind == "fatal.hung-task" or (report.event.kind in SINGLE and alarm.kind in DYING):
        return True
    before, at = time_of(report.lines[-1].prefix), time_of(line.prefix)
    if before is not None and at is not None:
        return at - before > ONE_REPORT
    earlier, clock = clock_of(report.lines[-1].prefix), clock_of(line.prefix)
    return earlier is not None and clock is not None and (clock - earlier) % DAY > ONE_REPORT


def _worse(new: KernelEvent, old: KernelEvent) -> bool:
    """A report is named after its first fatal message, or after its first warning if it has none."""
    return old.severity is not Severity.FATAL and new.severity is Severity.FATAL and not on_purpose(new.text)
