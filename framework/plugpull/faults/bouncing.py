"""A contact that bounces: a plug that is half in, a cable that is knocked, a worn socket."""

from __future__ import annotations

import msgspec

from plugpull.errors import UsageError
from plugpull.faults.compose import Fault, Point, names_of
from plugpull.faults.script import Arm, Back, Gone, MovedAway, Opening, Script, SwitchPorts, Until, Wait, until
from plugpull.faults.triggers import After, Now, Trigger

NOTICED = 2.0
"""Seconds after which the kernel has noticed that a contact was lost, or never will. Nine losses of 0.2 ms to 0.2 s on
an emulated hub took 0.02 s to 0.2 s; a busy machine takes longer."""


class Bounce(Fault, msgspec.Struct, frozen=True, tag_field="kind", tag="bounce"):
    """Points that open and close several times. ``gaps`` are seconds: open, closed, open, ..., open; then they stay
    closed.

    The kernel is not waited for before the last closing. To the disks it is one cut: they may go when it opens first,
    and must be back after it closed last.
    """

    points: tuple[str, ...]
    gaps: tuple[float, ...]
    when: Trigger = Now()

    def __post_init__(self) -> None:
        if not self.points:
            raise UsageError("a bounce needs a point to cut", hint="name one, such as disk.cable")
        if len(self.gaps) % 2 == 0:
            raise UsageError(
                f"a bounce ends closed, so {len(self.gaps)} gaps are one too many or too few",
                hint="give an odd number of gaps: open, closed, open",
            )
        for gap in self.gaps:
            After(gap)

    def inject(self, held: list[Opening | MovedAway]) -> Script:
        group = object()
        openings = tuple(Opening(self.points, self.when, group=group) for _ in self.gaps[::2])
        yield Arm(openings)
        yield until(self.when, self.points[0])
        for number, opening in enumerate(openings):
            if number:
                yield until(After(self.gaps[2 * number - 1]))
            yield SwitchPorts(off=(opening,))
            yield until(After(self.gaps[2 * number]))
            yield SwitchPorts(on=(opening,))
        # A disk that is still on the kernel's list may yet have to go.
        yield Until((Wait(Gone(self.points)), Wait(After(NOTICED))))
        yield until(Back(self.points))


def bounce(*points: Point, gaps: tuple[float, ...], when: Trigger | None = None) -> Bounce:
    """Open and close these points with the given gaps, in seconds: open, closed, open, ..., open.

    The disks are judged as after one cut: they may go when it opens first, and must be back after it closed last.
    Raises ``UsageError`` for an even number of gaps.

        with rig.fault(bounce("disk1.cable", gaps=(0.05, 0.02, 0.05))):
            pass
    """
    return Bounce(names_of(points), gaps, when or Now())
