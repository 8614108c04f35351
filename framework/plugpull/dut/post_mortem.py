"""Finds out from the console what became of a DUT whose agent is gone.

A panic or an oops is on the console already. Otherwise the console is asked:

- The kernel answers sysrq and echoes a character: it is alive, and only the agent is gone. If one of its CPUs does not
  leave the place where it is, the kernel gets the time that it needs to report that.
- It answers sysrq and echoes nothing: it serves interrupts and runs no process.
- It answers nothing: its interrupts are off, or the machine is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from plugpull.dut.bench import PostMortem
from plugpull.dut.console import DutConsole, stamp_of, text_of
from plugpull.history.events import DutDied
from plugpull.kernel.diagnosis.headline import panic_headline

ANSWER = 15.0
"""Seconds to wait for the answer to a sysrq. An emulated DUT may be starved by its host, and a kernel that logs a lot
prints its earlier messages first."""
ECHO = 10.0
"""Seconds to wait for the echo of a character."""
LOCKUP = 25.0
"""Seconds in which the kernel itself reports a lockup: 2 * watchdog_thresh, and a period of its timer
(Documentation/admin-guide/lockup-watchdogs.rst)."""
QUIET = 1.0
"""Seconds of silence after which a report of the kernel counts as complete."""
FRAMES = 5
APART = 2.0
"""Seconds between two looks at the CPUs."""
AGENT_GONE = "only the agent is gone"
HUNG = "the DUT hung"
"""The beginning of the headline of a DUT that does not come back by itself."""
EVIDENCE = 60
LAST = 20
"""Lines of a console that are evidence if nothing better is."""

_TASK = re.compile(r"^task:(\S+)\s+state:(\S)\s.*?\bpid:\s*(\d+)|^(\S+)\s+([DR])\s+(?:\d+|[a-f\d]{16})\s+(\d+)\s+\d+\s")
_FRAME = re.compile(r"^\s*([A-Za-z_][\w.]*)\+0x[\da-f]+/0x[\da-f]+(?: \[([\w-]+)\])?")
_WAITING = re.compile(
    r"^(?:__schedule|schedule\w*|io_schedule\w*|__switch_to\w*|preempt_schedule\w*|ret_from_fork\w*)$"
)
_ON_CPU = re.compile(r"^CPU: (\d+) (?:UID: \d+ )?PID: \d+ Comm: (\S+)")  # with UID since Linux 6.11
_AT = re.compile(r"^(?:RIP: [\da-f]+:|pc : )([A-Za-z_][\w.]*)\+0x[\da-f]+(?:/0x[\da-f]+)?(?: \[([\w-]+)\])?")
_RESTARTS = re.compile(r"^reboot: (?:Restarting system|Power down|System halted)")
_FLAGS = re.compile(r"^vCPU (\d+) at \S+, interrupts (on|off)$")
_NMI = re.compile(r"\] Uhhuh\. NMI received|Kernel panic - not syncing: NMI")
_HUNG = re.compile(r"lockup|stall")
_CPU_LOST = re.compile(
    r"INFO: \w+ (?:self-)?detected (?:expedited )?stalls?\b|BUG: (?:soft|workqueue) lockup|hard LOCKUP"
)
"""What the kernel says of a CPU that does not schedule (kernel/rcu/tree_stall.h, kernel/watchdog.c,
kernel/workqueue.c)."""
_AGENT_ENDED = re.compile(r"^plugpull: the agent ended with status (\d+)")


def examine_console(console: DutConsole, at: float | None, *, proven: bool = True) -> PostMortem | None:
    """Find out from the console what became of the DUT. None if nothing answers: then look for the cause elsewhere.

    ``at`` is when the DUT was last heard. ``proven``: whether this console has answered before."""
    if console.dying():
        console.pause(QUIET, ANSWER)
        return from_last_words(console.last_words())
    blocked = console.sysrq("w", ANSWER)
    if words := console.last_words():
        return from_last_words(words)
    if blocked is None:
        if proven:
            return None
        return PostMortem(says="its console says nothing about it")
    if not console.echoes(ECHO):
        return _locked_up(console, at, blocked)
    agent, kept = _agent_end(console), _kept_cpus(console)
    if kept and agent == AGENT_GONE and (death := _reported(console, at, kept)):
        return death
    tasks = blocked_tasks(blocked)
    says = f"{agent}; the kernel is alive: it answers sysrq on its console"
    if kept:
        says += f", and {kept[0]} all the while"
    if tasks:
        # The driver's own thread waits for the same disk as the process whose I/O it is, so several are named.
        says += f" ({len(tasks)} blocked: {'; '.join(tasks[:SHOWN])})"
    return PostMortem(says=says, console=tuple(blocked[:EVIDENCE]))


SHOWN = 3
"""Blocked tasks named in a sentence at most; all are in the evidence."""


def from_last_words(words: list[str]) -> PostMortem:
    """The post-mortem of a kernel that printed what it died of."""
    stamp = next((stamp for stamp in map(stamp_of, words) if stamp is not None), None)
    headline = panic_headline([text_of(word) for word in words])
    places: tuple[str, ...] = ()
    if _HUNG.search(headline):
        places = on_cpus(words)
        headline = f"{HUNG}: {headline}{f', {places[0]}' if places else ''}"
    return PostMortem(DutDied(at=stamp, headline=headline, evidence=(*places, *words[:EVIDENCE])))


def unresponsive(console: DutConsole, at: float | None, evidence: Iterable[str]) -> PostMortem:
    """The post-mortem of a kernel that answers nothing. ``evidence`` is what is known of its processors."""
    known = tuple(evidence)
    said = _before_the_nmi(console, at)
    # A CPU that still took interrupts may have reported the other one; an NMI stops whichever takes it first.
    places = tuple(dict.fromkeys((*on_cpus(said), *on_cpus(known))))
    complaint = panic_headline([text_of(line) for line in said])
    headline = f"{HUNG}: it answers neither its agent nor sysrq on its console{_interrupts_off(places, known)}"
    headline += f" ({complaint})" if complaint else ""
    last = tuple(console.lines()[-LAST:])
    kept = tuple(dict.fromkeys((*places, *said[-EVIDENCE:], *known[:EVIDENCE], *(() if known else last))))
    return PostMortem(DutDied(at=at, headline=headline, evidence=kept), console=last)


def restarted(console: DutConsole) -> str:
    """The headline of a guest that reset itself. A kernel that was asked to restart logs that (kernel/reboot.c)."""
    said = [text_of(line) for line in console.lines() if _RESTARTS.match(text_of(line))]
    return f"the guest restarted: {said[-1]}" if said else "the guest reset itself without a word on its console"


def _before_the_nmi(console: DutConsole, at: float | None) -> list[str]:
    """What the kernel logged since it was last heard, up to its answer to the NMI that it was sent."""
    said: list[str] = []
    for line in console.lines():
        if _NMI.search(line):
            break
        stamp = stamp_of(line)
        if at is not None and stamp is not None and stamp > at:
            said.append(line)
    return said


def _interrupts_off(places: Iterable[str], known: Iterable[str]) -> str:
    """Which CPUs have their interrupts off, if known, and where they are."""
    flags = {found.group(1): found.group(2) == "off" for line in known if (found := _FLAGS.match(line))}
    for place in places:
        if flags.get(place.split()[1], not flags):
            return f", interrupts off in {place.partition(' in ')[2]}"
    off = [cpu for cpu, is_off in flags.items() if is_off]
    if off:
        return f", interrupts off on CPU {' and '.join(off)}"
    return "" if flags else ", interrupts off"


def _locked_up(console: DutConsole, at: float | None, blocked: list[str]) -> PostMortem:
    seen = console.sysrq("l", ANSWER) or []
    if console.wait_dying(LOCKUP):
        console.pause(QUIET, ANSWER)
    words = console.last_words()
    places = on_cpus([*seen, *words])
    headline = f"{HUNG}: it serves interrupts and runs no process"
    said = panic_headline([text_of(word) for word in words])
    headline += f", {places[0]}" if places else ""
    headline += f" ({said})" if said else ""
    evidence = (*places, *blocked_tasks(blocked), *(words or seen))
    kept = tuple(dict.fromkeys(evidence))[:EVIDENCE]
    return PostMortem(DutDied(at=at, headline=headline, evidence=kept), console=tuple(seen[: 2 * EVIDENCE]))


def _kept_cpus(console: DutConsole) -> tuple[str, ...]:
    """The CPUs that are not idle and were at one place twice, as in ``on_cpus``: something may not give them back."""
    first = on_cpus(console.sysrq("l", ANSWER) or ())
    if not first:
        return ()
    console.pause(APART, APART)
    again = on_cpus(console.sysrq("l", ANSWER) or ())
    return tuple(place for place in first if place in again)


def _reported(console: DutConsole, at: float | None, kept: tuple[str, ...]) -> PostMortem | None:
    """The post-mortem of a kernel that reports itself that a CPU does not schedule: the agent was on that CPU, or waits
    for it. None if the kernel reports nothing of the kind."""
    if not console.wait_said(_CPU_LOST, LOCKUP):
        return None
    console.pause(QUIET, ANSWER)
    said = [text_of(line) for line in console.lines()]
    complaint = next((line for line in said if _CPU_LOST.search(line)), "")
    headline = f"{HUNG}: a CPU is not given back, {kept[0]} ({complaint})"
    evidence = (*kept, *said[max(0, said.index(complaint) - 1) :])[:EVIDENCE] if complaint else kept
    return PostMortem(DutDied(at=at, headline=headline, evidence=tuple(dict.fromkeys(evidence))))


def _agent_end(console: DutConsole) -> str:
    for line in reversed(console.lines()):
        if ended := _AGENT_ENDED.match(line):
            status = int(ended.group(1))
            how = f"was killed by signal {status - 128}" if status > 128 else f"ended with status {status}"
            return f"the agent {how}"
    return AGENT_GONE


def blocked_tasks(lines: Iterable[str]) -> tuple[str, ...]:
    """The blocked tasks of sysrq-w, one line per task: ``fio (pid 212) in D: blk_mq_get_tag < __submit_bio``."""
    tasks: list[tuple[str, list[str]]] = []
    for line in map(text_of, lines):
        if found := _TASK.match(line):
            name, state, pid = found.group(1, 2, 3) if found.group(1) else found.group(4, 5, 6)
            tasks.append((f"{name} (pid {pid}) in {state}", []))
        elif (frame := _FRAME.match(line)) and tasks and not _WAITING.match(frame.group(1)):
            tasks[-1][1].append(f"{frame.group(1)} [{frame.group(2)}]" if frame.group(2) else frame.group(1))
    return tuple(f"{task}: {' < '.join(frames[:FRAMES])}" if frames else task for task, frames in tasks)


def on_cpus(lines: Iterable[str]) -> tuple[str, ...]:
    """Where the CPUs were, one line per CPU that was not idle: ``CPU 1 (kworker/1:2) in spin_for_ever [module]``.

    Of several places of one CPU, the task's is taken; it comes after those of its interrupts."""
    who: tuple[str, str] | None = None
    found: dict[str, str] = {}
    done: set[str] = set()
    for line in map(text_of, lines):
        if on := _ON_CPU.match(line):
            done.update(found)
            who = (on.group(1), on.group(2))
        elif (at := _AT.match(line)) and who is not None and who[0] not in done and not who[1].startswith("swapper/"):
            module = f" [{at.group(2)}]" if at.group(2) else ""
            found[who[0]] = f"CPU {who[0]} ({who[1]}) in {at.group(1)}{module}"
    return tuple(found.values())
