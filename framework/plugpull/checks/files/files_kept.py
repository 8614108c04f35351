"""Whether a filesystem shows after a cut what it had promised to keep. The oracle of files decides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from errno import errorcode

from msgspec import structs

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.data.belief import WriteCache, belief_at
from plugpull.checks.data.power import Power, power_over
from plugpull.checks.files.aborted_journal import returned_after_abort
from plugpull.checks.files.file_doubts import recovery_faults, round_doubts
from plugpull.checks.files.file_errors import failed_with_power
from plugpull.checks.files.file_rounds import FileRound, file_rounds, joined, missing_file_records
from plugpull.checks.files.filesystem_check import (
    MAY_BE_UNCLEAN,
    WITHOUT_CHECKER,
    Checked,
    checker_says,
    last_lines,
    unmatched_words,
)
from plugpull.history.cut import Cut
from plugpull.history.events import KernelMessage
from plugpull.history.reader import Story
from plugpull.integrity.oracle.files.found import FoundTree, decode_found_tree
from plugpull.integrity.oracle.files.ledger import FileLedger, decode_file_ledger
from plugpull.integrity.oracle.files.operations import SyncAll
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, Promises
from plugpull.integrity.oracle.files.rules import FileOpinion, judge
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong, error_name
from plugpull.judging.results import Measurement

CLOCKS = 5.0
"""Seconds by which a time in the ledger may lie outside of its round. Both are of the DUT's clock."""
SHOWN = 8
"""The most wrong things given as evidence."""
_RECOVERED = re.compile(
    r"recovery complete|orphan inodes? deleted|Starting recovery|start tree-log replay|recover_(data|inode|dentry)"
    r"|Ending recovery|was not properly unmounted"
)
"""What kernels 6.1 and 6.12 log when a mount recovers a filesystem: ext4, xfs, btrfs, f2fs, vfat and exfat."""


class FilesKept(Check, frozen=True, tag="files_kept"):
    """After each round of ``rig.files``, the filesystem shows a tree that the rules of
    ``integrity/oracle/files/rules.py`` allow: what was synced is there, whole and under its name; nothing shows another
    file's data; it can be mounted, read and removed. A filesystem with a journal is also found clean by its checker.

    ``None`` means every disk that files were written on.
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        rounds = file_rounds(story)
        written = tuple(dict.fromkeys(one.disk for one in rounds))
        wanted = written if self.disks is None else self.disks
        said = Collector(self, wanted)
        said.doubt(*missing_file_records(story))
        said.doubt(*(f"no files were written on {disk}" for disk in wanted if disk not in written))
        if not wanted and said.clean:
            said.doubt("no files were written")
        judged = [_judged(story, one) for one in rounds if one.disk in wanted]
        for one in judged:
            said.take(*one.accusations)
            # A finding stands despite missing records; without one, the missing records are a doubt.
            if not one.accusations:
                said.doubt(*(f"{one.round.disk}: round {one.round.begun.round} of files: {why}" for why in one.doubts))
        for disk in wanted:
            for measurement in _measurements(disk, [one for one in judged if one.round.disk == disk]):
                said.measure(measurement)
        wrong = sum(len(one.opinion.wrong) for one in judged)
        return said.judgement(
            _worst(judged) if said.clean else "", measured=float(wrong), limit=0.0, unit="files", smallest=1.0
        )

    def claims(self, story: Story) -> Iterable[Claim]:
        for one in file_rounds(story):
            begin, end = one.begun.at, one.at
            if (self.disks is None or one.disk in self.disks) and begin is not None and end is not None:
                evidence = (Evidence.LEDGER, Evidence.READ_BACK)
                what = f"the files on {one.disk} are what was promised"
                yield Claim(what=what, evidence=evidence, begin=begin, end=end, disk=one.disk)


def files_kept(disks: Disks | None = None) -> FilesKept:
    """No file on ``disks`` may be lost or wrong that was promised to be kept. By default, on all that have files."""
    return FilesKept(None if disks is None else disk_names(disks))


# --- one round --------------------------------------------------------------------------------------------------------


@dataclass
class _Judged:
    """A round, and the opinions of it and of what a repair left. ``state``: clean, recovered, repaired or damaged;
    "not clean" if one without a journal was not repaired; empty if not known."""

    round: FileRound
    power: Power = Power.KEPT
    cuts: tuple[Cut, ...] = ()
    errors: str = ""
    opinion: FileOpinion = field(default_factory=FileOpinion)
    repaired: FileOpinion | None = None
    accusations: list[Accusation] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    state: str = ""


def _judged(story: Story, one: FileRound) -> _Judged:
    made = _Judged(one, doubts=list(one.doubts))
    promises = next((known for name, known in PROMISES.items() if name == one.begun.fstype), None)
    if promises is None:
        made.doubts.append(f"what {one.begun.fstype} promises is not known")
    if one.scan is None or promises is None:
        return made
    ledger = decode_file_ledger(one.ledger)
    made.doubts += _misfits(one, ledger)
    begin = ledger.operations[0].submitted if ledger.operations else one.begun.at or 0.0
    made.errors = _errors_seen(ledger)
    made.power, made.cuts = _power(story, one, begin)
    if not made.cuts and one.unmounted and ledger.operations and not made.errors:
        _sync_at_unmount(ledger)
    effect = _effect(story, made, begin)
    if isinstance(effect, str):
        made.doubts.append(effect)
    elif not made.doubts:
        made.opinion = judge(ledger, found_tree(one), promises, effect)
        made.doubts += made.opinion.problems
        if one.removal is not None and one.removal.begun.repaired:
            made.repaired = judge(ledger, decode_found_tree(joined(one.removal.parts)), promises, effect)
            made.doubts += made.repaired.problems
    made.doubts += round_doubts(story, one, ledger, made.cuts)
    if one.scan.begun.lost and not one.doubts:
        what = f"a {one.begun.fstype} filesystem"
        made.opinion.wrong.append(FileWrong(FileDamage.UNMOUNTABLE, "", what, "a disk without one"))
        made.doubts = []
    _conclude(story, made, promises)
    made.accusations += [*failed_with_power(story, one, made.cuts), *recovery_faults(story, one)]
    return made


def _misfits(one: FileRound, ledger: FileLedger) -> Iterator[str]:
    """Why a decoded ledger cannot belong to this round."""
    if ledger.operations and ledger.run != one.begun.run:
        yield "its ledger is of another run"
    if ledger.problems and one.ended is not None and one.ended.status not in (0, 1):
        yield f"its writer ended with status {one.ended.status}: {one.ended.why or 'it does not say why'}"
    if not ledger.operations:
        yield "its writer did nothing"
        return
    last = ledger.operations[-1]
    begin, end = ledger.operations[0].submitted, last.returned if last.returned is not None else last.submitted
    if one.begun.at is not None and begin < one.begun.at - CLOCKS:
        yield f"its ledger begins at {begin:.2f} s, before the round did"
    if one.ended is not None and one.ended.at is not None and end > one.ended.at + CLOCKS:
        yield f"its ledger goes on to {end:.2f} s, after its writer had ended"


def _sync_at_unmount(ledger: FileLedger) -> None:
    """An ordinary unmounting of a filesystem that was not cut keeps everything."""
    last = ledger.operations[-1]
    at = last.returned if last.returned is not None else last.submitted
    ledger.operations.append(SyncAll(number=last.number + 1, submitted=at, returned=at))


def _power(story: Story, one: FileRound, begin: float) -> tuple[Power, tuple[Cut, ...]]:
    """Whether all disks below kept their power from ``begin`` to the scan, and the cuts of any of them."""
    end = float("inf") if one.at is None else one.at
    each = [power_over(story, disk, begin, end) for disk in one.disks]
    worst = next(power for power in (Power.LOST, Power.UNSURE, Power.KEPT) if power in {kept for kept, _ in each})
    return worst, tuple({cut.armed.cut: cut for _, cuts in each for cut in cuts}.values())


def _effect(story: Story, made: _Judged, begin: float) -> CutEffect | str:
    """What the cuts did to the disk, or why that is not known."""
    caches = {belief_at(story, disk, begin).write_cache for disk in made.round.disks}
    if WriteCache.UNKNOWN in caches:
        return "what the kernel believed of the disk's write cache is not on record"
    flushes = caches <= {WriteCache.BACK, WriteCache.THROUGH}
    if not made.cuts:
        return CutEffect(powered=True, flushes=flushes)
    times = [cut.off.commanded_at for cut in made.cuts]
    earliest = [at - cut.error for at, cut in zip(times, made.cuts, strict=True) if at is not None]
    if len(earliest) < len(times):
        return "when its disk was cut is not on record"
    return CutEffect(at=min(earliest), powered=made.power is Power.KEPT, flushes=flushes)


def cut_effect(story: Story, one: FileRound, begin: float) -> CutEffect | str:
    """What the cuts since ``begin`` did to the disks of a round, or why that is not known."""
    power, cuts = _power(story, one, begin)
    return _effect(story, _Judged(one, power, cuts), begin)


def _errors_seen(ledger: FileLedger) -> str:
    """The first error that the writer was given, in words; empty if it was given none."""
    first = next((operation for operation in ledger.operations if operation.errno), None)
    if first is None:
        return ""
    name = errorcode.get(first.errno, str(first.errno))
    return f"{name} from {first.__struct_config__.tag} at {first.returned or first.submitted:.3f} s"


def found_tree(one: FileRound) -> FoundTree:
    """What the scans of a round found, decoded."""
    assert one.scan is not None
    if not one.scan.begun.job:
        return FoundTree(mount_errno=one.scan.begun.mount_errno, problems=(one.scan.begun.error,))
    found = decode_found_tree(joined(one.scan.parts))
    removed = decode_found_tree(joined(one.removal.parts)) if one.removal is not None else FoundTree()
    return structs.replace(
        found,
        removal_tried=removed.removal_tried,
        unremovable=removed.unremovable,
        problems=(*found.problems, *removed.problems),
    )


# --- what is concluded ------------------------------------------------------------------------------------------------


def _conclude(story: Story, made: _Judged, promises: Promises) -> None:
    """Fill in the accusations and the state of a round."""
    one, wrong = made.round, made.opinion.wrong
    if wrong:
        made.accusations.append(_wrong_files(story, made, made.opinion, _cut_words(made)))
    elif made.repaired is not None and made.repaired.wrong and promises.name in MAY_BE_UNCLEAN:
        after = f"{_cut_words(made)} and a repair, before which its promised files were there"
        made.accusations.append(_wrong_files(story, made, made.repaired, after))
    # The checker of another filesystem says nothing about this one.
    other = one.check is not None and one.check.fstype != one.begun.fstype
    said = Checked.UNKNOWN if one.check is None or other else checker_says(one.check)
    if said is Checked.UNCLEAN and promises.name not in MAY_BE_UNCLEAN:
        assert one.check is not None
        made.accusations.append(
            Accusation(
                subject=one.disk,
                summary=f"the {one.begun.fstype} on {one.disk} has errors after {_cut_words(made)}, "
                f"{_mount_words(one)}: {one.check.command} ended with status {one.check.status}",
                at=one.check.at,
                evidence=(last_lines(one.check), *_after_repair(made), *_circumstances(story, made)),
            )
        )
    elif said is Checked.UNKNOWN and promises.name not in WITHOUT_CHECKER and not wrong:
        made.doubts.append(_no_verdict(one))
    made.state = _state(story, made, said)


def _wrong_files(story: Story, made: _Judged, opinion: FileOpinion, after: str) -> Accusation:
    one, wrong = made.round, opinion.wrong
    counts = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in wrong).items())
    worst = opinion.worst or wrong[0]
    late = returned_after_abort(story, one, wrong)
    return Accusation(
        subject=one.disk,
        summary=f"the {one.begun.fstype} on {one.disk} is wrong after {after} ({counts}): {worst.sentence()}{late}",
        at=one.at,
        evidence=(*(each.sentence() for each in wrong[:SHOWN]), *_circumstances(story, made)),
    )


def _mount_words(one: FileRound) -> str:
    """What came of the mount before the check."""
    error = one.scan.begun.mount_errno if one.scan is not None else 0
    return f"and could not be mounted ({error_name(error)})" if error else "although the kernel recovered it"


def _after_repair(made: _Judged) -> Iterator[str]:
    """What a repair made of a filesystem with a journal, on an overlay."""
    repair, opinion = made.round.repair, made.repaired
    if repair is None or opinion is None or opinion.problems:
        return
    lost = opinion.worst
    what = "every promised file is there" if lost is None else f"wrong is then: {lost.sentence()}"
    yield f"after {repair.command} (status {repair.status}) on an overlay in memory, {what}; the disk is as it was"


def _no_verdict(one: FileRound) -> str:
    if one.scan is not None and not one.scan.begun.job:
        return f"it was not scanned: {one.scan.begun.error}"
    if one.check is None:
        return "that the filesystem was checked is not on record"
    ended = "" if one.check.status is None else f" ended with status {one.check.status}"
    said = unmatched_words(one.check) or last_lines(one.check, 1)
    return f"{one.check.command or 'its checker'}{ended} gave no verdict: {said}"


def _state(story: Story, made: _Judged, said: Checked) -> str:
    if made.accusations:
        return "damaged"
    if said is Checked.UNCLEAN:
        return "repaired" if made.repaired is not None else "not clean"
    if made.round.repaired_before:
        return "repaired"
    return "recovered" if _recovery(story, made.round) else "clean"


def _recovery(story: Story, one: FileRound) -> list[str]:
    """What the kernel logged about a recovery while it mounted the filesystem."""
    mount = one.mount
    if mount is None or mount.at is None:
        return []
    begin = mount.at - mount.seconds - 0.5
    log = (line for line in story.of(KernelMessage) if line.at is not None and begin <= line.at <= (mount.at or 0.0))
    return [line.text for line in log if _RECOVERED.search(line.text)]


def _cut_words(made: _Judged) -> str:
    if not made.cuts:
        return "a clean unmount"
    points = ", ".join(dict.fromkeys(cut.armed.point for cut in made.cuts))
    power = {Power.LOST: "which took its power", Power.KEPT: "which left it its power"}.get(made.power)
    return f"the cut of {points}" + (f" ({power})" if power else "")


def _circumstances(story: Story, made: _Judged) -> Iterator[str]:
    one = made.round
    yield f"{one.begun.pattern}; {made.opinion.kept} names or files had to be there, {made.opinion.names} were compared"
    yield f"the writer was given {made.errors}" if made.errors else "the writer was given no error"
    if one.mount is not None:
        how = "; ".join(_recovery(story, one)[:3]) or "the kernel logged no recovery"
        yield f"mounted in {one.mount.seconds:.2f} s: {how}" if one.mount.ok else f"mount: {one.mount.detail}"
    if one.check is not None:
        yield f"{one.check.command} ended with status {one.check.status}: {last_lines(one.check)}"


# --- all of them ------------------------------------------------------------------------------------------------------


def _measurements(disk: str, judged: list[_Judged]) -> Iterator[Measurement]:
    done = [one for one in judged if one.opinion.names]
    if done:
        yield Measurement(
            name="wrong files",
            subject=disk,
            value=float(sum(len(one.opinion.wrong) for one in done)),
            unit="files",
            better="down",
            n=len(done),
            parameters={
                "names compared": float(sum(one.opinion.names for one in done)),
                "blocks compared": float(sum(one.opinion.blocks for one in done)),
                "kept": float(sum(one.opinion.kept for one in done)),
            },
        )


def _worst(judged: list[_Judged]) -> str:
    total = [sum(numbers) for numbers in zip(*((o.opinion.names, o.opinion.kept) for o in judged), strict=True)]
    states = Counter(f"{one.round.begun.fstype} {one.state}" for one in judged)
    how = ", ".join(f"{name}{f' {count} times' if count > 1 else ''}" for name, count in states.items())
    errors = dict.fromkeys(one.errors.partition(" at ")[0] for one in judged if one.errors)
    given = f"; writers were given {', '.join(errors)}" if errors else ""
    return f"every promised file is there: {how} ({total[0]} names compared, {total[1]} were promised{given})"
