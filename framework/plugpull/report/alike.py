"""Findings that look alike in several scenarios of a run, each said once, with what they have in common.

Two findings look alike if one check made both, and their summaries differ only in numbers and in the names of disks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugpull.finding import Finding
from plugpull.history.events import DiskAttached, Event, LoadBegun
from plugpull.history.tape import others_of
from plugpull.judging.results import ScenarioResult, Verdict

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")
LEAST = 2
"""Scenarios in which a finding must be to be said once for all of them."""
MOST = 30
"""Kinds of findings shown at most."""
KINDS = ("driver", "controller", "hub", "mechanism", "load", "kernel")
"""What findings may have in common, in the order in which it is said."""

Traits = dict[str, frozenset[str]]
"""By kind: the values that are true of a disk, or of a scenario."""


@dataclass(frozen=True, kw_only=True)
class Alike:
    """``text`` is the finding with the ranges of its numbers. ``scenarios`` are (anchor, number) of those that have it,
    ``of`` is how many were run. ``common`` is true of each of them, ``lacking`` the part of it that is true of no
    scenario that passed."""

    check: str
    text: str
    scenarios: tuple[tuple[str, int], ...]
    of: int
    common: tuple[str, ...]
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioFacts:
    """What is known of a scenario besides its findings: of each disk, and of the whole."""

    whole: Traits = field(default_factory=dict)
    disks: dict[str, Traits] = field(default_factory=dict)
    victims: frozenset[str] = frozenset()

    def of(self, subject: str) -> Traits:
        """What is true of the subject of a finding, and of its scenario."""
        return self.whole | self.disks.get(subject, {})

    @property
    def all(self) -> set[tuple[str, str]]:
        """Every (kind, value) that is true of the scenario or of one of its disks."""
        return {
            (kind, value)
            for traits in (self.whole, *self.disks.values())
            for kind, values in traits.items()
            for value in values
        }


def facts_of(result: ScenarioResult, events: Sequence[Event], rig: dict[str, Any]) -> ScenarioFacts:
    """The facts of one scenario. Without ``events`` and ``rig``, those that are in its result."""
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    loads: defaultdict[str, set[str]] = defaultdict(set)
    for event in others_of(events):
        if isinstance(event, DiskAttached) and event.disk and event.driver:
            drivers[event.disk].add(event.driver)
        elif isinstance(event, LoadBegun):
            loads[event.disk].add(event.mode)
    above = _above(rig)
    disks = {
        disk: _known(
            driver=drivers[disk],
            load=loads[disk],
            hub=above.get(disk, ((), ()))[0],
            controller=above.get(disk, ((), ()))[1],
        )
        for disk in sorted({*drivers, *loads, *above})
    }
    whole = _known(
        mechanism={cut.mechanism for cut in result.cuts},
        kernel={result.kernel} - {""},
        load={mode for modes in loads.values() for mode in modes},
    )
    return ScenarioFacts(whole, disks, frozenset(victim for cut in result.cuts for victim in cut.victims))


def alike(scenarios: Sequence[tuple[str, ScenarioResult, ScenarioFacts]]) -> tuple[Alike, ...]:
    """The findings that several scenarios (anchor, result, facts) have, those of the most scenarios first."""
    names = sorted({name for _, one, facts in scenarios for name in _names(one, facts)}, key=len, reverse=True)
    disk = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b") if names else None
    groups: defaultdict[tuple[str, str], list[tuple[int, Finding]]] = defaultdict(list)
    for index, (_, one, _) in enumerate(scenarios):
        for finding in one.findings:
            groups[finding.check, _shape(finding.summary, disk)].append((index, finding))
    found = [_group(scenarios, found, disk) for found in groups.values() if len({i for i, _ in found}) >= LEAST]
    return tuple(sorted(found, key=lambda one: -len(one.scenarios))[:MOST])


def _group(
    scenarios: Sequence[tuple[str, ScenarioResult, ScenarioFacts]],
    found: Sequence[tuple[int, Finding]],
    disk: re.Pattern[str] | None,
) -> Alike:
    places = sorted({index for index, _ in found})
    each = [_pairs(scenarios[index][2].of(finding.subject)) for index, finding in found]
    common = sorted(set.intersection(*each), key=lambda pair: (KINDS.index(pair[0]), pair[1]))
    passing = [facts.all for _, one, facts in scenarios if one.verdict is Verdict.PASS]
    lacking = [pair for pair in common if passing and not any(pair in facts for facts in passing)]
    return Alike(
        check=found[0][1].check,
        text=_text([finding.summary for _, finding in found], disk, _who(scenarios, found)),
        scenarios=tuple((scenarios[index][0], index + 1) for index in places),
        of=len(scenarios),
        common=tuple(f"{kind} {value}" for kind, value in common),
        lacking=tuple(f"{kind} {value}" for kind, value in lacking),
    )


def _who(scenarios: Sequence[tuple[str, ScenarioResult, ScenarioFacts]], found: Iterable[tuple[int, Finding]]) -> str:
    """What to call the subjects of findings together; empty if all have one name."""
    pairs = [(scenarios[index][2], finding.subject) for index, finding in found]
    if len({subject for _, subject in pairs}) == 1:
        return ""
    roles = {"victims" if subject in facts.victims else "survivors" for facts, subject in pairs}
    return roles.pop() if len(roles) == 1 else "disks"


def _text(summaries: Sequence[str], disk: re.Pattern[str] | None, who: str) -> str:
    """The summaries as one sentence: with ranges where their numbers differ, and a word where the names do."""
    names = list(zip(*(disk.findall(summary) for summary in summaries), strict=True)) if disk else []
    numbers = list(zip(*(NUMBER.findall(_unnamed(summary, disk)) for summary in summaries), strict=True))
    text = NUMBER.sub(lambda _: _range(numbers.pop(0)), _unnamed(summaries[0], disk))
    for place, said in enumerate(names):
        other = (who or "disks") if place == 0 and text.startswith(NAME) else "a disk"
        text = text.replace(NAME, said[0] if len(set(said)) == 1 else other, 1)
    return text


NAME = "\0"
"""In the place of a disk's name."""


def _unnamed(summary: str, disk: re.Pattern[str] | None) -> str:
    plain = summary.replace(NAME, "")
    return disk.sub(NAME, plain) if disk else plain


def _shape(summary: str, disk: re.Pattern[str] | None) -> str:
    return NUMBER.sub("0", _unnamed(summary, disk))


def _range(texts: Sequence[str]) -> str:
    least, greatest = min(texts, key=float), max(texts, key=float)
    return least if least == greatest else f"{least} to {greatest}"


def _names(one: ScenarioResult, facts: ScenarioFacts) -> set[str]:
    """The names of a scenario's disks."""
    return {*facts.disks, *facts.victims, *(survivor.disk for survivor in one.survivors)} - {""}


def _pairs(traits: Traits) -> set[tuple[str, str]]:
    return {(kind, value) for kind, values in traits.items() for value in values}


def _known(**traits: Iterable[str]) -> Traits:
    return {kind: frozenset(values) for kind, values in traits.items() if values}


def _above(rig: dict[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """The (hubs, controllers) above each disk of the rig."""
    at: dict[str, tuple[str, str]] = {}
    for kind in ("controller", "hub", "disk"):
        for table in rig.get(kind) or ():
            if isinstance(table, dict):
                at[str(table.get("name"))] = kind, str(table.get("at") or "")
    found = {}
    for name in [name for name, (kind, _) in at.items() if kind == "disk"]:
        chain: list[str] = []
        place = at[name][1].rpartition(".")[0]
        while place in at and place not in chain:
            chain.append(place)
            place = at[place][1].rpartition(".")[0]
        found[name] = (
            [one for one in chain if at[one][0] == "hub"],
            [one for one in chain if at[one][0] == "controller"],
        )
    return found
