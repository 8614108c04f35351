"""Compares the plan of a run with its history: scenarios that are skipped, missing, doubled or not planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plugpull.history.events import AgentLost, CutArmed, Judged, RigFault, ScenarioError, ScenarioSkipped
from plugpull.history.reader import History, Story
from plugpull.judging.results import Results, Skipped

NAMED = 5
"""The maximum number of scenarios named in one sentence."""
NOT_A_SKIP = (CutArmed, Judged, ScenarioError, RigFault, AgentLost)
"""A scenario with one of these events has done something, or something went wrong: it is judged."""


def skip_reason(story: Story) -> str:
    """The reason if this scenario was skipped before it did anything; otherwise empty."""
    skips = story.of(ScenarioSkipped)
    done = any(isinstance(event, NOT_A_SKIP) for event in story.others)
    if not skips or done or story.ended is None or story.flaws or story.lost_lines:
        return ""
    return skips[0].reason or "no reason given"


def skipped_outside(history: History) -> tuple[Skipped, ...]:
    """Scenarios that were skipped before they began, for example by a mark."""
    skips = [event for event in history.stray if isinstance(event, ScenarioSkipped)]
    return tuple(Skipped(id=skip.id, reason=skip.reason or "no reason given") for skip in skips)


def judged_stories(history: History, results: Results) -> tuple[Story, ...]:
    """The scenarios of ``results.scenarios``, in their order."""
    skipped = {skip.id for skip in results.skipped}
    return tuple(story for story in history.stories if not (story.id in skipped and skip_reason(story)))


def plan_unknowns(history: History) -> list[str]:
    """Sentences on planned scenarios that are missing from the history or in another order, and on doubled and
    unplanned ones.

    Histories of earlier versions do not record the plan.
    """
    planned = history.begun.planned if history.begun is not None else None
    if history.begun is None or planned is None:
        return []
    alone = history.begun.bench == 0  # else the other benches run the rest of the plan
    seen = Counter(story.id for story in history.stories)
    seen.update({skip.id: 1 for skip in skipped_outside(history) if skip.id not in seen})
    missing = list((Counter(planned) - seen).elements())
    strange = [name for name in dict.fromkeys(story.id for story in history.stories) if name not in planned]
    doubled = [name for name, count in seen.items() if count > max(1, Counter(planned)[name])]
    unknowns = []
    if missing and alone:
        unknowns.append(f"{len(missing)} of {len(planned)} planned scenarios were not run: {named(missing)}")
    if strange:
        unknowns.append(f"scenarios in the history were not planned: {named(strange)}")
    found = [story.id for story in history.stories if story.id in planned]
    if alone and not doubled and found != sorted(found, key=planned.index):
        unknowns.append("the scenarios of the history are in another order than the plan")
    if doubled:
        unknowns.append(f"the history has scenarios more than once: {named(doubled)}")
    return unknowns


def named(names: Sequence[str]) -> str:
    """These names joined, or the first few of them if they are many."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
