"""What is left over on the DUT, and what grows with every cut: the census, the checks, and the slope."""

from __future__ import annotations

import os
import random
from itertools import accumulate
from pathlib import Path

import pytest
from msgspec.structs import replace
from stories import healthy

from plugpull.checks import Check, leak_slope, nothing_left
from plugpull.checks.base import Judgement
from plugpull.checks.residue import NothingLeft, left_over, slope_of
from plugpull.dut.agent.census import census
from plugpull.history import events as ev
from plugpull.history.story import Story

HOST = "usb-storage at 0000:00:10.0/1"
AT_FIRST = {"scsi host": (HOST,), "usb device": ("1-1", "usb1"), "mount": ()}


def counted(moment: ev.CensusMoment, slab: int = 1000, **more: tuple[str, ...]) -> ev.Census:
    things = {**AT_FIRST, **{kind.replace("_", " "): names for kind, names in more.items()}}
    return ev.Census(at=1.0, moment=moment, things=things, slab={"kmalloc-4k": slab})


def judged(check: Check, *events: ev.Event) -> Judgement:
    begun = ev.ScenarioBegun(at=0.0, id="made-up", wall="2026-01-01T00:00:00Z", seed=1)
    return check.judge(Story(begun, events, rig={}))


def test_a_dut_back_where_it_began() -> None:
    judgement = judged(nothing_left(), counted("begin"), counted("cycle", mount=("x",)), counted("end"))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "nothing left over"


def test_a_disk_that_went_is_not_left_over() -> None:
    assert judged(nothing_left(), counted("begin"), counted("end", scsi_host=())).findings == ()


@pytest.mark.parametrize(
    ("kind", "names", "told"),
    [
        ("scsi host", (HOST, HOST), f"scsi host {HOST}"),
        ("usb device", ("1-1", "1-2", "usb1"), "usb device 1-2"),
        ("mount", ("/dev/sda on /mnt (ext4)",), "mount /dev/sda on /mnt (ext4)"),
        ("block device", ("md127",), "block device md127"),
        ("open file", ("/dev/sdb (deleted)", "/dev/sdb (deleted)"), "open file /dev/sdb (deleted), 2 times"),
    ],
)
def test_what_is_left_over_is_named(kind: str, names: tuple[str, ...], told: str) -> None:
    end = counted("end", 1000, **{kind.replace(" ", "_"): names})
    (finding,) = judged(nothing_left(), counted("begin"), end).findings
    assert (finding.subject, finding.summary) == (kind, f"left over on the DUT: {told}")


def test_a_dut_that_was_not_counted_is_unknown() -> None:
    assert judged(nothing_left(), counted("begin")).unknowns
    assert judged(nothing_left(), counted("end")).unknowns


def test_a_disk_with_another_serial_number_is_not_left_over() -> None:
    begin = counted("begin", block_device=("0000:00:10.0/1:0 (serial A)",))
    end = counted("end", block_device=("0000:00:10.0/1:0 (serial B)", "0000:00:10.0/2:0 (serial A)"))
    assert left_over(begin, end) == (("block device", "0000:00:10.0/2:0 (serial A)", 1),)


def test_left_over_counts() -> None:
    assert left_over(counted("begin"), counted("end", mount=("a", "b", "a"))) == (("mount", "a", 2), ("mount", "b", 1))


# --- leaks -------------------------------------------------------------------------------------------------


def test_a_leaked_host_a_cycle_is_a_leak() -> None:
    taken = [counted("cycle", scsi_host=(HOST,) * number) for number in range(1, 9)]
    (finding,) = judged(leak_slope(), *taken).findings
    assert finding.subject == "scsi host"
    assert "leaks a scsi host: 1 a cycle" in finding.summary


@pytest.mark.parametrize("seed", range(20))
def test_leaked_memory_is_found_under_noise_and_noise_is_no_leak(seed: int) -> None:
    noise = random.Random(seed)
    sizes = [3_000_000 + noise.randrange(-20_000, 20_000) for _ in range(12)]
    assert judged(leak_slope(), *(counted("cycle", size) for size in sizes)).findings == ()
    leaking = [counted("cycle", size + 16_000 * number) for number, size in enumerate(sizes)]
    (finding,) = judged(leak_slope(), *leaking).findings
    assert finding.subject == "memory"
    assert "kmalloc-4k" in finding.evidence[1]


def test_caches_that_warm_up_are_no_leak() -> None:
    sizes = [1_000_000, 1_064_000, 1_064_000, 1_064_000, 1_067_000, 1_067_000, 1_084_000, 1_084_000]
    judgement = judged(leak_slope(), *(counted("cycle", size) for size in sizes))
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_too_few_cycles_or_no_slabs_are_unknown() -> None:
    assert judged(leak_slope(), *(counted("cycle") for _ in range(5))).unknowns
    blind = [ev.Census(at=1.0, moment="cycle", things={}) for _ in range(8)]
    assert judged(leak_slope(), *blind).unknowns == ("the kernel does not tell what its caches hold",)


def test_the_slope_of_a_line_and_of_nothing() -> None:
    slope = slope_of([2.0 * number for number in range(10)])
    assert (slope.low, slope.value, slope.high) == (2.0, 2.0, 2.0)
    assert slope_of([5.0]).value == 0.0
    flat = slope_of([7.0] * 8)
    assert (flat.low, flat.value, flat.high) == (0.0, 0.0, 0.0)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    noise = random.Random(5)
    held = 0
    for _ in range(400):
        slope = slope_of([3.0 * number + noise.gauss(0, 10) for number in range(12)])
        held += slope.low <= 3.0 <= slope.high
    assert held >= 390


# --- the agent's part --------------------------------------------------------------------------------------


def machine(folder: Path) -> tuple[str, str]:
    """A sysfs and a proc with one disk, of which the host is there a second time."""
    sys, proc = folder / "sys", folder / "proc"
    usb = sys / "devices/pci0000:00/0000:00:10.0/usb1/1-1"
    for number in (0, 4):
        host = usb / f"1-1:1.0/host{number}/scsi_host/host{number}"
        host.mkdir(parents=True)
        (host / "proc_name").write_text("usb-storage\n")
        (sys / "class/scsi_host").mkdir(parents=True, exist_ok=True)
        (sys / f"class/scsi_host/host{number}").symlink_to(host)
    for name in ("1-1", "1-1:1.0", "usb1"):
        (sys / "bus/usb/devices" / name).mkdir(parents=True)
    for name, size in (("md127", "2048"), ("loop0", "0")):
        (sys / "block" / name).mkdir(parents=True)
        (sys / "block" / name / "size").write_text(size)
    (proc / "self/fd").mkdir(parents=True)
    (proc / "self/fd/3").symlink_to("/dev/sdb (deleted)")
    (proc / "self/fd/4").symlink_to("/dev/null")
    (proc / "self/mountinfo").write_text("36 35 98:0 / /mnt/x rw,noatime - ext4 /dev/sda1 rw\nhalf a line\n")
    (proc / "meminfo").write_text("MemTotal: 100 kB\nSUnreclaim: 4 kB\n")
    for pid, thread in (("7", "usb-storage"), ("8", "jbd2/sda1-8"), ("9", "kworker/0:1")):
        (proc / pid).mkdir()
        (proc / pid / "comm").write_text(f"{thread}\n")
    (sys / "block/sda").mkdir()
    (sys / "block/sda/dev").write_text("8:0\n")
    for bdi in ("8:0", "8:32", "259:0"):
        (sys / "class/bdi" / bdi).mkdir(parents=True)
    for name in ("sda", "sdc", "nvme0n1"):
        (sys / "kernel/debug/block" / name).mkdir(parents=True)
    for slot in ("01", "02"):
        (sys / "kernel/debug/usb/xhci/0000:00:10.0/devices" / slot).mkdir(parents=True)
    (proc / "slabinfo").write_text(
        "slabinfo - version: 2.1\n"
        "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n"
        "kmalloc-4k           10     16   4096    8    8 : tunables    0    0    0\n"
        "dentry             9000   9000    192   21    1 : tunables    0    0    0\n"
        "scsi_sense_cache      2     64    128   32    1 : tunables    0    0    0\n"
    )
    return str(sys), str(proc)


def test_what_the_agent_counts(tmp_path: Path) -> None:
    assert census(*machine(tmp_path)) == {
        "things": {
            "scsi host": ["usb-storage at 0000:00:10.0/1", "usb-storage at 0000:00:10.0/1"],
            "block device": ["md127"],
            "usb device": ["1-1", "usb1"],
            "mount": ["/dev/sda1 on /mnt/x (ext4)"],
            "open file": ["/dev/sdb (deleted)"],
            "kernel thread": ["jbd2", "usb-storage"],
            "xhci slot": ["at 0000:00:10.0", "at 0000:00:10.0"],
            "trace of a disk": ["backing device 8:32", "debugfs directory block/sdc"],
        },
        "slab": {"kmalloc-4k": 40960, "scsi_sense_cache": 256},
        "memory": {"SUnreclaim": 4096},
        "exact": False,
    }


def test_entries_of_hosts_that_are_gone_are_traces(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for name in ("class/scsi_device/4:0:0:0", "class/bsg/5:0:0:0", "bus/scsi/devices/target6:0:0", "class/bsg/card0"):
        (tmp_path / "sys" / name).mkdir(parents=True)
    for name in ("scsi/scsi", "scsi/usb-storage/4", "scsi/usb-storage/15"):
        (tmp_path / "proc" / name).mkdir(parents=True)
    assert census(sys, proc)["things"]["trace of a disk"] == [
        "/proc/scsi/usb-storage/15",
        "/sys/bus/scsi/devices/target6:0:0",
        "/sys/class/bsg/5:0:0:0",
        "backing device 8:32",
        "debugfs directory block/sdc",
    ]


def test_an_exact_census_shrinks_the_chosen_caches_first(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for name in ("kmalloc-4k", "scsi_sense_cache", "dentry"):
        (tmp_path / "sys/kernel/slab" / name).mkdir(parents=True)
        (tmp_path / "sys/kernel/slab" / name / "shrink").write_text("")
        (tmp_path / "sys/kernel/slab" / name / "objects").write_text("3 N0=3\n")
    counted = census(sys, proc, exact=True)
    assert (counted["exact"], counted["slab"]) == (True, {"kmalloc-4k": 12288, "scsi_sense_cache": 384})
    assert Path(sys, "kernel/slab/kmalloc-4k/shrink").read_text() == "1"
    assert Path(sys, "kernel/slab/dentry/shrink").read_text() == ""
    Path(sys, "kernel/slab/kmalloc-4k/objects").unlink()
    assert not census(sys, proc, exact=True)["exact"]


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("/dev/sdb", "/dev/sdb"),
        ("/dev/sdb (deleted)", "/dev/sdb (deleted)"),
        ("/dev/loop1", "/dev/loop3p1"),
        ("/var/lib/snapd/snaps/core_1.snap", "/dev/loop3p1"),
    ],
)
def test_a_loop_device_over_a_disk_goes_by_its_name(tmp_path: Path, image: str, source: str) -> None:
    sys, proc = machine(tmp_path)
    (tmp_path / "sys/block/loop3/loop").mkdir(parents=True)
    (tmp_path / "sys/block/loop3/loop/backing_file").write_text(f"{image}\n")
    Path(proc, "self/mountinfo").write_text("36 35 7:3 / /mnt/x ro - squashfs /dev/loop3p1 ro\n")
    assert census(sys, proc)["things"]["mount"] == [f"{source} on /mnt/x (squashfs)"]


def test_a_host_that_was_removed_and_not_freed_is_counted_by_its_thread(tmp_path: Path) -> None:
    sys, proc = machine(tmp_path)
    for pid, name in ((40, "scsi_eh_0"), (41, "scsi_eh_2"), (42, "scsi_tmf_2")):
        (Path(proc) / str(pid)).mkdir()
        (Path(proc) / str(pid) / "comm").write_text(f"{name}\n")
    assert census(sys, proc)["things"]["scsi host"] == [
        "host2 (removed, not freed: scsi_eh_2 still runs)",
        *census(*machine(tmp_path / "clean"))["things"]["scsi host"],
    ]


def test_a_census_of_this_machine_does_not_fail() -> None:
    things = census()["things"]
    assert any(" on / (" in mount for mount in things["mount"]) or not os.path.exists("/proc/self/mountinfo")


# --- of the rig, late, and missing ------------------------------------------------------------------------------


def on_bench(begin: ev.Census, *later: ev.Census, kind: str = "virtual") -> tuple[str, ...]:
    """What is said of these censuses in the story of a cut, taken at its beginning and its end."""
    bench = healthy()
    bench.events = [replace(event, kind=kind) if isinstance(event, ev.DutReady) else event for event in bench.events]
    bench.add(replace(begin, at=10.9), *later)
    judgement = bench.judge(nothing_left())
    assert judgement.unknowns == ()
    return tuple(finding.summary for finding in judgement.findings)


RIG_HOST = "usb-storage at 0000:00:05.0/1.1"
THINGS = {
    "scsi host": (RIG_HOST, "ahci at pci0000:00/0000:00:17.0/ata1"),
    "usb device": ("1-1", "1-1.1", "1-1.2", "1-1.3", "usb1"),
    "block device": ("0000:00:05.0/1.1:0 (serial S-disk1)", "0000:00:05.0/1.2:0 (serial S-disk2)"),
    "mount": ("tmpfs on /run (tmpfs)",),
}


def there(moment: ev.CensusMoment, at: float | None = None, **changed: tuple[str, ...]) -> ev.Census:
    at = 25.7 if at is None else at
    things = {**THINGS, **{kind.replace("_", " "): names for kind, names in changed.items()}}
    return ev.Census(at=at, moment=moment, things=things)


@pytest.mark.parametrize("kind", ["virtual", "local", "ssh"])
@pytest.mark.parametrize(
    "changed",
    [
        {"mount": (*THINGS["mount"], "tmpfs on /run/user/1000 (tmpfs)")},
        {"mount": (*THINGS["mount"], "/dev/loop3 on /snap/core/1 (squashfs)")},
        {"usb_device": (*THINGS["usb device"], "3-1")},
        {"scsi_host": (RIG_HOST,)},
    ],
)
def test_what_is_not_of_the_rig_is_no_finding(kind: str, changed: dict[str, tuple[str, ...]]) -> None:
    assert on_bench(there("begin"), there("end", None, **changed), kind=kind) == ()


def test_on_a_real_dut_another_port_of_the_same_controller_is_not_of_the_rig() -> None:
    end = there("end", usb_device=(*THINGS["usb device"], "1-7"), mount=(*THINGS["mount"], "/dev/sdz1 on /mnt (vfat)"))
    assert on_bench(there("begin"), end, kind="ssh") == ()
    assert on_bench(there("begin"), end) == ("left over on the DUT: usb device 1-7",)


@pytest.mark.parametrize("kind", ["virtual", "ssh"])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"usb_device": (*THINGS["usb device"], "1-1.4")}, "left over on the DUT: usb device 1-1.4"),
        ({"usb_device": ("1-1", "1-1.1", "1-1.2", "usb1")}, "missing on the DUT at the end: usb device 1-1.3"),
        ({"scsi_host": THINGS["scsi host"][1:]}, f"missing on the DUT at the end: scsi host {RIG_HOST}"),
        (
            {"block_device": THINGS["block device"][:1]},
            "missing on the DUT at the end: block device 0000:00:05.0/1.2:0 (serial S-disk2)",
        ),
        ({"mount": ("/dev/sdb on /mnt (ext4)",)}, "left over on the DUT: mount /dev/sdb on /mnt (ext4)"),
        ({"trace_of_a_disk": ("backing device 8:16",)}, "left over on the DUT: trace of a disk backing device 8:16"),
    ],
)
def test_what_is_left_or_missing_of_the_rig(kind: str, changed: dict[str, tuple[str, ...]], said: str) -> None:
    assert on_bench(there("begin"), there("end", None, **changed), kind=kind) == (said,)


def test_what_a_cut_took_for_good_is_not_missing() -> None:
    bench = healthy()
    bench.replace(ev.CutArmed, permanent=True)
    end = there("end", usb_device=("1-1", "1-1.2", "1-1.3", "usb1"), scsi_host=THINGS["scsi host"][1:])
    bench.add(there("begin", 10.9), end)
    assert bench.judge(nothing_left()).findings == ()
    bench.add(there("end", 25.8, usb_device=("1-1", "1-1.2", "usb1")))
    (finding,) = bench.judge(nothing_left()).findings
    assert finding.summary == "missing on the DUT at the end: usb device 1-1.3"


def test_what_takes_its_time_to_go_is_late() -> None:
    twice = (RIG_HOST, *THINGS["scsi host"])
    settling = [there("settling", at, scsi_host=twice) for at in (20.0, 24.5)]
    (said,) = on_bench(there("begin"), *settling, there("end", 25.0))
    assert said == f"scsi host {RIG_HOST} took 4.50 s to go (limit 2 s)"
    soon = [there("settling", at, scsi_host=twice) for at in (20.0, 21.5)]
    assert on_bench(there("begin"), *soon, there("end", 21.75)) == ()


def test_nothing_counted_at_all_is_unknown_only_where_it_was_asked_for() -> None:
    assert healthy().judge(nothing_left()).unknowns
    standing = NothingLeft(required=False)
    assert healthy().judge(standing) == Judgement(subject="")
    bench = healthy()
    bench.add(there("begin", 10.9))
    assert bench.judge(standing).unknowns


def test_a_machine_without_any_of_it_is_empty(tmp_path: Path) -> None:
    assert not any(census(str(tmp_path), str(tmp_path))["things"].values())


def test_caches_that_fill_up_over_six_cycles_leave_it_open() -> None:
    """Seen on a healthy kernel: every cut takes some more, and it is not sure that it is much."""
    used, taken = 1_000_000, []
    for more in (0, 25_700, 12_900, 4_100, 20_000, 9_000):
        used += more
        taken.append(counted("cycle", slab=used))
    judgement = judged(leak_slope(), *taken)
    assert judgement.findings == ()
    assert "6 cycles leave 4.1e+03 to" in judgement.unknowns[0]
    (finding,) = judged(leak_slope(limit=1000), *taken).findings
    assert "the DUT leaks kernel memory" in finding.summary


HEALTHY = (
    (3695616, 3690432, 3694464, 3677376, 3678400, 3690368, 3707776, 3707776),
    (3573456, 3586832, 3597008, 3590864, 3609296, 3602128, 3589840, 3581648),
    (3642400, 3657696, 3649376, 3665760, 3659616, 3665760, 3673952, 3668832),
    (4228360, 4236360, 4225160, 4230280, 4240360, 4232168, 4245512, 4241352),
    (3674704, 3686864, 3703248, 3707280, 3723664, 3748176, 3735824, 3735824),
    (3691520, 3695552, 3699584, 3688320, 3684224, 3684224, 3688256, 3720000),
)
"""Bytes of the chosen caches after each of eight cuts, as measured on a healthy kernel 6.1."""


@pytest.mark.parametrize("sizes", HEALTHY)
def test_eight_healthy_cycles_pass_and_twelve_kilobytes_a_cycle_do_not(sizes: tuple[int, ...]) -> None:
    judgement = judged(leak_slope(), *(counted("cycle", size) for size in sizes))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    leaking = judged(leak_slope(), *(counted("cycle", size + 12_000 * n) for n, size in enumerate(sizes)))
    assert leaking.findings or leaking.unknowns


def test_sixteen_cycles_are_sure_of_twelve_kilobytes() -> None:
    sizes = (*HEALTHY[0], *HEALTHY[0])
    assert judged(leak_slope(), *(counted("cycle", size) for size in sizes)).unknowns == ()
    (finding,) = judged(leak_slope(), *(counted("cycle", size + 12_000 * n) for n, size in enumerate(sizes))).findings
    assert finding.subject == "memory"


CHANGES = {
    "kmalloc-4k": (0,) * 15,
    "kmalloc-1k": (0, 0, 0, 0, 0, 0, -1024, 6144, -5120, 0, 0, 0, 26624, -26624, 0),
    "kmalloc-96": (6144, 0, 16128, -16128, 16128, -16128, 12096, -3552, -10368, -1440, 7296, 4032, 4032, -11328, 672),
    "kmalloc-8": (528, 168, 1320, 672, -112, -2576, 2400, -384, -2016, 24, 2376, -384, -2016, 0, 144),
    "kmalloc-cg-4k": (-32768, 0, 0, 8192, 0, -8192, 0, 0, 0, 0, 0, 0, 8192, 24576, -32768),
}
"""By how many bytes caches changed from one to the next of sixteen healthy cuts, measured with exact counts."""


def exactly(cache: str, leaked: int) -> list[ev.Census]:
    sizes = accumulate((851_968, *(change + leaked for change in CHANGES[cache])))
    return [replace(counted("cycle"), slab={cache: size}, exact=True) for size in sizes]


@pytest.mark.parametrize("cache", CHANGES)
def test_healthy_caches_are_no_leak(cache: str) -> None:
    assert judged(leak_slope(), *exactly(cache, 0)).findings == ()


@pytest.mark.parametrize(("cache", "leaked"), [("kmalloc-4k", 4096), ("kmalloc-1k", 4096), ("kmalloc-cg-4k", 8192)])
def test_exact_counts_tell_one_object_with_each_cut(cache: str, leaked: int) -> None:
    (finding,) = judged(leak_slope(), *exactly(cache, leaked)).findings
    assert finding.subject == "memory"
    assert finding.summary.startswith(f"the DUT leaks memory of its cache {cache}: at least ")


def test_counts_that_are_not_exact_do_not_tell_so_little() -> None:
    loose = [replace(census, exact=False) for census in exactly("kmalloc-4k", 4096)]
    assert judged(leak_slope(), *loose).findings == ()


def test_caches_that_are_filled_once_are_no_leak() -> None:
    once = [
        replace(census, slab={"kmalloc-4k": 851_968 + 65_536 * (n > 7)})
        for n, census in enumerate(exactly("kmalloc-4k", 0))
    ]
    assert judged(leak_slope(), *once).findings == ()


def test_a_thread_leaked_with_every_cut_shows_in_the_kernels_stacks() -> None:
    taken = [
        replace(counted("cycle"), memory={"KernelStack": 1_228_800 + 16_384 * number, "Percpu": 557_056})
        for number in range(8)
    ]
    (finding,) = judged(leak_slope(), *taken).findings
    assert finding.summary.startswith("the DUT leaks kernel memory beside its caches: 1.64e+04 bytes a cycle")
