"""Which disks share a limit, and how high it is: the fewest limits that explain the rates of all conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean

from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.fair import FREE, FairLimit, FairModel, Fitting, ObservedRates, RunNoise, fair_rates
from plugpull.measure.noise import TogetherRates, noise_of, observed, without_odd
from plugpull.measure.student import t_quantile

SURE = 0.005
"""The probability of claiming any limit where there is none."""
LIMITED = 0.95
"""A limit that leaves its disks more than this share of what they would have without it is not claimed."""
PRIOR = 8.0
"""The misfit that a limit of disks must explain besides, if no part of the rig holds exactly these disks."""
NOISY = 0.08
"""No limit is claimed if all rates of a run vary together by more than this: such runs have several rates, not one."""
DESCRIBES = 4.0
"""The model does not describe disks whose misfit is above this per degree of freedom."""
UNFAIR = 0.6
"""Above this, disks may have unequal shares of a limit. Weights are tried, ..."""
WEIGHT = 2.0
"""... which have to explain this much of the misfit each, and ``PRIOR`` besides."""
AS_GOOD = 6.0
"""Another model explains as much if its misfit is larger by at most this."""
CREDIT = 6
"""Degrees of freedom that are added for that: the noise is not known exactly."""
MOST = 8
"""Limits that are looked for."""


@dataclass(frozen=True)
class SharedLimit:
    """``disks`` share a limit: together they reach ``ceiling``, where they would reach ``demand`` without it. ``knee``
    is the number of them, in their order, at which they reach it. Ceiling and knee have a sample per round. ``instead``
    are disks that may share it as well, as far as was measured: then these have unequal shares, or those of ``disks``
    have."""

    disks: tuple[str, ...]
    ceiling: Estimate
    knee: Estimate
    demand: float
    instead: tuple[str, ...] = ()


def find_limits(
    trials: Sequence[TogetherRates], parts: Iterable[Collection[str]] = (), known: Iterable[Collection[str]] = ()
) -> tuple[SharedLimit, ...] | None:
    """The limits that disks share, the ones of most disks first. ``None`` if no such limits describe the measurements,
    or if there are too few repeats to know their noise. None are claimed of runs that vary too much.

    Each disk must be measured alone. ``parts`` are the disks below each hub and controller: of two explanations that
    are about as good, the one with such a part is taken. ``known`` are disks that share a limit as other measurements
    showed: they explain what they can. Raises ValueError for a disk that was not measured alone.
    """
    trials = without_odd(trials)
    order = [trial.disks[0] for trial in trials if len(trial.disks) == 1]
    missing = {disk for trial in trials for disk in trial.disks} - set(order)
    if missing:
        raise ValueError(f"{', '.join(sorted(missing))}: not measured alone")
    noise, without_drift = noise_of(trials)
    if noise is None:
        return None
    if noise.common > NOISY:
        return ()
    means = [observed(trial) for trial in without_drift]
    shown = {frozenset(disks) & frozenset(order) for disks in known}
    declared = {frozenset(part) & frozenset(order) for part in parts} | {frozenset(order)} | shown
    model, others = _best(means, noise, declared, _candidates(means, order, declared))
    shown_only = [one for one in others if one.limits and all(limit.disks in shown for limit in one.limits)]
    if shown_only:
        model, others = shown_only[0], ()
    if model is None or model.misfit > DESCRIBES * (CREDIT + sum(len(one.rates) for one in means)):
        return None
    found = (
        replace(_shared(limit, model, trials, order), instead=_instead(limit, others, order)) for limit in model.limits
    )
    return tuple(sorted(found, key=lambda one: (-len(one.disks), order.index(one.disks[0]))))


# --- the search --------------------------------------------------------------------------------------------------


def _candidates(
    means: Sequence[ObservedRates], order: Sequence[str], declared: Collection[frozenset[str]]
) -> tuple[frozenset[str], ...]:
    """Sets of disks that may share a limit: the parts of the rig, and those that slow each other down, by how much."""
    links = sorted(_links(means).items(), key=lambda link: -link[1])
    home = {disk: frozenset({disk}) for disk in order}
    found = [part for part in declared if len(part) > 1]
    for (one, two), slower in links:
        if home[one] is home[two] or slower < 1 - LIMITED:
            continue
        joined = home[one] | home[two]
        home.update(dict.fromkeys(joined, joined))
        found.append(joined)
    return tuple(dict.fromkeys(found))


def _links(means: Sequence[ObservedRates]) -> dict[tuple[str, str], float]:
    """By pair of disks, the largest share that one loses when the other one is added to those that work."""
    by_set = {frozenset(one.rates): one.rates for one in means}
    links: dict[tuple[str, str], float] = {}
    for disks, rates in by_set.items():
        for added in disks:
            before = by_set.get(disks - {added})
            for disk in disks - {added} if before is not None else ():
                assert before is not None
                pair = (min(disk, added), max(disk, added))
                links[pair] = max(links.get(pair, 0.0), 1.0 - rates[disk] / before[disk])
    return links


def _best(
    means: Sequence[ObservedRates],
    noise: RunNoise,
    declared: Collection[frozenset[str]],
    candidates: Sequence[frozenset[str]],
) -> tuple[FairModel | None, Sequence[FairModel]]:
    """The best model in which disks have equal shares of a limit, unless one with unequal shares is much better; and
    others that explain as much."""
    search = _Search(means, noise, declared, candidates)
    model = search.run()
    if model is None:
        return None, ()
    # Limits that nothing declares, inside others, are what unequal shares look like where few sets were measured.
    invented = any(one.disks < two.disks and one.disks not in declared for one in model.limits for two in model.limits)
    if model.misfit <= UNFAIR * sum(len(one.rates) for one in means) and not invented:
        found = [model]  # equal shares explain all that noise leaves
    else:
        unfair = _Search(means, noise, declared, candidates, weighted=True).run()
        found = sorted([model, *([unfair] if unfair is not None else [])], key=search.score)
    best, *others = found
    if not best.weights and any(one.disks not in declared for one in best.limits):
        parts = [disks for disks in candidates if disks in declared]
        unequal = _Search(means, noise, declared, parts, weighted=True).run()
        others += [unequal] if unequal is not None else []
    return best, [one for one in others if one.misfit <= best.misfit + AS_GOOD]


def _instead(limit: FairLimit, others: Iterable[FairModel], order: Sequence[str]) -> tuple[str, ...]:
    """Disks that share another limit in place of this one, in a model that explains as much."""
    for model in others:
        sets = [one.disks for one in model.limits]
        if sets and limit.disks not in sets:
            nearest = min(sets, key=lambda disks: len(disks ^ limit.disks))
            return tuple(disk for disk in order if disk in nearest)
    return ()


class _Search:
    """Adds the limit that explains most, as long as one explains more than noise would."""

    def __init__(
        self,
        observed: Sequence[ObservedRates],
        noise: RunNoise,
        declared: Collection[frozenset[str]],
        candidates: Sequence[frozenset[str]],
        *,
        weighted: bool = False,
    ) -> None:
        self._weighted = weighted
        self._observed = observed
        self._fitting = Fitting(observed, noise)
        self._fitted: dict[frozenset[FairLimit], FairModel | None] = {}
        self._declared = declared
        self._candidates = candidates
        self._enough = t_quantile(1 - SURE / 2 / max(1, len(candidates)), noise.freedom) ** 2

    def run(self) -> FairModel | None:
        """The best model. The search begins without a limit, and again with what the parts of the rig alone explain: a
        wrong set may explain most at first, and be in the way of all that are right."""
        none = self._fitting.fit([])
        if none is None:
            return None
        if self._weighted:
            return self._grown(none, self._candidates)
        parts = [disks for disks in self._candidates if disks in self._declared]
        found = [self._grown(none, self._candidates), self._grown(self._grown(none, parts), self._candidates)]
        return min(found, key=self.score)

    def _grown(self, model: FairModel, candidates: Sequence[frozenset[str]]) -> FairModel:
        """With more and other limits, as long as that makes it better."""
        while len(model.limits) < MOST:
            found = self._better(model, candidates)
            if found is None:
                break
            model = found
        return model

    def _better(self, before: FairModel, candidates: Sequence[frozenset[str]]) -> FairModel | None:
        """The best model with another limit, or with one in the place of another; ``None`` if none is better."""
        best, least = None, self.score(before) - 1e-6
        kept = [before.limits, *(tuple(one for one in before.limits if one is not out) for out in before.limits)]
        for limits in kept:
            for disks in (*candidates, None):
                found = self._with(limits, disks)
                if found is not None and self.score(found) < least:
                    best, least = found, self.score(found)
        return best

    def _with(self, limits: Sequence[FairLimit], disks: frozenset[str] | None) -> FairModel | None:
        if disks is None:
            return self._fit(limits)
        if any(limit.disks == disks for limit in limits):
            return None
        found = [self._fit([*limits, FairLimit(disks, most)]) for most in self._starts(disks)]
        models = [one for one in found if one is not None and self._matter(one)]
        return min(models, key=lambda one: one.misfit) if models else None

    def _fit(self, limits: Sequence[FairLimit]) -> FairModel | None:
        key = frozenset(limits)  # the two searches often come to the same model
        if key not in self._fitted:
            self._fitted[key] = self._fitting.fit(limits, weighted=self._weighted)
        return self._fitted[key]

    def _starts(self, disks: frozenset[str]) -> Iterator[float]:
        """Values to begin with: the most that these disks reached together, and what they reached among most disks."""
        sums = [
            (len(one.rates), fsum(rate for disk, rate in one.rates.items() if disk in disks))
            for one in self._observed
            if len(disks.intersection(one.rates)) > 1
        ]
        if sums:
            yield from dict.fromkeys((max(total for _, total in sums), max(sums)[1]))

    def score(self, model: FairModel) -> float:
        """The misfit, and a price for each limit and each weight."""
        new = sum(limit.disks not in self._declared for limit in model.limits)
        weights = PRIOR + WEIGHT * (len(model.weights) - 1) if model.weights else 0.0
        return model.misfit + self._enough * len(model.limits) + PRIOR * new + weights

    def _matter(self, model: FairModel) -> bool:
        """Whether each limit takes away enough of what its disks have in some condition."""
        return all(any(_share(model, limit, one.rates) < LIMITED for one in self._observed) for limit in model.limits)


def _share(model: FairModel, limit: FairLimit, working: Collection[str]) -> float:
    """What the disks that a limit slows have, as a share of what they would have without it. Others below it may have
    less by a limit inside it."""
    inside = limit.disks.intersection(working)
    if len(inside) < 2:
        return 1.0
    others = [one for one in model.limits if one is not limit]
    without = fair_rates(model.alone, others, working, model.weights)
    having = model.rates(working)
    slowed = [disk for disk in inside if having[disk] < FREE * without[disk]]
    counted = slowed if len(slowed) > 1 else inside  # one that is a little faster than the others is no sign of a limit
    return fsum(having[disk] for disk in counted) / fsum(without[disk] for disk in counted)


# --- figures of a limit ------------------------------------------------------------------------------------------


def _shared(limit: FairLimit, model: FairModel, trials: Sequence[TogetherRates], order: Sequence[str]) -> SharedLimit:
    disks = tuple(disk for disk in order if disk in limit.disks)
    sums: dict[int, list[float]] = {}
    free: dict[int, dict[str, list[float]]] = {}
    for trial in trials:
        predicted = model.rates(trial.disks)
        binds = len(limit.disks.intersection(predicted)) > 1 and limit.binds(predicted)
        for number, rates in trial.rounds.items():
            if binds:
                sums.setdefault(number, []).append(fsum(rates[disk] for disk in rates if disk in limit.disks))
            for disk, rate in rates.items():
                if predicted[disk] >= (1 - 1e-6) * model.alone[disk]:
                    free.setdefault(number, {}).setdefault(disk, []).append(rate)
    others = [one for one in model.limits if one is not limit]
    knees = []
    for number, each in sorted(sums.items()):
        alone = {**model.alone, **{disk: fmean(rates) for disk, rates in free.get(number, {}).items()}}
        knees.append(_knee(disks, replace(model, alone=alone, limits=tuple(others)), fmean(each)))
    ceiling = estimate([fmean(each) for _, each in sorted(sums.items())])
    demand = fsum(replace(model, limits=tuple(others)).rates(disks).values())
    return SharedLimit(disks, replace(ceiling, odd=()), replace(estimate(knees), odd=()), demand)


def _knee(disks: Sequence[str], others: FairModel, most: float) -> float:
    """How many of the disks, in their order, would reach ``most`` without the limit. A fraction is part of a disk."""
    below = 0.0
    for count in range(len(disks)):
        total = fsum(others.rates(disks[: count + 1]).values())
        if total >= most and total > below:
            return count + (most - below) / (total - below)
        below = max(below, total)
    return float(len(disks))
