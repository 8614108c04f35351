"""What a check is: data, and a pure function from one scenario's history to a judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plugpull.errors import Finding
from plugpull.results import Integrity, Survivor

if TYPE_CHECKING:
    from plugpull.history.reader import Story


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a check made of a history.

    ``findings`` accuse the DUT, an enclosure or a disk. ``unknowns`` say, a sentence each, which evidence was missing;
    one is enough to keep the check from passing. ``worst`` is the worst case seen, for the table of the report.
    """

    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()
    worst: str = ""
    subject: str = ""
    survivors: tuple[Survivor, ...] = ()
    integrity: Integrity | None = None


class Check(msgspec.Struct, frozen=True, tag_field="check", tag=lambda name: name.lower()):
    """Base of all checks. Parameters are fields, so a history can carry the checks it is to be judged by."""

    def judge(self, story: Story) -> Judgement:
        raise NotImplementedError
