"""Files written on a filesystem: the ledger of each round, and what was found afterwards."""

from __future__ import annotations

from plugpull.history.events.base import Event


class FileRoundPlanned(Event, frozen=True, kw_only=True, tag="files.round"):
    """A round of writing files is about to begin on a disk: number ``round`` of ``run``."""

    disk: str
    run: int
    round: int


class FileRoundBegun(Event, frozen=True, kw_only=True, tag="files.begin"):
    """A writer of files began in ``directory``, in the filesystem ``uuid`` on a disk. ``run`` is what its stamps say,
    ``pattern`` what it does. ``disks`` are the disks that the filesystem rests on; empty for ``disk`` itself. ``bound``
    is what can be missing of its ledger at most when that ends early, bytes."""

    disk: str
    job: str
    run: int
    round: int
    directory: str
    fstype: str
    uuid: str
    pattern: str = ""
    disks: tuple[str, ...] = ()
    kname: str = ""
    bound: int = 0


class FileLedgerPart(Event, frozen=True, kw_only=True, tag="files.part"):
    """A piece of a writer's ledger as it arrived: base64 of the bytes from ``offset`` on; see
    ``integrity/oracle/files/ledger.py``."""

    disk: str
    job: str
    offset: int
    data: str


class FileRoundEnded(Event, frozen=True, kw_only=True, tag="files.end"):
    """The writer ended. ``received`` bytes of its ledger arrived; ``why`` is what it said on standard error."""

    disk: str
    job: str
    asked: bool
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""


class FileScanBegun(Event, frozen=True, kw_only=True, tag="files.scan.begin"):
    """The directory of a round is scanned, after the kernel recovered the filesystem and before any check or repair.

    ``mount_errno`` is the error of the mount before it, 0 if it succeeded, ``None`` if nobody could try. ``error`` says
    why nothing could be scanned; then there is no ``job``. ``lost``: the disk, recognised as itself, does not hold the
    filesystem any more. ``removing``: a second scan, after the check, which removes everything that it finds.
    ``repaired``: the filesystem was repaired before it."""

    disk: str
    job: str
    round: int
    directory: str
    mount_errno: int | None = 0
    error: str = ""
    lost: bool = False
    removing: bool = False
    repaired: bool = False


class FileScanPart(Event, frozen=True, kw_only=True, tag="files.scan.part"):
    """A piece of what was found, like ``FileLedgerPart`` (``integrity/oracle/files/found.py``)."""

    disk: str
    job: str
    offset: int
    data: str


class FileScanEnded(Event, frozen=True, kw_only=True, tag="files.scan.end"):
    disk: str
    job: str
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""


class FilesystemChecked(Event, frozen=True, kw_only=True, tag="files.check"):
    """A checker looked at an unmounted filesystem without changing it. ``status`` is its exit status, ``None`` if it
    could not be run or did not end; ``command`` is its name with its options, ``output`` the end of what it said.
    ``repaired``: it was allowed to change the filesystem; with ``overlay``, only on an overlay in memory, so that the
    disk is as it was."""

    disk: str
    fstype: str
    command: str
    status: int | None
    seconds: float
    output: str = ""
    repaired: bool = False
    overlay: bool = False


class FilesOver(Event, frozen=True, kw_only=True, tag="files.over"):
    """Writing files on a disk is over: ``rounds`` rounds of ``run`` were written and scanned."""

    disk: str
    run: int
    rounds: int
