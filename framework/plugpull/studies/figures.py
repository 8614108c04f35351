"""Turns repeats into measurements with intervals, and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from plugpull.judging.results import Better, Measurement
from plugpull.measure.estimate import Estimate, estimate
from plugpull.measure.steady import LEAST, steadiness

BETTER: Mapping[str, Better] = {"B/s": "up", "seeks/s": "up", "s": "down"}
"""By unit, the direction in which a figure improves."""
NOISY = 0.25
"""An interval that reaches farther than this share of the mean to each side says too little."""


def figure(
    name: str,
    subject: str,
    samples: Sequence[float],
    parameters: Mapping[str, str | float],
    unit: str = "B/s",
    counting: float = 0.0,
) -> Measurement:
    """The mean of at least one repeat, with its 95 % Student interval. Nothing that is measured can be below 0.
    ``counting``: see ``estimate``."""
    found = estimate(samples, counting=counting)
    return Measurement(
        name=name,
        subject=subject,
        value=_rounded(found.mean, unit),
        unit=unit,
        low=None if found.low is None else _rounded(max(0.0, found.low), unit),
        high=None if found.high is None else _rounded(found.high, unit),
        n=found.n,
        samples=tuple(_rounded(sample, unit) for sample in samples),
        odd=found.odd,
        better=BETTER.get(unit, ""),
        parameters=dict(parameters),
    )


def rate(value: float) -> str:
    """Bytes per second in decimal units."""
    for unit, scale in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} B/s"


def doubts(
    what: str,
    samples: Sequence[float],
    planned: int,
    spoilt: Sequence[str],
    say: Callable[[float], str] = rate,
) -> Iterator[str]:
    """What keeps these repeats, in order of time, from being a result, a sentence each. ``say`` puts a value in
    words."""
    if len(samples) < min(planned, LEAST):
        why = f": {spoilt[0]}" if spoilt else ""
        yield f"only {len(samples)} of {planned} measurements of {what} count{why}"
        return
    found = estimate(samples)
    if found.odd:
        odd = ", ".join(say(samples[number]) for number in found.odd)
        yield f"{what}: a repeat is unlike the others ({odd}, mean {say(found.mean)}), so nothing is concluded from it"
        return
    state = steadiness(samples)
    if state is not None and not state.steady:
        yield f"{what} was not steady: {state}"
    elif found.high is not None and found.half > NOISY * abs(found.mean):
        yield f"{what} is too noisy to say: {interval(found, say)}"


def time(seconds: float) -> str:
    """A time in seconds, or in milliseconds below one."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def interval(found: Estimate, say: Callable[[float], str] = rate) -> str:
    """A mean with its interval, in words: ``say`` puts a value in words."""
    if found.low is None or found.high is None:
        return f"{say(found.mean)} (one repeat)"
    return f"{say(found.mean)} ({say(found.low)} to {say(found.high)}, {found.n} repeats)"


def _rounded(value: float, unit: str) -> float:
    return round(value, 6 if unit == "s" else 3)
