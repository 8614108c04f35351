"""Limits that disks share: found among the measurements of a scaling study, and concluded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean
from typing import NamedTuple

from plugpull.checks.collector import Collector
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.hinge import count_at
from plugpull.measure.limits import SharedLimit, find_limits
from plugpull.measure.noise import TogetherRates
from plugpull.measure.scaling import Scaling
from plugpull.measure.sharing import groups
from plugpull.studies.figures import interval, rate
from plugpull.studies.measured import Series
from plugpull.studies.places import explained

EQUAL = 1.10
"""The shares of disks are equal if the largest is at most so many times the smallest."""
Rounds = Mapping[int, Mapping[str, float]]
"""Rates by disk, by round."""


class FoundLimits(NamedTuple):
    """``described``: fair sharing describes the measurements, so that it is known who shares what."""

    limits: tuple[SharedLimit, ...]
    described: bool


def limits_of(
    series: Series,
    disks: tuple[str, ...],
    parts: Iterable[Collection[str]],
    known: Iterable[Collection[str]],
    curve: Scaling,
) -> FoundLimits:
    """The limits that some of these disks share. From a collapse on, measurements say nothing about limits."""
    trials = _trials(series, disks, curve.collapse.disks if curve.collapse is not None else len(disks) + 1)
    found = find_limits(trials, parts, known)
    return FoundLimits(_without_model(trials, disks, curve) if found is None else found, found is not None)


def _trials(series: Series, disks: tuple[str, ...], fewer: int) -> list[TogetherRates]:
    """What was measured of fewer than so many of these disks at once."""
    sets = dict.fromkeys(reading.disks for reading in series.readings)
    found = []
    for working in sets:
        if len(working) < fewer and working <= set(disks):
            order = [disk for disk in disks if disk in working]
            rounds = series.of(working).items()
            found.append(TogetherRates({number: {disk: one.rates[disk] for disk in order} for number, one in rounds}))
    known = {one.disks[0] for one in found if one.rounds and len(one.disks) == 1}
    known_only = [one for one in found if one.rounds and known.issuperset(one.disks)]
    return sorted(known_only, key=lambda one: [disks.index(disk) for disk in one.disks])


def _without_model(trials: Sequence[TogetherRates], disks: tuple[str, ...], curve: Scaling) -> tuple[SharedLimit, ...]:
    """Where no fair sharing describes what was measured: the groups that show when each disk is left out, or else the
    knee and the ceiling of the curve of all."""
    rounds = {frozenset(trial.disks): trial.rounds for trial in trials}
    alone = {disk: rounds.get(frozenset({disk}), {}) for disk in disks}
    together = rounds.get(frozenset(disks), {})
    without = {out: rounds.get(frozenset(disks) - {out}, {}) for out in disks}
    if all(len(one) > 1 for one in (together, *alone.values(), *without.values())):
        by_disk = {out: _columns(one) for out, one in without.items()}
        found = groups({disk: _columns(alone[disk])[disk] for disk in disks}, _columns(together), by_disk)
        if found:
            return tuple(_as_limit(group.disks, alone, together) for group in found)
    if curve.knee is None or curve.ceiling is None:
        return ()
    demand = fsum(fmean(_columns(alone[disk])[disk]) for disk in disks)
    return (SharedLimit(disks, curve.ceiling, curve.knee, demand),)


def _as_limit(disks: tuple[str, ...], alone: Mapping[str, Rounds], together: Rounds) -> SharedLimit:
    sums = [fsum(rates[disk] for disk in disks) for rates in together.values()]
    shares = [fmean(_columns(alone[disk])[disk]) for disk in disks]
    return SharedLimit(disks, estimate(sums), estimate([count_at(total, shares) for total in sums]), fsum(shares))


def _columns(rounds: Rounds) -> dict[str, list[float]]:
    return {disk: [rates[disk] for rates in rounds.values()] for disk in next(iter(rounds.values()), {})}


# --- in words -----------------------------------------------------------------------------------------------------


def conclude_limit(
    story: Story,
    series: Series,
    limit: SharedLimit,
    every: tuple[str, ...],
    said: Collector,
    *,
    shared: bool,
    collapsed: bool,
) -> None:
    """Knee and ceiling of a limit, and a ``shared`` bottleneck if it is known who shares it. The shares of disks that
    ``collapsed`` together say nothing about a ceiling."""
    part, exactly = explained(story, limit.disks)
    named = part is not None and (exactly or len(limit.disks) == len(every))
    subject, names = str(part) if named else ", ".join(limit.disks), ", ".join(limit.disks)
    evidence = tuple(_counts(series, limit.disks))
    said.conclude(_knee(series, subject, limit.knee, evidence))
    said.conclude(
        Conclusion(
            kind="ceiling",
            subject=subject,
            text=f"{'All disks' if limit.disks == every else names} together {series.mode} at most "
            f"{interval(limit.ceiling)}{'' if collapsed else _equal(series, limit.disks)}. Without that limit "
            f"they would reach {rate(limit.demand)}.",
            value=round(limit.ceiling.mean, 3),
            unit="B/s",
            evidence=evidence,
        )
    )
    if shared:
        said.conclude(_shared(story, series, limit))


def share_in_words(share: Estimate) -> str:
    bounds = "" if share.low is None or share.high is None else f" ({share.low:.0%} to {share.high:.0%})"
    return f"together they reach {share.mean:.0%}{bounds} of the sum of each alone"


def _knee(series: Series, subject: str, knee: Estimate, evidence: tuple[str, ...]) -> Conclusion:
    bounds = "" if knee.low is None else f" ({knee.low:.2f} to {knee.high:.2f}, {knee.n} repeats)"
    return Conclusion(
        kind="knee",
        subject=subject,
        text=f"{subject}: the {series.mode} rate grows with each disk up to {knee.mean:.2f} disks{bounds}; more "
        "disks add nothing.",
        value=round(knee.mean, 4),
        unit="disks",
        evidence=evidence,
    )


def _counts(series: Series, disks: tuple[str, ...]) -> Iterable[str]:
    """What was measured of more and more of these disks, and of nothing else."""
    for count in range(1, len(disks) + 1):
        sums = [one.total for one in series.of(disks[:count]).values()]
        if sums:
            yield f"{count} disk{'s' * (count > 1)}: {interval(replace(estimate(sums), odd=()))}"


def _equal(series: Series, disks: tuple[str, ...]) -> str:
    """Whether the disks have equal shares of the ceiling, where only they worked."""
    readings = list(series.of(disks).values())
    if not readings:
        return ""
    shares = {disk: fmean(one.rates[disk] for one in readings) for disk in disks}
    lowest, highest = min(shares.values()), max(shares.values())
    if lowest > 0 and highest / lowest <= EQUAL:
        return f"; each has an equal share of about {rate(fmean(shares.values()))}"
    return f"; their shares range from {rate(lowest)} to {rate(highest)}"


def _shared(story: Story, series: Series, limit: SharedLimit) -> Conclusion:
    part, exactly = explained(story, limit.disks)
    names = ", ".join(limit.disks)
    if part is None:
        where = "the rig file has no part that they share"
    elif exactly:
        where = f"they are the disks below {part}, as the rig file has it"
    else:
        others = [disk for disk in part.disks if disk not in limit.disks]
        below = f"{', '.join(others)} below it {'is' if len(others) == 1 else 'are'} not slowed"
        where = f"the rig file does not explain that: {part} has them all, but {below}"
    return Conclusion(
        kind="shared-bottleneck",
        subject=names,
        text=f"{names} share a bottleneck: together they {series.mode} {interval(limit.ceiling)}, without it they "
        f"would reach {rate(limit.demand)}; {where}.",
        value=round(limit.ceiling.mean, 3),
        unit="B/s",
        evidence=(f"together: {interval(limit.ceiling)}", f"without the limit: {rate(limit.demand)}"),
    )
