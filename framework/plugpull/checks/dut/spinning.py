"""Whether kernel threads spin or interrupts storm. Both take a CPU and log nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import seconds
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.watched import recorded, tasks_not_watched
from plugpull.checks.starved import awake, host_rate
from plugpull.checks.survivors.survivor import busy_cpu, own_rate
from plugpull.history.events import Activity, DutState
from plugpull.history.story import Story

_BUSY_BY_NATURE = re.compile(
    r"^(?:kswapd|kcompactd|khugepaged|ksmd|md\d|z_|txg_|zio|kvm|vhost|nfsd|dmcrypt|kcryptd)|kcryptd"
)
"""Kernel threads of a real DUT that may be busy with other work than the bench's."""
_PID = re.compile(r" \((\d+)\)$")
_MOVES_DATA = re.compile(r"^usb-storage\b|kblockd|writeback|flush-")
"""Kernel threads that work for the loads. While requests complete, their CPU time belongs to the loads."""
_TRANSPORT = re.compile(r"^usb-storage\b")
SLOW = 8 << 20
"""Bytes per second that cost a thread of usb-storage little."""
PER_REQUEST = 0.005
"""Seconds of an emulated CPU that a request may cost a thread of usb-storage. On a host with five times as many busy
programs as CPUs, md's small requests, 110 to 180 per second, cost 3 to 5 ms each; polling costs 35 ms and more."""
RARE = 0.4
"""Below this share nothing is asked about a thread."""
ALL = 0.95
"""The share of a thread that waits for nothing, also on a host that runs the DUT at half speed."""
AGAIN = 2
"""Looks in a row with such a share that cannot be a host's that stood still: in 6,697 looks no thread had 0.85."""
INTERRUPTS = "interrupts"
STORM = "storm"
"""The key of a storm of interrupts among the busy threads, whose keys have more in them."""
UNSEEN, FEW = 5, 100_000
"""Interrupts that may lie outside of the samples: so many times those inside, and a few."""
_WORKER = re.compile(r"^kworker/")
WORKERS_FOR = 5.0
"""Seconds for which all kernel workers together may be busy."""
WORKERS_SHOWN = 3
"""The most workers named in a summary."""


class NothingSpins(Check, frozen=True, tag="nothing_spins"):
    """Neither a kernel thread nor the handling of interrupts takes more than ``share`` of one CPU for more than
    ``limit`` seconds without a pause. Threads that move data may, while requests complete.

    In 76 scenarios of healthy emulated DUTs, on a host with four times as many DUTs as CPUs, usb-storage took up to
    0.89 of a CPU for 2 s, any other thread 0.57, and interrupts 0.25.

    On an emulated DUT, all kernel workers together take no more than ``workers`` of one CPU for 5 seconds: work
    that is queued again and again moves from one to the next. In 63 scenarios of healthy emulated DUTs they took
    up to 0.28, and never in two samples of the tasks after each other.

    On an emulated DUT, no more than ``storm`` interrupts a second come for more than ``limit`` seconds, however little
    time their handling takes, and however slowly the host runs it. In 9,016 samples of healthy emulated DUTs there were
    up to 3,993 a second.

    Where each emulated disk has a rate of at most ``SLOW``, a thread of usb-storage that takes more than ``polling`` of
    one CPU waits busily, also while requests complete. In 71 such scenarios none took 0.1. What many small requests
    cost (``PER_REQUEST``) comes on top of that."""

    share: float = 0.8
    limit: float = 3.0
    workers: float = 0.4
    polling: float = 0.5
    storm: int = 20_000

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, "DUT")
        runs = self._runs(story)
        said.take(*(self._accusation(story, name, run) for name, run in runs.items()))
        said.take(*(self._workers(story) if not runs else ()))
        said.doubt(tasks_not_watched(story), _more_interrupts(story))
        top = max((share for event in story.of(Activity) for share in _shares(story, event).values()), default=0.0)
        worst = f"no kernel thread spins (at most {top:.0%} of a CPU, limit {self.share:.0%})"
        return said.judgement(worst if recorded(story, "tasks") and said.clean else "")

    def _runs(self, story: Story) -> dict[str, list[Activity]]:
        """For each thread that was busy for too long, the longest run of samples in which it was."""
        running: defaultdict[str, list[Activity]] = defaultdict(list)
        found: dict[str, list[Activity]] = {}
        for event in story.of(Activity):
            shares = _granted(story, event)
            busy = {_key(name) for name, share in shares.items() if share >= self._most(story, name, event)}
            if bench_kind(story) == "virtual" and event.interrupts >= self.storm:
                busy.add(STORM)
            for key in [key for key in running if key not in busy]:
                del running[key]
            for key in busy:
                running[key].append(event)
                if _lasted(story, key, running[key]) > self.limit:
                    found[key] = list(running[key])
        if INTERRUPTS in found:
            found.pop(STORM, None)  # the same, with what it costs
        return found

    def _most(self, story: Story, name: str, event: Activity) -> float:
        """The share of a CPU that a thread may take."""
        if not _TRANSPORT.search(name) or not _all_slow(story):
            return self.share
        return min(self.share, self.polling + PER_REQUEST * _requests(story, event))

    def _workers(self, story: Story) -> Iterator[Accusation]:
        """The longest time without a pause in which the kernel's workers were busy."""
        runs: list[list[Activity]] = [[]]
        for event in story.of(Activity) if bench_kind(story) == "virtual" else ():
            if sum(_of_workers(story, event).values()) >= self.workers:
                runs[-1].append(event)
            elif runs[-1]:
                runs.append([])
        longest = max(runs, key=lambda run: _length(story, run))
        if _length(story, longest) > WORKERS_FOR:
            yield self._of_run(story, longest)

    def _of_run(self, story: Story, run: list[Activity]) -> Accusation:
        taken: defaultdict[str, float] = defaultdict(float)
        for event in run:
            for name, share in _of_workers(story, event).items():
                taken[name] += share / len(run)
        names = sorted(taken, key=lambda name: -taken[name])
        shown = ", ".join(names[:WORKERS_SHOWN])
        much, lasted = f"{sum(taken.values()):.0%} of a CPU", seconds(_length(story, run))
        within = f"limit {self.workers:.0%} for {WORKERS_FOR:g} s"
        return Accusation(
            subject=names[0],
            summary=f"kernel workers take {much} for {lasted} ({within}): {shown}",
            at=(run[0].at or 0.0) - run[0].seconds,
            evidence=tuple(f"{name}: {taken[name]:.0%} of a CPU" for name in names),
        )

    def _accusation(self, story: Story, key: str, run: list[Activity]) -> Accusation:
        if key == STORM:
            return self._storm(story, run)
        shares = [share for event in run for name, share in _shares(story, event).items() if _key(name) == key]
        name = next(name for name in _shares(story, run[-1]) if _key(name) == key)
        who = "interrupts take" if key == INTERRUPTS else f"kernel thread {name} takes"
        much = f"{sum(shares) / len(shares):.0%} of a CPU"
        lasted = seconds(_lasted(story, key, run))
        evidence = [f"{event.at or 0:.2f} s: {event.interrupts} interrupts a second" for event in run]
        return Accusation(
            subject=name,
            summary=f"{who} {much} for {lasted} (limit {self._most(story, name, run[-1]):.0%} for {self.limit:g} s)",
            at=(run[0].at or 0.0) - run[0].seconds,
            evidence=(*evidence[:6], *_lines(story)),
        )

    def _storm(self, story: Story, run: list[Activity]) -> Accusation:
        least, lasted = min(event.interrupts for event in run), seconds(_lasted(story, STORM, run))
        within = f"(limit {self.storm} for {self.limit:g} s)"
        return Accusation(
            subject=INTERRUPTS,
            summary=f"at least {least} interrupts a second come for {lasted} {within}",
            at=(run[0].at or 0.0) - run[0].seconds,
            evidence=_lines(story),
        )


def nothing_spins(share: float = 0.8, limit: float = 3.0) -> NothingSpins:
    """No kernel thread may take more than ``share`` of one CPU for more than ``limit`` seconds; on an emulated DUT all
    kernel workers together not more than 0.4 for 5 s, and not more than 20,000 interrupts a second may come for
    ``limit`` seconds. On a busy host the share is that of the CPU time it gave."""
    return NothingSpins(share, limit)


def _shares(story: Story, event: Activity) -> dict[str, float]:
    real = bench_kind(story) not in ("virtual", "")
    shares = {name: share for name, share in event.threads.items() if not (real and _BUSY_BY_NATURE.search(name))}
    moving = {
        name for name in shares if _MOVES_DATA.search(name) and not (_TRANSPORT.search(name) and _all_slow(story))
    }
    if moving and _completes(story, event):
        shares = {name: share for name, share in shares.items() if name not in moving}
    return {**shares, INTERRUPTS: event.hard + event.soft}


def _granted(story: Story, event: Activity) -> dict[str, float]:
    """The shares, of which none can be more than what the host gave the whole DUT. If all its CPUs together were busy
    for longer than that, by its own clock, each of their threads had less in proportion. A thread that had all of a CPU
    by the DUT's clock counts as it is."""
    shares, most = _shares(story, event), None
    begin, end = (event.at or 0.0) - event.seconds, event.at or 0.0
    if bench_kind(story) == "virtual" and max(shares.values()) >= RARE:
        most = host_rate(story, begin, end)
    if most is None:
        return shares
    part = min(1.0, most / max(_busy_cpus(story, begin, end), 1e-9))
    return {name: share if share >= ALL else min(share * part, most) for name, share in shares.items()}


def _busy_cpus(story: Story, begin: float, end: float) -> float:
    """How many of the DUT's CPUs were busy in [begin, end], by its own clock; 0 if that is not known."""
    cpus = next((ready.cpus for ready in story.readies), 0)
    return cpus * (busy_cpu(story, begin, end) or 0.0)


def _all_slow(story: Story) -> bool:
    """Whether no emulated disk is so fast that its transfers cost much."""
    rates = [own_rate(story, str(disk.get("name"))) for disk in story.rig.get("disk", ())]
    return bench_kind(story) == "virtual" and bool(rates) and all(rate is not None and rate <= SLOW for rate in rates)


def _of_workers(story: Story, event: Activity) -> dict[str, float]:
    return {name: share for name, share in _shares(story, event).items() if _WORKER.search(name)}


def _completes(story: Story, event: Activity) -> bool:
    """Whether any disk completed a request between this sample of the tasks and the one before."""
    begin, end = (event.at or 0.0) - event.seconds, event.at or 0.0
    rows = story.samples.between(begin, end)
    for stream in story.samples.streams.values() if rows else ():
        inside = (stream.index(row) for row in rows if stream.has(row))
        if len({stream.completed(index) for index in inside}) > 1:
            return True
    return False


def _requests(story: Story, event: Activity) -> float:
    """How many requests all disks completed per second between two samples of the tasks."""
    begin, end = (event.at or 0.0) - event.seconds, event.at or 0.0
    rows, count = story.samples.between(begin, end), 0
    for stream in story.samples.streams.values() if rows else ():
        inside = [stream.completed(stream.index(row)) for row in rows if stream.has(row)]
        count += max(0, inside[-1] - inside[0]) if inside else 0
    return count / event.seconds if event.seconds > 0 else 0.0


def _key(name: str) -> str:
    """The number of a worker, which stays the same while its name changes with its work; or else the name."""
    found = _PID.search(name)
    return found.group(1) if found else name


def _length(story: Story, run: Iterable[Activity]) -> float:
    return sum(awake(story, (event.at or 0.0) - event.seconds, event.at or 0.0) for event in run)


def _lasted(story: Story, key: str, run: Sequence[Activity]) -> float:
    """How long a thread or a storm went on. A storm, and a thread that had all of a CPU again and again, need no time
    that the host did not give to the DUT."""
    always = [event for event in run if key == STORM or _share_of(story, key, event) >= ALL]
    if key != STORM and len(always) < AGAIN:
        return _length(story, run)
    return sum(event.seconds for event in always) + _length(story, [event for event in run if event not in always])


def _share_of(story: Story, key: str, event: Activity) -> float:
    return max((share for name, share in _shares(story, event).items() if _key(name) == key), default=0.0)


def _more_interrupts(story: Story) -> str:
    """A sentence if the kernel counted many more interrupts over the scenario than its samples did; otherwise empty.
    Both counts were the same within 4 % over 70 scenarios, apart from the ends."""
    states = {state.moment: state for state in story.of(DutState)}
    looks = story.of(Activity)
    if not {"begin", "end"} <= set(states) or not looks:
        return ""
    begin, end = states["begin"].interrupts, states["end"].interrupts
    grown = sum(count - begin.get(name, 0) for name, count in end.items())
    sampled = sum(event.interrupts * event.seconds for event in looks)
    if grown <= UNSEEN * sampled + FEW:
        return ""
    return f"the kernel counted {grown} interrupts over the scenario, and its samples {sampled:.0f}"


def _lines(story: Story) -> tuple[str, ...]:
    """The busiest lines of /proc/interrupts over the scenario."""
    states = {state.moment: state for state in story.of(DutState)}
    if not {"begin", "end"} <= set(states):
        return ()
    begin, end = states["begin"].interrupts, states["end"].interrupts
    grown = sorted(((count - begin.get(name, 0), name) for name, count in end.items()), reverse=True)
    return tuple(f"{count} x interrupt {name}" for count, name in grown[:4])
