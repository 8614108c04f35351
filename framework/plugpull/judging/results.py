"""The structs of ``results.json``. ``judge.py`` makes them from a history."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec
from msgspec.structs import replace

from plugpull.finding import Finding
from plugpull.history.cut import Cut, DiskTimes
from plugpull.history.story import Story

RESULTS_VERSION = 1


class Verdict(StrEnum):
    """PASS, FAIL (something was found) or UNKNOWN (evidence is missing, or the bench failed)."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


Better = Literal["up", "down", ""]
"""The direction in which a measured value improves."""


class ResultPart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the structs in ``results.json``. Times are seconds of the DUT's CLOCK_MONOTONIC, sizes are bytes."""


class CutResult(ResultPart, frozen=True, kw_only=True):
    """One cut. ``kernel_saw_at`` is its first sign in the kernel log or in a uevent; ``returned_at`` is when the last
    victim was back. ``error`` is the bound on the error of the controller's times, in seconds.

    Cuts with the same ``group`` (0: none) were made at once. ``skew`` is the time from the first to the last edge that
    a switch acknowledged, on the controller's clock; ``kernel_skew`` is the time from the first sign of one of these
    cuts in the kernel to the first sign of the last one; ``restored_skew`` is the skew of turning them on again."""

    point: str
    mechanism: str
    trigger: str
    victims: tuple[str, ...] = ()
    permanent: bool = False
    group: int = 0
    commanded_at: float | None = None
    acknowledged_at: float | None = None
    read_back: bool | None = None
    kernel_saw_at: float | None = None
    last_byte_at: float | None = None
    restored_at: float | None = None
    returned_at: float | None = None
    error: float = 0.0
    skew: float | None = None
    kernel_skew: float | None = None
    restored_skew: float | None = None
    disks: tuple[DiskTimes, ...] = ()


def _cut_result(cut: Cut) -> CutResult:
    """A cut as ``results.json`` shows it."""
    returns = [times.returned_at for times in cut.disks]
    returned = [at for at in returns if at is not None]
    last_bytes = [times.last_io_at for times in cut.disks if times.last_io_at is not None]
    return CutResult(
        point=cut.armed.point,
        mechanism=cut.armed.mechanism,
        trigger=cut.armed.trigger,
        victims=cut.armed.victims,
        permanent=cut.armed.permanent,
        group=cut.armed.group,
        commanded_at=cut.off.commanded_at,
        acknowledged_at=cut.off.acknowledged_at,
        read_back=cut.off.read_back,
        kernel_saw_at=cut.kernel_saw_at,
        last_byte_at=max(last_bytes, default=None),
        restored_at=cut.restored_at,
        returned_at=max(returned) if returned and len(returned) == len(returns) else None,
        error=cut.error,
        skew=cut.off.skew,
        kernel_skew=cut.kernel_skew,
        restored_skew=cut.on.skew,
        disks=cut.disks,
    )


def cut_results(story: Story) -> tuple[CutResult, ...]:
    """The cuts of a scenario as ``results.json`` shows them, in the order they were armed."""
    return tuple(map(_cut_result, story.cut_records))


class Survivor(ResultPart, frozen=True, kw_only=True):
    """The pace of a disk outside the blast radius, from the agent's samples (method: ``checks/survivors/pace.py``).

    ``stall_s`` is the longest stall, ``stalls_s`` the sum of the stalls that count. ``measured`` is the rate at the end
    in ``unit``, and ``limit`` the lowest rate allowed. ``smallest`` is the smallest loss, as a share, that the check
    could have noticed, given the spread of the baseline."""

    disk: str
    baseline_bps: float | None = None
    stall_s: float | None = None
    stalls_s: float | None = None
    recovery_s: float | None = None
    final_ratio: float | None = None
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    smallest: float | None = None


class BadSectors(ResultPart, frozen=True, kw_only=True):
    """A range of wrong sectors of 512 bytes: ``sectors`` of them from ``first`` on.

    ``expected`` and ``found`` are in words; ``expected_hex`` and ``found_hex`` are the bytes of the first sector, empty
    if not known. ``evidence`` says when the promised data was written and flushed, and what may explain the loss."""

    kind: str
    first: int
    sectors: int
    expected: str
    found: str
    expected_hex: str = ""
    found_hex: str = ""
    evidence: tuple[str, ...] = ()


class DiskIntegrity(ResultPart, frozen=True, kw_only=True):
    """What the oracle found on one disk (``integrity/oracle/rules.py``). ``counts`` are sectors by kind of damage.

    ``rounds`` is how often the disk was read back and judged, ``rounds_lost`` the number of rounds with an error.
    ``unflushed`` sectors were completed, never flushed, and are gone, which is legal. ``suspicious`` of them are gone
    although the disk kept its power, which is legal but unexpected. ``ledger_bytes`` is the size of the ledger.
    ``write_cache`` is the kernel's view of the disk's cache (``checks/data/belief.py``)."""

    disk: str
    rounds: int = 1
    rounds_lost: int = 0
    sectors_checked: int = 0
    sectors_unjudged: int = 0
    counts: dict[str, int] = {}
    unflushed: int = 0
    suspicious: int = 0
    writes: int = 0
    flushes: int = 0
    ledger_bytes: int = 0
    write_cache: str = ""
    first: BadSectors | None = None
    worst: BadSectors | None = None


class Integrity(ResultPart, frozen=True, kw_only=True):
    """The number of compared sectors and of bad ones by kind; for stamped writes also disk by disk. ``durable_lost``
    counts promised sectors that are gone, and includes ``stale`` and ``zeroed`` ones.

    ``cuts`` were followed by a read-back; ``cuts_lost`` of them lost or damaged something. ``trials`` of them took the
    power of a disk that had durable data beyond its fill: only these could lose any. ``trials_lost`` of them did, and
    ``loss_bound`` is the upper end of the 95 % confidence interval of that probability (Clopper and Pearson, 1934)."""

    sectors_checked: int = 0
    durable_lost: int = 0
    corrupt: int = 0
    torn: int = 0
    misdirected: int = 0
    stale: int = 0
    foreign: int = 0
    zeroed: int = 0
    unreadable: int = 0
    never_written: int = 0
    unflushed: int = 0
    cuts: int = 0
    cuts_lost: int = 0
    trials: int = 0
    trials_lost: int = 0
    loss_bound: float | None = None
    disks: tuple[DiskIntegrity, ...] = ()


class Measurement(ResultPart, frozen=True, kw_only=True):
    """A number that a check or a study measured: a rate, a time, a count.

    ``value`` is in ``unit`` ("s", "B/s", "sectors", "of the baseline", ...). With several repeats, ``samples`` has them
    in the order of measurement, ``n`` is their number and ``value`` their median, unless the check says otherwise.
    ``low`` and ``high`` bound the 95 % confidence interval of ``value``; they are absent if there are too few repeats.
    ``odd`` are the indices of repeats that are unlike the others: nothing is concluded from such a set.
    ``parameters`` are the conditions of the measurement (``{"block": 4096}``). ``better`` is the direction of an
    improvement, empty if there is none. ``check`` is the check that measured it."""

    name: str
    subject: str = ""
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    n: int = 1
    samples: tuple[float, ...] = ()
    odd: tuple[int, ...] = ()
    better: Better = ""
    parameters: dict[str, str | float] = {}
    check: str = ""

    def by(self, check: str) -> Measurement:
        """This measurement under the name of ``check``."""
        return replace(self, check=check)


ConclusionKind = Literal[
    "outlier",
    "knee",
    "ceiling",
    "collapse",
    "shared-bottleneck",
    "no-bottleneck",
    "difference",
    "no-difference",
    "impossible-rate",
    "dip",
    "pause",
    "largest-safe-size",
    "below-expectation",
    "needs-power-cycle",
    "power",
    "set-aside",
]


class Conclusion(ResultPart, frozen=True, kw_only=True):
    """What measurements mean, in one sentence (``text``). ``value`` is its main number, in ``unit``.

    ``evidence`` are the measured numbers behind it, in words."""

    kind: ConclusionKind
    subject: str
    text: str
    value: float | None = None
    unit: str = ""
    evidence: tuple[str, ...] = ()


class CheckResult(ResultPart, frozen=True, kw_only=True):
    """The result of one check. ``worst`` is its worst case in words, such as "removed after 0.21 s (limit 5 s)".
    ``standing``: the check is judged for every scenario, and this one did not ask for it.

    For a check that measures something, ``measured`` is the value nearest to its ``limit``, both in ``unit`` ("s",
    "of the baseline", "x idle"); ``smallest`` is the smallest change, in the same unit, that it could have noticed."""

    check: str
    verdict: Verdict
    subject: str = ""
    worst: str = ""
    standing: bool = False
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    smallest: float | None = None


class ExpectedResult(ResultPart, frozen=True, kw_only=True):
    """An expected finding (``expected.py``) and how often it was found.

    ``scenarios`` is the number of those that were run and may show it on their kernel; ``matched`` of them did, with
    ``findings`` in all. ``reference`` is where it is known from, ``evidence`` what was measured."""

    name: str
    reference: str
    evidence: str
    scenarios: int = 0
    matched: int = 0
    findings: int = 0


class ScenarioResult(ResultPart, frozen=True, kw_only=True):
    """The result of one scenario. ``sentence`` is its verdict in words, ``split`` the seconds that each phase took.
    ``expected`` are the expected findings that it may show on this kernel."""

    id: str
    verdict: Verdict
    seconds: float
    sentence: str
    story: str = ""
    row: str = ""
    seed: int = 0
    kernel: str = ""
    cuts: tuple[CutResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()
    survivors: tuple[Survivor, ...] = ()
    integrity: Integrity = Integrity()
    split: dict[str, float] = {}
    measurements: tuple[Measurement, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    part: str = ""
    expected: tuple[ExpectedResult, ...] = ()


class CoveredCell(ResultPart, frozen=True, kw_only=True):
    """The number of ``cuts`` by one ``mechanism`` of disks with one ``driver`` under one ``load``."""

    driver: str
    mechanism: str
    load: str
    cuts: int


class Coverage(ResultPart, frozen=True, kw_only=True):
    """Which parts of the rig were cut (``coverage.py``): numbers of executed cuts by name, 0 for parts never cut.
    ``points`` and ``mechanisms`` count cuts; ``disks``, ``drivers``, ``controllers`` and ``loads`` count victims.
    ``cells`` are all combinations in which this rig can be cut."""

    points: dict[str, int] = {}
    mechanisms: dict[str, int] = {}
    disks: dict[str, int] = {}
    drivers: dict[str, int] = {}
    controllers: dict[str, int] = {}
    loads: dict[str, int] = {}
    cells: tuple[CoveredCell, ...] = ()


class Skipped(ResultPart, frozen=True, kw_only=True):
    """A scenario that was not run because this rig cannot serve it, or because it is marked so. It has no verdict."""

    id: str
    reason: str


class DutInfo(ResultPart, frozen=True, kw_only=True):
    """The device under test: its kernel, kind, hardware and tools."""

    kernel: str = ""
    kind: str = ""
    accel: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    fio: str = ""
    modules: tuple[str, ...] = ()


class DiskIdentity(ResultPart, frozen=True, kw_only=True):
    """A disk of the rig: its ``name`` in the rig file, and what it is wherever it is plugged in.

    ``serial`` and ``lun`` are those of the rig file, which every scenario compares with the disk. ``model`` is what the
    kernel says of it; empty if it was never seen. ``size`` is in bytes."""

    name: str
    serial: str = ""
    lun: int = 0
    model: str = ""
    size: int = 0


class RunPart(ResultPart, frozen=True, kw_only=True):
    """One part of a run: a bench of several side by side, or one shard (``I/N``) from any machine.

    Its history is ``parts/NAME/history.jsonl``. ``scenarios`` is the number of scenarios in it."""

    name: str
    shard: str = ""
    started: str = ""
    seconds: float = 0.0
    seed: int = 0
    scenarios: int = 0
    complete: bool = True
    controller: dict[str, str] = {}


class Results(ResultPart, frozen=True, kw_only=True):
    """The contents of ``results.json``. ``complete`` is false if the history ends before its run did, as after a crash.

    ``edited``: the history was edited on purpose, so its line numbers and digests were not compared.
    ``unknowns``: why the run cannot pass, whatever the verdicts of its scenarios are.
    ``measurements`` are those of the studies, ``conclusions`` all, of all scenarios together.
    ``parts``: the parts of a run that has several; ``part`` of each scenario is the name of its part.
    ``disks`` are the disks of the rig, in its order.
    ``expected``: the expected findings that its scenarios may show, also those that were not found."""

    schema: int
    plugpull: str
    rig: str
    dut: DutInfo
    verdict: Verdict
    sentence: str
    started: str
    seconds: float
    seed: int
    scenarios: tuple[ScenarioResult, ...]
    complete: bool = True
    edited: bool = False
    skipped: tuple[Skipped, ...] = ()
    unknowns: tuple[str, ...] = ()
    coverage: Coverage = Coverage()
    controller: dict[str, str] = {}
    measurements: tuple[Measurement, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    parts: tuple[RunPart, ...] = ()
    disks: tuple[DiskIdentity, ...] = ()
    expected: tuple[ExpectedResult, ...] = ()
