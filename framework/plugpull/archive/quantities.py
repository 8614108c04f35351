"""The measured values of a scenario in ``results.json``: its measurements, recovery times, and survivors' rates.

A value that is there twice, as a measurement and in a cut or a survivor, is taken once: the measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from plugpull.archive.foreign import Object, line, number, parts
from plugpull.archive.records import Value

SURVIVOR = (
    ("baseline_bps", "baseline rate", "B/s", "up"),
    ("stall_s", "longest stall", "s", "down"),
    ("recovery_s", "recovered after", "s", "down"),
    ("final_ratio", "final rate", "of the baseline", "up"),
)
"""Fields of a survivor, and the measurement that each is."""
NAME = 120
"""Characters of a name that are kept."""
MOST_SAMPLES = 1000


def values_of(scenario: Object) -> Iterator[Value]:
    """The values of a scenario, as far as they are finite numbers."""
    measured = list(_measurements(scenario))
    yield from measured
    seen = {(value.metric, value.subject) for value in measured}
    for value in (*_recovery_times(scenario), *_survivors(scenario)):
        if (value.metric, value.subject) not in seen:
            yield value


def _measurements(scenario: Object) -> Iterator[Value]:
    for one in parts(scenario, "measurements"):
        value, name = number(one.get("value")), line(one.get("name"), NAME)
        if value is None or not name:
            continue
        samples = one.get("samples")
        kept = [number(sample) for sample in samples[:MOST_SAMPLES]] if isinstance(samples, list) else []
        better = one.get("better")
        yield Value(
            metric=name,
            value=value,
            subject=line(one.get("subject"), NAME),
            parameters=_parameters(one.get("parameters")),
            unit=line(one.get("unit"), NAME),
            better=better if better in ("up", "down") else "",
            samples=tuple(sample for sample in kept if sample is not None),
        )


def _parameters(given: object) -> str:
    if not isinstance(given, dict):
        return ""
    pairs = (f"{key}={value}" for key, value in sorted(given.items()) if isinstance(value, str | int | float))
    return line(" ".join(pairs), NAME)


def _recovery_times(scenario: Object) -> Iterator[Value]:
    """Times of the cuts. Several cuts of one disk are the repeats of one night, and their median is its value."""
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for cut in parts(scenario, "cuts"):
        victims = cut.get("victims")
        one = line(victims[0], NAME) if isinstance(victims, list) and len(victims) == 1 else ""
        subject = one or line(cut.get("point"), NAME).rpartition(".")[0]
        disks = [(each, line(each.get("disk"), NAME)) for each in parts(cut, "disks")]
        for times_of, disk in disks or [(cut, subject)]:
            for metric, end, begin in (
                ("removed after", times_of.get("removed_at"), cut.get("commanded_at")),
                ("returned after", times_of.get("returned_at"), cut.get("restored_at")),
                ("first I/O after", times_of.get("first_io_at"), cut.get("restored_at")),
            ):
                _put(times[metric, disk], end, begin)
        _put(times["seen by the kernel after", subject], cut.get("kernel_saw_at"), cut.get("commanded_at"))
    for (metric, subject), found in times.items():
        if found:
            yield Value(metric, median(found), subject, unit="s", better="down", samples=tuple(found))


def _put(where: list[float], end: object, begin: object) -> None:
    late, early = number(end), number(begin)
    if late is not None and early is not None and len(where) < MOST_SAMPLES:
        where.append(round(late - early, 6))


def _survivors(scenario: Object) -> Iterator[Value]:
    for survivor in parts(scenario, "survivors"):
        for key, metric, unit, better in SURVIVOR:
            value = number(survivor.get(key))
            if value is not None:
                yield Value(metric, value, line(survivor.get("disk"), NAME), unit=unit, better=better)
