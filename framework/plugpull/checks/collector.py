"""Collects what one check says of a story: findings, doubts and measurements."""

from __future__ import annotations

from collections.abc import Iterable

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement, check_name
from plugpull.finding import Finding
from plugpull.judging.results import Conclusion, Integrity, Measurement, Survivor


class Collector:
    """Takes one check's findings, doubts and measurements, and makes its judgement of them.

    >>> said = Collector("my_check", "disk1")
    >>> said.accuse("disk1", "disk1 answered after 7 s (limit 5 s)", at=12.5)
    >>> said.judgement().findings[0].check
    'my_check'
    """

    def __init__(self, check: Check | type[Check] | str, subject: str | Iterable[str] = "") -> None:
        """``subject``: the disk or disks that the check was asked about."""
        self.check = check if isinstance(check, str) else check_name(check)
        self.subject = subject if isinstance(subject, str) else ", ".join(subject)
        self.findings: list[Finding] = []
        self.unknowns: list[str] = []
        self.measurements: list[Measurement] = []
        self.conclusions: list[Conclusion] = []

    @property
    def clean(self) -> bool:
        """Whether there is neither a finding nor a doubt so far."""
        return not self.findings and not self.unknowns

    def accuse(self, subject: str, summary: str, at: float | None = None, evidence: Iterable[str] = ()) -> None:
        """Add a finding of this check against ``subject``."""
        self.take(Accusation(subject=subject, summary=summary, at=at, evidence=tuple(evidence)))

    def doubt(self, *sentences: str) -> None:
        """Add sentences that say which evidence is missing. An empty one is left out."""
        self.unknowns.extend(sentence for sentence in sentences if sentence)

    def take(self, *said: Accusation | Finding | str) -> None:
        """Add accusations as findings of this check, findings of other checks unchanged, and sentences as doubts."""
        for one in said:
            if isinstance(one, Accusation):
                self.findings.append(one.by(self.check))
            elif isinstance(one, Finding):
                self.findings.append(one)
            else:
                self.doubt(one)

    def sort(self) -> None:
        """Put the findings in the order of their times; those without a time come last."""
        self.findings.sort(key=lambda finding: float("inf") if finding.at is None else finding.at)

    def measure(self, measurement: Measurement) -> None:
        """Put a measurement on record, under the name of this check."""
        self.measurements.append(measurement.by(self.check))

    def conclude(self, conclusion: Conclusion) -> None:
        """Add what the measurements mean."""
        self.conclusions.append(conclusion)

    def judgement(
        self,
        worst: str = "",
        *,
        survivors: Iterable[Survivor] = (),
        integrity: Integrity | None = None,
        measured: float | None = None,
        limit: float | None = None,
        unit: str = "",
        smallest: float | None = None,
    ) -> Judgement:
        """All of it, each doubt once. The parameters are the fields of ``Judgement``."""
        return Judgement(
            findings=tuple(self.findings),
            unknowns=tuple(dict.fromkeys(self.unknowns)),
            measurements=tuple(self.measurements),
            conclusions=tuple(self.conclusions),
            worst=worst,
            subject=self.subject,
            survivors=tuple(survivors),
            integrity=integrity,
            measured=measured,
            limit=limit,
            unit=unit,
            smallest=smallest,
        )

    def timed(self, worst: str, took: float | None, within: float | None) -> Judgement:
        """The judgement of a check that measures a time, ``took`` being the one nearest to its limit ``within``."""
        if took is None or within is None:
            return self.judgement(worst)
        spare = round(max(0.0, within - took), 6)
        return self.judgement(worst, measured=took, limit=within, unit="s", smallest=spare)
