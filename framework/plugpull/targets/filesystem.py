"""A filesystem that the run makes: a target that data is written to in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from plugpull.dut.conversation.link import AgentGone, Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.targets.claim import Identity, ScratchClaim
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

MKFS_WITHIN = 120.0
CHECKED_WITHIN = 300.0
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
        self._overlay = ""

    def __str__(self) -> str:
        return f"the {self._fstype} filesystem on {self._below.name}"

    @property
    def fstype(self) -> str:
        """The kernel's name of the filesystem, such as "ext4"."""
        return self._fstype

    @property
    def mounted(self) -> bool:
        """Whether this run has mounted it. A mount that somebody else made does not count."""
        return self._mounted

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
        if self._overlay:
            named = f"the overlay on {below.kname}"
            below = replace(below, disk={"kname": named, "overlay": self._overlay, "below": below.disk})
        return replace(below, filesystem={"directory": self.name, "uuid": self.identity})

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether what it is on is attached."""
        return self._below.usable(attached)

    # --- being made and mounted -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._context.phase("mkfs", f"{self._fstype} on {self._below.name}")
        with self._context.untimed():
            made = self._make()
            if not made["ok"]:
                raise RigError(f"mkfs on {self.name} failed: {made['detail']}")
            self.remount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        if self._mounted and not self._context.listener.lost:
            self.unmount()

    def unmount(self) -> bool:
        """Unmount it the ordinary way. Whether that was possible is recorded and returned. If something holds
        it, it stays mounted."""
        answer = self._do("umount", name=self.name)
        self._mounted = bool(answer.get("mounted", not answer["ok"]))
        return bool(answer["ok"])

    def remount(self) -> None:
        """Mount it. Raises RigError if that fails."""
        answer = self.try_mount()
        if not answer["ok"]:
            raise RigError(f"mount on {self.name} failed: {answer['detail']}")

    def remake(self) -> None:
        """Make it again, empty and with another UUID, and mount it. Raises RigError if that fails."""
        if self._mounted and not self.unmount():
            raise RigError(f"{self} could not be unmounted to be made again")
        self.__enter__()

    def _make(self) -> Message:
        made = self._do("mkfs", disk=self._disk(), fstype=self._fstype, timeout=MKFS_WITHIN)
        self._uuid = str(made["uuid"]) if made["ok"] else ""
        return made

    def try_mount(self) -> Message:
        """Mount it, which lets the kernel recover it if it was cut. The answer has ``ok``, ``detail`` and ``errno``.

        Raises GuardRefused if the disk does not hold it.
        """
        wanted = {"disk": self._disk(), "fstype": self._fstype, "uuid": self.identity}
        answer = self._do("mount", name=self.name, **wanted)
        self._mounted = bool(answer["ok"])
        return answer

    @contextmanager
    def under_way(self, step: ev.ActionName) -> Iterator[None]:
        """Begin to make ("mkfs"), "mount" or "umount" it at the beginning of the block, and wait for that at its end:
        for a cut in between. The step may fail. The history records how it ended.

            with rig.filesystem(victim) as volume, rig.files(volume) as files:
                files.settle()
                files.stop()
                begins = files.step_begins("umount")
                with volume.under_way("umount"), rig.cut(victim.cable, when=begins):
                    pass
        """
        with ThreadPoolExecutor(1, "filesystem") as pool:
            doing = pool.submit(self._try, step)
            yield
            doing.result()

    def _try(self, step: ev.ActionName) -> None:
        """One of the steps, which may fail. Raises AgentGone."""
        steps: dict[str, Callable[[], object]] = {"mkfs": self._make, "mount": self.try_mount, "umount": self.unmount}
        try:
            steps[step]()
        except AgentGone:
            raise
        except RigError as error:
            # The disk went before the step had begun. It is recorded at once: a cut explains it only for a moment.
            failed = ev.Acted(
                at=self._context.now(), action=step, disk=self.name, ok=False, seconds=0.0, detail=error.what
            )
            self._context.recorder.record(failed)

    @contextmanager
    def on_overlay(self) -> Iterator[bool]:
        """Within the block, mount, check and repair a copy-on-write overlay of the unmounted filesystem. Changes stay
        in the DUT's memory, and are gone at the end. Yields False, and works on the disk itself, if the DUT cannot make
        an overlay (it needs the modules loop and dm_snapshot)."""
        self._overlay = str(self._do("overlay", name=self.name, disk=self._disk())["overlay"])
        made = bool(self._overlay)
        try:
            yield made
        finally:
            self._overlay = ""
            if made and not self._context.listener.lost:
                self._do("overlay.drop", name=self.name)

    def found_uuid(self) -> str:
        """The UUID of the filesystem of this type that the disk holds now; empty if there is none. Raises GuardRefused
        if the disk is another one."""
        return str(
            self._context.bench.link.call("filesystem.holds", ANSWER_WITHIN, disk=self._disk(), fstype=self._fstype)
        )

    def check(self, *, repair: bool = False) -> int | None:
        """Check it without changing it while it is not mounted, or ``repair`` it. Returns the program's exit status,
        which is also on record."""
        answer = self._context.bench.link.call(
            "filesystem.check",
            CHECKED_WITHIN + ANSWER_WITHIN,
            disk=self._disk(),
            fstype=self._fstype,
            uuid=self.identity,
            timeout=CHECKED_WITHIN,
            repair=repair,
        )
        self._context.recorder.record(
            ev.FilesystemChecked(
                at=self._context.now(),
                disk=self.name,
                fstype=self._fstype,
                command=answer["command"],
                status=answer["status"],
                overlay=bool(self._overlay),
                seconds=answer["seconds"],
                output=answer["output"],
                repaired=repair,
            )
        )
        status: int | None = answer["status"]
        return status

    def _disk(self) -> Identity:
        """The identity of the block device below, as it is attached now, or of the overlay on it."""
        return claim_of(self._context, self if self._overlay else self._below).disk

    def _do(self, action: ev.ActionName, **arguments: object) -> Message:
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
        return answer
