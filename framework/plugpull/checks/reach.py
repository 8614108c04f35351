"""Whether the evidence covers the claims of the checks.

A PASS means that a fault would have been seen. So for every claim, its kinds of evidence must be on record from the
beginning to the end of its time span, without a gap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice, pairwise
from operator import sub

from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.record.log_record import log_doubts
from plugpull.checks.record.order import log_goes_back
from plugpull.checks.record.witness_times import witnesses_apart
from plugpull.checks.stalls import stood_still
from plugpull.checks.starved import awake, starved_within
from plugpull.history.events import AgentLost, Census, ClockMapped, LoadBegun
from plugpull.history.events.dut import CLOCK_DRIFT
from plugpull.history.reader import Story

LONGEST_HOLE = 2.0
"""Seconds without a sample that do not count as a gap where no time is judged. Where one is, as in ``kept_pace``, a
hole must not be longer: none of 787 healthy scenarios had 0.4 s without a sample in which the DUT was not starved."""
SLACK = 1.0
"""Seconds by which samples may begin late or end early: some are in transit when a scenario ends."""
HOLE = 10.0
"""The number of median sampling intervals without a sample that is a gap, unless the DUT was starved. If the interval
was changed on purpose, the longest one counts."""
APART = 0.02
"""Seconds by which two clocks may contradict each other: the clock of an emulated DUT on a quiet host once gained 10 ms
within two seconds. The default limits that depend on these clocks, those of removals and returns, are a second and
more."""
LONG_APART = 0.5
"""If two clocks contradict each other by more seconds, the order of events and cuts is not known."""


def unreached(story: Story, claims: Iterable[Claim]) -> tuple[str, ...]:
    """A sentence for each claim that the evidence does not support, with the reason. Each reason is given once."""
    said: dict[str, str] = {}
    for claim in claims:
        for evidence in claim.evidence:
            why = _WITNESSES[evidence](story, claim)
            if why:
                said.setdefault(why, f"it is not known whether {claim.what}: {why}")
    return tuple(said.values())


def _heard(story: Story, claim: Claim) -> str:
    if story.covers(claim.begin, claim.end):
        return ""
    return story.why_not_covered(claim.begin, claim.end)


def _log(story: Story, claim: Claim) -> str:
    doubts = log_doubts(story)
    return doubts[0] if doubts else _heard(story, claim)


def _samples(story: Story, claim: Claim) -> str:
    times = story.sample_times
    if len(times) < 2:
        return "nothing was sampled"
    if claim.disk:
        times = story.readings(claim.disk).at
        whose = f"the samples of {claim.disk}"
        if len(times) < 2:
            return f"{claim.disk} was not sampled"
    else:
        whose = "the samples"
    if times[0] > claim.begin + SLACK:
        return f"{whose} begin at {times[0]:.2f} s, after {claim.begin:.2f} s"
    last, end = times[-1], claim.end
    if awake(story, last, end) > SLACK:
        return f"{whose} end at {last:.2f} s, before {end:.2f} s"
    return _hole(story, claim, times, whose)


def _hole(story: Story, claim: Claim, times: Sequence[float], whose: str) -> str:
    interval = story.longest_interval
    longest = max(LONGEST_HOLE, HOLE * interval) if claim.limit is None else claim.limit
    inside = times[max(0, bisect_right(times, claim.begin) - 1) : bisect_left(times, claim.end) + 1]
    # Counted seconds are never more than the seconds that passed, apart from rounding.
    least = longest * (1.0 - 1e-9)
    if _shorter(story, claim, least) or max(map(sub, islice(inside, 1, None), inside), default=0.0) <= least:
        return ""
    for place, length in enumerate(map(sub, islice(inside, 1, None), inside)):
        if length <= least:
            continue
        one, two = inside[place : place + 2]
        if _unseen(story, one, two) > least and _attached(story, claim, one):
            return f"{whose} have a hole of {two - one:.2f} s at {one:.2f} s"
    return ""


def _unseen(story: Story, one: float, two: float) -> float:
    """The seconds that count of a gap between two samples. Samples that are missing do not show that the host ran the
    DUT slowly, but an emulated DUT stands still with a disk that stands still on request."""
    if stood_still(story, one, two):
        return awake(story, one, two)
    return two - one - starved_within(story, one, two)


def _shorter(story: Story, claim: Claim, least: float) -> bool:
    """Whether no step between samples is longer than ``least``, and the disk of a claim is in consecutive samples."""
    whole = not claim.disk or len(story.readings(claim.disk).parts) == 1
    return whole and story.samples.longest_step <= least


def _attached(story: Story, claim: Claim, at: float) -> bool:
    """Whether the disk of a claim is attached: a disk that is not attached is not sampled."""
    if not claim.disk:
        return True
    here = story.attachment_at(claim.disk, at)
    gone = story.detached_at(here) if here is not None else None
    return here is not None and (gone is None or gone > at + SLACK)


CLOCKS_APART = 5.0
"""Seconds after the last comparison for which the clocks count as known. There is one comparison per second."""


def _clock(story: Story, claim: Claim) -> str:
    exchanges = story.once(_exchanges)
    if not exchanges:
        return "the clocks of the DUT and the controller were never compared"
    contradiction = story.once(_contradiction)
    if contradiction:
        return contradiction
    last = exchanges[-1].at or 0.0
    if awake(story, last, min(claim.end, story.heard_until or last)) > CLOCKS_APART:
        return f"the clocks of the DUT and the controller were compared for the last time at {last:.2f} s"
    best = story.once(_least_error)
    if claim.limit is not None and best > claim.limit:
        return f"the DUT's clock is known to {best:.2f} s only, and {claim.limit:g} s are judged"
    return ""


def _exchanges(story: Story) -> tuple[ClockMapped, ...]:
    return tuple(event for event in story.of(ClockMapped) if event.at is not None)


def _contradiction(story: Story) -> str:
    return clocks_contradict(story.once(_exchanges))


def _least_error(story: Story) -> float:
    return min(event.error for event in story.once(_exchanges))


def clock_doubts(story: Story) -> tuple[str, ...]:
    """Why the order of events is not known, as sentences: the clocks of the DUT and the controller contradict each
    other, or the witnesses on the DUT do. Empty if all agree well enough."""
    said = clocks_contradict(story.once(_exchanges), beyond=LONG_APART)
    return (*(one for one in (said, log_goes_back(story)) if one), *witnesses_apart(story))


def clocks_contradict(exchanges: Iterable[ClockMapped], beyond: float = APART) -> str:
    """Why two exchanges cannot both be true, as a clause; empty if all of them can. ``beyond`` is in seconds."""
    known = [(event.at or 0.0, event.controller, event.error) for event in exchanges]
    near = [*pairwise(known), *combinations(known[:: max(1, len(known) // 20)], 2)]
    for (at1, mine1, error1), (at2, mine2, error2) in near:
        apart = abs((at2 - at1) - (mine2 - mine1))
        if apart > error1 + error2 + CLOCK_DRIFT * abs(mine2 - mine1) + beyond:
            return f"the clocks of the DUT and the controller contradict each other by {apart:.2f} s at {at2:.2f} s"
    return ""


def _census(story: Story, _: Claim) -> str:
    moments = {census.moment for census in story.of(Census)}
    missing = [name for moment, name in (("begin", "beginning"), ("end", "end")) if moment not in moments]
    return f"what the DUT holds was not counted at the {' and the '.join(missing)}" if missing else ""


def _load(story: Story, claim: Claim) -> str:
    for load in story.of(LoadBegun):
        if claim.disk in ("", load.disk):
            ended = story.load_end(load)
            if ended is None or ended.at is None:
                return f"how the load on {load.disk} ended was not recorded"
    return ""


def _agent(story: Story, claim: Claim) -> str:
    lost = [event for event in story.of(AgentLost) if event.at is None or event.at <= claim.end]
    return f"the agent was lost: {lost[0].why}" if lost else _heard(story, claim)


def _elsewhere(_: Story, __: Claim) -> str:
    """The oracle checks ledgers and read-backs, sector by sector (``nothing_lost``)."""
    return ""


_WITNESSES: dict[Evidence, Callable[[Story, Claim], str]] = {
    Evidence.SAMPLES: _samples,
    Evidence.LOG: _log,
    Evidence.UEVENTS: _agent,
    Evidence.LEDGER: _elsewhere,
    Evidence.READ_BACK: _elsewhere,
    Evidence.CLOCK: _clock,
    Evidence.CENSUS: _census,
    Evidence.LOAD: _load,
}
