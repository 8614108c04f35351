"""Whether each step of the bench is on record. A missing record looks like a step that was not taken.

Switches are commanded, acknowledge and are read back; permanent cuts are restored when the scenario ends; ports that
are switched at once have one common event; loads settle; timeouts of the kernel are shortened and restored; censuses
are counted. Each of these is on record in two places, which are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from errno import ENOENT
from os import strerror

from plugpull.checks.record.watched import recorded
from plugpull.history.events import (
    Acted,
    AgentLost,
    Census,
    CutArmed,
    CutSwitched,
    DiskAttached,
    DiskProperties,
    DutDied,
    Edge,
    GracePeriod,
    Healed,
    LedgerEnded,
    LedgerPart,
    LoadSettled,
    Phase,
    ReadBackEnded,
    ReadBackPart,
    Residue,
    ScenarioSkipped,
    TimersSet,
)
from plugpull.history.story import Story

Port = tuple[str, str]
"""Switch and port."""


def missing_switching(story: Story) -> Iterator[str]:
    """Steps of edges, of switching several ports at once, and of restoring power, that are not on record."""
    steps: defaultdict[tuple[int, str, Port], set[str]] = defaultdict(set)
    for edge in story.of(Edge):
        steps[edge.cut, edge.state, (edge.switch, edge.port)].add(edge.phase)
    readable = {port for (_, _, port), phases in steps.items() if "read-back" in phases}
    for (_, state, port), phases in steps.items():
        where = f"switch {port[0]} port {port[1]}"
        for phase, done in _DONE.items():
            if phase not in phases:
                yield f"{where} was switched {state}, and that it {done} is not on record"
        if port in readable and "read-back" not in phases:
            yield f"{where} was switched {state}, and what it read back then is not on record"
    yield from _unswitched(story)
    yield from _unhealed(story)


_DONE = {"commanded": "was commanded", "acknowledged": "acknowledged"}
"""The wording of the phases of an edge."""


def _unswitched(story: Story) -> Iterator[str]:
    """Cuts made at once without the event that has the skew of their edges."""
    groups: defaultdict[int, list[CutArmed]] = defaultdict(list)
    for armed in story.of(CutArmed):
        if armed.group:
            groups[armed.group].append(armed)
    for cuts in groups.values():
        numbers = {armed.cut for armed in cuts}
        for state in ("off", "on"):
            edges = [edge for edge in story.of(Edge) if edge.cut in numbers and edge.state == state]
            ports = {(edge.switch, edge.port) for edge in edges if edge.phase == "acknowledged"}
            switched = [one for one in story.of(CutSwitched) if numbers & set(one.cuts) and one.state == state]
            said = bool(switched)
            if len(switched) == 1 and switched[0].ports != len(ports) and set(switched[0].cuts) == numbers:
                yield f"{switched[0].ports} ports were switched {state} at once, and {len(ports)} acknowledged"
            # Permanent cuts are restored port by port.
            if len(ports) > 1 and not said and not (state == "on" and cuts[0].permanent):
                yield f"how far apart {len(ports)} ports were switched {state} at once is not on record"


def _unhealed(story: Story) -> Iterator[str]:
    """Permanent cuts that are not on record as restored when the scenario ended."""
    if story.ended is None:
        return
    healed = {outlet for event in story.of(Healed) for outlet in event.ports}
    permanent = {armed.cut for armed in story.of(CutArmed) if armed.permanent}
    for edge in story.of(Edge):
        outlet = f"{edge.switch}.{edge.port}"
        if edge.cut in permanent and edge.state == "off" and edge.phase == "commanded" and outlet not in healed:
            yield f"that {edge.point} was restored when the scenario ended is not on record"
    switched = {f"{edge.switch}.{edge.port}" for edge in story.of(Edge) if edge.state == "on"}
    for event in story.of(Healed):
        for outlet in event.ports:
            if event.ok and outlet not in switched:
                yield f"how {outlet} was switched on when the scenario ended is not on record"


def missing_steps(story: Story) -> Iterator[str]:
    """Other steps of the bench that are not on record. Other checks report a bench that stopped."""
    for skipped in story.of(ScenarioSkipped) if story.of(CutArmed) else ():
        yield f"the scenario was skipped after its first cut ({skipped.reason or 'no reason given'})"
    phases = [phase.name for phase in story.of(Phase)]
    if phases.count("settle") > len(story.of(LoadSettled)):
        yield "when the load had settled is not on record"
    if phases.count("mkfs") > sum(event.action == "mkfs" for event in story.of(Acted)):
        yield "that a file system was made is not on record"
    yield from _timers(story)
    yield from _pieces(story)
    if story.ended is not None and len(story.of(Census)) < (story.ended.censuses or 0):
        yield f"{story.ended.censuses} censuses were taken, and {len(story.of(Census))} are on record"
    if story.ended is not None and len(story.of(GracePeriod)) < (story.ended.grace_periods or 0):
        yield "whether every CPU scheduled at the end is not on record"


def _pieces(story: Story) -> Iterator[str]:
    """Parts of ledgers and read-backs that arrived and are not on record, whether or not a check needs them."""
    held: Counter[tuple[str, str]] = Counter()
    parts: list[LedgerPart | ReadBackPart] = [*story.of(LedgerPart), *story.of(ReadBackPart)]
    for part in parts:
        held[part.disk, part.job] += len(part.data) * 3 // 4 - part.data[-2:].count("=")
    ends: list[LedgerEnded | ReadBackEnded] = [*story.of(LedgerEnded), *story.of(ReadBackEnded)]
    for end in ends:
        missing = end.received - held[end.disk, end.job]
        held.pop((end.disk, end.job), None)
        if missing > 0:
            yield f"{missing} of {end.received} bytes that the job {end.job} reported are not on record"
    if story.ended is not None:
        yield from (f"how the job {job} on {disk} ended is not on record" for disk, job in held)


def _timers(story: Story) -> Iterator[str]:
    """Timeouts that were shortened at the beginning, of each disk that came, and restored at the end."""
    readies = story.readies
    over = bool(story.of(Residue)) and not story.of(AgentLost) and not story.of(DutDied)
    if not over or not recorded(story, "timers"):
        return
    moments = {event.moment for event in story.of(TimersSet)}
    if "begin" not in moments:
        yield "that the timeouts of the kernel were shortened is not on record"
    if "restored" not in moments and readies[-1].kind != "virtual":
        yield "that the timeouts of the kernel were restored is not on record"
    yield from _disk_timers(story)
    if readies[-1].kind == "virtual":
        yield from _not_shortened(story)


def _not_shortened(story: Story) -> Iterator[str]:
    """Timeouts of the kernel itself that could not be shortened: what it reports after them comes after the record. A
    kernel without such a timeout does not have its file."""
    for event in story.of(TimersSet):
        for path, why in event.failed.items() if event.moment == "begin" else ():
            if why != strerror(ENOENT):
                yield f"{path} could not be shortened ({why}): what the kernel reports later is not on record"
        for path, before, after in event.changed if event.moment == "begin" else ():
            # 0 switches the report off (Documentation/admin-guide/sysctl/kernel.rst).
            if path.endswith(_REPORTING) and (after == "0" or _longer(before, after)):
                yield f"{path} was set from {before} to {after}: what the kernel reports later is not on record"


_REPORTING = ("/hung_task_timeout_secs", "/kernel/watchdog_thresh", "/rcu_cpu_stall_timeout")
"""Ends of the files with the time after which the kernel reports a task or a CPU that does not go on."""


def _longer(before: str, after: str) -> bool:
    return before.isdecimal() and after.isdecimal() and 0 < int(before) < int(after)


def _disk_timers(story: Story) -> Iterator[str]:
    """Disks whose timeout was not shortened, although the same timeout of another disk was."""
    changes = [
        change
        for event in story.of(TimersSet)
        if event.moment != "stalled"
        for change in event.changed
        if change[0].endswith(TIMEOUT)
    ]
    shortened = {before for _, before, _ in changes}
    # The first look is the one before the timeout was changed.
    looks = story.of(DiskProperties)[::-1]
    came_with = {(one.kname, one.diskseq): one.values.get("timeout") for one in looks if one.moment != "end"}
    for attached in story.of(DiskAttached):
        path = attached.sysfs.partition("/block/")[0] + TIMEOUT
        due = attached.disk and came_with.get((attached.kname, attached.diskseq)) in shortened
        if due and _stayed(story, attached) and (refused := _refused(story, attached, path)):
            yield f"{path} could not be shortened ({refused}): what the kernel reports later is not on record"
        elif due and _stayed(story, attached) and not _attended(story, attached, path):
            yield f"that the timeouts of {attached.disk} were shortened at {attached.at or 0.0:.2f} s is not on record"


def _refused(story: Story, attached: DiskAttached, path: str) -> str:
    """Why the timeout of an emulated disk that stayed could not be set; empty if it could."""
    begin, end = attached.at or 0.0, story.detached_at(attached) or float("inf")
    own = [event for event in story.of(TimersSet) if begin <= (event.at or 0.0) <= end and event.moment == "attached"]
    whys = [event.failed[path] for event in own if path in event.failed]
    return whys[0] if whys and story.readies[-1].kind == "virtual" else ""


def _attended(story: Story, attached: DiskAttached, path: str) -> bool:
    """Whether the agent set, or tried to set, the timeout in this file while the disk was attached."""
    begin, end = attached.at or 0.0, story.detached_at(attached) or float("inf")
    for event in story.of(TimersSet):
        if begin <= (event.at or 0.0) <= end and (
            path in event.failed or any(path == one for one, *_ in event.changed)
        ):
            return True
    return False


TIMEOUT = "/timeout"
"""The file with the command timeout of a SCSI device."""
STAYED = 3.0
"""Seconds after its announcement by which the agent has certainly handled a disk."""


def _stayed(story: Story, attached: DiskAttached) -> bool:
    gone = story.detached_at(attached)
    end = story.sample_times[-1] if story.sample_times else attached.at or 0.0
    return (end if gone is None else gone) - (attached.at or 0.0) > STAYED
