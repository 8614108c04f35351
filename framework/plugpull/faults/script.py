"""The steps of a fault as data, apart from carrying them out.

A script is a generator of steps. Each step is answered with those of its waits that are over, an empty set for a step
that waits for nothing. ``injection.py`` carries scripts out on a bench; ``expected.py`` only follows them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

from plugpull.faults.triggers import Now, Trigger


@dataclass(frozen=True)
class Gone:
    """The disks that these points take are off the kernel's list, or have had their time to go."""

    points: tuple[str, ...]


@dataclass(frozen=True)
class Back:
    """The disks of these points are on the kernel's list again, or have had their time to come."""

    points: tuple[str, ...]


@dataclass(frozen=True)
class Here:
    """These disks are on the kernel's list, or have had their time to come."""

    disks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Opening:
    """Cut points that are opened at once. Two openings are never equal: the same fault made twice opens twice.

    Openings with equal ``group`` are one cut to the disks that they share: they are armed together, made at once or in
    one burst, and restored together.
    """

    points: tuple[str, ...]
    when: Trigger
    permanent: bool = False
    group: object = None


@dataclass(frozen=True, eq=False)
class MovedAway:
    """Disks that are plugged into other sockets than their own. ``points`` are opened for the way back; none, if the
    disks are off anyway once they leave."""

    disks: tuple[str, ...]
    points: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Wait:
    """One thing that is waited for. ``subject`` is the cut point it is waited for, if there is one."""

    until: Trigger | Gone | Back | Here
    subject: str = ""


@dataclass(frozen=True)
class Arm:
    """Record these before anything is done."""

    openings: tuple[Opening, ...]


@dataclass(frozen=True)
class SwitchPorts:
    """Open and close these, all at once."""

    off: tuple[Opening, ...] = ()
    on: tuple[Opening, ...] = ()


@dataclass(frozen=True)
class Relocate:
    """Plug disks into other sockets: (disk, socket) pairs. An empty socket is the disk's own."""

    sockets: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Until:
    """Wait until one of these is over."""

    waits: tuple[Wait, ...]


Step = Arm | SwitchPorts | Relocate | Until
Over = frozenset[Wait]
NOTHING: Over = frozenset()
AT_ONCE = Now()
Script = Generator[Step, Over, None]


def until(what: Trigger | Gone | Back | Here, subject: str = "") -> Until:
    """Wait for one thing."""
    return Until((Wait(what, subject),))


def heal(held: list[Opening | MovedAway]) -> Script:
    """Plug what was moved back in, and close at once what is held, apart from what was cut for good. Afterwards nothing
    is held."""
    due = tuple(one for one in held if isinstance(one, Opening) and not one.permanent)
    moved = tuple(one for one in held if isinstance(one, MovedAway))
    held.clear()
    if moved:
        yield from _home(moved)
    if due:
        yield SwitchPorts(on=due)
        yield until(Back(points_of(due)))


def _home(moved: tuple[MovedAway, ...]) -> Script:
    """Plug all of these back in where they belong, at once."""
    home = Relocate(tuple((disk, "") for disk in sorted({disk for one in moved for disk in one.disks})))
    points = tuple(sorted({point for one in moved for point in one.points}))
    if not points:
        yield home
        return
    opening = Opening(points, AT_ONCE)
    yield Arm((opening,))
    yield SwitchPorts(off=(opening,))
    yield until(Gone(points))
    yield home
    yield SwitchPorts(on=(opening,))
    yield until(Back(points))


def points_of(openings: Iterable[Opening]) -> tuple[str, ...]:
    """Names of the cut points of these openings, each once."""
    return tuple(dict.fromkeys(point for opening in openings for point in opening.points))


@dataclass
class ScriptRun:
    """A script under way, and the step it is at: ``None`` at its end."""

    script: Script
    step: Step | None = field(init=False)

    def __post_init__(self) -> None:
        self.step = next(self.script, None)

    @property
    def waits(self) -> tuple[Wait, ...]:
        return self.step.waits if isinstance(self.step, Until) else ()

    def advance(self, over: Over = NOTHING) -> None:
        """The step was done, and these of its waits are over."""
        try:
            self.step = self.script.send(over)
        except StopIteration:
            self.step = None


def side_by_side(scripts: Iterable[Script]) -> Script:
    """Several scripts as one. Things that several of them do at the same moment become one step. Equal things that they
    begin to wait for at the same moment become one wait, so that all go on together."""
    lanes = [ScriptRun(script) for script in scripts]
    shared: dict[Wait, Wait] = {}
    while lanes := [lane for lane in lanes if lane.step is not None]:
        steps = [lane.step for lane in lanes]
        if arms := [step for step in steps if isinstance(step, Arm)]:
            yield Arm(tuple(opening for step in arms for opening in step.openings))
            _advance(lanes, Arm)
        elif switches := [step for step in steps if isinstance(step, SwitchPorts)]:
            off = tuple(opening for step in switches for opening in step.off)
            yield SwitchPorts(off, tuple(opening for step in switches for opening in step.on))
            _advance(lanes, SwitchPorts)
        elif relocations := [step for step in steps if isinstance(step, Relocate)]:
            yield Relocate(tuple(pair for step in relocations for pair in step.sockets))
            _advance(lanes, Relocate)
        else:
            waits = [wait for step in steps if isinstance(step, Until) for wait in step.waits]
            _share(waits, shared)
            over = yield Until(tuple(dict.fromkeys(shared[wait] for wait in waits)))
            for lane in lanes:
                own = frozenset(wait for wait in lane.waits if shared[wait] in over)
                if own:
                    lane.advance(own)


def _advance(lanes: Sequence[ScriptRun], kind: type[Step]) -> None:
    """Let the scripts at such a step go on."""
    for lane in lanes:
        if isinstance(lane.step, kind):
            lane.advance()


def _share(waits: Sequence[Wait], shared: dict[Wait, Wait]) -> None:
    """Have each of those that begin now share the first one that waits for the same."""
    first: dict[Trigger | Gone | Back | Here, Wait] = {}
    for wait in waits:
        if wait not in shared:
            shared[wait] = first.setdefault(wait.until, wait)
