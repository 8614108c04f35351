"""The check ``leak_slope``: what grows with every cut."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
from censuses import HOST, counted, judged
from msgspec.structs import replace

from plugpull.checks import leak_slope
from plugpull.checks.dut.residue import slope_of
from plugpull.history import events as ev


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
    assert judged(leak_slope(), *blind).unknowns == ("the kernel does not report what its caches hold",)


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


@pytest.mark.parametrize(
    ("steps", "many"),
    [((256,) * 15, 1), ((256,) * 14 + (0,), 0), ((256,) * 7 + (512, -256) + (256,) * 6, 0), ((128,) * 15, 0)],
)
def test_exact_counts_show_a_small_object_with_every_single_cut(steps: tuple[int, ...], many: int) -> None:
    """Less than one object of a cache is no object of it."""
    sizes = accumulate((166_912, *steps))
    taken = [replace(counted("cycle"), slab={"kmalloc-256": size}, exact=True) for size in sizes]
    found = [one.summary for one in judged(leak_slope(), *taken).findings]
    assert found == ["the DUT leaks memory of its cache kmalloc-256: 256 bytes or more with each of 14 cuts"] * many


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


def cycles(missing: int = 0, cuts: int = 1, group: int = 0) -> list[ev.Event]:
    """Ten rounds of so many cuts with a census after them, of which one is missing."""
    made: list[ev.Event] = []
    armed = ev.CutArmed(cut=0, point="disk1.cable", mechanism="data", trigger="at once", victims=("disk1",))
    for number in range(1, 11):
        for cut in range(cuts):
            of_burst = number * group
            made.append(replace(armed, at=number + cut / 10, cut=number * cuts + cut, group=of_burst))
        if number != missing:
            made.append(replace(counted("cycle"), at=number + 0.9))
    return made


@pytest.mark.parametrize("missing", [2, 5, 9])
@pytest.mark.parametrize(("cuts", "group"), [(1, 0), (3, 1)])
def test_a_census_that_is_missing_between_two_cuts_is_noticed(missing: int, cuts: int, group: int) -> None:
    (doubt,) = judged(leak_slope(), *cycles(missing, cuts, group)).unknowns
    assert doubt == f"2 cuts were made before census {missing}, and one before each other: a census is missing"


def test_censuses_after_each_cut_or_after_every_third_are_whole() -> None:
    assert judged(leak_slope(), *cycles()).unknowns == ()
    assert judged(leak_slope(), *cycles(cuts=3)).unknowns == ()
