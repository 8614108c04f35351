"""Whether anything is left on the DUT after a scenario, or missing, and whether it leaks with every cut."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from statistics import median

from msgspec.structs import replace

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.dut.rig_places import RigPlaces, below
from plugpull.checks.evidence import limit, mates_of, seconds
from plugpull.checks.limits import bench_kind, returned_within
from plugpull.checks.record.watched import recorded
from plugpull.checks.starved import awake
from plugpull.checks.victims.healed import not_back
from plugpull.history.cut import Cut
from plugpull.history.events import Census, CutArmed, KernelMessage
from plugpull.history.reader import Story

FEWEST = 6
"""The number of censuses that a slope needs."""
PLACED = ("scsi host", "block device", "usb device")
"""Kinds of things with a place, which shows whether a cut took them away."""
_CONTROLLER = " at devices/"
"""What the name of a SCSI host has in it that is a controller of its own. No cut takes it."""
OF_HOSTS = {
    "kernel thread": re.compile(r"usb-storage$|scsi_tmf$"),
    "xhci slot": re.compile(r"at "),
    "reference to a hub": re.compile(r"usb\d+$|\d+-"),
}
"""Things that are there as often as the hosts and devices they belong to: in 700 of 700 pairs of censuses."""
SURE = 1024
"""Bytes per cycle. None of six healthy series of 8 cycles grew with 99 % certainty, although one probably grew by 10
kB. With 12 kB more per cycle, all of them grew by 2 kB or more with 99 % certainty."""
FEWEST_OF_A_THIRD = 4
"""The number of cuts that a third of a series needs."""
GROWN, OBJECTS = 2048, 2
"""With exact counts, a cache leaks if it grows by this many bytes and objects from one third of the cuts to the next,
or by half of its variation within a third if that is more. In sixteen healthy cuts, kmalloc-4k did not change by a
byte, and kmalloc-96 varied by up to 16 KiB."""
LEAST = 8
"""Bytes of the smallest object (include/linux/slab.h, KMALLOC_MIN_SIZE). With exact counts, no cache of a healthy
kernel grew with each of twelve cuts or more; with 256 bytes leaked by each, their cache grew by 256 every time."""
ANNOUNCED = 1.0
"""Seconds before a census in which a disk may still be appearing."""
ALL_CACHES = "SUnreclaim"
"""The line of /proc/meminfo for all caches together, in whole pages, with those that are not counted one by one."""
PAGES = 64 << 10
"""Bytes per cycle. Two healthy series of 16 cycles grew by 2 and 14 kB; the upper 99 % bound was 20 kB."""
BESIDE_CACHES = ("KernelStack", "VmallocUsed", "Percpu")
"""Lines of /proc/meminfo: stacks of threads, mappings, and per-CPU memory."""
CONFIDENT = 2.576
"""Standard deviations of a two-sided 99 % interval."""


class NothingLeft(Check, frozen=True, tag="nothing_left"):
    """The DUT has the same SCSI hosts, block devices, USB devices, mounts, open files, driver threads and traces of
    disks at the end as at the beginning, apart from those that a cut took away.

    Things that go within ``limit`` seconds after the end are not left over. Only things at or below the rig count."""

    limit: float = 2.0
    required: bool = True
    """Whether a scenario without any census is UNKNOWN."""

    def judge(self, story: Story) -> Judgement:
        begin = next((census for census in story.of(Census) if census.moment == "begin"), None)
        end = next((census for census in reversed(story.of(Census)) if census.moment == "end"), None)
        if begin is None or end is None:
            return self._uncounted(begin is None and end is None)
        said = Collector(self, "DUT")
        places = RigPlaces(story)
        begin, end = _both_counted(story, begin, end)
        extra = (one for one in left_over(begin, end) if places.has(*one[:2]))
        said.take(*(self._left(story, begin, end, one) for one in extra))
        said.take(*self._late(story, places, begin, end), *self._missing(story, places, begin, end))
        said.take(*_fewer(story, begin, end), *not_back(story))
        took = _settled_after(story, end)
        worst = f"nothing left over (after {seconds(took)}, {limit(self.limit)[1:]}" if took else "nothing left over"
        return said.judgement(worst if said.clean else "")

    def _uncounted(self, neither: bool) -> Judgement:
        said = Collector(self)
        if self.required or not neither:
            said.doubt("what is left on the DUT was not counted at the beginning and at the end")
        return said.judgement()

    def _left(self, story: Story, begin: Census, end: Census, thing: tuple[str, str, int]) -> Accusation:
        kind, name, extra = thing
        what = f"left over on the DUT: {kind} {name}" + (f", {extra} times" if extra > 1 else "")
        return _accusation(kind, what, begin, end, _introduced(story, name))

    def _late(self, story: Story, places: RigPlaces, begin: Census, end: Census) -> Iterator[Accusation]:
        """Things that took more than ``limit`` seconds to go."""
        settling = [census for census in story.of(Census) if census.moment == "settling"]
        if len(settling) < 2:
            return
        first, last = settling[0], settling[-1]
        took = awake(story, first.at or 0.0, last.at or 0.0)
        if took <= self.limit:
            return
        still = set(left_over(begin, first)) & set(left_over(begin, last)) - set(left_over(begin, end))
        for kind, name, _ in sorted(still):
            counted = kind in begin.things or not recorded(story, "state")
            if counted and places.has(kind, name):
                what = f"{kind} {name} took {seconds(took)} to go {limit(self.limit)}"
                yield _accusation(kind, what, begin, last, _introduced(story, name))

    def _missing(self, story: Story, places: RigPlaces, begin: Census, end: Census) -> Iterator[Accusation | str]:
        """Things of the beginning that are missing at the end, apart from those that a cut took away. Nothing if the
        positions of the rig's parts are not known. No hub can be missing above a device that is there."""
        gone = _cut_off(story, places, end.at or float("inf"))
        for kind, name, _ in left_over(end, begin) if places.known else ():
            place = places.place_of(kind, name)
            controller = kind == "scsi host" and _CONTROLLER in name and bench_kind(story) == "virtual"
            placed = kind in PLACED and place and places.has(kind, name)
            if controller or (placed and not any(below(place, part) for part in gone)):
                what = f"missing on the DUT at the end: {kind} {name}"
                above = any(other.startswith(f"{name}.") for other in end.things.get(kind, ()))
                yield f"{what}, with a device below it" if above else _accusation(kind, what, begin, end)


class LeakSlope(Check, frozen=True, tag="leak_slope"):
    """Neither the number of things nor the memory of the kernel grows from one census to the next. The scenario takes a
    census with each cut.

    Growth of memory is a finding if it exceeds ``limit`` bytes per cycle with 99 % certainty; filling caches cause
    less. It is UNKNOWN if memory certainly grows, probably by more than ``limit``, and more cuts are needed to be
    certain."""

    limit: int = 8192

    def judge(self, story: Story) -> Judgement:
        taken = [census for census in story.of(Census) if census.moment == "cycle"]
        if len(taken) < FEWEST:
            few = Collector(self)
            few.doubt(f"{len(taken)} censuses do not show a slope: at least {FEWEST} are needed")
            return few.judgement()
        said = Collector(self, "DUT")
        said.take(*self._things(taken))
        said.doubt(*_skipped(story, taken))
        if not all(census.slab for census in taken):
            said.doubt("the kernel does not report what its caches hold")
        used = [sum(census.slab.values()) for census in taken]
        said.take(*self._memory("kernel memory", used, taken))
        said.take(*self._memory("kernel memory beside its caches", [_beside(census) for census in taken], taken))
        if not said.findings and all(census.exact for census in taken):
            said.take(*self._objects(taken))
        pages = [census.memory[ALL_CACHES] for census in taken if ALL_CACHES in census.memory]
        if not said.findings and slope_of(pages).low > max(PAGES, self.limit):
            said.take(self._accusation("memory", "kernel memory of all caches", pages, taken))
        worst = f"no leak over {len(taken)} cycles (memory {_per_cycle(slope_of(used))})"
        return said.judgement(worst if said.clean else "")

    def _things(self, taken: Sequence[Census]) -> Iterator[Accusation]:
        """Kinds of things whose number grows with each census."""
        for kind in sorted({kind for census in taken for kind in census.things}):
            counts = [len(census.things.get(kind, ())) for census in taken]
            if slope_of(counts).low > 0:
                yield self._accusation(kind, f"a {kind}", counts, taken)

    def _memory(self, what: str, sizes: Sequence[int], taken: Sequence[Census]) -> Iterator[Accusation | str]:
        grows = slope_of(sizes)
        if grows.low > self.limit:
            yield self._accusation("memory", what, sizes, taken)
        elif grows.low > SURE and grows.value > self.limit:
            yield (
                f"{what} grows by {grows.value:.3g} bytes a cycle, more than {self.limit}, but {len(sizes)} cycles "
                f"leave {grows.low:.3g} to {grows.high:.3g} open"
            )

    def _objects(self, taken: Sequence[Census]) -> Iterator[Accusation]:
        """With exact counts, a single cache shows a leak of one object per cut: the least that it holds grows from the
        first third of the cuts to the second, and again to the last. Objects held for a moment do not lower it. A small
        object shows if the cache grows by one with every single cut."""
        third = (len(taken) - 1) // 3
        if third < FEWEST_OF_A_THIRD:
            return
        for name in sorted({name for census in taken for name in census.slab}):
            sizes = [census.slab.get(name, 0) for census in taken[-3 * third :]]
            thirds = [sizes[begin : begin + third] for begin in (0, third, 2 * third)]
            floors = [min(part) for part in thirds]
            busy = max(max(part) - min(part) for part in thirds)
            if min(floors[1] - floors[0], floors[2] - floors[1]) >= max(GROWN, OBJECTS * _object(name), busy / 2):
                what = f"the DUT leaks memory of its cache {name}: at least {floors[0]} bytes in use over {third} cuts"
                what += f", then {floors[1]}, then {floors[2]}"
            elif (least := min(later - earlier for earlier, later in pairwise(sizes))) >= max(LEAST, _object(name)):
                what = f"the DUT leaks memory of its cache {name}: {least} bytes or more with each of"
                what += f" {len(sizes) - 1} cuts"
            else:
                continue
            yield Accusation(subject="memory", summary=what, at=taken[-1].at, evidence=(", ".join(map(str, sizes)),))

    def _accusation(self, subject: str, what: str, counts: Sequence[int], taken: Sequence[Census]) -> Accusation:
        slope = slope_of(counts)
        unit = " bytes" if subject == "memory" else ""
        grown = _grown(taken) if subject == "memory" else ()
        growth = f"{slope.value:.3g}{unit} a cycle (99 % sure of {slope.low:.3g} to {slope.high:.3g})"
        return Accusation(
            subject=subject,
            summary=f"the DUT leaks {what}: {growth} over {len(counts)} cycles",
            at=taken[-1].at,
            evidence=(", ".join(map(str, counts)), *grown),
        )


def _skipped(story: Story, taken: Sequence[Census]) -> Iterator[str]:
    """Cuts without a census after them, between censuses that were taken after each single one. The cuts of a burst
    count as one."""
    made: dict[int, float] = {}
    for armed in story.of(CutArmed):
        made.setdefault(armed.group or armed.cut, armed.at or 0.0)
    at = [census.at or 0.0 for census in taken]
    cuts = [sum(begin < cut < end for cut in made.values()) for begin, end in pairwise(at)]
    for number, count in enumerate(cuts, 2):
        if count > 1 and median(cuts) == 1:
            yield f"{count} cuts were made before census {number}, and one before each other: a census is missing"


def nothing_left(limit: float = 2.0) -> NothingLeft:
    """At the end, nothing at or below the rig may be left over on the DUT, or be missing, compared with the beginning.
    Leftovers get ``limit`` seconds to go."""
    return NothingLeft(limit)


def leak_slope(limit: int = 8192) -> LeakSlope:
    """Nothing may grow with every cut. The scenario must call ``rig.take_census()`` after each cut."""
    return LeakSlope(limit)


def _fewer(story: Story, begin: Census, end: Census) -> Iterator[Accusation]:
    """Threads and slots of the emulated DUT's disks that are missing at the end, although every host is there."""
    hosts = [Counter(census.things.get("scsi host", ())) for census in (begin, end)]
    if bench_kind(story) != "virtual" or hosts[0] != hosts[1]:
        return
    for kind, counted in OF_HOSTS.items():
        fewer = Counter(begin.things.get(kind, ())) - Counter(end.things.get(kind, ()))
        for name, count in sorted(fewer.items()) if kind in end.things else ():
            if counted.match(name):
                times = f", {count} times" if count > 1 else ""
                yield _accusation(kind, f"missing on the DUT at the end: {kind} {name}{times}", begin, end)


def left_over(begin: Census, end: Census) -> tuple[tuple[str, str, int], ...]:
    """(kind, name, how many more than at the beginning) of everything that is left over at the end."""
    found = []
    for kind, names in end.things.items():
        extra = Counter(names) - Counter(begin.things.get(kind, ()))
        # A disk that came back with another serial number is not left over: returned() judges it.
        grown = Counter(map(_place, names)) - Counter(map(_place, begin.things.get(kind, ())))
        found += [(kind, name, count) for name, count in sorted(extra.items()) if _place(name) in grown]
    return tuple(found)


def _both_counted(story: Story, begin: Census, end: Census) -> tuple[Census, Census]:
    """The two censuses with the kinds that both counted. Earlier agents left out kinds of which there was nothing; what
    an agent of today leaves out was not counted (``contents.py``)."""
    if not recorded(story, "state"):
        return begin, end
    both = begin.things.keys() & end.things.keys()
    one, two = ({kind: names for kind, names in census.things.items() if kind in both} for census in (begin, end))
    return replace(begin, things=one), replace(end, things=two)


def _accusation(kind: str, what: str, begin: Census, end: Census, more: tuple[str, ...] = ()) -> Accusation:
    evidence = (*(f"{one.moment}: {', '.join(one.things.get(kind, ()))}" for one in (begin, end)), *more)
    return Accusation(subject=kind, summary=what, at=end.at, evidence=evidence)


def _settled_after(story: Story, end: Census) -> float:
    """Seconds until nothing was left over; 0 if nothing was."""
    first = next((census.at for census in story.of(Census) if census.moment == "settling"), None)
    return 0.0 if first is None or end.at is None else awake(story, first, end.at)


def _cut_off(story: Story, places: RigPlaces, at: float) -> list[str]:
    """The places that were cut permanently, or restored so late that they need not be back at ``at``."""
    found = []
    for cut in story.cut_records:
        restored = cut.restored_at
        mechanism, together = cut.armed.mechanism, len(mates_of(story, cut))
        limits = (returned_within(story, one, mechanism=mechanism, together=together) for one in cut.armed.victims)
        late = max(limits, default=0.0)
        if cut.armed.permanent or restored is None or (restored + late > at and not _back(story, cut, at)):
            parts = (cut.armed.point.rpartition(".")[0], *cut.armed.victims)
            found += [place for part in parts if (place := places.place_of_part(part))]
    return found


def _back(story: Story, cut: Cut, at: float) -> bool:
    """Whether all victims were announced again well before ``at``, and stayed."""
    for disk in cut.armed.victims:
        returned_at = cut.times(disk).returned_at
        now = next((one for one in story.attachments(disk) if one.at == returned_at), None)
        if returned_at is None or now is None or returned_at > at - ANNOUNCED or story.detached_at(now) is not None:
            return False
    return True


def _introduced(story: Story, name: str) -> tuple[str, ...]:
    """What the kernel logged about a SCSI host when it came: ``scsi host3: usb-storage 2-1:1.0`` names its driver
    (drivers/scsi/hosts.c, scsi_add_host_with_dma)."""
    if not (number := re.match(r"host\d+\b", name)):
        return ()
    begins = f"scsi {number[0]}: "
    return tuple(message.text for message in story.of(KernelMessage) if message.text.startswith(begins))


def _place(name: str) -> str:
    """The place in a name: ``0000:00:10.0/1:0`` of ``0000:00:10.0/1:0 (serial ABC)``. Other names are unchanged."""
    return name.partition(" (serial ")[0]


class Slope:
    """A slope and its 99 % confidence interval, per step."""

    def __init__(self, value: float, low: float, high: float) -> None:
        self.value, self.low, self.high = value, low, high


def slope_of(values: Sequence[float]) -> Slope:
    """The Theil-Sen estimator: the median of the slopes of all pairs, which is robust against outliers. The interval is
    Sen's, from the variance of Kendall's S with its correction for ties (P. K. Sen, JASA 63, 1968)."""
    slopes = sorted(
        (later - earlier) / (right - left) for (left, earlier), (right, later) in combinations(enumerate(values), 2)
    )
    if not slopes:
        return Slope(0.0, 0.0, 0.0)
    n = len(values)
    ties = sum(count * (count - 1) * (2 * count + 5) for count in Counter(values).values())
    deviation = CONFIDENT * math.sqrt(max(0, n * (n - 1) * (2 * n + 5) - ties) / 18)
    low = max(0, math.floor((len(slopes) - deviation) / 2) - 1)
    high = min(len(slopes) - 1, math.ceil((len(slopes) + deviation) / 2))
    return Slope(median(slopes), slopes[low], slopes[high])


def _object(cache: str) -> int:
    """The size of one object by the name of its cache, such as ``kmalloc-cg-4k``, in bytes; 0 if the name has none."""
    found = re.match(r"kmalloc-(?:\w+-)*(\d+)(k?)$", cache)
    return int(found[1]) << (10 if found[2] else 0) if found else 0


def _beside(census: Census) -> int:
    return sum(census.memory.get(name, 0) for name in BESIDE_CACHES)


def _per_cycle(slope: Slope) -> str:
    return f"{slope.value:+.0f} bytes a cycle"


def _grown(taken: Iterable[Census]) -> tuple[str, ...]:
    """The caches that grew most, as evidence."""
    first, *_, last = taken
    grown = {name: size - first.slab.get(name, 0) for name, size in last.slab.items()}
    most = sorted(grown, key=lambda name: -grown[name])[:5]
    return tuple(f"{name}: {grown[name]:+d} bytes" for name in most if grown[name] > 0)
