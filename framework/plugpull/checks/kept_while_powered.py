"""Is there what a disk had completed, where it never lost its power?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.checks.nothing_lost import loss
from plugpull.checks.opinions import claims_of, judge_rounds
from plugpull.checks.power import Power
from plugpull.history.story import Story
from plugpull.integrity.oracle.rules import Opinion

LACKS = "kept its power, and lacks what it had completed"


class KeptWhilePowered(Check, frozen=True, tag="kept_while_powered"):
    """A volatile write cache is lost with the power, not with the cable: what the kernel completed to the application
    is there as long as the disk has power, flushed or not.

    Judged for every stamped disk that no cut hit, and for victims whose data lines alone were cut (``mechanism =
    "data"``) while a supply of their own fed them (``self_powered``). A disk that VBUS feeds may have lost its power
    with its cable: nothing is held against it. A command in flight at the cut was not completed, and may be gone. What
    a flush had promised is ``nothing_lost``'s.
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
    """What was completed must be there on each of ``disks`` that kept its power; by default, on every stamped disk."""
    return KeptWhilePowered(None if disks is None else disk_names(disks))
