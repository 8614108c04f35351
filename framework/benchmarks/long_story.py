"""The history of a run that lasts hours, made of the recorder's own events and recorded by the recorder.

One scenario of 8 hours, 8 disks that are read by fio, sampled 10 times a second, and 100 cuts. The cable of one of the
first four disks is cut every 288 s, in turn. It is put back after 2 s, and its load is started again. All is healthy,
so the verdict must be PASS.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchmarks.long_shape import (
    ABSENT,
    BEGIN,
    BLOCK,
    GRANTED,
    HELD,
    HZ,
    KERNEL,
    LATE,
    LATE_EVERY,
    RATE,
    SETTLED,
    SIZE,
    LongDisk,
    Shape,
)
from plugpull.checks import encode_check, kept_pace, kernel_clean, no_errors, removed, returned
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.recorder import Recorder


@dataclass
class LongStory:
    """One scenario of many hours, as events in the order of time."""

    shape: Shape
    disks: list[LongDisk] = field(init=False)
    _sequence: int = 0
    _job: int = 0

    def __post_init__(self) -> None:
        self.disks = [LongDisk(name, port) for port, name in enumerate(self.shape.names, 1)]

    def events(self) -> Iterator[ev.Event]:
        """The whole run."""
        yield self._begun()
        yield ev.ScenarioBegun(id="scenarios/test_soak.py::test_soak", wall="2030-01-01T00:00:00Z", seed=1, row="X21")
        yield from self._numbered(self._middle())
        yield from self._over()

    @property
    def _kind(self) -> Literal["virtual", "local"]:
        return "virtual" if self.shape.virtual else "local"

    def rig(self) -> dict[str, Any]:
        """The rig file as data."""
        return {
            "rig": {"name": "long"},
            "dut": {"kind": self._kind},
            "switch": [{"name": "cables", "driver": "command"}],
            "controller": [{"name": "usb", "ports": 1}],
            "hub": [{"name": "hub1", "at": "usb.1", "ports": self.shape.disks}],
            "disk": [
                {
                    "name": disk.name,
                    "at": f"hub1.{disk.port}",
                    "serial": f"S-{disk.name}",
                    "scratch": True,
                    "cable": f"cables.{disk.port}",
                    **({"rate": RATE * 5 // 4} if self.shape.virtual else {}),
                }
                for disk in self.disks
            ],
        }

    def _begun(self) -> ev.Event:
        return ev.RunBegun(
            version=ev.HISTORY_VERSION,
            plugpull="0.1.0",
            wall="2030-01-01T00:00:00Z",
            rig_name="long",
            rig=self.rig(),
            seed=1,
            numbered=True,
        )

    def _over(self) -> Iterator[ev.Event]:
        checks = (
            removed(self.shape.victims),
            returned(self.shape.victims),
            kept_pace(self.shape.survivors),
            no_errors(self.shape.survivors),
            kernel_clean(),
        )
        end = self.shape.end
        yield ev.Judged(at=end + 1.0, checks=tuple(encode_check(check) for check in checks))
        yield ev.Residue(at=end + 1.5)
        yield ev.ScenarioEnded(
            id="scenarios/test_soak.py::test_soak",
            wall=_wall(end - BEGIN + 2),
            seconds=end - BEGIN + 2.0,
            asked=len(checks),
        )
        yield ev.RunEnded(wall=_wall(end - BEGIN + 10))

    def _numbered(self, events: Iterator[ev.Event]) -> Iterator[ev.Event]:
        """The same with the kernel's numbers and the agent's on its reports, and with the bytes that each load read."""
        report = messages = uevents = 0
        for event in events:
            if isinstance(event, ev.KernelMessage):
                messages += 1
                event = msgspec.structs.replace(event, seq=messages)
            if isinstance(event, ev.Uevent):
                uevents += 1
                event = msgspec.structs.replace(event, seqnum=uevents)
            if isinstance(event, ev.KernelMessage | ev.Uevent | ev.DiskAttached | ev.DiskDetached):
                report += 1
                event = msgspec.structs.replace(event, report=report)
            if isinstance(event, ev.LoadEnded):
                disk = next(one for one in self.disks if one.name == event.disk)
                event = msgspec.structs.replace(event, read_bytes=int(disk.moved) - 4096)
            yield event

    def _middle(self) -> Iterator[ev.Event]:
        return merge(self._story(), self._clock(), self._samples(), key=lambda event: event.at or 0.0)

    def _story(self) -> Iterator[ev.Event]:
        shape = self.shape
        yield ev.DutReady(
            at=BEGIN,
            kernel=KERNEL,
            kind=self._kind,
            how="connected",
            took=0.5,
            fio="fio-3.33",
            cpus=4,
            memory_bytes=8 << 30,
        )
        attached = (self._attach(disk, BEGIN + 0.5 + number / 10) for number, disk in enumerate(self.disks))
        yield from sorted(chain.from_iterable(attached), key=lambda event: event.at or 0.0)
        yield ev.Phase(at=BEGIN + 2.0, name="load")
        for disk in self.disks:
            yield self._load(disk, BEGIN + 2.0)
        yield ev.LoadSettled(at=BEGIN + SETTLED, disks=shape.names)
        every = (shape.end - BEGIN - 60.0) / shape.cuts
        for number in range(shape.cuts):
            victim = self.disks[number % len(shape.victims)]
            yield from self._cut(number + 1, victim, BEGIN + 40.0 + number * every)
        yield ev.Phase(at=shape.end, name="stop")
        for disk in self.disks:
            yield self._load_end(disk, shape.end + 0.4)

    def _cut(self, number: int, disk: LongDisk, at: float) -> Iterator[ev.Event]:
        fault = {"kind": "cut", "points": [f"{disk.name}.cable"], "when": {"kind": "at_once"}, "permanent": False}
        yield ev.FaultInjected(at=at - 0.002, number=number, fault=fault)
        yield ev.CutArmed(
            at=at - 0.001,
            cut=number,
            point=f"{disk.name}.cable",
            mechanism="data",
            trigger="at once",
            victims=(disk.name,),
            fault=number,
        )
        yield ev.Phase(at=at - 0.0005, name="cut")
        yield from self._switch(number, disk, "off", at)
        yield from self._detach(disk, at + 0.07)
        yield ev.LoadEnded(
            at=at + 0.15, disk=disk.name, job=f"load{self._job_of(disk)}", asked=False, exit_status=1, errno=19,
            message="fio: No such device", longest=0.2,
        )  # fmt: skip
        yield ev.Phase(at=at + 0.6, name="hold")
        yield ev.Phase(at=at + HELD - 0.01, name="return")
        yield from self._switch(number, disk, "on", at + HELD)
        yield from self._attach(disk, at + ABSENT)
        yield ev.Phase(at=at + ABSENT + 0.5, name="recover")
        yield self._load(disk, at + ABSENT + 1.0)

    def _switch(self, cut: int, disk: LongDisk, state: ev.PortState, at: float) -> Iterator[ev.Event]:
        phases: tuple[tuple[ev.EdgePhase, float], ...] = (("commanded", 0), ("acknowledged", 0.01), ("read-back", 0.02))
        for phase, later in phases:
            yield ev.Edge(
                at=at + later,
                cut=cut,
                point=f"{disk.name}.cable",
                switch="cables",
                port=str(disk.port),
                state=state,
                phase=phase,
                error=0.002,
            )

    def _say(self, at: float, text: str, level: int = 6) -> ev.Event:
        return ev.KernelMessage(at=at, text=text, level=level)

    def _event(self, at: float, action: str, subsystem: str, path: str, devtype: str, disk: LongDisk) -> ev.Event:
        known = (disk.name,) if disk.diskseq > self.shape.disks or action in ("remove", "unbind") else ()
        return ev.Uevent(
            at=at,
            action=action,
            subsystem=subsystem,
            devpath=path,
            devtype=devtype,
            disks=known,
            others=0,
        )

    def _attach(self, disk: LongDisk, at: float) -> Iterator[ev.Event]:
        self._sequence += 1
        disk.diskseq = self._sequence
        disk.changes.append((at, disk.diskseq, False))
        yield from self._enumerate(disk, at)
        yield from self._probe(disk, at)
        yield ev.DiskAttached(
            at=at,
            disk=disk.name,
            kname=disk.kname,
            diskseq=disk.diskseq,
            devt=f"8:{16 * (disk.port - 1)}",
            serial=f"S-{disk.name}",
            place=f"0000:00:10.0/1.{disk.port}:0",
            size=SIZE,
            driver="usb-storage",
            speed="5000",
            model="Bridge Disk",
            sysfs=f"/sys{disk.scsi}/block/{disk.kname}",
        )

    def _enumerate(self, disk: LongDisk, at: float) -> Iterator[ev.Event]:
        """The USB device and the SCSI host of a disk that is there at ``at``."""
        usb, host = disk.usb, disk.port
        yield self._say(
            at - 0.9, f"usb {usb}: new SuperSpeed USB device number {3 + disk.diskseq % 120} using xhci_hcd"
        )
        yield self._say(at - 0.89, f"usb {usb}: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 2.14")
        yield self._say(at - 0.88, f"usb {usb}: New USB device strings: Mfr=1, Product=2, SerialNumber=3")
        yield self._say(at - 0.87, f"usb {usb}: Product: Bridge")
        yield self._say(at - 0.86, f"usb {usb}: SerialNumber: S-{disk.name}")
        yield self._event(at - 0.85, "add", "usb", disk.devpath, "usb_device", disk)
        yield self._say(at - 0.84, f"usb-storage {usb}:1.0: USB Mass Storage device detected")
        yield self._event(at - 0.83, "add", "usb", f"{disk.devpath}/{usb}:1.0", "usb_interface", disk)
        yield self._say(at - 0.82, f"scsi host{host}: usb-storage {usb}:1.0")
        yield self._event(at - 0.81, "add", "scsi", f"{disk.devpath}/{usb}:1.0/host{host}", "scsi_host", disk)
        yield self._event(at - 0.8, "bind", "usb", f"{disk.devpath}/{usb}:1.0", "usb_interface", disk)
        yield self._event(at - 0.79, "bind", "usb", disk.devpath, "usb_device", disk)

    def _probe(self, disk: LongDisk, at: float) -> Iterator[ev.Event]:
        """The disk itself."""
        host = disk.port
        sd = f"sd {host}:0:0:0:"
        yield self._say(
            at - 0.1, f"scsi {host}:0:0:0: Direct-Access     Bridge   Disk             0214 PQ: 0 ANSI: 6", 5
        )
        yield self._event(at - 0.095, "add", "scsi", disk.scsi.rpartition("/")[0], "scsi_target", disk)
        yield self._event(at - 0.09, "add", "scsi", disk.scsi, "scsi_device", disk)
        yield self._say(at - 0.08, f"{sd} [{disk.kname}] {SIZE // 512} 512-byte logical blocks: (68.7 GB/64.0 GiB)", 5)
        yield self._say(at - 0.07, f"{sd} [{disk.kname}] Write Protect is off", 5)
        yield self._say(at - 0.06, f"{sd} [{disk.kname}] Mode Sense: 67 00 10 08", 7)
        yield self._say(
            at - 0.05, f"{sd} [{disk.kname}] Write cache: enabled, read cache: enabled, supports DPO and FUA", 5
        )
        yield self._say(at - 0.02, f"{sd} [{disk.kname}] Attached SCSI disk", 5)
        yield self._event(at - 0.001, "add", "block", f"{disk.scsi}/block/{disk.kname}", "disk", disk)

    def _detach(self, disk: LongDisk, at: float) -> Iterator[ev.Event]:
        disk.changes.append((at, 0, False))
        sd = f"sd {disk.port}:0:0:0:"
        yield self._say(at - 0.04, f"usb {disk.usb}: USB disconnect, device number {3 + disk.diskseq % 120}")
        yield self._say(
            at - 0.03, f"device offline error, dev {disk.kname}, sector 131072 op 0x0:(READ) flags 0x4000", 3
        )
        yield self._event(at - 0.001, "remove", "block", f"{disk.scsi}/block/{disk.kname}", "disk", disk)
        yield ev.DiskDetached(at=at, disk=disk.name, kname=disk.kname, diskseq=disk.diskseq)
        yield self._say(at + 0.01, f"{sd} [{disk.kname}] Synchronizing SCSI cache", 5)
        failed = "Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK"
        yield self._say(at + 0.012, f"{sd} [{disk.kname}] {failed}")
        yield self._event(at + 0.02, "remove", "scsi", disk.scsi, "scsi_device", disk)
        target = disk.scsi.rpartition("/")[0]
        host = target.rpartition("/")[0]
        yield self._event(at + 0.022, "remove", "scsi", target, "scsi_target", disk)
        yield self._event(at + 0.025, "remove", "scsi", host, "scsi_host", disk)
        for later, action in ((0.028, "unbind"), (0.03, "remove")):
            yield self._event(at + later, action, "usb", f"{disk.devpath}/{disk.usb}:1.0", "usb_interface", disk)
        for later, action in ((0.058, "unbind"), (0.06, "remove")):
            yield self._event(at + later, action, "usb", disk.devpath, "usb_device", disk)

    def _job_of(self, disk: LongDisk) -> str:
        return f"{disk.diskseq}-{disk.name}"

    def _load(self, disk: LongDisk, at: float) -> ev.Event:
        disk.changes.append((at, disk.diskseq, True))
        return ev.LoadBegun(
            at=at,
            disk=disk.name,
            job=f"load{self._job_of(disk)}",
            mode="read",
            block=BLOCK,
            depth=4,
            span=SIZE,
            kname=disk.kname,
            argv=("fio", "--time_based", "--rw=read"),
        )

    def _load_end(self, disk: LongDisk, at: float) -> ev.Event:
        return ev.LoadEnded(
            at=at,
            disk=disk.name,
            job=f"load{self._job_of(disk)}",
            asked=True,
            asked_at=self.shape.end,
            exit_status=128,
            longest=0.2,
        )

    def _clock(self) -> Iterator[ev.Event]:
        at = BEGIN
        while at < self.shape.end + 1.9:
            ran = GRANTED * (at - BEGIN) if self.shape.virtual else None
            yield ev.ClockMapped(at=at, controller=at + 600.0, error=0.002, ran=ran)
            at += 1.0

    def _samples(self) -> Iterator[ev.Event]:
        dice = random.Random(self.shape.seed)
        jiffies = 0.0
        for step in range(round((self.shape.end + 0.9 - BEGIN) * HZ)):
            at = BEGIN + step / HZ + 0.0123 + dice.uniform(0, 0.002)
            at += LATE if self.shape.virtual and step % LATE_EVERY == 0 else 0.0
            row: dict[str, Counters] = {}
            for disk in self.disks:
                disk.advance(at)
                if not disk.sampled:
                    continue
                busy = disk.loaded and at < self.shape.end
                if busy:
                    disk.moved += RATE / HZ * (1.0 + dice.gauss(0, 0.01))
                done = int(disk.moved) // 512 * 512
                row[disk.kname] = Counters(disk.sampled, done, 0, 1 + done // BLOCK, 0, 4 * busy, 0, round(at * 1000))
            jiffies += 40
            cpu = (int(jiffies * 0.1), int(jiffies)) if step % HZ == 0 else (0, 0)
            yield ev.Sampled(at=at, disks=row, cpu=cpu)


def _wall(seconds: float) -> str:
    """The wall clock so many seconds after the beginning of the run."""
    return f"2030-01-01T{int(seconds // 3600):02}:{int(seconds // 60 % 60):02}:{seconds % 60:06.3f}Z"


def make(run: Path, shape: Shape) -> Path:
    """Record the history into the directory ``run``."""
    run.mkdir(parents=True)
    with Recorder(run / "history.jsonl", keep=1) as recorder:
        for event in LongStory(shape).events():
            recorder.record(event)
    return run
