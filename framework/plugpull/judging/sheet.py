"""Collects the judgements of all checks on one scenario, and derives its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plugpull.checks.base import Judgement
from plugpull.finding import Finding
from plugpull.integrity.oracle.statistics import loss_bound
from plugpull.judging.results import CheckResult, Conclusion, Integrity, Measurement, Survivor, Verdict


@dataclass
class Sheet:
    """The judgements of one scenario."""

    checks: list[CheckResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    survivors: dict[str, Survivor] = field(default_factory=dict)
    integrity: Integrity = field(default_factory=Integrity)
    measurements: list[Measurement] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)

    def enter(self, name: str, judgement: Judgement, *, standing: bool = False) -> None:
        """Add the judgement of the check ``name``. ``standing``: the scenario did not ask for it."""
        verdict = verdict_of(judgement.findings, judgement.unknowns)
        worst = judgement.worst
        self.checks.append(
            CheckResult(
                check=name,
                verdict=verdict,
                subject=judgement.subject,
                worst=worst,
                standing=standing,
                measured=judgement.measured,
                limit=judgement.limit,
                unit=judgement.unit,
                smallest=judgement.smallest,
            )
        )
        self.findings.extend(judgement.findings)
        self.unknowns.extend(judgement.unknowns)
        self.measurements.extend(one if one.check else one.by(name) for one in judgement.measurements)
        self.conclusions.extend(judgement.conclusions)
        for survivor in judgement.survivors:
            self.survivors.setdefault(survivor.disk, survivor)
        if judgement.integrity is not None:
            self.integrity = _sum(self.integrity, judgement.integrity)


def verdict_of(findings: Iterable[Finding], unknowns: Iterable[str]) -> Verdict:
    """FAIL with a finding, whatever else is unknown; otherwise UNKNOWN with an unknown; otherwise PASS."""
    if any(True for _ in findings):
        return Verdict.FAIL
    return Verdict.UNKNOWN if any(True for _ in unknowns) else Verdict.PASS


def _sum(one: Integrity, two: Integrity) -> Integrity:
    counts = {
        name: getattr(one, name) + getattr(two, name)
        for name in Integrity.__struct_fields__
        if isinstance(getattr(one, name), int)
    }
    bound = loss_bound(counts["trials_lost"], counts["trials"]) if counts["trials"] else None
    return Integrity(**counts, loss_bound=bound, disks=one.disks + two.disks)
