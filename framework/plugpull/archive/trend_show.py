"""Shows a trend as text for a mail, Markdown for a chat, and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from plugpull.archive.bench import BenchTrouble
from plugpull.archive.trend import SeriesTrend, Trend, ValueTrend, as_object
from plugpull.archive.verdicts import CLASSES, SeriesClass, wilson
from plugpull.plain import clean_json, clean_line

SHOWN = 40
"""Entries of one section that are listed."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~@!])")

HEADINGS: dict[SeriesClass, str] = {
    "new": "New failures",
    "ongoing": "Still failing",
    "fixed": "Fixed",
    "passing again": "Passing again",
    "flaky": "Flaky",
    "gone": "Gone: not run any more",
    "never run": "Never run to a verdict",
    "passing": "Passing",
}


@dataclass(frozen=True)
class TrendSection:
    """A heading, and what is under it: series of verdicts, changes of values, or troubles of benches."""

    heading: str
    series: tuple[SeriesTrend, ...] = ()
    values: tuple[ValueTrend, ...] = ()
    bench: tuple[BenchTrouble, ...] = ()

    @property
    def entries(self) -> list[str]:
        """One line for each."""
        return [*map(series_line, self.series), *map(value_line, self.values), *map(bench_line, self.bench)]


def sections(trend: Trend) -> Iterator[TrendSection]:
    """The parts of the text, the most urgent first, without those that are empty.

    Changes of values, and series that are gone, are in it for 30 nights; the JSON has all of them."""

    def verdicts(name: SeriesClass) -> TrendSection:
        return TrendSection(HEADINGS[name], tuple(one for one in trend.series if one.name == name and one.news))

    worse, better, other = _by_direction(one for one in trend.changes if one.news)
    found = [
        verdicts("new"),
        verdicts("ongoing"),
        verdicts("fixed"),
        verdicts("passing again"),
        TrendSection("Slower or worse", values=tuple(worse)),
        TrendSection("Faster or better", values=tuple(better)),
        TrendSection("Changed", values=tuple(other)),
        verdicts("flaky"),
        TrendSection("The benches", bench=trend.bench),
        TrendSection("Different since a declared change", values=tuple(one for one in trend.steps if one.news)),
        verdicts("gone"),
        verdicts("never run"),
    ]
    yield from (section for section in found if section.series or section.values or section.bench)


def _by_direction(changes: Iterable[ValueTrend]) -> tuple[list[ValueTrend], list[ValueTrend], list[ValueTrend]]:
    worse: list[ValueTrend] = []
    better: list[ValueTrend] = []
    other: list[ValueTrend] = []
    for one in reversed(list(changes)):  # the newest first
        kind = direction(one)
        (worse if kind == "worse" else better if kind == "better" else other).append(one)
    return worse, better, other


def direction(one: ValueTrend) -> str:
    """``worse``, ``better``, or empty if a measurement has no better direction."""
    if not one.better or one.after == one.before:
        return ""
    return "better" if (one.after > one.before) == (one.better == "up") else "worse"


def headline(trend: Trend) -> str:
    """The page in one sentence."""
    counts = [(len([1 for one in trend.series if one.name == name]), name) for name in CLASSES]
    said = [f"{count} {name}" for count, name in counts if count]
    changed = sum(one.state == "changed" and one.news for one in trend.changes)
    suspected = sum(one.state == "suspected" for one in trend.changes)
    said += [f"{changed} value{'s' * (changed > 1)} changed"] * bool(changed)
    said += [f"{suspected} suspected to have changed"] * bool(suspected)
    return f"{trend.nights} night{'s' * (trend.nights != 1)}: {', '.join(said) or 'no results'}"


# --- one entry -------------------------------------------------------------------------------------------------------


def series_line(one: SeriesTrend) -> str:
    """A series of verdicts in one line."""
    reason = f": {one.reason}" if one.reason else ""
    if one.name == "flaky":
        low, high = wilson(one.k, one.n)
        return f"{one.key}: failed {one.k} of {one.n} ({low:.0%} to {high:.0%}) since {one.since}{reason}"
    if one.name == "passing again":
        return f"{one.key}: passed {one.k} of {one.n} since {one.since}, before{reason or ' it failed'}"
    if one.name == "fixed":
        return f"{one.key}: since {one.since}, before{reason or ' it failed'}"
    if one.name == "gone":
        return f"{one.key}: since {one.since}, last run {one.last or 'without a result'}"
    detail = f": {one.detail}" if one.detail else ""
    return f"{one.key}" + (f": since {one.since}{reason}{detail}" if one.since else "")


def value_line(one: ValueTrend) -> str:
    """A change of a measured value in one line."""
    share = f" ({one.share:+.1%})" if one.share is not None else ""
    usual = f"; a night usually varies by up to {one.usual:.1%}" if one.usual is not None else ""
    sure = {"changed": f"p {one.p:.1g}", "suspected": f"suspected, p {one.p:.1g}"}.get(
        one.state, f"with {one.declared}"
    )
    values = f"{amount(one.before, one.unit)} to {amount(one.after, one.unit)}"
    return f"{one.measurement}: {values}{share} since {one.at}, {sure}{usual}: {one.key}"


def bench_line(one: BenchTrouble) -> str:
    """A trouble of a bench in one line."""
    where = f"{one.rig or 'a rig without a name'}, kernel {one.kernel or 'not known'}"
    reason = f": {one.reason}" if one.reason else ""
    if one.key:
        return f"{where}: {one.key} gave no result {one.k} night{'s' * (one.k != 1)} in a row{reason}"
    words = {
        "decaying": "decays: more nights with something UNKNOWN lately",
        "failing": "the newest night has something UNKNOWN",
        "unsteady": "some nights have something UNKNOWN",
    }[one.state]
    return f"{where}: {words}, {one.k} of {one.n}, last {one.last}{reason}"


def amount(value: float, unit: str) -> str:
    """A value with its unit.

    >>> amount(28_500_000, "B/s"), amount(0.21, "s"), amount(0.97, "of the baseline")
    ('28.5 MB/s', '0.21 s', '0.97 of the baseline')
    """
    if unit in ("B/s", "B", "bytes"):
        for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{value / size:.4g} {prefix}B{unit.removeprefix('B') if unit != 'bytes' else ''}"
    return f"{value:.4g} {unit}".rstrip()


# --- whole texts -----------------------------------------------------------------------------------------------------


def as_text(trend: Trend) -> Iterator[str]:
    """The trend as lines of plain text."""
    yield clean_line(headline(trend))
    for section in sections(trend):
        yield ""
        yield section.heading
        yield from (clean_line(f"  {entry}") for entry in _limited(section.entries))


def as_markdown(trend: Trend) -> Iterator[str]:
    """The trend as Markdown. Text from runs is escaped, so that it cannot mention, link or format anything."""
    yield f"**{_escaped(headline(trend))}**"
    for section in sections(trend):
        yield ""
        yield f"**{section.heading}**"
        yield ""
        yield from (f"- {_escaped(entry)}" for entry in _limited(section.entries))


def as_json(trend: Trend) -> str:
    """The trend as JSON, with a line end."""
    return clean_json(msgspec.json.format(msgspec.json.encode(as_object(trend)), indent=2).decode()) + "\n"


def _limited(entries: Sequence[str]) -> Iterator[str]:
    yield from entries[:SHOWN]
    if len(entries) > SHOWN:
        yield f"and {len(entries) - SHOWN} more"


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", clean_line(text)).replace("://", ":\u200b//")
