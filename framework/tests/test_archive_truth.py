"""Synthetic archives of 60 nights with planted regressions, fixes, flakes and changes of values, read night by night.

Each planted thing must be named within five nights of its start, each class must be exact on every night that is looked
at, and at most 1 false change is allowed per 1,000 nights of series. ``framework/benchmarks/false_changes.py`` measures
the two rates for other noises, sizes and numbers of repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from archives import date, measurement, put, results, scenario

from plugpull.archive.trend import Trend, make_index, trend_of

NIGHTS = 60
ARCHIVES = 20
SOON = 5
REPEATS = 5
NOISE = 0.02
CLEAN = 20
"""Measured series without a change in each archive: 24,000 nights of series in all."""
METRICS = ("removed after", "returned after", "final rate", "write rate")

Draw = random.Random


@dataclass
class Planted:
    """A scenario with a story. ``letters`` has a verdict per night; ``expected`` is the class after each of them."""

    name: str
    letters: str
    expected: Callable[[str], str]
    looked_at: Sequence[int] = ()
    values: list[Shifted] = field(default_factory=list)


@dataclass
class Shifted:
    """A measured value that is ``share`` higher or lower from the night ``begin`` on (``None``: it never changes)."""

    metric: str
    share: float = 0.0
    begin: int | None = None
    mean: float = 100.0
    repeats: int = REPEATS
    named: int | None = None

    def tonight(self, night: int, draw: Draw) -> dict[str, Any]:
        mean = self.mean * (1.0 + (self.share if self.begin is not None and night >= self.begin else 0.0))
        values = [draw.gauss(mean, NOISE * mean) for _ in range(self.repeats)]
        return measurement(self.metric, tuple(values) if self.repeats > 1 else values[0])


# --- stories, and their classes ---------------------------------------------------------------------------------------


def _without_unknown(letters: str) -> str:
    return letters.replace("U", "")


def regression(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    begin = draw.randrange(10, 50)

    def expected(letters: str) -> str:
        failed = _without_unknown(letters).count("F")
        return ("passing", "new")[failed] if failed < 2 else "ongoing"

    return "P" * begin + "F" * (NIGHTS - begin), expected, range(begin, begin + SOON)


def fix(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    end = draw.randrange(10, 40)

    def expected(letters: str) -> str:
        said = _without_unknown(letters)
        passed = said.count("P")
        if not passed:
            return "new" if len(said) == 1 else "ongoing"
        return "passing again" if passed < 3 else "fixed" if "F" in said[-20:] else "passing"

    return "F" * end + "P" * (NIGHTS - end), expected, (0, *range(end, end + SOON), 59)


def regression_and_fix(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    begin = draw.randrange(8, 25)
    end = begin + draw.randrange(4, 20)

    def expected(letters: str) -> str:
        said = _without_unknown(letters)
        failed, passed = said.count("F"), len(said) - len(said.rstrip("P"))
        if failed == 0:
            return "passing"
        if passed == 0:
            return "new" if failed == 1 else "ongoing"
        return "passing again" if passed < 3 else "fixed" if "F" in said[-20:] else "passing"

    letters = "P" * begin + "F" * (end - begin) + "P" * (NIGHTS - end)
    return letters, expected, (*range(begin, begin + SOON), *range(end, end + SOON), 59)


def flake(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    """Fails now and then: at most twice, and passes at most four times, in a row."""
    begin = draw.randrange(8, 45)
    letters = "P" * begin + "F"
    while len(letters) < NIGHTS:
        letters += "P" * draw.randint(1, 4) + "F" * draw.randint(1, 2)

    def expected(letters: str) -> str:
        said = letters.lstrip("P")
        return "passing" if not said else "flaky" if "P" in said else "new" if said == "F" else "ongoing"

    return letters[:NIGHTS], expected, (*range(begin, begin + SOON), 59)


def clean(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    return "P" * NIGHTS, lambda letters: "passing", (30, 59)


def gone(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    end = draw.randrange(10, 55)
    return (
        "P" * end + "." * (NIGHTS - end),
        lambda letters: "gone" if "." in letters else "passing",
        (end - 1, end, end + 1, 59),
    )


def never(draw: Draw) -> tuple[str, Callable[[str], str], Sequence[int]]:
    return "U" * NIGHTS, lambda letters: "never run", (0, 59)


STORIES = (regression, fix, regression_and_fix, flake, clean, gone, never)


def planted(draw: Draw) -> list[Planted]:
    """The scenarios of one archive: every story once, some nights UNKNOWN, and values of which four change."""
    found = []
    for story in STORIES:
        letters, expected, looked_at = story(draw)
        if story in (regression, fix, clean):
            letters = "".join("U" if night > 1 and draw.random() < 0.04 else one for night, one in enumerate(letters))
        found.append(Planted(f"test_{story.__name__}.py::test_it[{draw.randrange(9)}]", letters, expected, looked_at))
    steady = next(one for one in found if "clean" in one.name)
    steady.letters = "P" * NIGHTS
    for number in range(4):
        share = draw.choice((-1, 1)) * draw.uniform(0.05, 0.2)
        steady.values.append(Shifted(f"{METRICS[number]} {number}", share, draw.randrange(12, 54), 10.0**number))
    steady.values.append(Shifted("one sample a night", draw.choice((-0.1, 0.1)), draw.randrange(12, 54), repeats=1))
    steady.values += [Shifted(f"{METRICS[each % 4]} of {each}", repeats=each % 5 + 1) for each in range(CLEAN)]
    return found


# --- reading them -----------------------------------------------------------------------------------------------------


def put_night(directory: Path, stories: Sequence[Planted], night: int, draw: Draw) -> None:
    there = [
        scenario(one.name, one.letters[night], measurements=[value.tonight(night, draw) for value in one.values])
        for one in stories
        if one.letters[night] != "."
    ]
    put(directory, results(night, there))


def note_changes(trend: Trend, values: Sequence[Shifted], night: int) -> set[tuple[str, str]]:
    """Note which planted changes are named, and return the false ones."""
    false = set()
    by_name = {value.metric: value for value in values}
    for change in trend.changes:
        value = by_name[change.measurement]
        true = value.begin is not None and value.begin <= night and abs(_night(change.at) - value.begin) <= SOON
        if not true:
            false.add((change.measurement, change.at))
        elif value.named is None:
            value.named = night
    return false


def _night(at: str) -> int:
    return next(night for night in range(NIGHTS) if date(night) == at)


@dataclass
class Read:
    """What was said of an archive: classes that differ from the truth, changes that are none, late namings."""

    wrong: list[str] = field(default_factory=list)
    false: set[tuple[str, str]] = field(default_factory=set)
    late: list[Shifted] = field(default_factory=list)


def read_archive(directory: Path, seed: int) -> Read:
    """Read an archive on each night on which something that was planted is to be named, and in the end."""
    draw, read = random.Random(seed), Read()
    stories = planted(draw)
    values = [value for one in stories for value in one.values]
    starts = {night for value in values if value.begin is not None for night in range(value.begin, value.begin + SOON)}
    looked_at = {night for one in stories for night in one.looked_at} | starts | {NIGHTS - 1}
    for night in range(NIGHTS):
        put_night(directory, stories, night, draw)
        if night in looked_at:
            trend = trend_of(directory)
            found = {one.scenario: one.name for one in trend.series}
            for one in stories:
                expected = one.expected(one.letters[: night + 1])
                if found.get(one.name) != expected:
                    read.wrong.append(f"night {night}: {one.name} is {found.get(one.name)} and not {expected}")
            read.false |= note_changes(trend, values, night)
    shifted = [value for value in values if value.begin is not None]
    read.late = [one for one in shifted if one.named is None or one.named >= (one.begin or 0) + SOON]
    return read


@pytest.fixture(scope="module")
def archives_read(tmp_path_factory: pytest.TempPathFactory) -> list[Read]:
    return [read_archive(tmp_path_factory.mktemp(f"archive{seed}"), seed) for seed in range(ARCHIVES)]


def test_every_class_is_exact(archives_read: list[Read]) -> None:
    assert [wrong for read in archives_read for wrong in read.wrong] == []


def test_every_planted_change_is_named_within_five_nights(archives_read: list[Read]) -> None:
    assert [late for read in archives_read for late in read.late] == []


def test_at_most_one_false_change_in_a_thousand_nights_of_series(archives_read: list[Read]) -> None:
    assert sum(len(read.false) for read in archives_read) <= ARCHIVES * CLEAN * NIGHTS / 1000


def test_what_is_read_at_once_is_what_was_read_night_by_night(tmp_path: Path) -> None:
    draw = random.Random("at once")
    stories = planted(draw)
    for night in range(NIGHTS):
        put_night(tmp_path, stories, night, draw)
        if night % 7 == 0:
            trend_of(tmp_path)
    before = trend_of(tmp_path)
    make_index(tmp_path)
    after = trend_of(tmp_path)
    assert [(one.key, one.name, one.since) for one in after.series] == [
        (one.key, one.name, one.since) for one in before.series
    ]
    assert after.changes == before.changes
