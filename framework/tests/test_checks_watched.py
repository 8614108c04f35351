"""What the agent watches all the time: blocked tasks, busy kernel threads, how disks are driven, the kernel's state."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, DISKS, GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import Check, nothing_blocked, nothing_spins, same_properties, state_kept
from plugpull.checks.kernel_state import taint_names
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

RECORDS = ("facility", "properties", "state", "tasks", "timers")
VALUES = {
    "driver": "uas",
    "ro": "0",
    "write_cache": "write back",
    "size": "131072",
    "logical_block_size": "512",
    "queue_depth": "28",
    "state": "running",
    "rx_lanes": "2",
}
STATE = ev.DutState(
    moment="begin",
    boot_id="one",
    kernel="6.12.1",
    taint=0,
    modules={"usb_storage": 1, "uas": 0},
    memory={"SUnreclaim": 11 << 20, "KernelStack": 1 << 20},
    interrupts={"28 xhci_hcd": 100},
)
STACK = (
    "[<0>] __schedule+0x351/0xa20",
    "[<0>] wait_for_completion+0x99/0x180",
    "[<0>] usb_stor_disconnect+0x5d/0xb0 [usb_storage]",
    "[<0>] usb_unbind_interface+0x90/0x270",
)


def watched(bench: Bench | None = None) -> Bench:
    """The healthy story as an agent of today's version records it."""
    bench = bench or healthy()
    bench.replace(ev.DutReady, records=RECORDS)
    bench.add(ev.TimersSet(at=10.1, moment="begin"), ev.TimersSet(at=25.9, moment="restored"))
    for number in range(1, int((bench.until - 10.0) / 2) + 1):
        bench.add(ev.Activity(at=10.0 + 2 * number, seconds=2.0, threads={"usb-storage (84)": 0.12}, soft=0.02))
    for attached in [event for event in bench.events if isinstance(event, ev.DiskAttached)]:
        bench.add(properties(attached, (attached.at or 0.0) + 0.03, "attached"))
        if attached.disk != VICTIM or attached.at == BACK:
            bench.add(properties(attached, 25.6, "end"))
    bench.add(msgspec.structs.replace(STATE, at=10.9), msgspec.structs.replace(STATE, at=25.7, moment="end"))
    return bench


def properties(attached: ev.DiskAttached, at: float, moment: ev.PropertiesMoment, **other: str) -> ev.DiskProperties:
    return ev.DiskProperties(
        at=at,
        disk=attached.disk,
        kname=attached.kname,
        diskseq=attached.diskseq,
        moment=moment,
        values={**VALUES, **other},
    )


def blocked(seconds: float, **other: object) -> ev.TaskBlocked:
    known: dict[str, object] = {
        "pid": 41,
        "name": "kworker/1:2+usb_hub_wq",
        "kernel": True,
        "at": 15.1 + seconds,
        "since": 15.1,
        "seconds": seconds,
        "stack": STACK,
    }
    return ev.TaskBlocked(**(known | other))  # type: ignore[arg-type]


def real(bench: Bench) -> Bench:
    """The same story of a DUT that is reached by ssh."""
    bench.events = [
        msgspec.structs.replace(event, kind="ssh") if isinstance(event, ev.DutReady) else event
        for event in bench.events
    ]
    return bench


def change(bench: Bench, moment: str, disks: tuple[str, ...], values: dict[str, str], after: float = 0.0) -> None:
    """Change properties in the records of one moment."""
    bench.events = [
        msgspec.structs.replace(event, values={**event.values, **values})
        if isinstance(event, ev.DiskProperties)
        and event.moment == moment
        and event.disk in disks
        and (event.at or 0.0) > after
        else event
        for event in bench.events
    ]


@pytest.mark.parametrize("check", [nothing_blocked(), nothing_spins(), same_properties(), state_kept()])
@pytest.mark.parametrize("bench", [watched, healthy])
def test_a_healthy_story_passes_whether_it_was_watched_or_not(check: Check, bench: object) -> None:
    judgement = bench().judge(check)  # type: ignore[operator]
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_all_of_it_stands_for_every_scenario() -> None:
    assert judge_story(watched().story()).verdict is Verdict.PASS
    bench = watched()
    bench.add(blocked(12.0))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert "kernel thread kworker/1:2+usb_hub_wq (41) is blocked for 12.00 s in usb_stor_disconnect" in result.sentence


# --- blocked tasks ----------------------------------------------------------------------------------------------------


def test_a_blocked_worker_is_named_with_its_stack() -> None:
    bench = watched()
    bench.add(blocked(4.0), blocked(8.0))
    (finding,) = bench.judge(nothing_blocked()).findings
    where = "usb_stor_disconnect [usb_storage]"
    assert finding.summary == (
        f"kernel thread kworker/1:2+usb_hub_wq (41) is blocked for 8.00 s in {where} (limit 8 s)"
    )
    assert finding.at == 15.1
    assert STACK[2] in finding.evidence


def test_a_process_that_ran_again_was_blocked_all_the_same() -> None:
    bench = watched()
    bench.add(blocked(8.0), blocked(9.0, ended=True, stack=(), kernel=False, name="umount /mnt"))
    (finding,) = bench.judge(nothing_blocked()).findings
    assert "process umount /mnt (41) was blocked for 9.00 s in usb_stor_disconnect" in finding.summary


def test_a_short_wait_and_an_old_one_accuse_nobody() -> None:
    bench = watched()
    bench.add(blocked(4.0), blocked(7.9, pid=42), blocked(10.0, pid=43, before=True))
    judgement = bench.judge(nothing_blocked())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "longest 7.90 s" in judgement.worst


def test_time_in_which_the_whole_dut_was_starved_accuses_nobody() -> None:
    bench = watched(healthy(until=30.0))
    bench.starved = ((16.0, 24.0),)
    bench.add(blocked(9.0))
    judgement = bench.judge(nothing_blocked())
    assert judgement.findings == ()
    assert "did not run for 9.00 s, but nor did the whole DUT" in judgement.unknowns[0]


def test_a_busy_host_excuses_no_blocked_task() -> None:
    """Seen with eight guests on two CPUs: a thread blocked for good, in a guest that was starved now and then."""
    bench = watched(healthy(until=30.0))
    bench.starved = ((16.0, 16.9), (18.0, 18.9), (21.0, 21.9))
    bench.add(blocked(8.19))
    assert len(bench.judge(nothing_blocked()).findings) == 1


def test_on_a_real_dut_io_may_take_as_long_as_its_timeouts() -> None:
    waits = ("[<0>] io_schedule+0x46/0x70", "[<0>] blk_mq_get_tag+0x11e/0x2b0")
    bench = watched()
    bench.add(blocked(16.0, at=24.0, since=8.0, stack=waits, kernel=False, name="fio"))
    assert bench.judge(nothing_blocked()).findings
    real(bench)
    assert not bench.judge(nothing_blocked()).findings
    bench.add(blocked(9.0))
    assert bench.judge(nothing_blocked()).findings


def test_tasks_that_were_not_looked_at_are_unknown() -> None:
    bench = watched()
    bench.drop(ev.Activity, lambda event: event.at < 15.0)
    for check in (nothing_blocked(), nothing_spins()):
        assert "were not looked at from 14.00 s" in bench.judge(check).unknowns[0]


# --- what spins -------------------------------------------------------------------------------------------------------


def busy(bench: Bench, begin: float, end: float, **activity: object) -> None:
    bench.replace(ev.Activity, lambda event: begin < event.at <= end, **activity)


def test_a_worker_that_spins_is_named() -> None:
    bench = watched()
    busy(bench, 14.0, 20.0, threads={"kworker/0:1+events (9)": 0.97})
    (finding,) = bench.judge(nothing_spins()).findings
    assert finding.summary == ("kernel thread kworker/0:1+events (9) takes 97% of a CPU for 6.00 s (limit 80% for 5 s)")
    assert finding.at == 14.0


def test_a_worker_that_is_renamed_while_it_spins_is_one() -> None:
    bench = watched()
    busy(bench, 14.0, 16.0, threads={"kworker/0:1-events (9)": 0.97})
    busy(bench, 16.0, 20.0, threads={"kworker/0:1+usb_hub_wq (9)": 0.97})
    (finding,) = bench.judge(nothing_spins()).findings
    assert "usb_hub_wq" in finding.summary


def test_a_storm_of_interrupts_is_found() -> None:
    bench = watched()
    busy(bench, 14.0, 22.0, hard=0.5, soft=0.45, interrupts=90000)
    bench.replace(ev.DutState, lambda state: state.moment == "end", interrupts={"28 xhci_hcd": 720100})
    (finding,) = bench.judge(nothing_spins()).findings
    assert "interrupts take 95% of a CPU for 8.00 s" in finding.summary
    assert "720000 x interrupt 28 xhci_hcd" in finding.evidence


@pytest.mark.parametrize(("end", "share"), [(18.0, 0.97), (24.0, 0.7)])
def test_a_burst_and_a_load_are_no_storm(end: float, share: float) -> None:
    bench = watched()
    busy(bench, 14.0, end, threads={"usb-storage (84)": share})
    assert bench.judge(nothing_spins()).findings == ()


def test_a_thread_that_moves_data_may_be_busy_as_long_as_data_moves() -> None:
    bench = watched()
    busy(bench, 14.0, 24.0, threads={"usb-storage (84)": 0.9})
    story = bench.story()
    assert nothing_spins().judge(story).findings  # the samples of this story count no requests
    counted = [
        msgspec.structs.replace(event, disks={kname: row._replace(reads=number) for kname, row in event.disks.items()})
        if isinstance(event, ev.Sampled)
        else event
        for number, event in enumerate(story.events)
    ]
    assert nothing_spins().judge(Story(story.begun, tuple(counted), rig=story.rig)).findings == ()


def test_other_work_of_a_real_dut_is_not_the_benchs() -> None:
    bench = watched()
    busy(bench, 12.0, 24.0, threads={"md127_resync (9)": 0.97})
    real(bench)
    assert bench.judge(nothing_spins()).findings == ()


# --- how disks are driven ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("driver", "usb-storage", "is driven by usb-storage instead of uas"),
        ("queue_depth", "1", "takes 1 commands at once instead of 28"),
        ("write_cache", "write through", "has its write cache as write through instead of write back"),
        ("ro", "1", "is read-only instead of writable"),
        ("size", "0", "has 0 bytes instead of 67108864 bytes"),
        ("logical_block_size", "4096", "has logical blocks of 4096 instead of 512 bytes"),
        ("rx_lanes", "1", "receives on 1 lanes instead of 2"),
    ],
)
def test_a_disk_that_is_driven_otherwise_after_its_return(name: str, value: str, said: str) -> None:
    bench = watched()
    change(bench, "attached", (VICTIM,), {name: value}, CUT)
    change(bench, "end", (VICTIM,), {name: value})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.subject == VICTIM
    assert finding.summary == f"{VICTIM} {said} after its return"


@pytest.mark.parametrize("disk", SURVIVORS)
@pytest.mark.parametrize(
    ("name", "value"), [("size", "0"), ("ro", "1"), ("write_cache", "write through"), ("state", "offline")]
)
def test_a_survivor_that_is_another_at_the_end(disk: str, name: str, value: str) -> None:
    bench = watched()
    change(bench, "end", (disk,), {name: value})
    (finding,) = bench.judge(same_properties()).findings
    assert finding.subject == disk
    assert finding.summary.endswith("at the end, though it never went")


@pytest.mark.parametrize(("gone", "until", "found"), [(19.1, 19.04, 0), (19.1, 19.3, 0), (22.0, 19.04, 1)])
def test_a_disk_that_is_taken_apart_while_its_properties_are_read(gone: float, until: float, found: int) -> None:
    """The kernel sets the size of a disk that leaves to 0 before it announces that the disk is gone."""
    bench = watched()
    bench.add(ev.DiskDetached(at=18.0, disk=VICTIM, kname="sdb", diskseq=_last(bench).diskseq))
    bench.attach(VICTIM, 19.0)
    read = properties(_last(bench), 19.02, "attached", size="0")
    bench.add(msgspec.structs.replace(read, until=until))
    bench.add(ev.DiskDetached(at=gone, disk=VICTIM, kname=read.kname, diskseq=read.diskseq))
    findings = [one for one in bench.judge(same_properties()).findings if "0 bytes" in one.summary]
    assert len(findings) == found


def _last(bench: Bench) -> ev.DiskAttached:
    return [event for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk == VICTIM][-1]


def test_more_commands_at_once_and_another_depth_at_the_end_accuse_nobody() -> None:
    bench = watched()
    change(bench, "attached", (VICTIM,), {"queue_depth": "30"}, CUT)
    change(bench, "end", DISKS, {"queue_depth": "7"})
    assert bench.judge(same_properties()).findings == ()


def test_missing_properties_are_unknown() -> None:
    bench = watched()
    bench.drop(ev.DiskProperties, lambda event: event.at < GONE or event.moment == "end")
    assert bench.judge(same_properties()).unknowns == (f"how {VICTIM} was driven at {BACK:.2f} s is not on record",)
    bench = watched()
    bench.drop(ev.DiskProperties, lambda event: event.moment != "end" or event.disk != "disk2")
    assert bench.judge(same_properties()).unknowns == ("how disk2 was driven at the end is not on record",)


def test_a_disk_that_is_healed_on_the_way_out_comes_back_after_the_last_look() -> None:
    bench = watched()
    bench.attach("disk1", 25.65)
    assert bench.judge(same_properties()).unknowns == ()


def returned_as(kname: str) -> Bench:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, kname=kname)
    return bench


def test_another_name_though_nothing_held_the_old_one() -> None:
    (finding,) = returned_as("sde").judge(same_properties()).findings
    assert finding.summary == f"{VICTIM} came back as sde though nothing held sdb any more"


def test_another_name_because_a_load_held_the_old_one() -> None:
    bench = returned_as("sde")
    bench.replace(ev.LoadEnded, lambda event: event.disk == VICTIM, at=BACK - 0.2)
    assert bench.judge(same_properties()).findings == ()
    bench = returned_as("sde")
    bench.add(ev.Acted(at=12.0, action="mount", disk=VICTIM, ok=True, seconds=0.1))
    assert bench.judge(same_properties()).findings == ()


def test_another_name_because_another_disk_got_the_old_one() -> None:
    bench = returned_as("sde")
    bench.attach("stranger", BACK + 0.5, kname="sdb", serial="X")
    assert bench.judge(same_properties()).findings == ()


def test_a_free_earlier_name_is_what_the_kernel_gives() -> None:
    assert returned_as("sda").judge(same_properties()).findings == ()


# --- the kernel's state -----------------------------------------------------------------------------------------------


def ended_with(**changes: object) -> Bench:
    bench = watched()
    bench.replace(ev.DutState, lambda state: state.moment == "end", **changes)
    return bench


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"taint": 1 << 9}, "the kernel was tainted during the scenario: W, the kernel warned"),
        ({"boot_id": "two"}, "the DUT restarted during the scenario"),
        ({"kernel": "6.13.0"}, "the DUT runs kernel 6.13.0 at the end, and ran 6.12.1 at the beginning"),
        ({"modules": {"usb_storage": 3, "uas": 0}}, "module usb_storage is held 2 times more than at the beginning"),
        (
            {"memory": {"SUnreclaim": 51 << 20, "KernelStack": 1 << 20}},
            "the kernel holds 40 MiB more than at the beginning (limit 32 MiB)",
        ),
    ],
)
def test_a_kernel_that_is_not_what_it_was(changes: dict[str, object], said: str) -> None:
    (finding,) = ended_with(**changes).judge(state_kept()).findings
    assert finding.summary == said


def test_on_a_real_dut_others_may_load_modules_and_take_memory() -> None:
    bench = ended_with(
        taint=(1 << 12) + (1 << 13), modules={"usb_storage": 3}, memory={"SUnreclaim": 500 << 20, "KernelStack": 0}
    )
    real(bench)
    assert bench.judge(state_kept()).findings == ()


def test_an_old_taint_is_not_a_new_one() -> None:
    bench = watched()
    bench.replace(ev.DutState, taint=(1 << 9) + 1)
    assert bench.judge(state_kept()).findings == ()


def test_a_missing_state_is_unknown() -> None:
    bench = watched()
    bench.drop(ev.DutState, lambda state: state.moment == "begin")
    assert bench.judge(state_kept()).unknowns == ("the state of the kernel at the end is not on record",)


def test_taint_is_spelled_out() -> None:
    assert taint_names((1 << 7) | (1 << 14) | (1 << 40)) == (
        "D, the kernel died (oops or BUG)",
        "L, a soft lockup",
        "bit 40",
    )
