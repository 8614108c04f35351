"""How the writer of a session ended: of 930 with status 0, or with 1 after an error of its disk. None said anything.

Its status and the last line of its ledger must say the same of that end.
"""

from __future__ import annotations

from plugpull.history.events import LedgerBegun, LedgerEnded
from plugpull.history.story import Story
from plugpull.integrity.oracle.ledger import Ledger, Reason

KNOWN = (None, 0, 1)
"""The statuses of a writer that ended by itself: unknown, done, and with an error of its disk."""


def ended_wrongly(story: Story, begun: LedgerBegun, ended: LedgerEnded) -> str:
    """Why the ledger of a writer is not to be trusted, a clause; empty if it ended as a writer does. One that could not
    be ended is judged elsewhere."""
    status = ended.status
    if ended.why:
        return f"its writer ended with status {status}: {ended.why}"
    if _cut_meanwhile(story, begun, ended):
        return ""
    if status is not None and status < 0:
        return f"its writer was ended by signal {-status}"
    if status not in KNOWN or (status == 1 and ended.asked):
        return f"its writer ended with status {status}: it does not say why"
    return ""


def ended_otherwise(ended: LedgerEnded | None, ledger: Ledger) -> str:
    """Why a ledger and the status of its writer contradict each other, a clause: 1 after an error of the disk, and 0
    otherwise. 751 of 751 agreed."""
    if ended is None or ended.status not in (0, 1) or ledger.reason is None or ledger.reason is Reason.STUCK:
        return ""
    if (ended.status == 1) is (ledger.reason is Reason.ERROR):
        return ""
    what = "an error of its disk" if ledger.reason is Reason.ERROR else "no error"
    return f"its writer ended with status {ended.status}, and its ledger with {what}"


def _cut_meanwhile(story: Story, begun: LedgerBegun, ended: LedgerEnded) -> bool:
    """Whether a cut of the disk may have fallen into the time in which it was written."""
    for cut in story.cuts_of(begun.disk):
        off, on = cut.off.commanded_at, cut.on.commanded_at
        if off is None or begun.at is None or ended.at is None:
            return True
        if off - cut.error <= ended.at and (on is None or on + cut.error >= begun.at):
            return True
    return False
