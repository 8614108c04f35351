"""Faults and triggers drawn by hypothesis, for laws that hold for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from plugpull.faults.bouncing import Bounce
from plugpull.faults.compose import CutFault, Fault, Held, InSequence, Pause, Repeated, Together
from plugpull.faults.moving import SwapFault
from plugpull.faults.triggers import After, AtRandom, Flushing, KernelSays, Moved, Now, Promised, Trigger

SOON = (0.0, 0.002, 0.005)
"""Seconds that tests which really wait can afford."""


def triggers(disks: Sequence[str]) -> st.SearchStrategy[Trigger]:
    """Any trigger."""
    disk = st.sampled_from(disks)
    seconds = st.integers(0, 10_000).map(lambda value: value / 1000)
    ranges = st.tuples(seconds, seconds).map(sorted).map(lambda ends: AtRandom(ends[0], ends[1]))
    return st.one_of(
        st.just(Now()),
        st.builds(After, seconds),
        ranges,
        st.builds(Moved, disk, st.integers(1, 1 << 30)),
        st.builds(Promised, disk, ranges),
        st.builds(Flushing, disk),
        st.builds(KernelSays, st.sampled_from(["reset .* USB", "I/O error"])),
    )


def timed(seconds: Sequence[float] = SOON) -> st.SearchStrategy[Trigger]:
    """Triggers that fire by themselves."""
    moments = st.sampled_from(seconds)
    return st.one_of(st.just(Now()), st.builds(After, moments))


def faults(
    points: Sequence[str],
    when: st.SearchStrategy[Trigger],
    seconds: Sequence[float] = SOON,
    *,
    permanent: bool = False,
) -> st.SearchStrategy[Fault]:
    """Any fault of these cut points; ``permanent`` cuts among them if asked for."""
    gap = st.sampled_from(seconds)
    some = st.lists(st.sampled_from(points), min_size=1, max_size=2, unique=True).map(tuple)
    gaps = st.lists(gap, max_size=4).map(lambda odd: (*odd[: len(odd) // 2 * 2], seconds[-1]))
    for_good = st.booleans() if permanent else st.just(False)
    single: st.SearchStrategy[Fault] = st.one_of(
        st.builds(CutFault, some, when, for_good),
        st.builds(Bounce, some, gaps, when),
        st.builds(Pause, when),
        st.builds(SwapFault, st.just((("disk1", "usb.2"), ("disk2", "usb.1"))), some, when),
    )
    return st.recursive(
        single,
        lambda inner: st.one_of(
            st.builds(InSequence, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Together, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Held, inner, gap),
            st.builds(Repeated, inner, st.integers(1, 3), gap),
        ),
        max_leaves=5,
    )
