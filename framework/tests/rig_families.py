"""Families of synthetic rigs with a known truth: where limits are, and what knee and ceiling they make."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from synthetic_rigs import SyntheticRig

from plugpull.measure.fair import FairLimit, fair_rates
from plugpull.measure.limits import SharedLimit
from plugpull.measure.noise import TogetherRates

Members = tuple[int, ...]
Limits = list[tuple[Members, float]]


@dataclass(frozen=True)
class TruthRig:
    """``limits`` are (members, bytes per second), ``parts`` the hubs that the rig file declares, ``weights`` the shares
    of disks that do not have equal ones."""

    rates: Sequence[float]
    limits: Limits
    parts: Sequence[Members] = ()
    weights: Sequence[float] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"disk{number + 1}" for number in range(len(self.rates)))

    def truth(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """By group of disks, the ceiling and the knee: how many disks, in their order, it takes to reach it."""
        alone = {
            self.names[i]: min([rate, *(most for members, most in self.limits if i in members)])
            for i, rate in enumerate(self.rates)
        }
        limits = [FairLimit(frozenset(self.names[i] for i in members), most) for members, most in self.limits]
        return {
            disks: (limit.most, self._knee(disks, limit, alone, [one for one in limits if one is not limit]))
            for limit in limits
            for disks in [tuple(name for name in self.names if name in limit.disks)]
        }

    def _knee(
        self, disks: tuple[str, ...], limit: FairLimit, alone: Mapping[str, float], others: Sequence[FairLimit]
    ) -> float:
        below = 0.0
        for count in range(len(disks)):
            total = fsum(fair_rates(alone, others, disks[: count + 1]).values())
            if total >= limit.most * (1 - 1e-9):
                return count + (limit.most - below) / (total - below)
            below = total
        raise AssertionError("a limit that never binds is no truth")


def limited(draw: random.Random, rates: Sequence[float], members: Sequence[int], most: float = 0.85) -> float:
    """A limit of these members that matters: the share of their sum that it leaves them."""
    return fsum(rates[i] for i in members) * draw.uniform(0.3, most)


def batch(draw: random.Random, least: int = 3) -> list[float]:
    """Disks of one kind."""
    return [10.0 * draw.gauss(1, 0.02) for _ in range(draw.randint(least, 8))]


def chosen(draw: random.Random, count: int, least: int = 2) -> Members:
    return tuple(sorted(draw.sample(range(count), draw.randint(least, count - 1))))


def nothing(draw: random.Random) -> TruthRig:
    return TruthRig(batch(draw, 2), [])


def different_disks(draw: random.Random) -> TruthRig:
    return TruthRig([10.0 * draw.uniform(0.4, 1) for _ in range(draw.randint(2, 8))], [])


def one_controller(draw: random.Random) -> TruthRig:
    rates = batch(draw)
    return TruthRig(rates, [(tuple(range(len(rates))), limited(draw, rates, range(len(rates))))])


def two_disks(draw: random.Random) -> TruthRig:
    rates = batch(draw)[:2]
    return TruthRig(rates, [((0, 1), sum(rates) * draw.uniform(0.5, 0.8))])


def one_hub(draw: random.Random) -> TruthRig:
    rates = batch(draw)
    hub = chosen(draw, len(rates))
    return TruthRig(rates, [(hub, limited(draw, rates, hub))], [hub])


def undeclared(draw: random.Random) -> TruthRig:
    rates = batch(draw)
    shared = chosen(draw, len(rates))
    return TruthRig(rates, [(shared, limited(draw, rates, shared))])


def two_hubs(draw: random.Random) -> TruthRig:
    rates = batch(draw, 4)
    one = chosen(draw, len(rates) - 1)
    two = tuple(i for i in range(len(rates)) if i not in one)
    return TruthRig(rates, [(hub, limited(draw, rates, hub)) for hub in (one, two)], [one, two])


def three_hubs(draw: random.Random) -> TruthRig:
    rates = batch(draw, 6)
    order = draw.sample(range(len(rates)), len(rates))
    hubs = [tuple(sorted(order[first : first + 2])) for first in (0, 2, 4)]
    return TruthRig(rates, [(hub, limited(draw, rates, hub)) for hub in hubs], hubs)


def hub_in_controller(draw: random.Random) -> TruthRig:
    """Both limits bind: the hub's when the other disks rest, the controller's when all work."""
    rates = batch(draw, 4)
    hub = tuple(sorted(draw.sample(range(len(rates)), draw.randint(2, len(rates) - 2))))
    inner = fsum(rates[i] for i in hub) * draw.uniform(0.4, 0.8)
    rest = fsum(rate for i, rate in enumerate(rates) if i not in hub)
    outer = inner + rest * draw.uniform(0.15, 0.75)
    return TruthRig(rates, [(tuple(range(len(rates))), outer), (hub, inner)], [hub])


def hub_in_hub(draw: random.Random) -> TruthRig:
    """Of seven disks four are below a hub, and two of these below another one. All three limits bind."""
    rates = [10.0 * draw.gauss(1, 0.02) for _ in range(7)]
    order = draw.sample(range(7), 7)
    inner, middle = tuple(sorted(order[:2])), tuple(sorted(order[:4]))
    least = 20.0 * draw.uniform(0.5, 0.8)
    between = least + 20.0 * draw.uniform(0.3, 0.75)
    whole = between + 30.0 * draw.uniform(0.2, 0.75)
    return TruthRig(rates, [(tuple(range(7)), whole), (middle, between), (inner, least)], [middle, inner])


def hubs_in_controller(draw: random.Random) -> TruthRig:
    """Two hubs of three disks and a disk beside them. All three limits bind."""
    rates = [10.0 * draw.gauss(1, 0.02) for _ in range(7)]
    order = draw.sample(range(7), 7)
    hubs = [tuple(sorted(order[first : first + 3])) for first in (0, 3)]
    limits = [30.0 * draw.uniform(0.4, 0.75) for _ in hubs]
    whole = max((sum(limits) + 10.0) * draw.uniform(0.5, 0.85), max(limits) + 3.0)
    return TruthRig(rates, [(tuple(range(7)), whole), *zip(hubs, limits, strict=True)], hubs)


def slow_member(draw: random.Random) -> TruthRig:
    rates = batch(draw, 4)
    hub = chosen(draw, len(rates))
    rates[hub[0]] *= draw.uniform(0.4, 0.7)
    return TruthRig(rates, [(hub, fsum(rates[i] for i in hub) * draw.uniform(0.4, 0.85))], [hub])


def slower_than_a_disk(draw: random.Random) -> TruthRig:
    """A limit below the rate of each single disk."""
    rates = batch(draw)
    hub = chosen(draw, len(rates))
    return TruthRig(rates, [(hub, 10.0 * draw.uniform(0.4, 0.9))], [hub])


def unequal_shares(draw: random.Random) -> TruthRig:
    """A disk has more of a limit than each of the others."""
    rates = batch(draw, 4)
    hub = chosen(draw, len(rates), 3)
    weights = [1.0] * len(rates)
    weights[draw.choice(hub)] = draw.uniform(1.5, 3.0)
    return TruthRig(rates, [(hub, limited(draw, rates, hub, 0.75))], [hub], weights)


FAMILIES: Mapping[str, Callable[[random.Random], TruthRig]] = {
    made.__name__: made
    for made in (
        one_controller,
        two_disks,
        one_hub,
        undeclared,
        two_hubs,
        three_hubs,
        hub_in_controller,
        hub_in_hub,
        hubs_in_controller,
        slow_member,
        slower_than_a_disk,
        unequal_shares,
    )
}


# --- what is measured of them ------------------------------------------------------------------------------------

Vary = Callable[[random.Random, int], float]
"""The share of its rate that a disk has, from a draw, in a round."""


def normal(noise: float) -> Vary:
    return lambda draw, number: max(0.05, draw.gauss(1.0, noise))


def heavy_tailed(noise: float) -> Vary:
    """Student's t with 3 degrees of freedom: one in a hundred is 4 times as far off as normal noise."""
    return lambda draw, number: max(
        0.05, 1.0 + noise * draw.gauss(0, 1) / sqrt(fsum(draw.gauss(0, 1) ** 2 for _ in range(3)) / 3)
    )


def drifting(noise: float, each_round: float) -> Vary:
    """A host that gets slower from round to round, of 5."""
    return lambda draw, number: draw.gauss(1.0, noise) * (1.0 - each_round * (number - 2))


def trials(truth: TruthRig, repeats: int, vary: Vary, seed: object, stalls: float = 0.0) -> list[TogetherRates]:
    """What a scaling study measures of such a rig: each alone, more and more, all but one, the parts and the rests. In
    a share of ``stalls`` of all runs, all disks are slow."""
    draw, count = random.Random(f"{seed}"), len(truth.rates)
    every = tuple(range(count))
    sets = [*((i,) for i in every), *(every[:n] for n in range(2, count + 1))]
    sets += [tuple(j for j in every if j != i) for i in every]
    for part in truth.parts:
        sets += [tuple(part), tuple(i for i in every if i not in part)]
    rig = SyntheticRig(truth.rates, truth.limits, noise=0.0, seed=seed, weights=truth.weights)

    def run(working: Members, number: int) -> dict[str, float]:
        slow = draw.uniform(0.4, 0.8) if draw.random() < stalls else 1.0
        rates = rig.true_rates(working)
        return {truth.names[i]: rate * vary(draw, number) * slow for i, rate in rates.items()}

    distinct = [one for one in dict.fromkeys(sets) if one]
    return [TogetherRates({number: run(one, number) for number in range(repeats)}) for one in distinct]


def parts_of(truth: TruthRig) -> list[tuple[str, ...]]:
    return [tuple(truth.names[i] for i in part) for part in truth.parts]


def wrong(truth: TruthRig, found: Sequence[SharedLimit] | None) -> str:
    """What is wrong with the limits that were found: other groups, a knee off by 10 %, a ceiling off by 5 %."""
    if found is None:
        return "not described"
    wanted = truth.truth()
    if {one.disks for one in found} != set(wanted):
        return f"groups {[one.disks for one in found]} instead of {list(wanted)}"
    for one in found:
        ceiling, knee = wanted[one.disks]
        if abs(one.ceiling.mean / ceiling - 1) > 0.05:
            return f"ceiling {one.ceiling.mean:.2f} instead of {ceiling:.2f}"
        if abs(one.knee.mean / knee - 1) > 0.10:
            return f"knee {one.knee.mean:.2f} instead of {knee:.2f}"
    return ""
