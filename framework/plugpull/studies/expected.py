"""The limits that a rig file sets for measured rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugpull.checks.collector import Collector
from plugpull.history.events import ArrayMade
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import Estimate
from plugpull.studies.figures import interval, rate


def below_expectation(story: Story, name: str, mode: str, found: Estimate, said: Collector) -> None:
    """Accuse the disk, hub or controller ``name`` if its whole interval is outside ``expect`` of the rig file."""
    _judge(_expect(story, name), name, mode, found, said)


def array_below_expectation(
    story: Story, made: ArrayMade, subject: str, mode: str, found: Estimate, said: Collector
) -> None:
    """Accuse an array if its whole interval is outside ``expect`` of an ``[[array]]`` of its level and size."""
    for table in story.rig.get("array", ()):
        if table.get("level") == made.level and table.get("members") in (None, len(made.members)):
            _judge(_limits(table), subject, mode, found, said)


def _judge(expect: dict[str, float], name: str, mode: str, found: Estimate, said: Collector) -> None:
    least, most = expect.get(f"{mode}_at_least"), expect.get(f"{mode}_at_most")
    if found.low is None or found.high is None:
        return
    if least is not None and found.high < least:
        words, bound = "below", least
    elif most is not None and found.low > most:
        words, bound = "above", most
    else:
        return
    text = f"{name}: the {mode} rate is {rate(found.mean)}, {words} the {rate(bound)} that the rig file expects"
    said.accuse(name, text, evidence=(interval(found),))
    if words == "below":
        said.conclude(
            Conclusion(
                kind="below-expectation",
                subject=name,
                text=f"{text}.",
                value=round(found.mean / bound - 1, 4),
                unit="of the expected rate",
                evidence=(interval(found),),
            )
        )


def _expect(story: Story, name: str) -> dict[str, float]:
    """``expect`` of the disk, hub or controller of this name; empty if it has none."""
    for kind in ("disk", "hub", "controller"):
        for table in story.rig.get(kind, ()):
            if table.get("name") == name:
                return _limits(table)
    return {}


def _limits(table: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in (table.get("expect") or {}).items() if value is not None}
