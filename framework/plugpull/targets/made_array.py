"""An array that the run makes with mdadm on the DUT."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev
from plugpull.rig.quantities import parse_size
from plugpull.targets.array import Array, is_clean
from plugpull.targets.claim import Identity, ScratchClaim
from plugpull.targets.disk import RigDisk

MDADM_WITHIN = 60.0
"""Seconds for one call of mdadm. One that does not end in this time hangs in the kernel."""
ANSWER_WITHIN = 90.0
SYNCED_WITHIN = 300.0
"""Seconds for a resync or a rebuild."""
NOTICED_WITHIN = 60.0
"""Seconds until an array that is written to must have noticed that a member is gone: the disk leaves within 10 s, and a
request to it fails at once after that."""
LOOK_AGAIN = 1.0  # seconds


class MadeArray:
    """An array of disks, made for the length of a ``with`` block.

    It is a target: a load on it writes to its block device. At the end it is stopped, each member is read, and the
    superblocks are erased. The agent recognises it by the UUID that it was made with.
    """

    def __init__(
        self,
        context: ScenarioContext,
        plan: Array,
        options: tuple[str, ...],
        read_members: Callable[[MadeArray], None],
    ) -> None:
        self._context = context
        self._array = plan
        self._options = options
        self._read_members = read_members
        self._made: ev.ArrayMade | None = None
        self._running = False
        self._acts = 0

    def __str__(self) -> str:
        return f"the {self._array.level} of {', '.join(self.disks)}"

    # --- as a target ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The array's name in the history, such as "array1"."""
        return self._array.name

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of its members, in the order of their slots."""
        return self._array.disks

    @property
    def members(self) -> tuple[RigDisk, ...]:
        """The disks that it was made of, in the order of their slots."""
        return self._array.members

    @property
    def identity(self) -> str:
        """Its UUID. Raises ``UsageError`` before it is made."""
        return self._array.identity

    @property
    def size(self) -> int:
        """Bytes."""
        return self._array.size

    @property
    def rate(self) -> int | None:
        """Bytes per second that it transfers at most, if known."""
        return self._array.rate

    @property
    def in_file(self) -> bool:
        """False: data goes onto the block device."""
        return False

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """The claim of the array, with the identities of its attached members."""
        return self._array.claim(identities)

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether it has enough of its members to be read."""
        return self._array.usable(attached)

    # --- being made and stopped -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if not self._context.bench.link.call("array", do="tools"):
            raise NotServed("mdadm is not installed on the DUT", hint="install the package mdadm there")
        self._context.phase("array", f"making {self}")
        with self._context.untimed():
            self._make()
        return self

    def _make(self) -> None:
        self._array = replace(self._array, uuid=str(uuid.uuid4()))
        answer = self._do(
            "make",
            self.members,
            {
                "disks": self._identities(self.members),
                "uuid": self.identity,
                "level": str(self._array.level),
                "options": self._options,
                **({"write_mostly": len(self._array.write_mostly)} if self._array.write_mostly else {}),
            },
            required=True,
        )
        self._array = replace(self._array, kname=answer["kname"], bytes=answer["size"])
        self._running = True
        self._record_made(answer)
        if not self.wait_clean():
            self.__exit__(RigError, None, None)
            raise RigError(f"{self} was not in sync within {SYNCED_WITHIN:g} s of being made")

    def _record_made(self, answer: Message) -> None:
        values, members = answer["values"], answer["members"]
        attached = {name: self._context.bench.disk_table.attached(name) for name in self.disks}
        offsets = {
            name: int(members[one.kname]["offset"])
            for name, one in attached.items()
            if one is not None and one.kname in members
        }
        self._made = ev.ArrayMade(
            at=self._context.now(),
            array=self.name,
            kname=self._array.kname,
            uuid=self.identity,
            level=values["level"],
            members=self.disks,
            spare=self._array.spare,
            size=self.size,
            component=int(values["component_size"] or 0) << 10,
            chunk=int(values["chunk_size"] or 0),
            layout=int((values["layout"] or "0").split()[0]),
            offsets=offsets,
            bitmap=int(answer["bitmap_chunk"]),
            policy=values["consistency_policy"],
        )
        self._context.recorder.record(self._made)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if self._context.listener.lost:
            return
        if self._running:
            self.stop()
        if self._running:
            return  # it could not be stopped, so nobody else may use its members
        with self._context.untimed():
            if kind is None:
                self._read_members(self)
            there = self._attached()
            self._do("erase", there, {"disks": self._identities(there)})

    def stop(self) -> bool:
        """Stop the array. The history records whether that was possible."""
        answer = self._do("stop", (), {"array": self._claim()})
        self._running = not answer["ok"]
        return bool(answer["ok"])

    def assemble(self, *disks: RigDisk, force: bool = False) -> bool:
        """Assemble the stopped array again, from these disks or from all that are attached, also if members are
        missing. ``force``: also from members that the array had lost. Returns whether it runs."""
        there = disks or self._attached()
        answer = self._do("assemble", there, {"disks": self._identities(there), "uuid": self.identity, "force": force})
        self._running = bool(answer["ok"])
        if self._running:
            self._array = replace(self._array, kname=answer["kname"])
            self._wait(bool, NOTICED_WITHIN)  # until its first state says which members it has
        return self._running

    # --- members ----------------------------------------------------------------------------------------------------

    def remove_gone(self) -> None:
        """Remove the members whose disks are gone."""
        self._do("remove_gone", (), {"array": self._claim()})

    def remove_as_udev(self, disk: RigDisk, within: float = NOTICED_WITHIN) -> None:
        """Wait until a disk is gone, and remove it as the distribution's udev rule for mdadm does (``mdadm -If``)."""
        table, mark = self._context.bench.disk_table, self._context.recorder.mark()
        self._context.wait_for(lambda event: table.attached(disk.name) is None, within, since=mark)
        self._do("udev_remove", (disk,), {"array": self._claim(), "kname": self._last_name(disk)})

    def _last_name(self, disk: RigDisk) -> str:
        """The kernel name that a disk had when it was attached last."""
        attached = (one for one in reversed(self._context.recorder.since(0)) if isinstance(one, ev.DiskAttached))
        return next((one.kname for one in attached if one.disk == disk.name), "")

    def readd(self, *disks: RigDisk) -> None:
        """Remove what is gone, and add these disks again as the members that they were: what changed is copied. A disk
        that md does not take back in this way is added as a new member."""
        self.remove_gone()
        for disk in disks:
            if not self._add("readd", disk, again=True):
                self._add("add", disk, again=False)

    def add(self, *disks: RigDisk) -> None:
        """Remove what is gone, and add these disks as new members: everything is copied."""
        self.remove_gone()
        for disk in disks:
            self._add("add", disk, again=False)

    def take_out(self, disk: RigDisk) -> None:
        """Stop the array, erase what this member holds of it, and assemble it without the member. So no member fails,
        which the kernel would report. Raises RigError."""
        rest = tuple(member for member in self._attached() if member.name != disk.name)
        if not self.stop():
            raise RigError(f"{self} could not be stopped to take {disk} out of it")
        self._do("erase", (disk,), {"disks": self._identities((disk,))}, required=True)
        if not self.assemble(*rest):
            raise RigError(f"{self} could not be assembled without {disk}")

    def rebuild(self, disk: RigDisk) -> None:
        """Add a disk as a new member, and wait until everything is copied to it. Raises RigError."""
        if not self._add("add", disk, again=False):
            raise RigError(f"{disk} could not be added to {self}")
        if not (self.wait_resyncing() and self.wait_in_sync(disk) and self.wait_clean()):
            raise RigError(f"{disk} was not in sync within {SYNCED_WITHIN:g} s of being added to {self}")

    def add_missing(self) -> None:
        """Add every attached member that is not in sync, such as one that was left out when the array was assembled."""
        state = self.state
        for disk in self._attached():
            slot, _ = state.members.get(disk.name, ("none", "")) if state is not None else ("none", "")
            if slot == "none":
                self._add("add", disk, again=False)

    def _add(self, action: ev.ArrayAction, disk: RigDisk, *, again: bool) -> bool:
        asked = {"array": self._claim(), "disk": self._identities((disk,))[0], "again": again}
        answer = self._do(action, (disk,), asked, do="add")
        return bool(answer["ok"])

    # --- states -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ev.ArrayState | None:
        """Its last recorded state; ``None`` if there is none yet."""
        for event in reversed(self._context.recorder.since(0)):
            if isinstance(event, ev.ArrayState) and event.array == self.name:
                return event
        return None

    def wait_degraded(self, members: int = 1, within: float = NOTICED_WITHIN) -> bool:
        """Wait until at least so many members are missing. False if that does not come. Nobody notices that a member
        is gone before something is written."""
        return self._wait(lambda values: int(values.get("degraded") or 0) >= members, within)

    def wait_resyncing(self, within: float = NOTICED_WITHIN) -> bool:
        """Wait until a resync or a rebuild runs. False if none begins."""
        return self._wait(lambda values: values.get("sync_action") in ("resync", "recover"), within)

    def wait_in_sync(self, disk: RigDisk, within: float = SYNCED_WITHIN) -> bool:
        """Wait until a member is in sync, whatever else is missing. False if that does not come."""
        mark = self._context.recorder.mark()

        def look(event: ev.Event | None) -> bool:
            if not isinstance(event, ev.ArrayState) or event.array != self.name:
                return False
            slot, says = event.members.get(disk.name, ("none", ""))
            return slot != "none" and "in_sync" in says.split(",")

        with self._context.untimed():
            return look(self.state) or self._context.wait_for(look, within, since=mark) is not None

    def wait_clean(self, within: float = SYNCED_WITHIN) -> bool:
        """Wait until no member is missing and nothing is resynced. False if that does not come."""
        with self._context.untimed():
            return self._wait(is_clean, within)

    def wait_unmarked(self, most: str, within: float = NOTICED_WITHIN) -> bool:
        """Wait until its bitmap marks at most so much of it, such as "256 KiB". The rest is not copied to a member that
        comes back. False if that does not come."""
        deadline = time.monotonic() + within
        while self._do("marked", (), {"array": self._claim()}, required=True)["marked"] > parse_size(most):
            if time.monotonic() > deadline:
                return False
            self._context.pause(LOOK_AGAIN)
        return True

    def _wait(self, wanted: Callable[[Mapping[str, str]], bool], within: float) -> bool:
        mark = self._context.recorder.mark()
        state = self.state
        if state is not None and state.values and wanted(state.values):
            return True

        def look(event: ev.Event) -> bool:
            return isinstance(event, ev.ArrayState) and event.array == self.name and wanted(event.values)

        return self._context.wait_for(look, within, since=mark) is not None

    def check(self) -> bool:
        """Read the whole array and compare what is redundant. False if that does not end, or md does not end what it
        does before. The result is in the history."""
        self._context.phase("array", f"checking {self.name}")

        def doing(action: str) -> Callable[[Mapping[str, str]], bool]:
            return lambda values: values.get("sync_action") == action

        def begun(event: ev.Event) -> bool:
            return isinstance(event, ev.ArrayState) and doing("check")(event.values)

        with self._context.untimed():
            if not self._wait(doing("idle"), SYNCED_WITHIN):
                return False
            mark = self._context.recorder.mark()
            self._do("check", (), {"array": self._claim(), "action": "check"}, do="act")
            noticed = self._context.wait_for(begun, NOTICED_WITHIN, since=mark) is not None
            return noticed and self._wait(doing("idle"), SYNCED_WITHIN)

    # --- the agent --------------------------------------------------------------------------------------------------

    def member_claim(self, disk: RigDisk) -> Identity:
        """What the guard must find on a member before it is opened by itself, once the array is stopped."""
        return self._array.member(self._context.identity(disk.name))

    def _attached(self) -> tuple[RigDisk, ...]:
        table = self._context.bench.disk_table
        return tuple(member for member in self.members if table.attached(member.name) is not None)

    def _identities(self, disks: tuple[RigDisk, ...]) -> list[Identity]:
        return [self.member_claim(disk) for disk in disks]

    def _claim(self) -> Identity:
        identities = {member.name: self._context.identity(member.name) for member in self._attached()}
        return self.claim(identities).disk

    def _do(
        self,
        action: ev.ArrayAction,
        disks: tuple[RigDisk, ...],
        arguments: Mapping[str, object],
        *,
        do: str = "",
        required: bool = False,
    ) -> Message:
        """Ask the agent, and record what it did. Raises ``RigError`` if it is ``required`` and fails."""
        limit = {} if do == "act" else {"timeout": MDADM_WITHIN}
        named = {} if action == "erase" else {"name": self.name}
        answer: Message = self._context.bench.link.call(
            "array", ANSWER_WITHIN, do=do or action, **named, **arguments, **limit
        )
        self._acts += 1
        self._context.recorder.record(
            ev.ArrayActed(
                at=self._context.now(),
                array=self.name,
                action=action,
                disks=tuple(disk.name for disk in disks),
                ok=answer["ok"],
                seconds=answer["seconds"],
                detail=answer["detail"],
                forced=bool(arguments.get("force")),
                number=self._acts,
                in_flight=answer.get("in_flight"),
            )
        )
        if required and not answer["ok"]:
            raise RigError(f"{action} of {self} failed: {answer['detail']}")
        return answer
