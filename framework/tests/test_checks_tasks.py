"""The checks ``nothing_blocked`` and ``nothing_spins``: blocked tasks, busy kernel threads, storms of interrupts."""

from __future__ import annotations

import msgspec
import pytest
from paces import resampled
from stories import RIG, Bench, healthy
from test_pace_excused import slow_host
from watched import STACK, blocked, real, watched

from plugpull.checks import nothing_blocked, nothing_spins
from plugpull.history import events as ev
from plugpull.history.story import Story

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
    bench.add(blocked(4.0, ended=True), blocked(7.9, pid=42, ended=True), blocked(10.0, pid=43, before=True))
    judgement = bench.judge(nothing_blocked())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "longest 7.90 s" in judgement.worst


@pytest.mark.parametrize("until", [26.0, 80.0])
def test_a_task_of_which_no_end_is_on_record_is_a_doubt(until: float) -> None:
    """The agent reports when a task that it had reported runs again, so a long record without that has lost it."""
    bench = watched(healthy(until=until))
    bench.add(blocked(7.0))
    judgement = bench.judge(nothing_blocked())
    assert judgement.findings == ()
    assert judgement.unknowns[0].endswith("was blocked since 15.10 s, and that it ran again is not on record")


def test_time_in_which_the_whole_dut_was_starved_accuses_nobody() -> None:
    bench = watched(healthy(until=30.0))
    bench.starved = ((16.0, 24.0),)
    bench.add(blocked(9.0))
    judgement = bench.judge(nothing_blocked())
    assert judgement.findings == ()
    assert "did not run for 9.00 s, but the whole DUT did not run either" in judgement.unknowns[0]


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
        assert "were not sampled from 14.00 s" in bench.judge(check).unknowns[0]


# --- what spins -------------------------------------------------------------------------------------------------------


def busy(bench: Bench, begin: float, end: float, **activity: object) -> None:
    bench.replace(ev.Activity, lambda event: begin < event.at <= end, **activity)


def test_a_worker_that_spins_is_named() -> None:
    bench = watched()
    busy(bench, 14.0, 20.0, threads={"kworker/0:1+events (9)": 0.97})
    (finding,) = bench.judge(nothing_spins()).findings
    assert finding.summary == ("kernel thread kworker/0:1+events (9) takes 97% of a CPU for 6.00 s (limit 80% for 3 s)")
    assert finding.at == 14.0


def test_a_worker_that_is_renamed_while_it_spins_is_one() -> None:
    bench = watched()
    busy(bench, 14.0, 16.0, threads={"kworker/0:1-events (9)": 0.97})
    busy(bench, 16.0, 20.0, threads={"kworker/0:1+usb_hub_wq (9)": 0.97})
    (finding,) = bench.judge(nothing_spins()).findings
    assert "usb_hub_wq" in finding.summary


@pytest.mark.parametrize(
    ("share", "host", "found"),
    [
        pytest.param(0.85, 0.5, False, id="the host ran something else meanwhile"),
        pytest.param(0.85, 0.9, True, id="the host had time"),
        pytest.param(0.98, 0.5, True, id="it waits for nothing on a busy host"),
        pytest.param(0.85, None, True, id="what the host gave is not on record"),
    ],
)
def test_a_thread_cannot_have_taken_more_than_the_host_gave(share: float, host: float | None, found: bool) -> None:
    bench = watched()
    bench.drop(ev.ClockMapped)
    for second in range(50):
        ran = None if host is None else host * second
        bench.add(ev.ClockMapped(at=float(second), controller=100.0 + second, error=0.001, ran=ran))
    busy(bench, 14.0, 20.0, threads={"scsi_eh_0 (44)": share})
    assert bool(bench.judge(nothing_spins()).findings) is found


@pytest.mark.parametrize(("used", "found"), [(0.5, True), (0.93, False)])
def test_a_thread_had_its_part_of_what_the_host_gave(used: float, found: bool) -> None:
    """By the DUT's clock both its CPUs were busy for twice as long as the host ran them: a thread had half of that."""
    bench = watched()
    bench.replace(ev.DutReady, cpus=2)
    bench.drop(ev.ClockMapped)
    for second in range(50):
        bench.add(ev.ClockMapped(at=float(second), controller=100.0 + second, error=0.001, ran=0.98 * second))

    def counted(one: ev.Sampled) -> ev.Sampled:
        jiffies = round(200 * (one.at or 0.0))
        return msgspec.structs.replace(one, cpu=(round(used * jiffies), jiffies))

    resampled(bench, counted)
    busy(bench, 14.0, 20.0, threads={"scsi_eh_0 (44)": 0.92})
    assert bool(bench.judge(nothing_spins()).findings) is found


def test_work_that_moves_from_worker_to_worker_is_added_up() -> None:
    bench = watched()
    for at, name in ((14.0, "kworker/0:1+events (9)"), (16.0, "kworker/1:0+events (17)"), (18.0, "kworker/0:2 (12)")):
        busy(bench, at, at + 2.0, threads={name: 0.3, "kworker/1:1+usb_hub_wq (20)": 0.3})
    (finding,) = bench.judge(nothing_spins()).findings
    assert finding.summary == (
        "kernel workers take 60% of a CPU for 6.00 s (limit 40% for 5 s): kworker/1:1+usb_hub_wq (20), "
        "kworker/0:1+events (9), kworker/1:0+events (17)"
    )
    assert finding.at == 14.0
    assert "kworker/0:2 (12): 10% of a CPU" in finding.evidence
    real(bench)
    assert bench.judge(nothing_spins()).findings == ()


@pytest.mark.parametrize(("end", "name"), [(18.0, "kworker/0:1+events (9)"), (22.0, "rcu_preempt (15)")])
def test_short_work_and_other_threads_are_no_busy_workers(end: float, name: str) -> None:
    bench = watched()
    busy(bench, 14.0, end, threads={name: 0.6})
    assert bench.judge(nothing_spins()).findings == ()


def test_a_storm_of_interrupts_is_found() -> None:
    bench = watched()
    busy(bench, 14.0, 22.0, hard=0.5, soft=0.45, interrupts=90000)
    bench.replace(ev.DutState, lambda state: state.moment == "end", interrupts={"28 xhci_hcd": 720100})
    (finding,) = bench.judge(nothing_spins()).findings
    assert "interrupts take 95% of a CPU for 8.00 s" in finding.summary
    assert "720000 x interrupt 28 xhci_hcd" in finding.evidence


def test_a_storm_that_costs_little_is_found_too() -> None:
    bench = watched()
    busy(bench, 14.0, 22.0, hard=0.4, interrupts=330_000)
    (finding,) = bench.judge(nothing_spins()).findings
    assert finding.summary == "at least 330000 interrupts a second come for 8.00 s (limit 20000 for 3 s)"


@pytest.mark.parametrize(
    ("end", "rate", "on"), [(22.0, 15_000, "virtual"), (16.0, 330_000, "virtual"), (22.0, 330_000, "ssh")]
)
def test_many_interrupts_a_burst_and_those_of_a_real_dut_are_no_storm(end: float, rate: int, on: str) -> None:
    bench = watched()
    busy(bench, 14.0, end, hard=0.4, interrupts=rate)
    if on == "ssh":
        real(bench)
    assert bench.judge(nothing_spins()).findings == ()


@pytest.mark.parametrize(
    ("end", "activity", "found"),
    [
        pytest.param(20.0, {"threads": {"kworker/0:1-usb_hub_wq (17)": 0.97}}, True, id="a thread with all of a CPU"),
        pytest.param(20.0, {"threads": {"kworker/0:1-usb_hub_wq (17)": 0.9}}, False, id="a thread with most of it"),
        pytest.param(16.0, {"threads": {"kworker/0:1-usb_hub_wq (17)": 0.97}}, False, id="a thread, once"),
        pytest.param(20.0, {"interrupts": 60_000}, True, id="a storm"),
    ],
)
def test_what_no_busy_host_makes_counts_on_one_as_well(end: float, activity: dict[str, object], found: bool) -> None:
    bench = watched()
    bench.starved = tuple((14.1 + 2 * look, 15.6 + 2 * look) for look in range(3))
    busy(bench, 14.0, end, **activity)
    assert bool(bench.judge(nothing_spins()).findings) is found


@pytest.mark.parametrize(("end", "share"), [(18.0, 0.97), (24.0, 0.7)])
def test_a_burst_and_a_load_are_no_storm(end: float, share: float) -> None:
    bench = watched()
    busy(bench, 14.0, end, threads={"usb-storage (84)": share})
    assert bench.judge(nothing_spins()).findings == ()


def test_a_thread_that_moves_data_may_be_busy_as_long_as_data_moves() -> None:
    bench = watched()
    busy(bench, 14.0, 24.0, threads={"usb-storage (84)": 0.9})
    story = bench.story()
    assert nothing_spins().judge(story).findings == ()
    idle = [
        msgspec.structs.replace(
            event, disks={kname: row._replace(reads=1, writes=1) for kname, row in event.disks.items()}
        )
        if isinstance(event, ev.Sampled)
        else event
        for event in story.events
    ]
    assert nothing_spins().judge(Story(story.begun, tuple(idle), rig=story.rig)).findings


@pytest.mark.parametrize(
    ("rate", "requests", "share", "found"),
    [
        pytest.param(2 << 20, 10, 0.7, 1, id="polls for a slow disk"),
        pytest.param(2 << 20, 10, 0.4, 0, id="little"),
        pytest.param(2 << 20, 50, 0.7, 0, id="many small requests"),
        pytest.param(64 << 20, 10, 0.9, 0, id="moves much"),
        pytest.param(None, 10, 0.9, 0, id="moves as much as it can"),
    ],
)
def test_a_thread_that_moves_little_must_not_take_much(
    rate: int | None, requests: int, share: float, found: int
) -> None:
    """``requests`` are completed per second by each of three disks."""
    bench = watched()
    busy(bench, 14.0, 24.0, threads={"usb-storage (84)": share})
    story = bench.story()
    events = [
        msgspec.structs.replace(
            event,
            disks={
                kname: row._replace(reads=0, writes=round((event.at or 0.0) * requests))
                for kname, row in event.disks.items()
            },
        )
        if isinstance(event, ev.Sampled)
        else event
        for event in story.events
    ]
    disks = [disk | {"rate": rate} for disk in RIG["disk"]]
    findings = nothing_spins().judge(Story(story.begun, tuple(events), rig=RIG | {"disk": disks})).findings
    assert len(findings) == found
    assert all("usb-storage (84) takes 70% of a CPU for 10.00 s (limit 65%" in one.summary for one in findings)


def test_other_work_of_a_real_dut_is_not_the_benchs() -> None:
    bench = watched()
    busy(bench, 12.0, 24.0, threads={"md127_resync (9)": 0.97})
    real(bench)
    assert bench.judge(nothing_spins()).findings == ()


@pytest.mark.parametrize(("until", "doubted"), [(20.0, False), (34.0, True)])
def test_a_slow_host_explains_late_looks_at_tasks_and_no_missing_ones(until: float, doubted: bool) -> None:
    bench = watched(healthy(until=50.0))
    slow_host(bench, 0.5)
    bench.drop(ev.Activity, keep=lambda event: not 16.5 < event.at < until)
    said = bench.judge(nothing_spins()).unknowns
    assert any("the tasks of the DUT were not sampled from 16.00 s" in what for what in said) is doubted
