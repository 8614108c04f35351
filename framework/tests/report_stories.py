"""A made-up but realistic run for the tests of the report: three disks, a passing, a failing and an unknown scenario.

The shapes of the numbers follow a real bench (30 MB/s per disk, removal after 0.1 s, return 1.1 s after the plug); the
kernel messages are Linux 6.12's words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from plugpull.finding import Finding
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.cut import DiskTimes
from plugpull.judging.results import (
    RESULTS_VERSION,
    CheckResult,
    CutResult,
    DutInfo,
    Integrity,
    Results,
    ScenarioResult,
    Survivor,
    Verdict,
)

S = TypeVar("S", bound=msgspec.Struct)
MB = 1_000_000
START = 104.22
"""DUT time at which every made-up scenario begins."""
CUT_AT, RESTORED_AT, RETURNED_AT = START + 9.0, START + 11.4, START + 12.51
END = START + 20.0
PASSING = "scenarios/test_cable.py::test_temporary_cable_cut_while_writing[disk1]"
FAILING = "scenarios/test_survivors.py::test_survivors_keep_pace"
UNKNOWN = "scenarios/test_hub.py::test_permanent_hub_cut"
DISKS = ("disk1", "disk2", "disk3")


def changed(struct: S, **changes: Any) -> S:
    """``struct`` with some fields changed."""
    return msgspec.structs.replace(struct, **changes)


Rate = Callable[[str, float], float | None]
"""Bytes per second of a disk at a time, ``None`` while it is off the kernel's list."""


def steady(disk: str, at: float) -> float | None:
    """A healthy bench: the victim goes and comes back, the survivors hardly notice."""
    if disk == "disk1" and CUT_AT + 0.12 <= at < RETURNED_AT:
        return None
    if disk == "disk1" and RETURNED_AT <= at < RETURNED_AT + 0.4:
        return 0.0
    if disk != "disk1" and CUT_AT + 0.05 <= at < CUT_AT + 0.35:
        return 4.0 * MB
    return min(max(at - START - 1.5, 0.0) / 0.6, 1.0) * 30.0 * MB


def starving(disk: str, at: float) -> float | None:
    """As ``steady``, but disk3 stalls for three seconds and keeps half of its pace for good."""
    if disk == "disk3" and at >= CUT_AT + 0.05:
        return 0.0 if at < CUT_AT + 3.1 else 14.5 * MB
    return steady(disk, at)


def samples(
    rate: Rate, disks: Sequence[str] = DISKS, *, hertz: int = 10, end: float = END, seed: int = 1
) -> list[ev.Event]:
    """Cumulative counters as the sampler would have read them, with a few per cent of noise."""
    noise = random.Random(seed)
    counted = dict.fromkeys(disks, 0)
    attached = dict.fromkeys(disks, 1)
    there = dict.fromkeys(disks, True)
    made: list[ev.Event] = []
    for step in range(int((end - START) * hertz) + 1):
        at = START + step / hertz
        row: dict[str, Counters] = {}
        for index, disk in enumerate(disks):
            now = rate(disk, at)
            if now is None:
                there[disk] = False
                continue
            if not there[disk]:
                there[disk], counted[disk], attached[disk] = True, 0, 2
            counted[disk] += int(now / hertz * noise.uniform(0.96, 1.02))
            kname = f"sd{chr(97 + index)}"
            diskseq, writes = 10 * attached[disk] + index, counted[disk] // 65536
            row[kname] = Counters(diskseq, 4096, counted[disk], 1, writes, 0, 8, step * 100)
        made.append(ev.Sampled(at=at, disks=row, cpu=(step * 4, step * 20)))
    return made


def attached(disk: str, at: float, attachment: int = 1) -> ev.DiskAttached:
    index = int(disk.removeprefix("disk")) - 1
    return ev.DiskAttached(
        at=at,
        disk=disk,
        kname=f"sd{chr(97 + index)}",
        diskseq=10 * attachment + index,
        devt=f"8:{16 * index}",
        serial=f"PP{index:04}",
        place=f"0000:00:05.0/{index + 1}:0",
        size=256 << 20,
        driver="usb-storage",
        speed="480",
        model="QEMU HARDDISK",
    )


def begin(scenario: str, story: str, disks: Sequence[str] = DISKS) -> list[ev.Event]:
    made: list[ev.Event] = [
        ev.ScenarioBegun(id=scenario, wall="2031-03-02T01:14:09Z", seed=20310302, story=story, row="X06", at=START),
        ev.DutReady(
            at=START, kernel="6.12.43+deb13-amd64", kind="virtual", how="restored", took=1.03, accel="tcg", cpus=2
        ),
        ev.ClockMapped(at=START + 0.01, controller=88.4, error=0.0008),
        ev.Phase(at=START + 0.02, name="plug"),
    ]
    for index, disk in enumerate(disks):
        made.append(attached(disk, START + 0.1 + index / 100))
        made.append(
            ev.KernelMessage(
                at=START + 0.09 + index / 100,
                text=f"usb 1-{index + 1}: new high-speed USB device number {index + 2} using xhci_hcd",
            )
        )
    made.append(ev.Phase(at=START + 1.4, name="load"))
    made += [
        ev.LoadBegun(at=START + 1.5, disk=disk, job=f"write-{disk}", mode="write", block=65536, depth=8, span=128 << 20)
        for disk in disks
    ]
    made.append(ev.Phase(at=START + 2.2, name="settle"))
    made.append(ev.LoadSettled(at=START + 5.0, disks=tuple(disks)))
    made.append(ev.Phase(at=START + 5.1, name="armed"))
    return made


def cable_cut() -> list[ev.Event]:
    """Events of disk1's data cable cut at ``CUT_AT`` and restored."""
    return [
        ev.CutArmed(
            at=START + 5.1,
            cut=1,
            point="disk1.cable",
            mechanism="data",
            trigger="disk1 moved 128 MiB",
            victims=("disk1",),
        ),
        edge(CUT_AT, "off", "commanded"),
        edge(CUT_AT + 0.071, "off", "acknowledged"),
        *removal(),
        edge(CUT_AT + 0.15, "off", "read-back"),
        ev.Phase(at=CUT_AT + 0.2, name="hold", text="2 s without the cable"),
        ev.Phase(at=RESTORED_AT - 0.03, name="return"),
        edge(RESTORED_AT - 0.03, "on", "commanded"),
        edge(RESTORED_AT, "on", "acknowledged"),
        say(RESTORED_AT + 0.05, "usb 1-1: new high-speed USB device number 9 using xhci_hcd"),
        say(RESTORED_AT + 0.07, "usb-storage 1-1:1.0: USB Mass Storage device detected"),
        say(RETURNED_AT - 0.01, "sd 3:0:0:0: [sda] Attached SCSI disk", 5),
        attached("disk1", RETURNED_AT, 2),
        ev.Phase(at=RETURNED_AT + 0.2, name="verify"),
    ]


def edge(at: float, state: ev.PortState, phase: ev.EdgePhase) -> ev.Edge:
    return ev.Edge(at=at, cut=1, point="disk1.cable", switch="cables", port="1", state=state, phase=phase, error=0.0008)


def say(at: float, text: str, level: int = 6) -> ev.KernelMessage:
    return ev.KernelMessage(at=at, text=text, level=level)


def removal() -> list[ev.Event]:
    """What the kernel and the load report when disk1 is gone."""
    return [
        say(CUT_AT + 0.083, "usb 1-1: USB disconnect, device number 2"),
        say(
            CUT_AT + 0.091,
            "device offline error, dev sda, sector 262144 op 0x1:(WRITE) flags 0x4800 phys_seg 16 prio class 2",
            3,
        ),
        say(
            CUT_AT + 0.092,
            "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK cmd_age=0s",
            4,
        ),
        ev.DiskDetached(at=CUT_AT + 0.118, disk="disk1", kname="sda", diskseq=10),
        ev.LoadEnded(
            at=CUT_AT + 0.13,
            disk="disk1",
            job="write-disk1",
            asked=False,
            exit_status=1,
            errno=19,
            message="No such device",
        ),
    ]


def ending(scenario: str, at: float = END) -> list[ev.Event]:
    return [
        ev.Verified(at=at - 0.4, disk="disk1", checked=96 << 20, method="stamps"),
        ev.ScenarioEnded(at=at, id=scenario, wall="2031-03-02T01:14:31Z", seconds=at - START, split={"load": 12.0}),
    ]


def ordered(*groups: Sequence[ev.Event]) -> list[ev.Event]:
    """One history of several: by time, what carries none staying in front."""
    return sorted((event for group in groups for event in group), key=lambda event: event.at or 0.0)


CUT = CutResult(
    point="disk1.cable",
    mechanism="data",
    trigger="disk1 moved 128 MiB",
    victims=("disk1",),
    commanded_at=CUT_AT,
    acknowledged_at=CUT_AT + 0.071,
    read_back=True,
    kernel_saw_at=CUT_AT + 0.083,
    last_byte_at=CUT_AT + 0.064,
    restored_at=RESTORED_AT,
    returned_at=RETURNED_AT,
    error=0.0008,
    disks=(
        DiskTimes(
            disk="disk1",
            last_io_at=CUT_AT + 0.064,
            removed_at=CUT_AT + 0.118,
            returned_at=RETURNED_AT,
            first_io_at=RETURNED_AT + 0.41,
        ),
    ),
)
STORY = "The data cable of one disk is pulled while all disks are written, and put back after two seconds."


def passing() -> ScenarioResult:
    return ScenarioResult(
        id=PASSING,
        verdict=Verdict.PASS,
        seconds=21.7,
        sentence="disk1 went 0.118 s after its cable was cut and came back 1.11 s after its return; nothing was lost.",
        story=STORY,
        row="X06",
        seed=20310302,
        cuts=(CUT,),
        checks=(
            CheckResult(
                check="removed", verdict=Verdict.PASS, subject="disk1", worst="removed after 0.12 s (limit 5 s)"
            ),
            CheckResult(
                check="returned", verdict=Verdict.PASS, subject="disk1", worst="back after 1.11 s (limit 10 s)"
            ),
            CheckResult(check="keptpace", verdict=Verdict.PASS, worst="disk2 stalled 0.30 s (limit 2 s)"),
            CheckResult(check="dataintact", verdict=Verdict.PASS, worst="196608 sectors, none wrong"),
        ),
        survivors=(
            Survivor(disk="disk2", baseline_bps=29.7 * MB, stall_s=0.3, recovery_s=0.4, final_ratio=1.0),
            Survivor(disk="disk3", baseline_bps=29.6 * MB, stall_s=0.3, recovery_s=0.4, final_ratio=0.99),
        ),
        integrity=Integrity(sectors_checked=196608),
    )


def failing() -> ScenarioResult:
    return ScenarioResult(
        id=FAILING,
        verdict=Verdict.FAIL,
        seconds=21.9,
        sentence="disk3 stalled for 3.05 s when disk1's data cable was cut, and kept 49 % of its pace.",
        story=STORY + "\nThe disks that stay must be back at nine tenths of their pace within five seconds.",
        row="X13",
        seed=20310302,
        cuts=(CUT,),
        checks=(
            CheckResult(
                check="removed", verdict=Verdict.PASS, subject="disk1", worst="removed after 0.12 s (limit 5 s)"
            ),
            CheckResult(
                check="keptpace",
                verdict=Verdict.FAIL,
                subject="disk3",
                worst="disk3 stalled 3.05 s (limit 2 s), ended at 49 % (limit 90 %)",
            ),
        ),
        findings=slow_disk3(),
        survivors=(
            Survivor(disk="disk2", baseline_bps=29.7 * MB, stall_s=0.3, recovery_s=0.4, final_ratio=1.0),
            Survivor(disk="disk3", baseline_bps=29.6 * MB, stall_s=3.05, final_ratio=0.49),
        ),
        integrity=Integrity(sectors_checked=196608),
    )


def slow_disk3() -> tuple[Finding, ...]:
    return (
        Finding(
            check="keptpace",
            subject="disk3",
            summary="stalled for 3.05 s after cut 1 (limit 2 s)",
            at=CUT_AT + 0.05,
            evidence=("113.270  29.4 MB/s", "113.320   0.0 MB/s  (31 samples)", "116.420  14.5 MB/s"),
        ),
        Finding(
            check="keptpace",
            subject="disk3",
            summary="ended at 49 % of its baseline of 29.6 MB/s (limit 90 %)",
            at=END - 1.0,
        ),
    )


def unknown() -> ScenarioResult:
    cut = CutResult(point="hub1.cable", mechanism="data+vbus", trigger="load settled", victims=DISKS, permanent=True)
    return ScenarioResult(
        id=UNKNOWN,
        verdict=Verdict.UNKNOWN,
        seconds=8.2,
        sentence="the switch never answered, so the hub was not cut and nothing can be said.",
        story="A whole hub is taken away for good.",
        row="X09",
        cuts=(cut,),
        checks=(CheckResult(check="removed", verdict=Verdict.UNKNOWN, worst="no cut was executed"),),
        unknowns=("cut 1 (hub1.cable) was armed but never commanded: /dev/ttyUSB0 did not answer within 2 s",),
    )


@dataclass(frozen=True)
class Run:
    results: Results
    stories: dict[str, list[ev.Event]]


def results_of(*scenarios: ScenarioResult) -> Results:
    worst = {s.verdict for s in scenarios}
    verdict = next(v for v in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS) if v in worst or v is Verdict.PASS)
    return Results(
        schema=RESULTS_VERSION,
        plugpull="0.1.0",
        rig="three-disks",
        dut=DutInfo(
            kernel="6.12.43+deb13-amd64", kind="virtual", accel="tcg", cpus=2, memory_bytes=768 << 20, fio="3.39"
        ),
        verdict=verdict,
        sentence="One of three scenarios failed: disk3 lost half of its pace for good when disk1's cable was cut.",
        started="2031-03-02T01:14:02Z",
        seconds=sum(s.seconds for s in scenarios),
        seed=20310302,
        scenarios=scenarios,
        controller={"machine": "bench7", "python": "3.12.4"},
    )


def run() -> Run:
    """The three scenarios as one run."""
    return Run(
        results_of(passing(), failing(), unknown()),
        {
            PASSING: ordered(begin(PASSING, STORY), cable_cut(), samples(steady), ending(PASSING)),
            FAILING: ordered(begin(FAILING, STORY), cable_cut(), samples(starving, seed=2), ending(FAILING)),
            UNKNOWN: [
                ev.ScenarioBegun(id=UNKNOWN, wall="2031-03-02T01:15:00Z", seed=1, story="A whole hub goes."),
                ev.CutArmed(cut=1, point="hub1.cable", mechanism="data+vbus", trigger="load settled", victims=DISKS),
                ev.RigFault(
                    summary="/dev/ttyUSB0 did not answer within 2 s", hint="plug the relay board in", subject="hubs"
                ),
            ],
        },
    )


def large() -> Run:
    """Eleven scenarios of nine disks, sampled ten times a second for thirty seconds."""
    disks = tuple(f"disk{number}" for number in range(1, 10))
    end = START + 30.0
    scenarios, stories = [], {}
    for number in range(11):
        scenario = f"scenarios/test_story{number}.py::test_cable_cut"
        survivors = tuple(Survivor(disk=d, baseline_bps=30.0 * MB, stall_s=0.3, final_ratio=0.99) for d in disks[1:])
        scenarios.append(
            ScenarioResult(
                id=scenario,
                verdict=Verdict.PASS,
                seconds=30.0,
                sentence="disk1 went and came back; nothing was lost.",
                story=STORY,
                cuts=(CUT,),
                checks=passing().checks,
                survivors=survivors,
            )
        )
        sampled = samples(steady, disks, end=end, seed=number)
        stories[scenario] = ordered(begin(scenario, STORY, disks), cable_cut(), sampled, ending(scenario, end))
    return Run(results_of(*scenarios), stories)
