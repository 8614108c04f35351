"""The history of one file's content: which block held what after which operation, and what of that was kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plugpull.integrity.oracle.files.operations import BLOCK, AnyOperation, Truncate, WriteMapped, Written

ZERO = 0
"""The value of a block beside numbers of operations: nothing, which a file shows as zeros where it has that size."""


@dataclass(slots=True)
class ContentVersion:
    """A value that a block, or the size, got from an operation.

    ``kept_by`` is the sync that kept it. ``doubtful``: it failed, or a sync over it did, so no later sync keeps it.
    """

    value: int
    operation: AnyOperation | None
    kept_by: AnyOperation | None = None
    doubtful: bool = False


@dataclass
class ContentHistory:
    """The versions of a file's blocks and of its size, the oldest first.

    ``garbled``: an fsync is under way that may leave anything in the blocks that it was to write. ``touched`` is the
    number of the last operation on the content, ``fsynced`` that of the last one that kept all of it; 0 if none did.
    """

    sizes: list[ContentVersion] = field(default_factory=lambda: [ContentVersion(0, None)])
    blocks: dict[int, list[ContentVersion]] = field(default_factory=dict)
    size: int = 0
    garbled: bool = False
    touched: int = 0
    fsynced: int = 0
    fresh: set[int] = field(default_factory=set)
    """Blocks with a version that no sync has kept or failed to keep."""

    # --- asking -----------------------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """True if all of it was kept and nothing was done to it since."""
        return self.sizes[-1].kept_by is not None and all(v[-1].kept_by is not None for v in self.blocks.values())

    def allowed(self, block: int) -> dict[int, ContentVersion | None]:
        """The values that a block within the found size may have, each with its version."""
        versions = self.blocks.get(block)
        if not versions:
            return {ZERO: None}
        allowed: dict[int, ContentVersion | None] = {}
        for version in since_kept(versions):
            allowed[version.value] = version
        return allowed

    def ever(self, block: int) -> set[int]:
        """All operations that wrote to a block."""
        return {version.value for version in self.blocks.get(block, []) if version.value > 0}

    def size_allowed(self, size: int) -> bool:
        """A size that was kept, a later one, or one on the way from one to the next."""
        possible = [version.value for version in since_kept(self.sizes)]
        return min(possible) <= size <= max(possible)

    # --- doing ------------------------------------------------------------------------------------------------------

    def write(self, operation: Written) -> None:
        """Data was written, or may have been."""
        self.touched = operation.number
        begin, end = operation.offset, operation.offset + operation.length
        if end > self.size and not isinstance(operation, WriteMapped):
            self._resize(operation, end)
        for block in range(begin // BLOCK, end // BLOCK):
            self._put(block, operation.number, operation)

    def truncate(self, operation: Truncate) -> None:
        """The size was changed, or may have been."""
        self.touched = operation.number
        for block in [block for block in self.blocks if block >= operation.size // BLOCK]:
            self._put(block, ZERO, operation)
        self._resize(operation, operation.size)

    def _resize(self, operation: AnyOperation, size: int) -> None:
        self.sizes.append(ContentVersion(size, operation, doubtful=not operation.succeeded))
        if operation.succeeded:
            self.size = size

    def _put(self, block: int, value: int, operation: AnyOperation) -> None:
        versions = self.blocks.setdefault(block, [ContentVersion(ZERO, None)])
        versions.append(ContentVersion(value, operation, doubtful=not operation.succeeded))
        self.fresh.add(block)

    def keep(self, sync: AnyOperation, blocks: Iterable[int] | None = None) -> None:
        """A sync succeeded: of the whole file, or of these blocks without the size."""
        if blocks is None:
            _keep(self.sizes, sync)
        written = self.fresh if blocks is None else self.fresh.intersection(blocks)
        for block in written:
            _keep(self.blocks[block], sync)
        self.fresh = self.fresh - written

    def doubt(self) -> None:
        """A sync failed: what it was to keep may never be."""
        for versions in (self.sizes, *(self.blocks[block] for block in self.fresh)):
            for version in since_kept(versions):
                version.doubtful = version.doubtful or version.kept_by is None
        self.fresh = set()


def since_kept(versions: list[ContentVersion]) -> list[ContentVersion]:
    """The last kept version and all after it; all if none was kept."""
    at = next((at for at in range(len(versions) - 1, -1, -1) if versions[at].kept_by is not None), 0)
    return versions[at:]


def _keep(versions: list[ContentVersion], sync: AnyOperation) -> None:
    """Keep the newest version that is not doubtful, and so everything before it is replaced."""
    for version in reversed(versions):
        if version.doubtful:
            continue
        version.kept_by = version.kept_by or sync
        return
