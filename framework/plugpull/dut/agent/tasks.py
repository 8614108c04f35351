"""Finds tasks that stay in uninterruptible sleep without a context switch, and kernel threads that do not stop."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from .attributes import read_attribute, read_lines
from .wire import now

INTERVAL = 2.0
"""Seconds between two looks at all tasks. On an emulated DUT one takes about 20 ms."""
REPORTED = 3.0
"""Seconds after which a blocked task is reported for the first time, and again whenever that time has doubled."""
BUSY = 0.1
"""Share of one CPU below which a kernel thread is not worth a record."""
MOST = 6
"""Threads per record, the busiest first."""
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_TICKS = os.sysconf("SC_CLK_TCK")

Key = Tuple[int, str]
"""(process number, start in ticks since the boot): names a task for good."""
Send = Callable[[Dict[str, Any]], None]


class Task(NamedTuple):
    """One line of /proc/PID/stat (proc_pid_stat(5)). ``cpu`` is user and system time in ticks."""

    pid: int
    name: str
    state: str
    kernel: bool
    cpu: int
    started: str

    @property
    def key(self) -> Key:
        return self.pid, self.started


def parse_stat(line: str) -> Optional[Task]:
    head, _, rest = line.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = rest.split()
    if len(fields) < 20 or not pid.isdigit():
        return None
    return Task(
        int(pid),
        name,
        fields[0],
        bool(int(fields[6]) & _KERNEL_THREAD),
        int(fields[11]) + int(fields[12]),
        fields[19],
    )


def all_tasks(proc: str = "/proc") -> List[Task]:
    """Every process and kernel thread, without the further threads of processes."""
    found = []
    for name in os.listdir(proc):
        if name.isdigit():
            task = parse_stat(read_attribute(proc, name, "stat"))
            if task is not None:
                found.append(task)
    return found


def waiting_now(proc: str = "/proc") -> Set[Key]:
    """The tasks that are in state D."""
    return {task.key for task in all_tasks(proc) if task.state == "D"}


def switches(pid: int, proc: str = "/proc") -> int:
    """How often a task was put on a CPU or taken off it; -1 if it is gone. One that waits for good has a constant
    number, as the kernel's own detector sees it (check_hung_task in kernel/hung_task.c)."""
    total = -1
    for line in read_lines(proc, str(pid), "status"):
        if "ctxt_switches:" in line:
            total = max(total, 0) + int(line.split()[1])
    return total


class _Blocked:
    """One task in state D, as long as it does not run."""

    def __init__(self, task: Task, at: float, switched: int, before: bool) -> None:
        self.task = task
        self.since = at
        self.switched = switched
        self.seconds = 0.0
        self.reported = 0.0
        self.before = before
        """Whether it was blocked when the watch began. Then it is not known since when."""


class TaskWatch:
    """Examines all tasks every ``INTERVAL`` seconds; reports blocked ones, and the CPU time of kernel threads."""

    def __init__(self, send: Send, proc: str = "/proc", before: Optional[Set[Key]] = None) -> None:
        """``before``: the tasks that were in state D before the scenario began. Not given, those of the first look."""
        self._send = send
        self._proc = proc
        self._before = before
        self._blocked: Dict[Key, _Blocked] = {}
        self._cpu: Dict[Key, int] = {}
        self._irq: Tuple[int, int, int] = (0, 0, 0)
        self._looked = 0.0
        self._counted = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tasks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        try:
            while True:
                self.look()
                if self._stop.wait(INTERVAL):
                    return
        except Exception as error:
            self._send({"ev": "watcher.broken", "at": now(), "what": "the tasks", "why": repr(error)})

    def look(self) -> None:
        """Examine all tasks once."""
        with self._lock:
            tasks = all_tasks(self._proc)
            at = now()
            first, passed, self._looked = not self._looked, at - self._looked, at
            # A machine that was starved has not given the task a chance to run.
            self._judge(tasks, at, min(passed, 2 * INTERVAL), first)
            if first or at - self._counted >= INTERVAL / 2:
                self._account(tasks, at)

    # --- blocked tasks --------------------------------------------------------------------------------------------

    def _judge(self, tasks: List[Task], at: float, credit: float, first: bool) -> None:
        waiting = {task.key: task for task in tasks if task.state == "D"}
        for key in [key for key in self._blocked if key not in waiting]:
            self._free(self._blocked.pop(key), at)
        for key, task in waiting.items():
            switched = switches(task.pid, self._proc)
            known = self._blocked.get(key)
            if known is None or known.switched != switched:
                if known is not None:
                    self._free(known, at)
                before = first and (self._before is None or key in self._before)
                self._blocked[key] = _Blocked(task, at, switched, before)
                continue
            known.seconds += credit
            if known.seconds >= max(REPORTED, 2 * known.reported):
                known.reported = known.seconds
                self._report(known, at)

    def _free(self, blocked: _Blocked, at: float) -> None:
        if blocked.reported:
            self._report(blocked, at, ended=True)

    def _report(self, blocked: _Blocked, at: float, ended: bool = False) -> None:
        task = blocked.task
        self._send(
            {
                "ev": "task.blocked",
                "at": at,
                "pid": task.pid,
                "name": name_of(self._proc, task),
                "kernel": task.kernel,
                "seconds": round(blocked.seconds, 3),
                "since": blocked.since,
                "before": blocked.before,
                "ended": ended,
                "wchan": "" if ended else read_attribute(self._proc, str(task.pid), "wchan"),
                "stack": [] if ended else read_lines(self._proc, str(task.pid), "stack"),
            }
        )

    def settle(self, limit: float) -> List[Dict[str, Any]]:
        """Wait until each task that is blocked now has run, or one has not for ``limit`` seconds: those that have not.
        Takes no time where nothing is blocked. What was blocked when the watch began is not waited for."""
        self.look()
        with self._lock:
            wanted = {key: one.switched for key, one in self._blocked.items() if not one.before}
        deadline = now() + 2 * limit
        while True:
            with self._lock:
                left = [self._blocked[key] for key in wanted if key in self._blocked]
                left = [one for one in left if one.switched == wanted[one.task.key]]
                longest = max((one.seconds for one in left), default=0.0)
                if not left or longest >= limit or now() > deadline or self._stop.is_set():
                    for one in left:
                        self._report(one, now())
                    return [{"pid": one.task.pid, "name": one.task.name, "seconds": one.seconds} for one in left]
            self._stop.wait(0.05 if longest < 0.5 else 0.5)
            self._look_again()

    def _look_again(self) -> None:
        """Examine only those that are known to be blocked."""
        with self._lock:
            at = now()
            passed, self._looked = at - self._looked, at
            known = [parse_stat(read_attribute(self._proc, str(pid), "stat")) for pid, _ in self._blocked]
            self._judge([task for task in known if task is not None], at, min(passed, 2 * INTERVAL), False)

    # --- the CPU --------------------------------------------------------------------------------------------------

    def _interrupts(self) -> Tuple[int, int, int]:
        """Ticks in hard and soft interrupts since the boot, and the number of interrupts."""
        lines = read_lines(self._proc, "stat")
        fields = lines[0].split() if lines else []
        count = next((int(line.split()[1]) for line in lines if line.startswith("intr ")), 0)
        return (int(fields[6]), int(fields[7]), count) if len(fields) > 7 else (0, 0, count)

    def _account(self, tasks: List[Task], at: float) -> None:
        """What kernel threads and interrupts cost since the last time."""
        passed, cpu, irq = at - self._counted, self._cpu, self._irq
        known, self._counted = bool(self._counted), at
        self._cpu = {task.key: task.cpu for task in tasks if task.kernel}
        self._irq = self._interrupts()
        if not known:
            return
        shares = {
            "%s (%d)" % (task.name, task.pid): (task.cpu - cpu[task.key]) / _TICKS / passed
            for task in tasks
            if task.kernel and task.key in cpu
        }
        busiest = sorted((name for name in shares if shares[name] >= BUSY), key=lambda name: -shares[name])[:MOST]
        hard, soft, count = (self._irq[kind] - irq[kind] for kind in range(3))
        self._send(
            {
                "ev": "activity",
                "at": at,
                "seconds": round(passed, 3),
                "threads": {name: round(shares[name], 3) for name in busiest},
                "hard": round(hard / _TICKS / passed, 3),
                "soft": round(soft / _TICKS / passed, 3),
                "interrupts": int(count / passed),
            }
        )


def name_of(proc: str, task: Task) -> str:
    """A kernel thread by the name it has now, which says what a worker works at; a process by its command line."""
    if task.kernel:
        return read_attribute(proc, str(task.pid), "comm") or task.name
    command = read_attribute(proc, str(task.pid), "cmdline").replace("\0", " ").strip()
    return command[:200] or task.name
