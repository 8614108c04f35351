"""Rigs with a known truth: disks with a rate each, and limits that several of them share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import fsum

from plugpull.measure.scaling import Repeat
from plugpull.measure.sharing import groups


class SyntheticRig:
    """Disks with a rate each, and limits that several share: max-min fair, with normal noise from run to run. Disks
    with other ``weights`` than 1 have so much larger shares."""

    def __init__(
        self,
        rates: Sequence[float],
        limits: Sequence[tuple[Sequence[int], float]] = (),
        *,
        noise: float,
        seed: object,
        weights: Sequence[float] = (),
    ) -> None:
        self.rates = tuple(rates)
        self.weights = tuple(weights) or (1.0,) * len(self.rates)
        self.limits = tuple((frozenset(members), limit) for members, limit in limits)
        self._noise = noise
        self._draw = random.Random(f"{seed}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"disk{number + 1}" for number in range(len(self.rates)))

    def true_rates(self, working: Sequence[int]) -> dict[int, float]:
        """Max-min fair rates, by filling all disks by their weights until a disk or a limit is full."""
        rate, open_disks = dict.fromkeys(working, 0.0), set(working)
        while open_disks:
            steps = [(self.rates[i] - rate[i]) / self.weights[i] for i in open_disks]
            for members, limit in self.limits:
                growing = members & open_disks
                if growing:
                    left = limit - fsum(rate[i] for i in members & set(working))
                    steps.append(left / fsum(self.weights[i] for i in growing))
            step = min(steps)
            for i in open_disks:
                rate[i] += step * self.weights[i]
            full = {i for i in open_disks if self.rates[i] - rate[i] < 1e-9}
            for members, limit in self.limits:
                if limit - fsum(rate[i] for i in members & set(working)) < 1e-9:
                    full |= members & open_disks
            open_disks -= full
        return rate

    def run(self, working: Sequence[int]) -> dict[str, float]:
        """One run: each disk's rate with its noise."""
        true = self.true_rates(working)
        return {self.names[i]: rate * self._draw.gauss(1.0, self._noise) for i, rate in true.items()}

    def repeat(self) -> Repeat:
        everyone = range(len(self.rates))
        alone = tuple(self.run([i])[self.names[i]] for i in everyone)
        together = tuple(fsum(self.run(range(i + 1)).values()) for i in everyone)
        return Repeat(alone, together)

    def alone(self, repeats: int) -> dict[str, list[float]]:
        return {name: [self.run([i])[name] for _ in range(repeats)] for i, name in enumerate(self.names)}

    def groups(self, repeats: int) -> list[tuple[str, ...]]:
        everyone = list(range(len(self.rates)))
        together = _columns([self.run(everyone) for _ in range(repeats)])
        without = {
            self.names[j]: _columns([self.run([i for i in everyone if i != j]) for _ in range(repeats)])
            for j in everyone
        }
        return [one.disks for one in groups(self.alone(repeats), together, without)]


def _columns(runs: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [run[name] for run in runs] for name in runs[0]}
