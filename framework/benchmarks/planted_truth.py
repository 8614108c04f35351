"""The class of a series, and since when, by the definitions in ``plugpull/archive/README.md``: see
``planted_archives.py``. It looks at whole streaks, where the archive reads night by night."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

WINDOW = 20
SETTLED = {"F": 3, "P": 5}
CLEARED = 5
FIXED = 3
TOGETHER = 0.5
"""Runs within these nights are of one date."""


class Result(NamedTuple):
    """One night of a series: P, F, G (a failure for another reason), B (passed and failed), U, or a dot if it was not
    run. ``whole``: the run says which scenarios there are."""

    at: str
    night: float
    letter: str
    whole: bool


def truth_of(nights: list[Result]) -> tuple[str, str]:
    """The class after these nights, and since when; no date if that is not defined."""
    last = max(night.night for night in nights if night.letter != ".")
    after = [night for night in nights if night.whole and night.night > last + TOGETHER]
    if after:
        return "gone", after[0].at
    said: list[tuple[str, str]] = []
    for night in nights:
        said += [(night.at, letter) for letter in {"B": "PF"}.get(night.letter, night.letter)]
    both = next((index for index, night in enumerate(nights) if night.letter == "B"), None)
    results = [(at, letter) for at, letter in said if letter in "PFG"]
    if not results:
        return "never run", ""
    return _standing(results, None if both is None else nights[both].at)


def _standing(results: list[tuple[str, str]], both: str | None) -> tuple[str, str]:
    streaks = [list(each) for _, each in groupby(results, key=lambda one: "P" if one[1] == "P" else "F")]
    flaky, flips, since, calm = False, 0, "", False
    was_flaky = False
    for number, streak in enumerate(streaks):
        at, letter = streak[0][0], "P" if streak[0][1] == "P" else "F"
        was_flaky = flaky
        if number:
            flips += 1
            since = since if flips > 1 else at
        if calm and letter == "F":
            before = [one for each in streaks[:number] for one in each][-WINDOW:]
            flaky = any(one[1] != "P" for one in before)
        calm = False
        flaky = flaky or flips >= 2 or (both is not None and streak[-1][0] >= both >= streaks[max(0, number - 1)][0][0])
        if flaky:
            was_flaky = True
            if len(streak) >= CLEARED:
                flaky, flips, since, calm = False, 0, "", letter == "P"
        elif len(streak) >= SETTLED[letter]:
            flips, since = 0, ""
    return _named(results, streaks, flaky=flaky, was_flaky=was_flaky, since=since)


def _named(
    results: list[tuple[str, str]],
    streaks: list[list[tuple[str, str]]],
    *,
    flaky: bool,
    was_flaky: bool,
    since: str,
) -> tuple[str, str]:
    streak = streaks[-1]
    at, reason = streak[-1]
    if reason != "P":
        earlier = {letter for _, letter in streak[:-1]}
        if earlier and reason not in earlier:
            return "new", at
        if flaky:
            return "flaky", since
        first = next(one for one, letter in streak if letter == reason)
        return ("new" if len(streak) == 1 else "ongoing"), first
    if flaky:
        return "flaky", since
    failed = len(streaks) > 1
    recent = any(letter != "P" for _, letter in results[-WINDOW:])
    if failed and not was_flaky and len(streak) < FIXED:
        return "passing again", streak[0][0]
    return ("fixed" if failed and not was_flaky and recent else "passing"), streak[0][0]
