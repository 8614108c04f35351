"""The agent's conversation with the controller."""

from __future__ import annotations

import faulthandler
import os
import shutil
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from . import AGENT_VERSION
from .actions import Actions
from .array_guard import open_target
from .arrays import Arrays
from .census import census
from .checkers import lacking
from .devices import Devices, Failed
from .disks import Broken, Disk, Refused, all_disks
from .fio import start_fio
from .grace import grace_period
from .jobs import Jobs, retire, start_time
from .kmsg import KernelLog, clock_offset
from .overlay import Overlays
from .properties import Attendant, described
from .sampler import Sampler
from .state import state
from .streams import BOUND, Programs, Stream, in_memory
from .system import system_disks, used_disks
from .tasks import Key, TaskWatch, waiting_now
from .uevents import Uevents
from .volumes import Volumes
from .wire import Message, Outbox, now

RECORDS = ("facility", "properties", "reports", "state", "tasks", "timers")
"""What this agent records in addition to the first agents. A history that names it must have it."""
NUMBERED = frozenset(
    (
        "activity",
        "array",
        "disk.add",
        "disk.properties",
        "disk.remove",
        "kmsg",
        "kmsg.lost",
        "task.blocked",
        "timers",
        "uevent",
    )
)
"""Messages whose loss must be noticed, because no other message says the same. Samples have no numbers: counters are
cumulative, and a hole shows by itself."""
ENDING_GRACE = 2.0
"""Seconds that each signal gets when the controller is gone. Nobody waits for the result then."""


class Service(Actions):
    """Answers requests and reports what happens. There is one at a time per connection of a controller."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.outbox = Outbox(write)
        super().__init__(Jobs(self._send))
        self.volumes = Volumes(self._step_begun)
        self.overlays = Overlays()
        self.arrays = Arrays(self._send, self._sample)
        self.devices = Devices()
        self.programs = Programs()
        self.attendant = Attendant(self._send, self.timers)
        self.tasks: Optional[TaskWatch] = None
        self._waiting: Optional[Set[Key]] = None
        self.log: Optional[KernelLog] = None
        self.sampler: Optional[Sampler] = None
        self.uevents: Optional[Uevents] = None
        self.patience = 0.0
        self.heard = now()
        self.reports = 0
        self._numbering = threading.Lock()
        self._fio: Tuple[Tuple[str, int], str] = (("", 0), "")

    def watch(self) -> None:
        """Follow the kernel log and uevents from now on. Apart from construction so that a snapshot can be taken
        before."""
        try:
            self.log = KernelLog(self._send)
        except OSError as error:
            self._send({"ev": "watcher.broken", "at": now(), "what": "the kernel log", "why": str(error)})
        self.uevents = Uevents(self._send)

    def handle(self, message: Message) -> None:
        """Clock requests are answered at once, all others by a thread of their own: none can hold up another."""
        self.heard = now()
        if message.get("op") == "clock":
            self._send({"id": message.get("id"), "ok": True, "r": {"at": now(), "real": time.time()}})
            return
        threading.Thread(target=self._answer, args=(message,), name="request", daemon=True).start()

    def forgotten(self) -> bool:
        """Whether nothing was heard for longer than was agreed."""
        return bool(self.patience) and now() - self.heard > self.patience

    def controller_gone(self) -> None:
        """End what was started, because nobody is left to judge it."""
        self.stop_sampling()
        self.outbox.drop_all()
        self.jobs.stop_all(ENDING_GRACE)
        self.op_release()
        self.devices.close_all()
        self.end_actions()
        self.timers.restore()
        self.outbox.drop_all()

    def _sample(self, kname: str) -> None:
        if self.sampler is not None:
            self.sampler.add(kname)

    def _send(self, message: Message) -> None:
        came = message.get("ev") == "disk.add" and self.sampler is not None
        if self.sampler is not None and message.get("ev") in ("disk.add", "disk.remove"):
            (self.sampler.add if came else self.sampler.remove)(message["disk"]["kname"] if came else message["kname"])
        with self._numbering:  # so that reports leave in the order of their numbers
            if message.get("ev") in NUMBERED:
                self.reports += 1
                message["report"] = self.reports
            self.outbox.send(message)
        if came:  # what is said of a disk is only understood after this message
            self.attendant.attach(message["disk"])

    def _step_begun(self, disk: str, step: str) -> None:
        self._send({"ev": "step.begin", "at": now(), "disk": disk, "step": step})

    def _answer(self, message: Message) -> None:
        operation: Optional[Callable[..., Any]] = getattr(
            self, "op_" + str(message.get("op", "")).replace(".", "_"), None
        )
        try:
            if operation is None:
                raise Refused("this agent knows no operation %r" % message.get("op"))
            answer = {"id": message.get("id"), "ok": True, "r": operation(**message.get("args", {}))}
        except Refused as refusal:
            answer = {"id": message.get("id"), "ok": False, "refused": True, "why": str(refusal), "hint": refusal.hint}
            answer["broken"] = isinstance(refusal, Broken)
        except Failed as failure:
            answer = {"id": message.get("id"), "ok": False, "why": str(failure), "hint": failure.hint}
        except Exception as error:
            answer = {"id": message.get("id"), "ok": False, "why": "%s: %s" % (type(error).__name__, error)}
        self._send(answer)

    # --- operations -------------------------------------------------------------------------------------------

    def op_hello(self) -> Dict[str, Any]:
        if self.tasks is None:
            # A scenario begins with this: what is blocked from here on is its own.
            self._waiting = waiting_now()
        uname = os.uname()
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot_id = file.read().strip()
        return {
            "agent": AGENT_VERSION,
            "kernel": uname.release,
            "machine": uname.machine,
            "build": uname.version,
            "python": ".".join(map(str, os.sys.version_info[:3])),  # type: ignore[attr-defined]
            "fio": self._fio_version(),
            "boot_id": boot_id,
            "cpus": os.cpu_count() or 0,
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "uid": os.getuid(),
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "at": now(),
            "uevents": self.uevents.source if self.uevents else "",
            "records": RECORDS,
            "reports": self.reports,
        }

    def _fio_version(self) -> str:
        """Empty without fio. Asked once per file: on an emulated DUT the answer takes half a second."""
        fio = shutil.which("fio")
        if fio is None:
            return ""
        key = (fio, os.stat(fio).st_mtime_ns)
        if self._fio[0] != key:
            asked = subprocess.run([fio, "--version"], stdout=subprocess.PIPE, timeout=30, check=False)
            self._fio = (key, asked.stdout.decode().strip())
        return self._fio[1]

    def op_clock_offset(self) -> Tuple[float, float]:
        """Measure how far the log's clock is from CLOCK_MONOTONIC, and how well that is known; apply it from now on."""
        offset, error = clock_offset()
        if self.log is not None:
            self.log.offset = offset
        return offset, error

    def op_log_since(self, last: int) -> Dict[str, Any]:
        """What the kernel said after record ``last`` and before this agent listened."""
        return self.log.since(last) if self.log is not None else {"records": [], "lost": 0}

    def op_disks(self) -> List[Disk]:
        return all_disks()

    def op_sample(self, interval: float) -> None:
        if self.sampler is not None:
            self.sampler.interval = interval
            return
        self.sampler = Sampler(self._send, self.outbox.send_line)
        for disk in all_disks():
            self.sampler.add(disk["kname"])
            self.attendant.attach(disk)
        self.sampler.start(interval)
        self.tasks = TaskWatch(self._send, before=self._waiting)
        self.tasks.start()

    def stop_sampling(self) -> None:
        tasks, self.tasks = self.tasks, None
        if tasks is not None:
            tasks.stop()
        sampler, self.sampler = self.sampler, None
        if sampler is not None:
            sampler.stop()

    op_sample_stop = stop_sampling

    def op_fio(
        self, job: str, argv: List[str], disk: Disk, directory: str = "", uuid: str = "", log: str = ""
    ) -> Dict[str, Any]:
        """Run fio on one disk, or on a file: see ``start_fio``."""
        one = {"argv": argv, "disk": disk, "directory": directory, "uuid": uuid}
        return start_fio(self.jobs, self.volumes, job, [one], log)

    def op_fio_together(self, job: str, each: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Run one process of fio on several disks at once: on an emulated DUT its start takes longer than its work."""
        return start_fio(self.jobs, self.volumes, job, each)

    def op_program(self, digest: str, data: str = "") -> bool:
        """Keep a program in memory, to be run on a disk. Without ``data``: say whether it is here."""
        if data:
            self.programs.keep(digest, data)
        return self.programs.has(digest)

    def op_run(self, job: str, digest: str, argv: List[str], disk: Disk) -> Dict[str, Any]:
        """Run a program that was sent on a disk proved to be ``disk``, and stream what it says. ``{fd}`` in the
        arguments becomes the number of the disk's descriptor. ``bound`` is what can be under way, in bytes."""
        program = self.programs.open(digest)
        try:
            fd = open_target(disk)
        except BaseException:
            os.close(program)
            raise
        arguments = [part.replace("{fd}", str(fd)) for part in argv]
        stream = Stream(job, self.outbox.send_waiting)
        pid = self.jobs.start(job, ["/proc/self/fd/%d" % program, *arguments], (fd, program), stream)
        return {"pid": pid, "at": now(), "bound": BOUND}

    def op_files(
        self, job: str, digest: str, argv: List[str], disk: Disk, directory: str, uuid: str, plan: str = ""
    ) -> Dict[str, Any]:
        """Run a Python program that was sent in the filesystem that is mounted for ``directory``, which must have this
        UUID, and stream what it says. ``{root}`` in the arguments becomes the number of a descriptor of its root,
        ``{plan}`` that of a file with the plan."""
        root = self.volumes.open(directory, uuid)
        try:
            program = self.programs.open(digest)
        except BaseException:
            os.close(root)
            raise
        text = in_memory("plugpull-plan", plan.encode())
        known = {"{root}": root, "{plan}": text}
        arguments = [str(known.get(part, part)) for part in argv]
        command = [sys.executable, "-I", "-S", "-B", "/proc/self/fd/%d" % program, *arguments]
        self.jobs.start(job, command, (root, program, text), Stream(job, self.outbox.send_waiting))
        return {"at": now(), "bound": BOUND}

    def op_ack(self, job: str, upto: int) -> None:
        """The controller has so many bytes of this job's stream on record."""
        self.jobs.acknowledge(job, upto)

    def op_jobs_stop(self, jobs: Optional[List[str]], grace: float) -> Dict[str, Any]:
        """End these, or else all that nobody asked to end. Per job whether it is stuck and, if so, in what."""
        return self.jobs.stop(jobs, grace)

    def op_jobs_alive(self) -> List[Dict[str, Any]]:
        return self.jobs.alive()

    def op_census(self, exact: bool = False) -> Dict[str, Any]:
        """What the kernel holds, to see later what is left over; with its memory to the byte if ``exact``."""
        return {"at": now(), **census(exact=exact)}

    def op_state(self) -> Dict[str, Any]:
        """The state of the kernel as a whole, to compare the end of a scenario with its beginning."""
        return {"at": now(), **state()}

    def op_properties(self, read: Sequence[str] = ()) -> List[Dict[str, Any]]:
        """How each disk is driven, cached and powered now. The disks with a kernel name in ``read`` are read, too."""
        return [described(one["kname"], one["diskseq"], "asked", one["kname"] in read) for one in all_disks()]

    def op_timers(self, serials: List[str], guarded: bool) -> Dict[str, Any]:
        """Shorten the kernel's timeouts, and those of the disks with these serial numbers whenever they come."""
        return {"at": now(), **self.timers.shorten(serials, guarded)}

    def op_timers_settle(self, seconds: str) -> Dict[str, Any]:
        """Change how long usb-storage waits before it looks at a new device."""
        return {"at": now(), **self.timers.let_settle(seconds)}

    def op_timers_restore(self) -> Dict[str, Any]:
        """Give every timeout the value back that it had."""
        return {"at": now(), **self.timers.restore()}

    def op_tasks_settle(self, limit: float) -> List[Dict[str, Any]]:
        """Wait up to ``limit`` seconds until each task that is blocked has run: those that have not."""
        return self.tasks.settle(limit) if self.tasks is not None else []

    def op_grace(self, limit: float) -> Dict[str, Any]:
        """Wait up to ``limit`` seconds until every CPU has scheduled or idled."""
        return {"at": now(), **grace_period(limit)}

    def op_guard(self, disk: Disk) -> None:
        """Check that this disk would be accepted as scratch. Raises Refused otherwise."""
        os.close(open_target(disk))

    def op_mkfs(self, disk: Disk, fstype: str, timeout: float) -> Dict[str, Any]:
        return self.volumes.mkfs(disk, fstype, timeout)

    def op_mount(self, name: str, disk: Disk, fstype: str, uuid: str) -> Dict[str, Any]:
        return self.volumes.mount(name, disk, fstype, uuid)

    def op_filesystem_lacks(self, fstype: str, size: int) -> str:
        """Why no filesystem of this type can be made on a disk of ``size`` bytes; empty if it can."""
        return lacking(fstype, size)

    def op_filesystem_holds(self, disk: Disk, fstype: str) -> str:
        """The UUID of the filesystem of this type on a scratch disk; empty if it holds none."""
        return self.volumes.holds(disk, fstype)

    def op_filesystem_check(
        self, disk: Disk, fstype: str, uuid: str, timeout: float, repair: bool = False
    ) -> Dict[str, Any]:
        """Check an unmounted filesystem without changing it, or repair it."""
        return self.volumes.check(disk, fstype, uuid, timeout, repair)

    def op_overlay(self, name: str, disk: Disk) -> Dict[str, Any]:
        """Make a device over a disk that keeps in memory what is written to it."""
        return self.overlays.make(name, disk)

    def op_overlay_drop(self, name: str) -> Dict[str, Any]:
        return self.overlays.drop(name)

    def op_umount(self, name: str) -> Dict[str, Any]:
        return self.volumes.umount(name)

    def op_release(self) -> None:
        """Unmount and stop what was made and is still there: whoever asked for it cannot ask for its end any more."""
        self.volumes.release_all()
        self.overlays.drop_all()
        self.arrays.stop_all()

    def op_array(self, do: str, **arguments: Any) -> Any:
        """What a scenario asks of an array: see ``Arrays``."""
        action = None if do.startswith("_") else getattr(self.arrays, do, None)
        if action is None:
            raise Refused("this agent cannot do %r with an array" % do)
        return action(**arguments)

    def op_device(self, do: str, **arguments: Any) -> Any:
        """What the driver of a switch asks of a device that is plugged in here: see ``Devices``."""
        action = None if do.startswith("_") else getattr(self.devices, do, None)
        if action is None:
            raise Failed("this agent cannot do %r" % do)
        return action(**arguments)

    def op_system_disks(self) -> List[str]:
        """Kernel names of the disks that the running system lives on: nothing may ever cut those."""
        return system_disks()

    def op_used_disks(self) -> Dict[str, str]:
        """Kernel names of all disks that anything is mounted from, and where."""
        return used_disks()

    def op_retire(self, pid: int, started: str) -> bool:
        """End an earlier agent whose connection broke and that may not know it yet: it holds devices and disks that
        are needed. False if it was gone already. ``started`` distinguishes it from a later process of that number."""
        return retire(pid, started)

    def op_expect(self, every: float) -> None:
        """End by yourself when nothing is heard for so many seconds: a connection can die without a sign."""
        self.patience = every

    def op_mute(self) -> None:
        """Stop sending anything, like an agent that hangs. For tests of what happens then."""
        self.outbox.muted = True

    def op_stacks(self) -> None:
        """Write the stack of each thread to standard error, for whoever has to find out why an agent hangs."""
        faulthandler.dump_traceback(all_threads=True)

    def op_sysrq(self, key: str) -> None:
        """Documentation/admin-guide/sysrq.rst; ``c`` panics the kernel."""
        with open("/proc/sysrq-trigger", "w") as file:
            file.write(key)
