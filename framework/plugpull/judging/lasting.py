"""What a run that lasts adds to its verdicts: disks that died, turns that were cut short, a run that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec

from plugpull.finding import Finding
from plugpull.history.events import DiskSetAside, RunResumed, SoakBegun
from plugpull.history.reader import HISTORY_FILE, LONGEST_LINE, History, Story
from plugpull.history.segments import HistoryLines
from plugpull.judging.results import Conclusion, Results, ScenarioResult, Verdict
from plugpull.judging.sheet import Sheet

STILL_RUNNING = "the run is still going on"
"""Why the verdict of a run that nobody has ended is not known yet."""


HOW_LOST: dict[str, str] = {
    "cut": "it did not come back after a cut",
    "alone": "it was gone although nothing had cut it",
    "unseen": "it was gone when the run was resumed",
}
"""How a disk was lost, by ``DiskSetAside.cause``."""


def enter_set_aside(story: Story, sheet: Sheet) -> None:
    """Enter a conclusion for each disk that was set aside. One that was gone although nothing had cut it is a finding.

    One that did not come back after a cut is a finding of ``returned``, unless the bench is to blame. What happened to
    one while the run was interrupted is not known."""
    for aside in story.of(DiskSetAside):
        how = HOW_LOST.get(aside.cause, aside.cause)
        said = f"{aside.disk} counts as dead since {aside.wall}, and the run went on without it: {how}."
        sheet.conclusions.append(Conclusion(kind="set-aside", subject=aside.disk, text=said))
        if aside.cause == "alone" and not any(finding.subject == aside.disk for finding in sheet.findings):
            what = f"{aside.disk} was gone although nothing had cut it, and did not come back"
            sheet.findings.append(Finding(check="set_aside", subject=aside.disk, summary=what, at=aside.at))
        elif aside.cause == "unseen":
            sheet.unknowns.append(f"{aside.disk} was gone when the run was resumed, and why is not on record")


def why_unended(story: Story) -> str:
    """Why a scenario has no end on record, as a sentence."""
    if any(isinstance(event, RunResumed) for event in story.after):
        return "plugpull was ended in the middle of it, and the run was resumed later"
    return "the history ends before the scenario did"


def so_far(history: History) -> History:
    """The history of a run that is still going on without the scenario that is open: it is judged when it ends."""
    if not history.running or not history.stories or history.stories[-1].ended is not None:
        return history
    return replace(history, stories=history.stories[:-1])


MOST_SHOWN = 60
"""The most turns that the page of a soak shows one by one. It would be too long to be opened otherwise."""
FIRST_LINES = 10


def lasts(run: Path) -> bool:
    """Whether this run directory has a soak, by the first lines of its history."""
    try:
        with HistoryLines(run / HISTORY_FILE, LONGEST_LINE) as lines:
            return any(line.startswith(b'{"type":"soak.begin"') for line in islice(lines, FIRST_LINES))
    except OSError:
        return False


def shown_of(history: History, results: Results) -> tuple[int, ...]:
    """The indexes of the scenarios that the page of a run shows: of a long soak, those that did not pass, and the
    last."""
    count = len(results.scenarios)
    if count <= MOST_SHOWN or not any(isinstance(event, SoakBegun) for event in history.stray):
        return tuple(range(count))
    bad = [index for index, one in enumerate(results.scenarios) if one.verdict is not Verdict.PASS][:MOST_SHOWN]
    last = (index for index in range(count - 1, -1, -1) if index not in bad)
    return tuple(sorted((*bad, *islice(last, MOST_SHOWN - len(bad)))))


def page_of(results: Results, shown: Sequence[int]) -> Results:
    """The results as the page of a run has them. It says what it leaves out."""
    if len(shown) == len(results.scenarios):
        return results
    said = f"This page shows {len(shown)} of {len(results.scenarios)} scenarios: those that did not pass, and the last."
    scenarios = tuple(results.scenarios[index] for index in shown)
    return msgspec.structs.replace(results, scenarios=scenarios, sentence=f"{results.sentence} {said}")


MOST_LISTED = 200
"""The most scenarios that are listed line by line if they passed."""


def listed(results: Results) -> tuple[ScenarioResult, ...]:
    """The scenarios of a run that are listed for people: of very many, those that did not pass."""
    if len(results.scenarios) <= MOST_LISTED:
        return results.scenarios
    return tuple(one for one in results.scenarios if one.verdict is not Verdict.PASS)
