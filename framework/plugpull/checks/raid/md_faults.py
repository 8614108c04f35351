"""What md did wrong by its states and its log together: superblocks not written, members that it never rebuilt, and
arrays that do not work though they could."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.raid.arrays import ArrayRecord, may_fail_from
from plugpull.checks.raid.members import AROUND, CLOCKS, moves, usable
from plugpull.checks.raid.sync_log import sync_lines
from plugpull.checks.record.log_record import numbers_whole
from plugpull.checks.record.on_record import missing_uevents
from plugpull.history.events import ArrayActed, ArrayState
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.story_log import log_of

STOPPED = frozenset({"inactive", "clear"})
"""Values of array_state of an array that is not assembled (Documentation/admin-guide/md.rst)."""


def never_rebuilt(story: Story, record: ArrayRecord) -> Iterator[Accusation]:
    """Members that were added as new ones and count as in sync, although md rebuilt nothing: neither a state shows
    that, nor the whole kernel log (md.c, md_do_sync, which logs the beginning of each)."""
    for begin, at, disks in _without_a_rebuild(record):
        if not _logged(story, record, begin, at) and numbers_whole(story):
            what = f"{disks} is in sync in {record.name} since {at:.2f} s, and md did not rebuild it"
            yield Accusation(subject=record.name, summary=what, at=at)


def rebuilds_doubted(story: Story, record: ArrayRecord) -> Iterator[str]:
    """The same if the kernel log shows a rebuild, or has gaps."""
    for begin, at, disks in _without_a_rebuild(record):
        if _logged(story, record, begin, at) or not numbers_whole(story):
            yield f"{disks} was in sync in {record.name} without a rebuild"


def superblock_errors(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    """A failed write of a superblock while all members were there. The kernel does not say whose (md.c,
    super_written). Where uevents or the time of a cut are missing, a member may have left."""
    for line in log_of(story).own_timed:
        if not line.body.startswith("md: super_written gets error") or line.at < (record.made.at or 0.0):
            continue
        near = any(line.at - AROUND <= at <= line.at + CLOCKS for at in moves(story, record))
        if not near and not _unnoticed(story, record, line.at):
            what = f"the kernel failed to write a superblock of {record.name} while all its members were there"
            what = f"{what}: {line.body}"
            accused = Accusation(subject=record.name, summary=what, at=line.at, evidence=(line.text,))
            yield what if _may_have_left(story, record) else accused
            return


def not_working(story: Story, record: ArrayRecord) -> Iterator[Accusation | str]:
    """States in which an array does not work though it has the members that it needs: broken (md.c, array_state_show),
    or stopped by nobody. 94 states of healthy arrays were ``inactive`` or ``clear``, 0.8 s after the beginning of a
    stop at most. md reshapes no array by itself. Where uevents or the time of a cut are missing, a broken array accuses
    nobody."""
    lost = may_fail_from(story, record.name)
    for state in record.running:
        word, at = state.values.get("array_state", ""), state.at or 0.0
        if word == "broken" and at < lost:
            what = f"{record.name} was broken at {at:.2f} s, and was to do without its missing members"
            yield what if _may_have_left(story, record) else Accusation(subject=record.name, summary=what, at=at)
            return
        if word in STOPPED:
            what = f"{record.name} was {word} at {at:.2f} s, and nobody had stopped it"
            yield Accusation(subject=record.name, summary=what, at=at)
            return
        if state.values.get("sync_action") == "reshape":
            yield f"{record.name} was reshaped at {at:.2f} s, and nobody had asked for that"
            return


def _without_a_rebuild(record: ArrayRecord) -> Iterator[tuple[float, float, str]]:
    """When a disk began to be added as a new one, and when it was in sync, without a state in between that shows its
    rebuild; the first one."""
    for act in record.done("add"):
        begin = (act.at or 0.0) - act.seconds - CLOCKS
        later = [state for state in record.running if (state.at or 0.0) >= begin]
        done = next((at for at, state in enumerate(later) if set(act.disks) <= usable(state) and _after(state, act)), 0)
        if act.ok and done and not any(_rebuilds(state, act.disks) for state in later[: done + 1]):
            yield begin, later[done].at or 0.0, ", ".join(act.disks)
            return


def _rebuilds(state: ArrayState, disks: tuple[str, ...]) -> bool:
    """Whether md rebuilds something, and these disks are members. While a member fails, it seems to as well."""
    says = [state.members.get(disk, ("none", "faulty"))[1].split(",") for disk in disks]
    return state.values.get("sync_action") == "recover" and all("faulty" not in one for one in says)


def _logged(story: Story, record: ArrayRecord, begin: float, until: float) -> bool:
    """Whether the kernel logged a rebuild of this array in that time."""
    lines = [one for one in sync_lines(story, record) if (one.action, one.what) == ("recover", "begun")]
    return any(begin - CLOCKS <= one.at <= until + CLOCKS for one in lines)


def _unnoticed(story: Story, record: ArrayRecord, at: float) -> bool:
    """Whether a member had left by then that the array had not missed yet: it notices with the first request, however
    late that comes, and also if the disk is there again under another name."""
    for absence in record.absences:
        if absence.gone > at + CLOCKS:
            continue
        names = {absence.disk, *(one.kname for one in story.attachments(absence.disk))}
        later = [state for state in record.running if state.values and (state.at or 0.0) > absence.gone]
        missed = next((state.at or 0.0 for state in later if not usable(state) & names), None)
        if missed is None or missed >= at - AROUND:
            return True
    return False


def _may_have_left(story: Story, record: ArrayRecord) -> bool:
    """Whether a member may have left at a time that is not on record."""
    members = set(record.made.members)
    untimed = any(cut.off.commanded_at is None and set(cut.armed.victims) & members for cut in story.cut_records)
    return untimed or bool(missing_uevents(story))


def _after(state: ArrayState, act: ArrayActed) -> bool:
    return (state.at or 0.0) >= (act.at or 0.0)
