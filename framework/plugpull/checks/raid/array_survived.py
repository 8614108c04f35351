"""Whether an array lived through the loss of members as its level promises."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, Named, disk_names
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import JudgedRound, every_round
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.files.file_errors import device_errors
from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.array_doubts import LEADS_TO, no_state_after
from plugpull.checks.raid.arrays import EDGE, WORKING, ArrayRecord, arrays_of, may_fail_from
from plugpull.checks.record.on_record import missing_uevents
from plugpull.checks.stalls import stood_still
from plugpull.checks.starved import awake, granted
from plugpull.history.events import ArrayActed, ArrayAction, ArrayState, LoadEnded
from plugpull.history.reader import Story
from plugpull.judging.results import Measurement

NOTICED_WITHIN = 60.0
"""Seconds of writing after which an array must have noticed that a disk is gone: a request to it fails at once."""
HELD_UP, HELD_UP_REAL = 5.0, 30.0
"""Seconds that a write to an array may take, on emulated benches and on others. A request to a disk that is gone fails
at once, and md writes to the other members: it took 1.5 s at most in 60 sessions on emulated benches."""
STOPPED_WITHIN = 30.0
"""Seconds in which an array can be stopped: it writes its superblocks. It took 0.2 to 0.8 s on emulated benches."""
LEAVING = 2.0
"""Seconds before the removal of a disk in which its array may have dropped it: requests fail first."""
CLOCKS = 0.5
"""Seconds by which the order of an array's states and of a disk's removal is not known."""
MISSED = 2
"""Events by which a member may be too old to be taken back. Of 68 members of healthy arrays md refused two, by one
event each; a bitmap whose bits are cleared in a degraded array counts on while the member is away."""
_EVENTS = re.compile(r"its superblock is of event (\d+), bits of the bitmap were cleared at event (\d+)")
"""What the agent reports of a member that md does not take back."""
COMPARED = ("raid5", "raid6")
"""Levels whose ``check`` must find no mismatch. A mirror may hold two versions of what was written to twice at the
same time (md(4), SCRUBBING AND MISMATCHES): ``legs_hold`` compares what its members hold."""


class ArraySurvived(Check, frozen=True, tag="array_survived"):
    """An array with at most as many members missing as its level covers was degraded, and did not fail: no write had an
    error. It could be stopped. A ``check`` of a RAID 5 or 6 found no mismatch.

    ``back``: in the end all members were in sync again. ``notice``: seconds of writing after which the array must have
    noticed that a member is gone."""

    arrays: tuple[str, ...]
    back: bool = True
    notice: float = NOTICED_WITHIN

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.arrays)
        words: list[str] = []
        for name in self.arrays:
            record = arrays_of(story).get(name)
            if record is None:
                said.doubt(f"no array {name} is on record")
                continue
            if not record.last:
                said.doubt(f"no state of {name} is on record")
                continue
            if not record.absences:
                said.doubt(f"no member of {name} was removed while it ran")
            said.take(
                *_failed(story, record),
                *_dropped(story, record),
                *_flagged(story, record),
                *_not_writable(story, record),
                *_noticed(story, record, self.notice),
                *_acts(story, record),
                *compared(record),
            )
            if self.back:
                said.take(*_back(story, record))
            words.append(_summary(record))
            said.measurements.extend(_rebuilds(record))
        return said.judgement("; ".join(words) if said.clean else "")


def array_survived(arrays: Disks | Named, back: bool = True) -> ArraySurvived:
    """Each array must have lived through the loss of its members, within what its level covers.

    ``back``: it must be complete and in sync in the end."""
    return ArraySurvived(disk_names(arrays), back)


def _failed(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Signs of failure before more members were missing than the level covers. An array is inactive while it is made
    and stopped: if nothing of that is on record, its states accuse nobody."""
    too_many = record.overwhelmed_at
    until = min(may_fail_from(story, record.name), float("inf") if too_many is None else too_many) - CLOCKS
    for state in record.running if record.acts else ():
        word = state.values.get("array_state", "")
        if word and word not in WORKING and (state.at or 0.0) < until:
            yield _accusation(record, f"{record.name} is {word}{_missing(record, state.at)}", state.at)
            break
    for judged in every_round(story):
        early = [one for one in judged.failed if one.at < until and judged.round.disk == record.name]
        if early:
            first = early[0]
            what = f"a {first.what} to {record.name} ended with errno {first.errno}{_missing(record, first.at)}"
            yield _accusation(record, what, first.at)
        took, most = _held_up(story, judged), HELD_UP if bench_kind(story) == "virtual" else HELD_UP_REAL
        if judged.round.disk == record.name and took > most:
            what = f"a write to {record.name} took {seconds(took)} {limit(most)}"
            yield _accusation(record, what, judged.round.begun.at)
    for error in device_errors(story, record.name):
        if error.at < until:
            what = f"{error.what} of a file on {record.name} failed with errno {error.errno}"
            yield _accusation(record, what + _missing(record, error.at), error.at)
    for ended in story.of(LoadEnded):
        if ended.disk == record.name and ended.stuck:
            yield _accusation(record, f"the load on {record.name} could not be ended", ended.at)
        elif ended.disk == record.name and ended.errno and (ended.at or 0.0) < until:
            how = ended.message or f"errno {ended.errno}"
            what = f"the load on {record.name} met an I/O error: {how}{_missing(record, ended.at)}"
            yield _accusation(record, what, ended.at)


def _held_up(story: Story, judged: JudgedRound) -> float:
    """Seconds that the slowest write of a session took, apart from those in which a disk stood still on request, and by
    the share of CPU time that the host granted."""
    begin, end = judged.round.begun.at or 0.0, judged.round.at or 0.0
    return ((judged.slowest or 0.0) - stood_still(story, begin, end)) * granted(story, begin, end) ** 2


def _dropped(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    """Members that the array did without although their disks had never left, and nobody had taken them out. Where
    uevents are missing, a disk may have left."""
    begun = next(
        (state.at for state in record.states if not any(_without(state, m) for m in record.made.members)), None
    )
    if begun is None or record.done("fail", "udev_remove"):
        return
    away = {
        disk: min(
            (gone for one in story.attachments(disk) if (gone := story.detached_at(one)) is not None), default=None
        )
        for disk in record.made.members
    }
    for disk, gone in away.items():
        until = float("inf") if gone is None else gone - LEAVING
        for state in record.running:
            at = state.at or 0.0
            if begun < at < until and state.values and _without(state, disk) and not _stopping(record, at):
                what = f"{record.name} did without {disk} at {at:.2f} s, although its disk had not left"
                yield what if missing_uevents(story) else _accusation(record, what, at)
                break


def _flagged(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Members with flags of a failed request although their disks had never left and nobody had cut them."""
    for disk in record.made.members:
        times = [story.detached_at(one) for one in story.attachments(disk)]
        times += [cut.off.commanded_at for cut in story.cut_records if disk in cut.armed.victims]
        until = min((at for at in times if at is not None), default=float("inf")) - CLOCKS
        for state in record.running:
            bad = sorted(_AFTER_ERRORS & set(state.members.get(disk, ("", ""))[1].split(",")))
            if bad and (state.at or 0.0) < until and not record.done("fail"):
                what = (
                    f"{record.name} marked {disk} {bad[0]} at {state.at or 0.0:.2f} s, although its disk had not left"
                )
                yield _accusation(record, what, state.at)
                break


def _not_writable(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """An array that takes no writes although a load writes to it."""
    for state in record.running:
        word, at = state.values.get("array_state", ""), state.at or 0.0
        load = story.load_at(record.name, at)
        if word in ("readonly", "read-auto") and load is not None and "write" in load.mode:
            yield _accusation(record, f"{record.name} was {word} while it was written", at)
            return


def _stopping(record: ArrayRecord, at: float) -> bool:
    """Whether the array was being made, assembled or stopped: its members come and go one by one."""
    acts = record.done("make", "assemble", "stop")
    return any((act.at or 0.0) - act.seconds - EDGE <= at <= (act.at or 0.0) + EDGE for act in acts)


_AFTER_ERRORS = frozenset({"write_error", "want_replacement", "blocked"})
"""Flags of a member in sysfs that md sets after a request to it has failed (Documentation/admin-guide/md.rst)."""


def _missing(record: ArrayRecord, at: float | None) -> str:
    away = sorted(record.missing_at(at or 0.0))
    return f" though only {', '.join(away)} was missing" if away else " though no member was missing"


def _noticed(story: Story, record: ArrayRecord, within: float) -> Iterator[Accusation]:
    """Absences that an array under load did not notice."""
    for one in record.absences:
        states = [state for state in record.states if _without(state, one.disk) and (state.at or 0.0) > one.gone - 5.0]
        noticed = min((state.at or 0.0 for state in states), default=float("inf"))
        load = story.load_at(record.name, one.gone)
        if load is None or noticed <= one.gone + within:
            continue
        ended = story.load_end(load)
        until = min(noticed, _or_end(one.back), _or_end(None if ended is None else ended.at), _last_time(record))
        took = awake(story, one.gone, until)
        if took > within:
            what = f"{record.name} was written for {seconds(took)} and did not notice that {one.disk} was gone"
            yield _accusation(record, what, one.gone)


def _or_end(at: float | None) -> float:
    return float("inf") if at is None else at


def _last_time(record: ArrayRecord) -> float:
    return max((state.at or 0.0 for state in record.states), default=0.0)


def _without(state: ArrayState, disk: str) -> bool:
    """Whether the array knows that a member is not usable."""
    if not state.values:
        return False
    slot, says = state.members.get(disk, ("none", ""))
    return slot == "none" or "in_sync" not in says.split(",") or "faulty" in says.split(",")


def _acts(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    """Steps that failed although md had to allow them."""
    yield from refused(record, "readd", "add", "assemble")
    stops = record.done("stop")
    if not stops:
        yield f"nobody tried to stop {record.name}"
    elif not stops[-1].ok:
        yield _accusation(record, f"{record.name} could not be stopped: {stops[-1].detail or '?'}", stops[-1].at)
    for stop in stops[-1:]:
        took = awake(story, (stop.at or 0.0) - stop.seconds, stop.at or 0.0)
        if stop.ok and took > STOPPED_WITHIN:
            what = f"stopping {record.name} took {seconds(took)} {limit(STOPPED_WITHIN)}"
            yield _accusation(record, what, stop.at)


def refused(record: ArrayRecord, *actions: ArrayAction) -> Iterator[Accusation]:
    """Members that could not be put into an array."""
    for act in record.done(*actions):
        if not act.ok and not _missed_an_event(record, act):
            what = f"{', '.join(act.disks)} could not be put into {record.name}: {act.detail or '?'}"
            yield Accusation(subject=act.disks[0] if act.disks else record.name, summary=what, at=act.at)


def _missed_an_event(record: ArrayRecord, act: ArrayActed) -> bool:
    """Whether md had a reason to refuse a member, and took it as a new one.

    md counts an event when it records a failed write, and sends the number to the members that answer. Writes that
    complete before it has dropped the failing one clear bits of the bitmap at that event. So the member's superblock is
    older than the bits, and they do not say what it missed (md.c, super_1_validate; md-bitmap.c, md_bitmap_endwrite).
    """
    events = _EVENTS.search(act.detail)
    if act.action != "readd" or events is None or not 0 < int(events[2]) - int(events[1]) <= MISSED:
        return False
    return any(set(act.disks) & set(one.disks) and one.ok for one in record.done("add"))


def compared(record: ArrayRecord) -> Iterator[Accusation | str]:
    """What the checks of an array found, or a doubt about them."""
    for act in record.done("check"):
        after = _after_check(record, act)
        count = mismatches(record, act)
        if not act.ok or after is None or count is None:
            yield f"the check of {record.name} did not end: {act.detail or 'no result is on record'}"
            continue
        if count and record.made.level in COMPARED:
            what = f"a check of {record.name} found {count} sectors whose parity does not match"
            yield _accusation(record, what, after.at)


def mismatches(record: ArrayRecord, act: ArrayActed) -> int | None:
    """How many sectors a check found different, ``None`` if it did not end. md counts up, and begins again only with
    the next check."""
    after = _after_check(record, act)
    return None if after is None else max(_counted(record, act, after))


def _counted(record: ArrayRecord, act: ArrayActed, after: ArrayState) -> Iterator[int]:
    """What a check had counted at each of its states. A state that was read as it began may still have the count of the
    resync before it: md sets it to 0 then (md.c, md_do_sync)."""
    begin = (act.at or 0.0) - act.seconds - CLOCKS
    states = [state for state in record.states if state.values and (state.at or 0.0) <= (after.at or 0.0)]
    checking = [
        place
        for place, state in enumerate(states)
        if state.values.get("sync_action") == "check" and (state.at or 0.0) >= begin
    ]
    counts = [int(states[place].values.get("mismatch_cnt") or 0) for place in checking]
    counts.append(int(after.values.get("mismatch_cnt") or 0))
    earlier = states[: checking[0]] if checking else []
    left = int(earlier[-1].values.get("mismatch_cnt") or 0) if earlier else 0
    while left and counts[0] == left and 0 in counts:
        counts.pop(0)
    yield from counts


def _after_check(record: ArrayRecord, act: ArrayActed) -> ArrayState | None:
    """The state at the end of a check."""
    running = False
    for state in record.states:
        action = state.values.get("sync_action")
        if action == "check":
            running = True
        elif running and action == "idle" and (state.at or 0.0) >= (act.at or 0.0) - CLOCKS:
            return state
    return None


def _back(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    last = record.last
    assert last is not None
    away = {one.disk for one in record.absences if not any(_attached_after(story, one.disk, one.gone))}
    if away:
        yield f"{', '.join(sorted(away))} did not come back, so {record.name} could not be complete"
        return
    missing = [disk for disk in record.made.members if _without(last, disk)]
    if not missing and last.values.get("degraded", "0") == "0":
        return
    tried = {disk for act in record.done("readd", "add", "assemble") for disk in act.disks}
    if untried := [disk for disk in missing if disk not in tried]:
        yield f"nobody tried to put {', '.join(untried)} back into {record.name}"
        return
    if any(act.ok and no_state_after(record, act) for act in record.done(*LEADS_TO)):
        return  # array_doubts says that what became of it is not on record
    said = ", ".join(f"{disk} {last.members.get(disk, ('', 'missing'))[1]}" for disk in missing)
    what = f"{record.name} was not complete in the end: {said or 'degraded ' + last.values.get('degraded', '?')}"
    yield _accusation(record, what, last.at)


def _attached_after(story: Story, disk: str, gone: float) -> Iterator[bool]:
    yield from (True for one in story.attachments(disk) if one.at is not None and one.at >= gone)


def _accusation(record: ArrayRecord, what: str, at: float | None) -> Accusation:
    evidence = [_line(state) for state in record.states if at is not None and abs((state.at or 0.0) - at) < 10.0]
    return Accusation(subject=record.name, summary=what, at=at, evidence=tuple(evidence[-8:]))


def _line(state: ArrayState) -> str:
    values = ", ".join(f"{key} {value}" for key, value in state.values.items()) or "gone"
    members = ", ".join(f"{disk} ({slot}) {says}" for disk, (slot, says) in sorted(state.members.items()))
    return f"{state.at or 0.0:.3f} s: {values}; {members}"


def _summary(record: ArrayRecord) -> str:
    degraded = max((int(state.values.get("degraded") or 0) for state in record.states), default=0)
    return f"{record.name} ({record.made.level}) lived through the loss of {degraded} of {len(record.made.members)}"


def _rebuilds(record: ArrayRecord) -> Iterator[Measurement]:
    """How long each resync or rebuild took."""
    begun: tuple[str, float] | None = None
    for state in record.states:
        action = state.values.get("sync_action", "idle")
        if begun is None and action in ("resync", "recover"):
            begun = (action, state.at or 0.0)
        elif begun is not None and action == "idle":
            yield Measurement(
                name=f"{begun[0]} of the array",
                subject=record.name,
                value=round((state.at or 0.0) - begun[1], 3),
                unit="s",
                better="down",
                n=1,
            )
            begun = None
