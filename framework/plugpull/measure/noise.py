"""Rates of disks that worked at once, by round, and how much they vary without a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt
from statistics import fmean, median, quantiles, stdev

from plugpull.measure.estimate import ODD_SHARE
from plugpull.measure.fair import ObservedRates, RunNoise

ODD = 16.0
"""A run does not count if it is this many times as far from the median of its rounds as a quarter of the runs is: of
three rounds, one may be slow in every condition."""
STALLS = 1
"""More runs that are so much faster than the others of their condition are no accident: then runs have several rates,
and to leave some out would make it look as if each condition had one."""
LEAST_NOISE = 0.003
"""Relative: few repeats can be alike by chance."""
LEAST = 1e-9
"""In place of a rate of 0, which has no logarithm."""
LogRates = Mapping[int, Mapping[str, float]]
"""Logarithms of rates by disk, by round."""


@dataclass(frozen=True)
class TogetherRates:
    """One condition: the rates of the disks that worked at once, in bytes per second, by round. At least one round."""

    rounds: Mapping[int, Mapping[str, float]]

    @property
    def disks(self) -> tuple[str, ...]:
        return tuple(next(iter(self.rounds.values())))


def without_odd(trials: Sequence[TogetherRates]) -> list[TogetherRates]:
    """Without the runs in which the disks, on average, had rates unlike those of the other rounds. A condition of which
    no run would be left keeps all; so do all conditions if runs have several rates by chance."""
    off = [{number: _from_median(trial, rates) for number, rates in trial.rounds.items()} for trial in trials]
    usual = [abs(each) for one in off for each in one.values() if each]
    bound = max(ODD_SHARE, ODD * quantiles(usual, n=4)[0]) if len(usual) > 1 else ODD_SHARE
    if _several_rates(off, bound):
        return list(trials)
    kept = (
        {number: rates for number, rates in trial.rounds.items() if abs(one[number]) <= bound}
        for trial, one in zip(trials, off, strict=True)
    )
    return [TogetherRates(rounds or trial.rounds) for rounds, trial in zip(kept, trials, strict=True)]


def _several_rates(off: Sequence[Mapping[int, float]], bound: float) -> bool:
    """Whether the faster runs are the odd ones in several conditions. A round does not count if it was slow or fast in
    most conditions: that is how the host was."""
    rounds = {number for one in off for number in one}
    odd = {number: [one[number] for one in off if abs(one.get(number, 0.0)) > bound] for number in rounds}
    several = [each for each in odd.values() if 2 * len(each) <= len(off)]
    return sum(value > 0 for each in several for value in each) > STALLS


def noise_of(trials: Sequence[TogetherRates]) -> tuple[RunNoise | None, list[TogetherRates]]:
    """The noise from repeat to repeat, and the trials without what all conditions of a round have in common.

    A host that gets slower slows all of a round. The noise is ``None`` for too few repeats.
    """
    logs = [_logs(trial) for trial in trials]
    means = [{disk: fmean(rates[disk] for rates in one.values()) for disk in next(iter(one.values()))} for one in logs]
    shift = _shift(logs, means)
    runs = sum(len(one) - 1 for one in logs) - (len(shift) - 1)
    if runs < 2:
        return None, list(trials)
    within = between = 0.0
    for one, mean in zip(logs, means, strict=True):
        for number, rates in one.items():
            off = [rates[disk] - mean[disk] - shift[number] for disk in rates]
            between += fmean(off) ** 2
            within += fsum((each - fmean(off)) ** 2 for each in off)
    freedom = sum((len(one) - 1) * (len(mean) - 1) for one, mean in zip(logs, means, strict=True))
    own, between = (within / freedom if freedom else between / runs), between / runs
    explained = own * fmean([1 / len(mean) for mean in means])  # the mean of the disks of a run varies less
    noise = RunNoise(max(sqrt(own), LEAST_NOISE), sqrt(max(0.0, between - explained)), runs)
    return noise, [_without(trial, shift) for trial in trials]


def observed(trial: TogetherRates) -> ObservedRates:
    """The means of a condition, and the spread of its runs."""
    rounds = list(trial.rounds.values())
    means = {disk: fmean(rates[disk] for rates in rounds) for disk in trial.disks}
    runs = [fmean(rate / max(means[disk], LEAST) for disk, rate in rates.items()) for rates in rounds]
    return ObservedRates(means, len(rounds), stdev(runs) if len(runs) > 1 else 0.0)


def _from_median(trial: TogetherRates, rates: Mapping[str, float]) -> float:
    """How far the rates of a run are from the medians of all rounds, relative and on average."""
    usual = {disk: median(each[disk] for each in trial.rounds.values()) for disk in rates}
    return fmean(rate / usual[disk] - 1.0 if usual[disk] else 0.0 for disk, rate in rates.items())


def _logs(trial: TogetherRates) -> LogRates:
    return {
        number: {disk: log(max(rate, LEAST)) for disk, rate in rates.items()} for number, rates in trial.rounds.items()
    }


def _shift(logs: Sequence[LogRates], means: Sequence[Mapping[str, float]]) -> dict[int, float]:
    """By round, how far its rates are from the means of their conditions: the median of all conditions."""
    drift: dict[int, list[float]] = {}
    for one, mean in zip(logs, means, strict=True):
        for number, rates in one.items():
            drift.setdefault(number, []).append(fmean(rates[disk] - mean[disk] for disk in rates))
    return {number: median(each) for number, each in drift.items()}


def _without(trial: TogetherRates, shift: Mapping[int, float]) -> TogetherRates:
    return TogetherRates(
        {
            number: {disk: rate * (1.0 - shift[number]) for disk, rate in rates.items()}
            for number, rates in trial.rounds.items()
        }
    )
