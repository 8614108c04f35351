"""Arrays that the run makes: their states, what is done to them, and what their members hold afterwards."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

ArrayAction = Literal[
    "make",
    "remove_gone",  # members whose disks are gone are marked faulty and removed
    "udev_remove",  # a member whose disk is gone is removed as the distribution's udev rule does
    "fail",  # a member that is there is marked faulty and removed
    "readd",  # a member comes back as the one that it was
    "add",  # a disk is added and gets a full copy
    "marked",  # how much the bitmap marks is read
    "check",  # everything is read and compared
    "stop",
    "assemble",
    "erase",  # the superblocks of the members are erased
]
"""What is done to an array."""


class ArrayMade(Event, frozen=True, kw_only=True, tag="array.made"):
    """An array was made. ``array`` is its name in the history, ``kname`` the kernel's, ``members`` the rig's disks in
    the order of their slots.

    ``spare`` is how many members may be missing, whichever they are, while every byte can be read. ``size`` is in
    bytes; ``component`` (what a member holds of it) and ``chunk`` (0: not striped) too. ``layout`` is md's number.
    ``offsets`` are the sectors at which the data begins on each member. ``bitmap`` is the size of what one bit of the
    write-intent bitmap stands for, bytes; 0 without a bitmap. ``policy`` is md's consistency_policy, such as "ppl"."""

    array: str
    kname: str
    uuid: str
    level: str
    members: tuple[str, ...]
    spare: int
    size: int
    component: int = 0
    chunk: int = 0
    layout: int = 0
    offsets: dict[str, int] = {}
    bitmap: int = 0
    policy: str = ""


class ArrayState(Event, frozen=True, kw_only=True, tag="array.state"):
    """The state of an array changed.

    ``values`` are attributes of md in sysfs as the kernel writes them (``array_state``, ``degraded``, ``sync_action``,
    ``sync_completed``, ``mismatch_cnt``, ``resync_start``; Documentation/admin-guide/md.rst). ``members`` has (slot,
    state) of each member, by the rig's name of its disk, or by its kernel name if it is not of the rig. Both are empty
    once the array is stopped."""

    array: str
    kname: str
    values: dict[str, str]
    members: dict[str, tuple[str, str]]


class ArrayActed(Event, frozen=True, kw_only=True, tag="array.acted"):
    """Something was done to an array, with these disks. ``detail`` is what mdadm or the kernel answered. ``forced``: it
    was assembled with mdadm's ``--force``. What is done to one array is numbered from 1 on; 0 if the record is older.

    ``in_flight``: the requests that the kernel counted as under way on the array just before it was stopped, when
    nobody had it open any more and they had had a second to end; None if it is not known."""

    array: str
    action: ArrayAction
    disks: tuple[str, ...] = ()
    ok: bool
    seconds: float
    detail: str = ""
    forced: bool = False
    number: int = 0
    in_flight: int | None = None


class LegReadBegun(Event, frozen=True, kw_only=True, tag="leg.begin"):
    """A member of a stopped array is read, to see what it holds of the stamps of ``run`` and ``device``.

    ``session`` is the last one that wrote to the array. The array's data begins at sector ``offset`` of the disk, and
    ``extents`` are the (first sector, sectors) that are read. ``error`` says why it could not be read."""

    array: str
    disk: str
    job: str
    session: int
    run: int
    device: int
    offset: int
    extents: tuple[tuple[int, int], ...]
    error: str = ""


class LegReadPart(Event, frozen=True, kw_only=True, tag="leg.part"):
    """A piece of what was found, like ``ReadBackPart``."""

    disk: str
    job: str
    offset: int
    data: str


class LegReadEnded(Event, frozen=True, kw_only=True, tag="leg.end"):
    """The reading of a member ended. ``received`` bytes of what was found arrived."""

    disk: str
    job: str
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""
