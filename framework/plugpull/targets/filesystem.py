"""A filesystem that the run makes: a target that data is written to in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.targets.claim import Identity, ScratchClaim
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

MKFS_WITHIN = 120.0
ANSWER_WITHIN = 150.0


class Filesystem:
    """A filesystem on a disk, made and mounted for the length of a ``with`` block.

    It is a target: a load on it writes to a file. The agent recognises it by the UUID that it got when it was made.
    """

    def __init__(self, context: ScenarioContext, below: Target, fstype: str) -> None:
        self._context = context
        self._below = below
        self._fstype = fstype
        self._uuid = ""
        self._mounted = False

    def __str__(self) -> str:
        return f"the {self._fstype} filesystem on {self._below.name}"

    # --- as a target ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the disk that it is on."""
        return self._below.name

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of the rig's disks that it rests on."""
        return self._below.disks

    @property
    def identity(self) -> str:
        """Its UUID. Raises ``UsageError`` before it is made."""
        if not self._uuid:
            raise UsageError(f"{self} is not made yet", hint="use it inside its with block")
        return self._uuid

    @property
    def size(self) -> int:
        """Bytes of the block device that it is on. A load fills at most half of that."""
        return self._below.size

    @property
    def rate(self) -> int | None:
        """Bytes per second that it transfers at most, if known."""
        return self._below.rate

    @property
    def in_file(self) -> bool:
        """True: data goes into a file."""
        return True

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """The claim of the block device below, with the UUID that is to be mounted from it."""
        below = self._below.claim(identities)
        return replace(below, filesystem={"directory": self.name, "uuid": self.identity})

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether what it is on is attached."""
        return self._below.usable(attached)

    # --- being made and mounted -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._context.phase("mkfs", f"{self._fstype} on {self._below.name}")
        disk = claim_of(self._context, self._below).disk
        made = self._do("mkfs", disk=disk, fstype=self._fstype, timeout=MKFS_WITHIN)
        self._uuid = str(made["uuid"])
        self._do("mount", name=self.name, disk=disk, fstype=self._fstype, uuid=self._uuid)
        self._mounted = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if self._mounted and not self._context.listener.lost:
            self.unmount()

    def unmount(self) -> None:
        """Unmount it the ordinary way. The history records whether that was possible."""
        self._mounted = False
        self._do("umount", required=False, name=self.name)

    def _do(self, action: ev.ActionName, *, required: bool = True, **arguments: object) -> Message:
        context = self._context
        answer: Message = context.bench.link.call(action, ANSWER_WITHIN, **arguments)
        context.recorder.record(
            ev.Acted(
                at=context.now(),
                action=action,
                disk=self.name,
                ok=answer["ok"],
                seconds=answer["seconds"],
                detail=answer["detail"],
            )
        )
        if required and not answer["ok"]:
            raise RigError(f"{action} on {self.name} failed: {answer['detail']}")
        return answer
