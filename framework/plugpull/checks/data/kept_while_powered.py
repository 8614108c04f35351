"""Whether a disk that kept its power still has all completed writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.data.nothing_lost import loss
from plugpull.checks.data.opinions import claims_of, judge_rounds
from plugpull.checks.data.power import Power
from plugpull.history.story import Story
from plugpull.integrity.oracle.rules import Opinion

LACKS = "kept its power, and lacks what it had completed"


class KeptWhilePowered(Check, frozen=True, tag="kept_while_powered"):
    """A disk with power keeps every completed write, flushed or not. A volatile write cache is lost with the power, not
    with the cable.

    Judged are all stamped disks that were not cut, and victims whose data lines alone were cut (``mechanism = "data"``)
    while they had a supply of their own (``self_powered``). A disk fed by VBUS may have lost its power with its cable,
    and is not judged. A command in flight at the cut was not completed, and may be gone. ``nothing_lost`` judges
    flushed writes.
    """

    disks: tuple[str, ...] | None = None

    def judge(self, story: Story) -> Judgement:
        record = judge_rounds(story, self.disks)
        powered = [one for one in record.rounds if one.power is Power.KEPT]
        disks = tuple(dict.fromkeys(one.round.disk for one in powered))
        said = Collector(self, disks)
        said.take(*(loss(story, one, Opinion(wrong=list(one.owed)), LACKS) for one in powered if one.owed))
        said.doubt(*record.unknowns)
        return said.judgement(
            f"completed writes kept on {len(disks)} disks with power" if disks and said.clean else "",
            measured=float(sum(wrong.sectors for one in powered for wrong in one.owed)),
            limit=0.0,
            unit="sectors",
            smallest=1.0,
        )

    def claims(self, story: Story) -> Iterable[Claim]:
        record = judge_rounds(story, self.disks)
        powered = tuple(one for one in record.rounds if one.power is Power.KEPT)
        return claims_of(replace(record, rounds=powered), "holds what it had completed")


def kept_while_powered(disks: Disks | None = None) -> KeptWhilePowered:
    """Each of ``disks`` that kept its power must have all completed writes. By default, these are all stamped disks."""
    return KeptWhilePowered(None if disks is None else disk_names(disks))
