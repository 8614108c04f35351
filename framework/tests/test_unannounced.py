"""What a faulty driver does without breaking anything: it is silent, slow after a return, or repeats commands."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import pytest
from stories import BACK, CUT, GONE, RATE, RIG, VICTIM, Bench, healthy

from plugpull.checks import kept_pace, removed, returned, same_properties
from plugpull.checks.starved import Span, awake, starved
from plugpull.checks.victims.as_declared import as_declared
from plugpull.finding import Finding
from plugpull.history import events as ev

PORT = "/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.1"


def summaries(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(finding.summary for finding in findings)


def on_a(bench: Bench, kind: str) -> None:
    bench.events = [
        msgspec.structs.replace(event, kind=kind) if isinstance(event, ev.DutReady) else event for event in bench.events
    ]


# --- uevents -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Uevents around the cut: (DUT seconds, number, how many of others came before it; None: not counted)."""

    events: tuple[tuple[float, int, int | None], ...]


WHOLE = Row(((10.5, 100, 0), (CUT + 0.05, 101, 0), (CUT + 0.1, 104, 2), (BACK - 0.1, 105, 0)))


def unannounced(row: Row) -> Bench:
    """The victim leaves the samples and no uevent says so."""
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.drop(ev.DiskAttached, lambda event: event.at < CUT)
    bench.drop(ev.Uevent)
    for at, number, others in row.events:
        action = "add" if at < CUT or at > GONE + 1 else "remove"
        bench.add(
            ev.Uevent(
                at=at,
                action=action,
                subsystem="scsi",
                devpath=f"{PORT}/host1",
                seqnum=number,
                others=others,
                disks=(VICTIM,),
            )
        )
    return bench


OVERTAKEN = Row(((10.5, 100, 0), (CUT + 0.05, 104, 0), (CUT + 0.1, 101, 2), (BACK - 0.1, 105, 0)))
"""As newer kernels may send them."""


@pytest.mark.parametrize("row", [WHOLE, OVERTAKEN])
def test_a_disk_that_leaves_without_an_uevent_accuses_the_kernel(row: Row) -> None:
    judgement = unannounced(row).judge(removed(VICTIM))
    (finding,) = judgement.findings
    assert finding.summary.startswith("disk1 (sdb) was taken off the kernel's list at 15.5")
    assert finding.summary.endswith("without being announced: there is no uevent for it")
    assert any("remove /devices" in line for line in finding.evidence)


def test_a_disk_without_any_uevent_is_not_the_kernels_fault() -> None:
    """Nor did its host, its target or its USB device leave by any uevent: the listener has missed them."""
    bench = unannounced(WHOLE)
    bench.replace(ev.Uevent, disks=())
    judgement = bench.judge(removed(VICTIM))
    assert judgement.findings == ()
    assert judgement.unknowns


@pytest.mark.parametrize(
    "row",
    [
        Row(tuple((at, number, None) for at, number, _ in WHOLE.events)),  # an agent that did not count
        Row(tuple((at, number, 0) for at, number, _ in WHOLE.events)),  # two are missing
        Row(WHOLE.events[:3]),  # nothing says that the row went on
    ],
)
def test_where_an_uevent_may_be_lost_it_is_unknown(row: Row) -> None:
    judgement = unannounced(row).judge(removed(VICTIM))
    assert judgement.findings == ()
    assert "the record contradicts itself" in judgement.unknowns[0]


def test_a_removal_with_an_uevent_that_the_agent_did_not_report_is_unknown() -> None:
    bench = unannounced(WHOLE)
    bench.replace(ev.Uevent, lambda event: event.seqnum == 101, subsystem="block", devtype="disk")
    judgement = bench.judge(removed(VICTIM))
    assert judgement.findings == ()
    assert "the record contradicts itself" in judgement.unknowns[0]


HOST = f"{PORT}/1-1.1:1.0/host1"
CHAIN = (f"{HOST}/block/sdb", HOST, f"{PORT}/1-1.1:1.0", PORT)
"""The parts of the victim in the order in which a healthy kernel announces their removal."""


def removals(*paths: str) -> Bench:
    bench = healthy()
    bench.drop(ev.Uevent)
    bench.add(ev.Uevent(at=10.0, action="add", subsystem="usb", devpath=PORT, seqnum=10, others=0))
    for number, path in enumerate(paths, 11):
        bench.add(ev.Uevent(at=GONE, action="remove", subsystem="usb", devpath=path, seqnum=number, others=0))
    bench.add(ev.Uevent(at=24, action="add", subsystem="usb", devpath="/x", seqnum=11 + len(paths), others=0))
    return bench


def test_every_part_of_a_disk_is_announced_in_order() -> None:
    assert removals(*CHAIN).judge(removed(VICTIM)).findings == ()


@pytest.mark.parametrize(("missing", "said"), [(1, "host1"), (2, "1-1.1:1.0"), (3, "1-1.1")])
def test_a_part_that_is_never_announced_accuses_the_kernel(missing: int, said: str) -> None:
    bench = removals(*CHAIN[:missing], *CHAIN[missing + 1 :])
    assert summaries(bench.judge(removed(VICTIM)).findings) == (f"the removal of {said} of disk1 was never announced",)
    bench.replace(ev.Uevent, lambda event: event.at == 24, others=3)
    assert bench.judge(removed(VICTIM)).findings == ()  # one may be lost


def test_a_part_that_is_announced_late_was_announced() -> None:
    """On a busy host: 4.7 s after the disk was gone, and after its port was on again."""
    bench = removals(*CHAIN)
    bench.replace(ev.Uevent, lambda event: event.devpath == PORT and event.action == "remove", at=GONE + 4.7)
    assert bench.judge(removed(VICTIM)).findings == ()
    bench.replace(ev.Uevent, lambda event: event.devpath == "/x", at=GONE + 4.6, devpath=PORT, seqnum=14)
    bench.replace(ev.Uevent, lambda event: event.at == GONE + 4.7, seqnum=15)
    (said,) = summaries(bench.judge(removed(VICTIM)).findings)
    assert said == "the removal of 1-1.1 of disk1 was never announced", "it was announced again before"


def test_a_part_that_is_announced_after_what_it_hangs_off_accuses_the_kernel() -> None:
    (said,) = summaries(removals(CHAIN[1], CHAIN[0], *CHAIN[2:]).judge(removed(VICTIM)).findings)
    assert said == "the removal of host1 of disk1 was announced before that of sdb, which hangs off it"


# --- the log -------------------------------------------------------------------------------------------------


def numbered(bench: Bench) -> Bench:
    """Gives the records of the log their numbers."""
    lines = sorted((event for event in bench.events if isinstance(event, ev.KernelMessage)), key=lambda e: e.at or 0)
    others = [event for event in bench.events if not isinstance(event, ev.KernelMessage)]
    bench.events = [*others, *(msgspec.structs.replace(line, seq=number) for number, line in enumerate(lines, 50))]
    return bench


def silent() -> Bench:
    bench = healthy()
    bench.drop(ev.KernelMessage, lambda event: "USB disconnect" not in event.text)
    bench.add(ev.KernelMessage(at=24.0, text="something else"))
    return bench


def test_a_log_without_a_gap_that_does_not_mention_a_disconnect_accuses_the_kernel() -> None:
    (finding,) = numbered(silent()).judge(removed(VICTIM)).findings
    what = "disk1 was removed at 15.07 s and the kernel log does not say that it was disconnected"
    assert finding.summary == what


def test_a_log_that_may_have_a_gap_accuses_nobody() -> None:
    assert numbered(healthy()).judge(removed(VICTIM)).findings == ()
    assert silent().judge(removed(VICTIM)).findings == ()
    holey = numbered(silent())
    holey.replace(ev.KernelMessage, lambda event: event.at > 20, seq=90)
    assert holey.judge(removed(VICTIM)).findings == ()


# --- probing -------------------------------------------------------------------------------------------------


def probed(first: float, again: float) -> Bench:
    """The USB device is announced so many seconds before its disk, at first and at the return."""
    bench = healthy()
    for at in (10.4 - first, BACK - again):
        bench.add(ev.Uevent(at=at, action="add", subsystem="usb", devpath=PORT, devtype="usb_device"))
    return bench


def test_a_return_that_is_probed_as_long_as_at_first_is_fine() -> None:
    assert probed(0.3, 1.1).judge(returned(VICTIM)).findings == ()
    assert probed(0.3, 1.7).judge(returned(VICTIM)).findings == ()


def test_a_return_that_is_probed_for_much_longer_is_not() -> None:
    bench = probed(0.3, 2.9)
    said = summaries(bench.judge(returned(VICTIM)).findings)
    assert said == (
        "disk1 came back and took 2.90 s from its USB device to its disk, 2.60 s longer than at first (limit 1.5 s)",
    )


def test_time_that_the_host_took_at_first_does_not_shorten_what_a_return_is_compared_with() -> None:
    bench = probed(0.38, 1.8)
    bench.starved = ((10.03, 10.39),)
    assert bench.judge(returned(VICTIM)).findings == ()


def test_real_disks_are_probed_at_their_own_pace() -> None:
    bench = probed(0.3, 2.9)
    on_a(bench, "ssh")
    assert bench.judge(returned(VICTIM)).findings == ()


# --- commands that failed -------------------------------------------------------------------------------------


def counted(kind: str = "virtual", **end: str) -> Bench:
    bench = healthy()
    on_a(bench, kind)
    values = {"failed_commands": "0x2", "timed_out_commands": "0x0"}
    looks: tuple[tuple[float, ev.PropertiesMoment, dict[str, str]], ...] = (
        (10.6, "attached", values),
        (25.6, "end", values | end),
    )
    for at, moment, now in looks:
        bench.add(ev.DiskProperties(at=at, disk="disk2", kname="sdc", diskseq=2, moment=moment, values=now))
    return bench


def test_commands_that_were_sent_again_are_told_by_the_kernels_counts() -> None:
    assert counted().judge(same_properties()).findings == ()
    said = summaries(counted(failed_commands="0x1b").judge(same_properties()).findings)
    assert said == ("25 commands of disk2 failed though it never went",)
    said = summaries(counted(timed_out_commands="0x1").judge(same_properties()).findings)
    assert said == ("1 command of disk2 timed out though it never went",)


def test_a_filesystem_may_try_what_a_disk_does_not_know() -> None:
    bench = counted(failed_commands="0x3")
    bench.add(ev.Acted(at=11.0, action="mkfs", disk="disk2", ok=True, seconds=0.2))
    assert bench.judge(same_properties()).findings == ()


def test_on_a_real_dut_programs_may_try_what_a_disk_does_not_know() -> None:
    assert counted("ssh", failed_commands="0x3").judge(same_properties()).findings == ()


# --- what the kernel made of a disk's answers ------------------------------------------------------------------


def driven(declared: dict[str, object], kind: str = "virtual", **values: str) -> tuple[str, ...]:
    """What is said of disk2, declared so, that the kernel drives like this."""
    bench = healthy()
    bench.add(ev.DiskProperties(at=10.6, disk="disk2", kname="sdc", diskseq=2, moment="attached", values=values))
    table = {"name": "disk2", "at": "hub1.2", "serial": "S-disk2", **declared}
    disks = [table if disk["name"] == "disk2" else disk for disk in RIG["disk"]]
    story = replace(bench.story(), rig={**RIG, "dut": {"kind": kind}, "disk": disks})
    return summaries(as_declared().judge(story).findings)


WRITE_BACK = {"write_through": False, "fua": False, "protocol": "uas"}


def test_an_emulated_disk_is_driven_as_its_firmware_asks() -> None:
    assert driven(WRITE_BACK, write_cache="write back", fua="0", driver="uas") == ()
    assert driven({"write_through": True, "fua": False}, write_cache="write through", fua="0") == ()
    assert driven({}, write_cache="write through", fua="1", driver="uas") == ()  # an older rig file does not say


DECLARED = "but the rig file declares a disk"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"write_cache": "write through"},
            f"the kernel drives disk2 as a disk that is write through, {DECLARED} that is write back",
        ),
        ({"fua": "1"}, f"the kernel drives disk2 as a disk with FUA, {DECLARED} without FUA"),
        ({"driver": "usb-storage"}, f"the kernel drives disk2 as a disk of usb-storage, {DECLARED} of uas"),
    ],
)
def test_a_kernel_that_misreads_a_disk_is_accused(values: dict[str, str], said: str) -> None:
    assert driven(WRITE_BACK, **values) == (said,)
    assert driven(WRITE_BACK, "ssh", **values) == ()  # a rig file does not say how a real disk answers


def test_a_command_without_a_timeout_is_never_given_up() -> None:
    assert driven({}, timeout="30") == ()
    assert driven({}, timeout="0") == ("the command timeout of disk2 is 0 s (1 to 60 s expected)",)
    assert driven({}, timeout="4294967") == ("the command timeout of disk2 is 4294967 s (1 to 60 s expected)",)
    assert driven({}, "local", timeout="600") == ()


def test_a_disk_with_a_defect_may_answer_something_else() -> None:
    bench = healthy()
    values = {"write_cache": "write through"}
    bench.add(ev.DiskProperties(at=10.6, disk="disk2", kname="sdc", diskseq=2, moment="attached", values=values))
    disks = [{**disk, **WRITE_BACK} for disk in RIG["disk"]]
    rig = {**RIG, "dut": {"kind": "virtual"}, "disk": disks, "defect": [{"kind": "cache-lied", "disk": "disk2"}]}
    assert as_declared().judge(replace(bench.story(), rig=rig)).findings == ()


# --- a DUT that stops itself ------------------------------------------------------------------------------------


def stopped(begin: float, end: float, cpu: float | None) -> tuple[Span, ...]:
    """What counts as starved where nothing was heard and the host ran the DUT so many CPU seconds per second."""
    bench = healthy()
    bench.starved = ((begin, end),)
    story = bench.story()
    events = tuple(
        msgspec.structs.replace(event, ran=None if cpu is None else cpu * event.controller)
        if isinstance(event, ev.ClockMapped)
        else event
        for event in story.events
    )
    return starved(replace(story, events=events))


def test_a_kernel_that_stops_all_its_cpus_is_not_starved() -> None:
    assert stopped(18.01, 21.0, 1.2) == ()
    assert len(stopped(18.01, 21.0, 0.4)) == 1
    assert len(stopped(18.01, 21.0, None)) == 1  # nobody measured
    assert len(stopped(18.01, 18.6, 1.2)) == 1  # as a busy host does to a busy DUT


def test_what_stands_still_meanwhile_is_judged() -> None:
    bench = healthy()
    bench.starved = ((18.01, 21.0),)
    bench.pace = lambda disk, at: 0.0 if 18.01 < at < 21.0 else RATE
    assert not [one for one in bench.judge(kept_pace("disk2")).findings if "stood still" in one.summary]
    story = bench.story()
    events = tuple(
        msgspec.structs.replace(event, ran=event.controller) if isinstance(event, ev.ClockMapped) else event
        for event in story.events
    )
    findings = kept_pace("disk2").judge(replace(story, events=events)).findings
    assert any("stood still" in finding.summary for finding in findings)


def test_time_in_which_a_kernel_stopped_itself_counts_in_full() -> None:
    """As seen: both CPUs spun for 2.5 s, their host had one for them, and half of their ticks were lost."""
    bench = healthy()
    bench.starved = ((18.01, 21.0),)
    bench.events = [
        msgspec.structs.replace(event, cpus=2) if isinstance(event, ev.DutReady) else event for event in bench.events
    ]

    def counted(rate: float) -> float:
        story = bench.story()
        events: list[ev.Event] = []
        for event in story.events:
            if isinstance(event, ev.ClockMapped):
                event = msgspec.structs.replace(event, ran=rate * event.controller)
            elif isinstance(event, ev.Sampled):
                ticks = round(100 * min(event.at or 0.0, 18.0) * 2 + 60 * max(0.0, (event.at or 0.0) - 18.0))
                event = msgspec.structs.replace(event, cpu=(ticks, ticks))
            events.append(event)
        return awake(replace(story, events=tuple(events)), 18.0, 21.0)

    assert counted(1.0) == pytest.approx(3.0, abs=0.1)
    assert counted(0.3) < 1.0
