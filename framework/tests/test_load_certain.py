"""Which blocks a load has certainly written when its disk is cut."""

from __future__ import annotations

import random

from fios import BLOCK
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.load.load import certain_ranges
from plugpull.load.patterns import (
    Pattern,
    sequential_write,
)


def written_by(count: int, depth: int, blocks: int, choose: random.Random) -> tuple[set[int], set[int]]:
    """A sequential writer that wraps around, cut off once ``count`` writes were completed: (blocks that were completed,
    blocks in flight). The disk completes what is in its queue in an order of its own, but no write is overtaken by
    more than ``depth`` later ones."""
    flying: list[int] = []
    overtaken: dict[int, int] = {}
    done: set[int] = set()
    submitted = completed = 0
    while True:
        while len(flying) < depth:
            flying.append(submitted)
            overtaken[submitted] = 0
            submitted += 1
        if completed == count:
            # The queue may have been less than full at the moment of the cut.
            return done, {number % blocks for number in flying}
        waiting_longest = [number for number in flying if overtaken[number] >= depth]
        number = min(waiting_longest) if waiting_longest else choose.choice(flying)
        flying.remove(number)
        for other in flying:
            overtaken[other] += other < number
        done.add(number % blocks)
        completed += 1


@st.composite
def progress(draw: st.DrawFn) -> tuple[int, int, int]:
    """(writes completed, queue depth, blocks in the span), mostly close to the end of a pass: there lie the edges."""
    depth, blocks = draw(st.integers(1, 8)), draw(st.integers(1, 40))
    near = st.builds(lambda passes, off: max(0, passes * blocks + off), st.integers(0, 3), st.integers(-9, 25))
    return draw(near | st.integers(0, 120)), depth, blocks


@settings(deadline=None, max_examples=400)
@given(
    at=progress(),
    block=st.sampled_from([512, 4096, BLOCK]),
    torn=st.integers(0, 511),
    choose=st.randoms(use_true_random=False),
)
def test_what_is_certain_was_completed_and_not_in_flight(
    at: tuple[int, int, int], block: int, torn: int, choose: random.Random
) -> None:
    count, depth, blocks = at
    pattern = Pattern("p", "write", block, depth)
    ranges, why_not = certain_ranges(count * block + torn, blocks * block, pattern, whole=False)
    done, flying = written_by(count, depth, blocks, choose)
    certain: list[int] = []
    for begin, length in ranges:
        assert begin % block == 0
        assert length % block == 0
        assert length > 0
        assert 0 <= begin < begin + length <= blocks * block
        certain += range(begin // block, (begin + length) // block)
    assert len(certain) == len(set(certain)), "ranges overlap"
    assert set(certain) <= done
    assert not set(certain) & flying
    assert bool(why_not) == (not ranges)


@settings(deadline=None)
@given(count=st.integers(0, 200), blocks=st.integers(1, 40), torn=st.integers(0, BLOCK - 1))
def test_after_an_orderly_end_all_that_was_written_is_certain(count: int, blocks: int, torn: int) -> None:
    ranges, why_not = certain_ranges(count * BLOCK + torn, blocks * BLOCK, sequential_write, whole=True)
    assert sum(length for _, length in ranges) == min(count, blocks) * BLOCK
    assert bool(why_not) == (count == 0)


@settings(deadline=None)
@given(passes=st.integers(1, 5), position=st.integers(0, 99), depth=st.integers(1, 8))
def test_little_is_left_out_after_the_first_pass(passes: int, position: int, depth: int) -> None:
    pattern = Pattern("p", "write", BLOCK, depth)
    ranges, _ = certain_ranges((100 * passes + position) * BLOCK, 100 * BLOCK, pattern, whole=False)
    assert sum(length for _, length in ranges) == (100 - 3 * depth) * BLOCK
