"""What is looked up by time is what a search through the whole record finds, in order of time or not."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from plugpull.history.attachments import Attachments
from plugpull.history.events import DiskAttached, DiskDetached
from plugpull.history.time_index import TimeIndex


@pytest.mark.parametrize("seed", range(8))
def test_what_lies_outside_the_places_is_outside_the_span(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(200):
        times = [dice.choice((0.0, 0.5, 1.0, 3.0)) for _ in range(dice.randrange(9))]
        times = list(accumulate(times)) if dice.random() < 0.5 else times
        begin, end = dice.choice((-1.0, 0.5, 1.0, 4.0)), dice.choice((0.0, 1.0, 2.0, 9.0))
        index = TimeIndex(times)
        assert index.first_from(begin) == next((i for i, time in enumerate(times) if time >= begin), len(times))
        assert index.last_until(end) == max((i for i, time in enumerate(times) if time <= end), default=-1)
        places = index.places(begin, end)
        assert all(time < begin for time in times[: places.start])
        assert all(time > end for time in times[places.stop :])


def test_a_record_in_order_has_no_places_beside_the_span() -> None:
    assert TimeIndex([1.0, 2.0, 2.0, 5.0]).places(2.0, 4.0) == range(1, 3)
    assert TimeIndex([1.0, 2.0, 2.0, 5.0]).places(3.0, 4.0) == range(3, 3)
    assert TimeIndex([]).places(0.0, 1.0) == range(0)


def attachments(dice: random.Random) -> Attachments:
    """Attachments of one disk that may overlap, be without a time or be in no order; some never end."""
    begins = [dice.choice((None, 1.0, 2.0, 3.0, 4.0, 6.0)) for _ in range(dice.randrange(6))]
    if dice.random() < 0.7:
        begins.sort(key=lambda at: at or 0.0)
    stays = tuple(
        DiskAttached(
            at=at, disk="disk1", kname="sda", diskseq=dice.choice((number, 7)), devt="8:0", serial="", place="", size=0
        )
        for number, at in enumerate(begins)
    )
    ends = tuple(
        DiskDetached(at=dice.choice((None, 1.0, 2.5, 3.0, 5.0, 7.0)), disk="disk1", kname="sda", diskseq=one.diskseq)
        for one in stays
        if dice.random() < 0.7
    )
    return Attachments(stays, ends)


@pytest.mark.parametrize("seed", range(8))
def test_the_attachment_at_a_time_is_the_last_one_that_began_and_had_not_ended(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(200):
        known = attachments(dice)
        for at in (0.0, 1.0, 2.0, 2.5, 3.0, 4.5, 6.0, 8.0):
            here = [
                one
                for one in known.attached
                if (one.at is None or one.at <= at) and ((end := known.detached_at(one)) is None or end > at)
            ]
            assert known.at("disk1", at) is (here[-1] if here else None)
        assert known.at("disk2", 1.0) is None
