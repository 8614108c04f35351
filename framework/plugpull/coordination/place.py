"""A real rig that is a place of labgrid, which people and other machines use too.

A run reserves the place and polls the reservation for as long as it lives, but never acquires the place: an acquired
place stays so when its client dies (labgrid issue 1739), while a reservation that nobody polls expires after 60 s, and
the coordinator looks for those every 15 s (labgrid/remote/common.py, coordinator.py). Nobody else can acquire a place
that is reserved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from plugpull.coordination.lease import Lease
from plugpull.coordination.place_helper import LONGEST
from plugpull.coordination.place_process import CoordinatorLost, LabState, PlaceProcess
from plugpull.errors import RigError, UsageError
from plugpull.plain import clean_line
from plugpull.rig.mistakes import closest
from plugpull.rig.model import LabgridPlace, Rig

POLL = 15.0
"""Seconds between two polls of a reservation."""
LIFE = 60.0
"""Seconds that a reservation lives after a poll."""
LATEST = LIFE - POLL - LONGEST
"""Seconds since the last answered poll after which a failed one means that the place is lost: the next one might be
answered when somebody else holds it."""
LOOK = 3.0
"""Seconds between two looks at a place that is waited for."""
REMIND = 60.0
"""Seconds after which a waiting run says again who has the place."""
HELD = ("allocated", "acquired")
"""States of a reservation that has its place."""

Lost = Callable[[str], None]
"""Ends what uses the place. Called in the thread that polls, with the reason."""


class HeldPlace:
    """A place that is reserved for this process. A thread polls the reservation.

    ``on_loss`` names what ends the use of the rig if the reservation is lost.
    """

    def __init__(
        self, declared: LabgridPlace, process: PlaceProcess, poll: float = POLL, latest: float = LATEST
    ) -> None:
        self._declared, self._process = declared, process
        self._poll, self._latest = poll, latest
        self._over = threading.Event()
        self._changing = threading.Lock()
        self._ended_by: Lost | None = None
        self.lost = ""
        """Why the place is not held any more; empty while it is."""
        self._thread = threading.Thread(target=self._keep, name="labgrid place", daemon=True)
        self._thread.start()

    def on_loss(self, lost: Lost) -> None:
        """Have ``lost`` called when the place is lost, at once if it already is."""
        with self._changing:
            self._ended_by = lost
            why = self.lost
        if why:
            lost(why)

    def check(self) -> None:
        """Raise RigError if the place was lost."""
        if self.lost:
            raise RigError(self.lost, hint="see labgrid-client reservations")

    def release(self) -> None:
        self._over.set()
        self._thread.join()

    def _keep(self) -> None:
        answered = time.monotonic()
        while not self._over.wait(self._poll):
            asked = time.monotonic()
            try:
                state = str(self._process.ask("poll").get("state"))
            except CoordinatorLost as error:
                if time.monotonic() - answered < self._latest:
                    continue
                return self._lose(error.what)
            except RigError as error:
                return self._lose(error.what)
            if state not in HELD:
                return self._lose(f"its state is {clean_line(state)}")
            answered = asked
        return None

    def _lose(self, why: str) -> None:
        if self._over.is_set():
            return
        with self._changing:
            self.lost = f"the reservation of the place {self._declared.place} was lost: {why}"
            ended_by = self._ended_by
        if ended_by is not None:
            ended_by(self.lost)


@contextmanager
def reserved(
    declared: LabgridPlace, notify: Callable[[str], None], *, wait: float | None = None, poll: float = POLL
) -> Iterator[HeldPlace]:
    """Reserve a place for as long as the block runs. ``notify`` gets a sentence on who holds it while this waits.

    ``wait`` is how many seconds it may take; by default what the rig file says. ``poll`` is the time between two polls,
    in seconds. Raises UsageError if labgrid is not installed or has no such place, RigError if the coordinator cannot
    be reached or the place is not free in time.
    """
    with PlaceProcess(declared) as process:
        _check(declared, process.look(), process.address)
        token = str(process.ask("reserve", place=declared.place).get("token"))
        _wait(declared, process, token, declared.wait if wait is None else wait, notify)
        held = HeldPlace(declared, process, poll)
        try:
            yield held
        finally:
            held.release()


def _check(declared: LabgridPlace, lab: LabState, address: str) -> None:
    """Raise UsageError if there is no such place, and RigError if the lab's exporters do not serve it."""
    place = lab.places.get(declared.place)
    if place is None:
        meant = closest(declared.place, lab.places)
        suggestion = f"; did you mean {clean_line(meant)}?" if meant else ""
        raise UsageError(
            f"the coordinator of labgrid at {address} has no place {declared.place}{suggestion}",
            hint=f"create it: labgrid-client -p {declared.place} create, or correct place in [labgrid]",
        )
    if place.unmatched:
        missing = ", ".join(map(clean_line, place.unmatched))
        raise RigError(
            f"the place {declared.place} is not there: no exporter has a resource for its match {missing}",
            hint="start labgrid-exporter on the rig's machine, or remove the match with labgrid-client del-match",
        )


def _wait(
    declared: LabgridPlace, process: PlaceProcess, token: str, longest: float | None, notify: Callable[[str], None]
) -> None:
    """Poll a reservation until it has its place."""
    begun = time.monotonic()
    said, at, scheduled = "", begun, False
    while True:
        state = str(process.ask("poll").get("state"))
        if state in HELD:
            return
        if state != "waiting":
            raise RigError(f"the reservation of the place {declared.place} is {clean_line(state)}")
        lab = process.look()
        _check(declared, lab, process.address)
        holder = lab.holder(declared.place, token)
        if not holder and not scheduled:  # it would be given away within 15 s
            process.ask("schedule")
            scheduled = True
            continue
        scheduled = False
        holder = holder or "free; somebody else has waited for longer"
        who = holder.rpartition(" for ")[0] or holder
        if longest is not None and time.monotonic() - begun >= longest:
            raise RigError(
                f"the place {declared.place} is not free: {holder}",
                hint="wait until it is released, or ask its holder; labgrid-client -p PLACE release --kick ends "
                "what a dead client has acquired",
            )
        if who != said or time.monotonic() - at >= REMIND:
            notify(f"waiting for the place {declared.place}: {holder}")
            said, at = who, time.monotonic()
        left = LOOK if longest is None else min(LOOK, max(0.0, begun + longest - time.monotonic()))
        threading.Event().wait(left)


def place_name(rig: Rig) -> str:
    """The rig's place of labgrid; empty if it is not one."""
    return rig.labgrid.place if rig.labgrid is not None else ""


def _quiet(_: str) -> None:
    """Nobody waits for a place here."""


@contextmanager
def place_and_lease(rig: Rig, path: Path) -> Iterator[None]:
    """Hold a rig outside a run, its place included, or raise RigError if somebody else holds it."""
    place = reserved(rig.labgrid, _quiet, wait=0.0) if rig.labgrid else nullcontext()
    with place as held, Lease(rig, path):
        yield
        if held is not None:
            held.check()
