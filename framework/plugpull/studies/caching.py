"""The same write through fewer and fewer caches: what the disk really does, and what the caches made of it."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import FioFigures
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.compare import FLOOR
from plugpull.measure.estimate import estimate
from plugpull.studies.capacity import capacity, impossible
from plugpull.studies.changes import Compared, NamedRepeats, compared
from plugpull.studies.figures import doubts, figure, interval, rate
from plugpull.studies.task_names import BUFFERED, CACHE_OFF, DIRECT, END_FSYNC, O_SYNC
from plugpull.studies.tasks import named, names_of, rates_of, repeats_of, task_claims, task_doubts, tasks_of, why_not

EXCESS = 1.25
"""A buffered rate is called impossible if its whole interval is above what the path can carry by this factor. The burst
that a throttle grants makes a short write up to 1.05 times as fast."""
CACHED = (BUFFERED, END_FSYNC)
"""Tasks whose figures a cache above the disk makes higher."""


class Caching(Check, frozen=True, tag="caching"):
    """How fast each of ``disks`` is written is known, through the page cache and past it, with and without its own."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(*task_doubts(story))
        good: dict[str, dict[str, list[float]]] = {}
        for disk in self.disks:
            good[disk] = self._disk(story, disk, said)
        self._drive_caches(good, said)
        return said.judgement("; ".join(dict.fromkeys(f"{one.kind} on {one.subject}" for one in said.conclusions)))

    def claims(self, story: Story) -> Iterable[Claim]:
        return task_claims(story)

    def _disk(self, story: Story, disk: str, said: Collector) -> dict[str, list[float]]:
        """The rates of each task on a disk that can be compared."""
        good = {}
        for name in names_of(story, disk):
            found = named(story, name, disk)
            samples = rates_of(found)
            what, planned = f"write rate of {disk}, {name}", repeats_of(story, name, disk)
            wrong = list(doubts(f"the {what}", samples, planned, why_not(story, name, disk)))
            # How fast memory is written varies, and is not what is measured here.
            said.doubt(*(wrong if name != BUFFERED or not samples else ()))
            if not samples:
                continue
            # The drive's cache is a condition of its own, so that both settings have one name.
            drive = {"drive cache": "off"} if name.endswith(CACHE_OFF) else {}
            parameters = {"caches": name.removesuffix(CACHE_OFF), **drive, **self._conditions(story, name, disk)}
            said.measure(figure(f"write {name}", disk, samples, parameters))
            if name not in CACHED:
                impossible(story, (disk,), "write", estimate(samples), said)
            if not wrong:
                good[name] = samples
        self._memory(story, disk, said)
        return good

    @staticmethod
    def _conditions(story: Story, name: str, disk: str) -> dict[str, str | float]:
        event = next(one.event for one in tasks_of(story) if one.event.task == name and disk in one.event.disks)
        return {"block": event.block, "depth": event.depth, "disks": len(event.disks)}

    def _memory(self, story: Story, disk: str, said: Collector) -> None:
        """The time of the final sync, and a buffered rate that only memory can have."""
        buffered, synced = named(story, BUFFERED, disk), named(story, END_FSYNC, disk)
        both = sorted(set(buffered) & set(synced))
        waits = [synced[number].seconds - buffered[number].seconds for number in both]
        if both:
            amount = {"bytes": synced[both[0]].bytes}
            said.measure(figure("final sync", disk, [max(0.0, wait) for wait in waits], amount, "s"))
        most = capacity(story, (disk,))
        if not buffered or most is None:
            return
        found = estimate(rates_of(buffered))
        # Every repeat shows it by itself: memory is so much faster than a disk that its own spread does not matter.
        if min(rates_of(buffered)) <= EXCESS * most.limit:
            return
        truth = [f"{name}: {interval(estimate(rates_of(each)))}" for name, each in self._honest(story, disk)]
        wait = f" The final sync then took {sum(waits) / len(waits):.3g} s." if waits else ""
        said.conclude(
            Conclusion(
                kind="impossible-rate",
                subject=disk,
                text=f"{disk}: a buffered write at {rate(found.mean)} is impossible as a rate of the disk, {most.part} "
                f"can carry {rate(most.limit)}. The data went into memory.{wait}"
                + (f" What the disk does: {truth[-1]}." if truth else ""),
                value=round(found.mean, 3),
                unit="B/s",
                evidence=(f"buffered: {interval(found)}", *truth),
            )
        )

    @staticmethod
    def _honest(story: Story, disk: str) -> Iterable[tuple[str, dict[int, FioFigures]]]:
        for name in (END_FSYNC, DIRECT, O_SYNC):
            found = named(story, name, disk)
            if found:
                yield name, found

    def _drive_caches(self, good: dict[str, dict[str, list[float]]], said: Collector) -> None:
        """What each drive's own cache makes of a write."""
        where = [
            (disk, name)
            for disk, rates in good.items()
            for name in (O_SYNC, DIRECT)
            if name in rates and name + CACHE_OFF in rates
        ]
        table = compared(
            (
                NamedRepeats("drive cache on", good[disk][name]),
                NamedRepeats("drive cache off", good[disk][name + CACHE_OFF]),
            )
            for disk, name in where
        )
        for (disk, name), each in zip(where, table, strict=True):
            _conclude(disk, name, each, said)


def caching(disks: Disks) -> Caching:
    """What caches make of a write must be known: ``rig.run_tasks(caching_design(disks))`` measures it."""
    return Caching(disk_names(disks))


def _conclude(disk: str, name: str, each: Compared, said: Collector) -> None:
    on, value, evidence = each.one.samples, round(each.found.change, 4), each.evidence()
    if each.found.answer == "different":
        text = f"{disk}: with its drive cache off, a write with {name} is {each.change} against "
        text += f"{rate(sum(on) / len(on))} with it on. With it on, power that goes can take data with it."
        said.conclude(Conclusion(kind="difference", subject=disk, text=text, value=value, evidence=evidence))
    elif each.found.answer == "alike":
        text = f"{disk}: its drive cache makes no difference to a write with {name}: {each.change} is "
        text += f"less than {FLOOR:.0%}."
        said.conclude(Conclusion(kind="no-difference", subject=disk, text=text, value=value, evidence=evidence))
    said.doubt(each.doubt(f"the drive cache of {disk} changes a write with {name}"))
