"""RAID 0 of more and more disks: up to how many of them its rate grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from plugpull.checks.collector import Collector
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.hinge import describes, fit
from plugpull.studies.figures import interval

ALIKE = 1.10
"""A stripe is as fast as its slowest member: of disks that differ by more, the number of members says nothing."""
FLAT = 0.5
"""The last disks add less than this share of what the first ones do: what an array costs the DUT looks like less."""
LIMITED = 0.9
"""And the whole interval of what the largest array has, of what its disks would have at that slope, is below this."""
COUNTS = 3
"""Numbers of members at least, the single disk among them."""

Rates = Mapping[int, Sequence[float]]
"""By number of members, the rates of the array, one per repeat."""


def stripe_knee(mode: str, chunk: int, alone: Sequence[Sequence[float]], rates: Rates, said: Collector) -> None:
    """Conclude knee and ceiling of RAID 0 with chunks of so many bytes, if its rate stops growing. ``alone`` are the
    rates of each of its disks by itself, in the order in which they become members."""
    singles = [fmean(each) for each in alone if each]
    if len(singles) < len(alone) or not singles or max(singles) > ALIKE * min(singles):
        return
    found = _fits(alone[0], rates)
    if found is None:
        return
    knee, ceiling = found
    subject = f"raid0, {chunk >> 10} KiB chunks"
    evidence = tuple(_counts(alone[0], rates))
    bounds = "" if knee.low is None else f" ({knee.low:.2f} to {knee.high:.2f}, {knee.n} repeats)"
    said.conclude(
        Conclusion(
            kind="knee",
            subject=subject,
            text=f"{subject}: the {mode} rate grows with each disk up to {knee.mean:.2f} disks{bounds}; more disks add "
            "nothing.",
            value=round(knee.mean, 4),
            unit="disks",
            evidence=evidence,
        )
    )
    said.conclude(
        Conclusion(
            kind="ceiling",
            subject=subject,
            text=f"{subject}: more and more disks {mode} at most {interval(ceiling)}.",
            value=round(ceiling.mean, 3),
            unit="B/s",
            evidence=evidence,
        )
    )


def _fits(single: Sequence[float], rates: Rates) -> tuple[Estimate, Estimate] | None:
    """Knee and ceiling, of each repeat by itself; ``None`` if the rate grows to the end, as far as can be said, or if
    it has no such shape: chunks so small that one disk without an array is faster than two with it."""
    counts, repeats = [1, *sorted(rates)], min(map(len, rates.values()), default=0)
    if len(counts) < COUNTS or repeats < 2:
        return None
    curves = [[fmean(single), *(rates[count][number] for count in counts[1:])] for number in range(repeats)]
    if not describes(counts, curves):
        return None
    knees, ceilings, shares, gains = [], [], [], []
    for sums in curves:
        hinge = fit(counts, sums)
        if hinge.ceiling is None or hinge.knee is None:
            return None
        knees.append(min(hinge.knee, float(counts[-1])))
        ceilings.append(hinge.ceiling)
        shares.append(sums[-1] / (hinge.slope * counts[-1]))
        gains.append((sums[-1] - sums[-2]) / (hinge.slope * (counts[-1] - counts[-2])))
    share = estimate(shares)
    if fmean(gains) >= FLAT or share.high is None or share.high >= LIMITED:
        return None
    return estimate(knees), estimate(ceilings)


def _counts(single: Sequence[float], rates: Rates) -> Iterable[str]:
    yield f"1 disk, without an array: {interval(estimate(single))}"
    for count in sorted(rates):
        yield f"{count} disks: {interval(estimate(rates[count]))}"
