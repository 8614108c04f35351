"""How long rebuilds of an array take, without a load and with one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.starved import starved_within
from plugpull.history.events import ArrayActed, ArrayState
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.steady import LEAST
from plugpull.studies.arrays import arrays_of, called
from plugpull.studies.changes import NamedRepeats, compared
from plugpull.studies.figures import doubts, figure, time
from plugpull.studies.measured import STARVED

BUSY = frozenset({"recover", "resync"})
"""Values of sync_action while data is copied (Documentation/admin-guide/md.rst)."""


class Rebuild(NamedTuple):
    """Data was copied to a member from ``begin`` to ``end``, DUT seconds, while the array was ``loaded`` or not."""

    begin: float
    end: float
    loaded: bool


class Rebuilds(Check, frozen=True, tag="rebuilds"):
    """How long a rebuild of each array takes is known, without a load and with one, of so many repeats."""

    planned: int = LEAST

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        for made in arrays_of(story):
            name = called(made)
            subject = f"{made.level} of {', '.join(made.members)}"
            times: defaultdict[bool, list[float]] = defaultdict(list)
            spoilt: defaultdict[bool, list[str]] = defaultdict(list)
            for one in rebuilds_of(story, made.array):
                lost = starved_within(story, one.begin, one.end)
                if lost <= STARVED * (one.end - one.begin):
                    times[one.loaded].append(one.end - one.begin)
                else:
                    spoilt[one.loaded].append(f"the sampler was starved for {lost:.1f} s at {one.begin:.1f} s")
            wrong = False
            for loaded in (False, True):
                words = f"the rebuild of the {name} {'under load' if loaded else 'without a load'}"
                doubtful = list(doubts(words, times[loaded], self.planned, spoilt[loaded], time))
                wrong = wrong or bool(doubtful)
                said.doubt(*doubtful)
                if times[loaded]:
                    parameters: dict[str, str | float] = {
                        "level": made.level,
                        "members": len(made.members),
                        "bytes": made.component,
                    }
                    kind = "rebuild under load" if loaded else "rebuild"
                    said.measure(figure(kind, subject, times[loaded], parameters, "s"))
            if times[False] and times[True] and not wrong:
                _compare(subject, name, times[False], times[True], said)
        if not arrays_of(story):
            said.doubt("no array was made")
        return said.judgement("; ".join(f"{one.name} {time(one.value)}" for one in said.measurements))

    def claims(self, story: Story) -> Iterable[Claim]:
        for made in arrays_of(story):
            for one in rebuilds_of(story, made.array):
                yield Claim(
                    what="the host let the DUT run while an array was rebuilt",
                    evidence=(Evidence.SAMPLES,),
                    begin=one.begin,
                    end=one.end,
                )


def rebuilds(repeats: int = LEAST) -> Rebuilds:
    """How long rebuilds take must be known: ``array.take_out(disk)`` and ``array.rebuild(disk)`` make one. ``repeats``
    is how many are made without a load, and with one."""
    return Rebuilds(repeats)


def rebuilds_of(story: Story, array: str) -> tuple[Rebuild, ...]:
    """The rebuilds of an array after members were added, in order of time."""
    added = [one.at for one in story.of(ArrayActed) if one.array == array and one.action == "add" and one.ok]
    found: list[Rebuild] = []
    begin: float | None = None
    for state in story.of(ArrayState):
        if state.array != array or state.at is None:
            continue
        busy = state.values.get("sync_action") in BUSY
        if busy and begin is None:
            begin = state.at
        elif not busy and begin is not None:
            if _was_added(added, begin, state.at):
                loaded = story.load_at(array, begin) is not None and story.load_at(array, state.at) is not None
                found.append(Rebuild(begin, state.at, loaded))
            begin = None
    return tuple(found)


def _was_added(added: Iterable[float | None], begin: float, end: float) -> bool:
    """Whether a member was added shortly before, or meanwhile: what mdadm did is on record when it had ended."""
    return any(at is not None and begin - 5.0 <= at <= end for at in added)


def _compare(subject: str, name: str, alone: list[float], loaded: list[float], said: Collector) -> None:
    (each,) = compared([(NamedRepeats("without a load", alone), NamedRepeats("under load", loaded))])
    said.doubt(each.doubt(f"a load makes the rebuild of the {name} slower"))
    if each.found.answer == "different":
        said.conclude(
            Conclusion(
                kind="difference",
                subject=subject,
                text=f"Under load, a rebuild of the {name} takes {each.change} against "
                f"{time(sum(alone) / len(alone))} without one.",
                value=round(each.found.change, 4),
                evidence=each.evidence(time),
            )
        )
