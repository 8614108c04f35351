"""Starting and ending processes on the DUT. Nothing here waits without a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import Any, Callable, Dict, List, Tuple

from .disks import read_attribute
from .wire import now

Tell = Callable[[Dict[str, Any]], None]
MAX_OUTPUT = 1 << 20


def process_state(pid: int) -> Dict[str, Any]:
    """What a process that does not end is doing: state letter, wait channel, kernel stack (root only)."""
    stat = read_attribute("/proc", str(pid), "stat")
    return {
        "pid": pid,
        "state": stat.rpartition(")")[2].split()[0] if ")" in stat else "",
        "command": read_attribute("/proc", str(pid), "cmdline").replace("\0", " ")[:300],
        "wchan": read_attribute("/proc", str(pid), "wchan"),
        "stack": read_attribute("/proc", str(pid), "stack").splitlines(),
    }


class Job:
    """One process in a session of its own, and the disk descriptors that pin its disk while it runs."""

    def __init__(self, name: str, argv: List[str], fds: Tuple[int, ...], tell: Tell) -> None:
        self.name = name
        self._tell = tell
        self._fds = fds
        self.ended = threading.Event()
        self._asked = False
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=fds,
                start_new_session=True,
                cwd="/",
            )
        except OSError:
            self._release()
            raise
        threading.Thread(target=self._wait, name="job-" + name, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _release(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    def _wait(self) -> None:
        assert self._process.stdout is not None
        kept = b""
        while True:
            chunk = self._process.stdout.read1(65536)  # type: ignore[attr-defined]
            if not chunk:
                break
            kept = (kept + chunk)[-MAX_OUTPUT:]
        status = self._process.wait()
        self._release()
        self.ended.set()
        self._tell(
            {
                "ev": "job.end",
                "at": now(),
                "job": self.name,
                "status": status,
                "asked": self._asked,
                "output": kept.decode("utf-8", "replace"),
            }
        )

    def stop(self, grace: float) -> Dict[str, Any]:
        """SIGINT, then SIGKILL, each with ``grace`` seconds; then say what it is stuck in. Never waits longer."""
        self._asked = True
        for number in (signal.SIGINT, signal.SIGKILL):
            if self.ended.is_set():
                break
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass
            self.ended.wait(grace)
        if self.ended.is_set():
            return {"stuck": False}
        return {"stuck": True, "process": process_state(self.pid)}


class Jobs:
    """All processes this agent started."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._jobs: Dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, name: str, argv: List[str], fds: Tuple[int, ...] = ()) -> int:
        job = Job(name, argv, fds, self._tell)
        with self._lock:
            self._jobs[name] = job
        return job.pid

    def stop(self, name: str, grace: float) -> Dict[str, Any]:
        with self._lock:
            job = self._jobs.get(name)
        return job.stop(grace) if job is not None else {"stuck": False}

    def stop_all(self, grace: float) -> List[Dict[str, Any]]:
        """End everything, side by side. The processes that could not be ended are returned."""
        with self._lock:
            running = [job for job in self._jobs.values() if not job.ended.is_set()]
        results: List[Dict[str, Any]] = []
        threads = [threading.Thread(target=lambda j=job: results.append(j.stop(grace))) for job in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [result["process"] for result in results if result["stuck"]]

    def alive(self) -> List[Dict[str, Any]]:
        with self._lock:
            return [process_state(job.pid) for job in self._jobs.values() if not job.ended.is_set()]
