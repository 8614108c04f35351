"""Starts and ends processes on the DUT. Nothing here waits without a deadline."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Tuple

from .attributes import read_attribute, read_lines
from .streams import Stream
from .wire import now

Send = Callable[[Dict[str, Any]], None]
MAX_OUTPUT = 1 << 20
STARTING = 5.0
"""Seconds that a program may take from its start until it catches SIGINT: fio on a busy emulated machine took
more than 1.4."""


def process_state(pid: int) -> Dict[str, Any]:
    """The state letter, wait channel and kernel stack (root only) of a process that does not end."""
    stat = read_attribute("/proc", str(pid), "stat")
    return {
        "pid": pid,
        "state": stat.rpartition(")")[2].split()[0] if ")" in stat else "",
        "command": read_attribute("/proc", str(pid), "cmdline").replace("\0", " ")[:300],
        "wchan": read_attribute("/proc", str(pid), "wchan"),
        "stack": read_lines("/proc", str(pid), "stack"),
    }


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for this signal (proc_pid_status(5), SigCgt)."""
    for line in read_lines("/proc", str(pid), "status"):
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def start_time(pid: int) -> str:
    """When a process began, in ticks since the boot (proc_pid_stat(5), field 22); empty if there is none. With its
    number it names a process for good."""
    fields = read_attribute("/proc", str(pid), "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def retire(pid: int, started: str, grace: float = 5.0) -> bool:
    """Send SIGTERM, and SIGKILL after ``grace`` seconds. False if it had ended already."""
    if pid == os.getpid() or not started or start_time(pid) != started:
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = now() + grace
        while start_time(pid) == started and now() < deadline:
            time.sleep(0.02)  # it is not a child of ours, so there is nothing to wait on
    return True


_PRCTL = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


def end_with_parent() -> None:
    """In a process about to run a program: it is killed when the agent dies, however that happens (prctl(2)); and
    SIGINT ends it, even where the agent was started by a shell that has it ignored in the background."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class JobProcess:
    """One process in a session of its own, and the disk descriptors that pin its disk while it runs.

    Its output is reported when it has ended. With a ``stream``, standard output goes there, and only the rest is
    reported.
    """

    def __init__(
        self, name: str, argv: List[str], fds: Tuple[int, ...], send: Send, stream: Optional[Stream] = None
    ) -> None:
        self.name = name
        self.stream = stream
        self._send = send
        self._fds = fds
        self.ended = threading.Event()
        self.asked = False
        self._begun = now()
        self._argv = argv
        self._started: "queue.SimpleQueue[Optional[BaseException]]" = queue.SimpleQueue()
        threading.Thread(target=self._live, name="job-" + name, daemon=True).start()
        problem = self._started.get()
        if problem is not None:
            raise problem

    def _live(self) -> None:
        """The process's life from start to end, in one thread: to the kernel that thread is its parent, and when its
        parent dies it is killed."""
        try:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if self.stream is None else subprocess.PIPE,
                pass_fds=self._fds,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 (it makes two system calls and nothing else)
                cwd="/",
            )
        except BaseException as problem:
            self._release()
            self._started.put(problem)
            return
        self._started.put(None)
        self._wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _release(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    def _output(self) -> bytes:
        """All of its output, up to its end."""
        assert self._process.stdout is not None
        if self.stream is not None:
            assert self._process.stderr is not None
            self.stream.carry(self._process.stdout)
            # On its way out it prints one line at most, which fits into the pipe.
            return self._process.stderr.read()[-MAX_OUTPUT:]
        kept = b""
        while True:
            chunk: bytes = self._process.stdout.read1(65536)  # type: ignore[attr-defined]
            if not chunk:
                return kept
            kept = (kept + chunk)[-MAX_OUTPUT:]

    def _wait(self) -> None:
        kept = self._output()
        # What it left running in its session goes with it. Until it is reaped nobody else can be given its number.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        status = self._process.wait()
        # The job is kept, and would keep its pipes: a soak would run out of descriptors.
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._release()
        self.ended.set()
        self._send(
            {
                "ev": "job.end",
                "at": now(),
                "job": self.name,
                "status": status,
                "asked": self.asked,
                "output": kept.decode("utf-8", "replace"),
            }
        )

    def _let_it_start(self) -> None:
        """Wait until a load would report what it did at SIGINT, instead of dying of it."""
        reports = self.stream is not None or os.path.basename(self._argv[0]) == "fio"
        while reports and now() < self._begun + STARTING and not catches(self.pid, signal.SIGINT):
            if self.ended.wait(0.01):
                return

    def stop(self, grace: float) -> Dict[str, Any]:
        """Send SIGINT, then SIGKILL, each with ``grace`` seconds. Returns what it is stuck in. Never waits longer.

        A program with a stream gets SIGTERM in between. At the second signal, it reports the writes in flight instead
        of waiting for them.
        """
        self.asked = True
        self._let_it_start()
        again = (signal.SIGTERM,) if self.stream is not None else ()
        for number in (signal.SIGINT, *again, signal.SIGKILL):
            if self.ended.is_set():
                break
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            self.ended.wait(grace)
        if self.ended.is_set():
            return {"stuck": False}
        return {"stuck": True, "process": process_state(self.pid)}


class Jobs:
    """All processes this agent started."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._jobs: Dict[str, JobProcess] = {}
        self._lock = threading.Lock()

    def start(self, name: str, argv: List[str], fds: Tuple[int, ...] = (), stream: Optional[Stream] = None) -> int:
        job = JobProcess(name, argv, fds, self._send, stream)
        with self._lock:
            self._jobs[name] = job
        return job.pid

    def stop(self, names: Optional[List[str]], grace: float) -> Dict[str, Dict[str, Any]]:
        """End these processes, side by side; ``None``: all that nobody asked to end. Each says whether it is stuck."""
        with self._lock:
            left = [name for name, job in self._jobs.items() if not (job.asked or job.ended.is_set())]
            chosen = [self._jobs[name] for name in (left if names is None else names) if name in self._jobs]
        results: Dict[str, Dict[str, Any]] = {}

        def stop_one(job: JobProcess) -> None:
            results[job.name] = job.stop(grace)

        threads = [threading.Thread(target=stop_one, args=(job,)) for job in chosen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def acknowledge(self, name: str, upto: int) -> None:
        """Note how many bytes of this job's stream have arrived."""
        with self._lock:
            job = self._jobs.get(name)
        if job is not None and job.stream is not None:
            job.stream.acknowledge(upto)

    def stop_all(self, grace: float) -> None:
        """End everything: the controller is gone, and nobody reads what is still to be sent."""
        with self._lock:
            streams = [job.stream for job in self._jobs.values() if job.stream is not None]
        for stream in streams:
            stream.give_up()
        with self._lock:
            names = [name for name, job in self._jobs.items() if not job.ended.is_set()]
        self.stop(names, grace)

    def alive(self) -> List[Dict[str, Any]]:
        with self._lock:
            return [process_state(job.pid) for job in self._jobs.values() if not job.ended.is_set()]
