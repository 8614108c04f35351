"""Whether a disk has the same properties after a return and at the end: driver, depth, cache, sizes, writability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.watched import recorded
from plugpull.checks.stalls import forgotten, given_up, none_given_up
from plugpull.checks.victims.attentions import attentions
from plugpull.checks.victims.kernel_names import numbers_rise, renamed
from plugpull.checks.victims.log_identity import another_device, another_hub
from plugpull.checks.victims.log_words import other_words
from plugpull.checks.victims.property_words import (
    AFTER_RETURN,
    AT_THE_END,
    AT_THE_END_EMULATED,
    IDENTITY,
    OF_THE_LINK,
    WITHOUT_UDEV,
    WORDS,
)
from plugpull.checks.victims.timeouts import other_timeouts
from plugpull.history.events import (
    Acted,
    AgentLost,
    DiskAttached,
    DiskMoved,
    DiskProperties,
    Residue,
)
from plugpull.history.story import Story
from plugpull.history.suspensions import suspensions
from plugpull.kernel.diagnosis.scope import place_of

UNBOUND = "driver"
"""The driver that older agents recorded for a disk that was being removed."""
FAILURES = {"failed_commands": "failed", "timed_out_commands": "timed out"}
"""Command counters of the SCSI layer (drivers/scsi/scsi_sysfs.c). A command that succeeds when it is repeated shows
nowhere else."""
NOT_SERVED = ("offline", "transport-offline")
"""States in which the SCSI layer refuses every command to a disk (drivers/scsi/scsi_sysfs.c, sdev_states)."""
RUNNING = "running"
"""The state of a disk that is not being removed. Its files go first when it is."""
HELD_BACK = ("blocked", "created-blocked", "quiesce")
"""States in which commands wait. A disk passes through them, so they count only at the end."""
READ_WITHIN = 2.0
"""Seconds until the properties of a disk that came are on record."""
LEAVING = 0.2
"""Seconds before the announcement of its removal in which the kernel tears a disk down."""
JUST_CAME = 0.5
"""Seconds before the last look at the disks in which one that is announced may come too late for it: what a permanent
cut took comes back when the scenario heals. How it was driven was read then."""


class SameProperties(Check, frozen=True, tag="same_properties"):
    """Every disk of the rig has the same properties as at first whenever it comes back and at the end, and the lowest
    free kernel name."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        said.take(*self._returns(story), *self._stays(story), *_refused(story), *renamed(story), *numbers_rise(story))
        said.take(*other_timeouts(story))
        for disk in dict.fromkeys(event.disk for event in story.all_attachments if event.disk):
            said.take(*another_device(story, disk), *other_words(story, disk))
        said.take(*another_hub(story))
        said.doubt(*self._missing(story))
        seen = len({event.disk for event in story.of(DiskProperties)})
        return said.judgement(f"{seen} disks driven as before" if seen and said.clean else "")

    def _returns(self, story: Story) -> Iterator[Accusation]:
        for disk in _disks(story):
            read = [event for event in _of(story, disk) if event.moment == "attached"]
            attached = [event for event in read if undivided(story, event) or _restored(story, event)]
            for was, now in pairwise(attached):
                names = AFTER_RETURN if not _was_moved(story, was, now) else AFTER_RETURN.keys() - OF_THE_LINK
                emulated = WITHOUT_UDEV if bench_kind(story) == "virtual" else ()
                yield from self._differences(story, was, now, (*names, *emulated), "after its return")
                if emulated:
                    yield from _failed_in_probing(story, disk, was, now)
            for was, now in _moved_back(story, attached):
                yield from self._differences(story, was, now, sorted(OF_THE_LINK), "after its return")

    def _stays(self, story: Story) -> Iterator[Accusation | str]:
        """What changed between two readings while a disk stayed attached. Right after it came udev may still change it,
        but not on an emulated DUT."""
        emulated = bench_kind(story) == "virtual"
        names = AT_THE_END_EMULATED if emulated else AT_THE_END
        for disk in _disks(story):
            for was, now in pairwise(_of(story, disk)):
                same = (was.kname, was.diskseq) == (now.kname, now.diskseq)
                if not same or now.moment == "attached" or (now.moment == "begin" and not emulated):
                    continue
                when = "at the end" if now.moment == "end" else "at the beginning"
                yield from self._differences(story, was, now, names, f"{when}, though it never went")
                yield from _failed(story, disk, was, now)

    def _differences(
        self, story: Story, was: DiskProperties, now: DiskProperties, names: Iterable[str], when: str
    ) -> Iterator[Accusation]:
        disk, emulated = now.disk, bench_kind(story) == "virtual"
        for name in names:
            before, after = was.values.get(name), now.values.get(name)
            if name == "driver" and UNBOUND in (before, after):
                continue
            lost = before and not after and now.values.get("state") == RUNNING
            if lost and name in IDENTITY and now.moment == "attached":
                what = f"{disk} has lost its {IDENTITY[name].format(was=before)} {when}"
                yield Accusation(subject=disk, summary=what, at=now.at, evidence=_seen(name, was, now))
            if name == "scheduler":
                before, after = _active(before), _active(after)
            if not before or not after or before == after or _better(name, before, now, emulated):
                continue  # what was not read is doubted elsewhere
            how = {**AFTER_RETURN, **WITHOUT_UDEV, **WORDS}[name].format(
                now=_worded(name, after), was=_worded(name, before)
            )
            yield Accusation(subject=disk, summary=f"{disk} {how} {when}", at=now.at, evidence=_seen(name, was, now))

    def _missing(self, story: Story) -> list[str]:
        """Doubts about missing properties. An agent that records them does so for each attachment and at the end."""
        if not recorded(story, "properties") or story.of(AgentLost):
            return []
        known = {(event.kname, event.diskseq, event.moment) for event in story.of(DiskProperties)}
        looked = [event.at for event in story.of(DiskProperties) if event.moment == "end" and event.at is not None]
        # The properties are read right after the processes left by loads.
        end = min(looked or [event.at for event in story.of(Residue) if event.at is not None], default=None)
        begun = min((event.at or 0.0 for event in story.of(DiskProperties) if event.moment == "begin"), default=0.0)
        missing = []
        looks = [event for event in story.of(DiskProperties) if event.values.get("read_ms")]
        # Versions that time short reads at the end do so at the beginning as well.
        if looks and all(event.moment == "end" for event in looks):
            missing.append("how the disks were driven at the beginning is not on record")
        for attached in (one for one in story.of(DiskAttached) if one.disk):
            key, at = (attached.kname, attached.diskseq), attached.at or 0.0
            healed = any(cut.armed.permanent and attached.disk in cut.armed.victims for cut in story.cut_records)
            in_time = end is not None and at < end - JUST_CAME * healed
            asked = in_time and story.detached_at(attached) is None
            if (*key, "attached") not in known and _read_since(story, attached):
                missing.append(f"how {attached.disk} was driven at {at:.2f} s is not on record")
            elif at < begun < (story.detached_at(attached) or inf) and (*key, "begin") not in known:
                missing.append(f"how {attached.disk} was driven at the beginning is not on record")
            elif asked and (*key, "end") not in known:
                missing.append(f"how {attached.disk} was driven at the end is not on record")
        return missing


def _seen(name: str, *read: DiskProperties) -> tuple[str, ...]:
    return tuple(f"{one.at or 0:.2f} s: {one.kname} {name} {one.values.get(name, 'not there')}" for one in read)


def _places(story: Story) -> dict[tuple[str, int], str]:
    """Where each attachment was, by its kernel name and disk sequence number."""
    return {(one.kname, one.diskseq): one.place for one in story.all_attachments}


def _was_moved(story: Story, was: DiskProperties, now: DiskProperties) -> bool:
    """Whether it was plugged in elsewhere in between, and is not back in the same socket."""
    places = _places(story)
    then, here = (places.get((read.kname, read.diskseq)) for read in (was, now))
    return then != here and any(
        move.disk == now.disk and (was.at or 0) < (move.at or 0) <= (now.at or 0) for move in story.of(DiskMoved)
    )


def _moved_back(story: Story, attached: Sequence[DiskProperties]) -> Iterator[tuple[DiskProperties, DiskProperties]]:
    """Readings of a disk in one socket with no other reading there in between, but some in other sockets."""
    places = _places(story)
    last: dict[str, tuple[int, DiskProperties]] = {}
    for index, now in enumerate(attached):
        place = places.get((now.kname, now.diskseq), "")
        if place in last and last[place][0] < index - 1:
            yield last[place][1], now
        last[place] = index, now


def _failed(story: Story, disk: str, was: DiskProperties, now: DiskProperties) -> Iterator[Accusation | str]:
    """Commands that failed although the disk stayed. Only for emulated DUTs. Those of disks with a filesystem may fail,
    but not time out: programs such as mkfs try commands that a disk need not support."""
    if bench_kind(story) != "virtual":
        return
    with_filesystem = any(acted.disk == disk for acted in story.of(Acted))
    for name, how in FAILURES.items():
        if with_filesystem and name == "failed_commands":
            continue
        more = _more(name, was, now)
        if name == "timed_out_commands" and more > 0 and none_given_up(story, disk, was.at or 0.0, now.at or 0.0):
            yield f"the record contradicts itself: commands of {disk} timed out by its counter, and none was given up"
            continue
        if name == "timed_out_commands":
            more -= given_up(story, disk, was.at or 0.0, now.at or 0.0)
        if name == "failed_commands" and more > 0:
            more -= forgotten(story, disk, was.at or 0.0, now.at or 0.0)
            if _on_scsi_bus(story, disk):
                more -= attentions(story, now, was.at or 0.0, _read_by(now))
            else:
                # A disk that was reset as the machine woke says so to the next command, which is repeated.
                more -= sum((was.at or 0.0) <= begin <= (now.at or 0.0) for begin, _ in suspensions(story))
        if _more(name, was, now) < 0:
            yield f"the record contradicts itself: {disk} counted {-_more(name, was, now)} commands less that {how}"
        if more > 0:
            what = f"{more} command{'s' * (more != 1)} of {disk} {how} though it never went"
            evidence = tuple(f"{one.at or 0:.2f} s: {one.kname} {name} {one.values[name]}" for one in (was, now))
            yield Accusation(subject=disk, summary=what, at=now.at, evidence=evidence)


def same_properties() -> SameProperties:
    """Every disk must be driven as before after each return and at the end."""
    return SameProperties()


def _disks(story: Story) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.disk for event in story.of(DiskProperties)))


def _of(story: Story, disk: str) -> list[DiskProperties]:
    return [event for event in story.of(DiskProperties) if event.disk == disk]


def _read_since(story: Story, attached: DiskAttached) -> bool:
    """Whether the record goes on for long enough for the properties of a disk that came to be on it. The agent sends
    them also if it found nothing to read any more: it did for 14,615 of 14,615 attachments, 287 of them shorter than
    0.2 s."""
    return bool(story.sample_times) and story.sample_times[-1] - (attached.at or 0.0) > READ_WITHIN


def undivided(story: Story, read: DiskProperties) -> bool:
    """Whether the properties were read before the removal of the disk began. The kernel tears a disk down in steps: its
    driver, SCSI device or size may be gone while its name still exists."""
    over = max(read.at or 0.0, read.until or 0.0)
    for attached in story.attachments(read.disk):
        if (attached.kname, attached.diskseq) == (read.kname, read.diskseq):
            gone = story.detached_at(attached)
            if gone is not None and gone < over + LEAVING:
                return False
    return not any(cut.off_at(over) for cut in story.cut_records if read.disk in cut.armed.victims)


def _restored(story: Story, read: DiskProperties) -> bool:
    """Whether the properties are those of a disk that came back from a permanent cut and stayed."""
    stays = [one for one in story.attachments(read.disk) if (one.kname, one.diskseq) == (read.kname, read.diskseq)]
    own = [cut for cut in story.cut_records if read.disk in cut.armed.victims]
    stayed = bool(stays) and story.detached_at(stays[-1]) is None
    return stayed and bool(own) and own[-1].armed.permanent and (stays[-1].at or 0.0) >= own[-1].until


def _failed_in_probing(story: Story, disk: str, was: DiskProperties, now: DiskProperties) -> Iterator[Accusation]:
    """Commands that failed while a disk was probed after its return, apart from those that fail each time. Of 27
    emulated disks that were found, each had one."""
    for name, words in FAILURES.items():
        more = _more(name, was, now)
        if name == "failed_commands" and more > 0 and _on_scsi_bus(story, disk):
            before = attentions(story, was, -inf, was.at or 0.0)
            more -= attentions(story, now, -inf, _read_by(now)) - before
        if more > 0:
            what = f"{more} command{'s' * (more != 1)} more to {disk} {words} as it came back than the time before"
            evidence = tuple(f"{one.at or 0:.2f} s: {one.kname} {name} {one.values[name]}" for one in (was, now))
            yield Accusation(subject=disk, summary=what, at=now.at, evidence=evidence)


def _read_by(read: DiskProperties) -> float:
    return max(read.at or 0.0, read.until or 0.0)


def _on_scsi_bus(story: Story, disk: str) -> bool:
    return any(one.sysfs and not place_of(one.sysfs).usb for one in story.attachments(disk))


def _more(name: str, was: DiskProperties, now: DiskProperties) -> int:
    """By how much a counter is higher now; 0 if it is not on record."""
    try:
        return int(now.values[name], 0) - int(was.values[name], 0)
    except (KeyError, ValueError):
        return 0


def _refused(story: Story) -> Iterator[Accusation]:
    """Attached disks that the kernel sends no commands to, if that was so from the beginning. A comparison finds
    changes."""
    for disk in _disks(story):
        first: dict[tuple[str, int], str] = {}
        for event in _of(story, disk):
            state = event.values.get("state", "")
            before = first.setdefault((event.kname, event.diskseq), state)
            refused = state in NOT_SERVED or (event.moment == "end" and state in HELD_BACK)
            if refused and state == before and undivided(story, event):
                evidence = (f"{event.at or 0.0:.2f} s: {event.kname} is {state}",)
                what = f"{disk} is attached and in state {state}"
                yield Accusation(subject=disk, summary=what, at=event.at, evidence=evidence)
                break


def _better(name: str, before: str, now: DiskProperties, emulated: bool) -> bool:
    """Whether the change is an improvement: more commands at once, or more lanes. An emulated disk comes back with
    neither, but the SCSI layer may adapt the depth of its queue later."""
    adapted = name == "queue_depth" and not (emulated and now.moment == "attached")
    counted = adapted or (name in ("rx_lanes", "tx_lanes") and not emulated)
    after = now.values.get(name, "")
    return counted and before.isdigit() and after.isdigit() and int(after) > int(before)


def _active(schedulers: str | None) -> str:
    """The one that is in use, of those that can be: ``none [mq-deadline]`` -> ``mq-deadline``."""
    return next(iter(re.findall(r"\[(.+?)\]", schedulers or "")), schedulers or "")


def _worded(name: str, value: str) -> str:
    if name == "size" and value.isdigit():
        return f"{int(value) * 512} bytes"
    if name == "ro":
        return {"0": "writable", "1": "read-only"}.get(value, value)
    if name == "removable":
        return {"0": "fixed", "1": "removable"}.get(value, value)
    if name == "rotational":
        return {"0": "non-rotating", "1": "rotating"}.get(value, value)
    return value
