"""Plays plans of a file writer through on the model of a filesystem, and makes up what a scan finds after the cut."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from file_books import RUN, B, FileBook, stamp_of
from file_model import MOST, TOP, Model, Node

from plugpull.integrity.oracle.files import operations as op
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, Stretch
from plugpull.integrity.oracle.files.promises import CutEffect, FilesystemClass

Action = tuple[str, int, int]
"""(what, and two numbers that choose names, blocks and sizes)."""
SYNCS = ("fsync", "fdatasync", "fsyncdir", "sync", "syncfs")
ACTIONS = (
    *("create", "create", "write", "write", "write", "append", "append", "truncate", "link", "rename", "rename"),
    *("unlink", "mkdir", "rmdir", "symlink", "mmap", "fsync", "fsync", "fdatasync", "fsyncdir", "sync", "syncfs"),
    *("settle", "settle", "background", "background", "failed write", "failed fsync", "cut"),
)
NAMES = ("a", "b", "c")


@dataclass
class Played:
    """A plan played through: the model after the cut, and what is known of the cut."""

    model: Model
    cut: CutEffect

    @property
    def book(self) -> FileBook:
        return self.model.book


class Player:
    """Does one action after the other. What is impossible is passed over."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.book = model.book
        self.cut_at: float | None = None

    def do(self, action: Action, *, returns: bool = True, error: int = 0) -> bool:
        """One action. False if it was impossible."""
        what, one, two = action
        if what == "background":
            self.model.background()
            return True
        if what == "cut":
            self.model.dead = True
            self.cut_at = self.cut_at or self.book.next * 0.002 - 0.0005
            return True
        method: Callable[..., bool] = getattr(self, what.replace(" ", "_"))
        return method(one, two, returns=returns, errno=error)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def some(self, kind: str, number: int) -> str | None:
        paths = self.model.paths(kind)
        return paths[number % len(paths)] if paths else None

    def directory(self, number: int) -> str:
        paths = ["", *self.model.paths("directory")]
        return paths[number % len(paths)]

    def new(self, one: int, two: int) -> str | None:
        """A path that does not exist, at most two directories deep."""
        above, name = self.directory(one), NAMES[two % len(NAMES)]
        path = f"{above}/{name}" if above else name
        return None if path.count("/") > 2 or self.model.node(path) is not None else path

    # --- names --------------------------------------------------------------------------------------------------------

    def _make(self, kind: str, path: str | None, call: Callable[..., int], *, errno: int, returns: bool) -> bool:
        if path is None:
            return False
        number = call(path, errno=errno, returns=returns)
        self.model.nodes[number] = Node(number, kind, target="there" if kind == "symlink" else "")
        self._edited(number, (path, number), errno=errno)
        return True

    def _edited(self, number: int, *edits: tuple[str, int | None], errno: int) -> None:
        step = self.model.edit(number, *edits, applied=not errno)
        if errno:
            if self.model.random.random() < 0.5:
                self.model.commit([step])
            self.model.steps = [one for one in self.model.steps if one is not step]
            self.model.dead = self.model.broken = True

    def create(self, one: int, two: int, **how: int) -> bool:
        return self._make("file", self.new(one, two), self.book.create, **how)  # type: ignore[arg-type]

    def mkdir(self, one: int, two: int, **how: int) -> bool:
        return self._make("directory", self.new(one, two), self.book.mkdir, **how)  # type: ignore[arg-type]

    def symlink(self, one: int, two: int, **how: int) -> bool:
        if self.model.fstype in ("vfat", "exfat"):
            return False
        return self._make("symlink", self.new(one, two), self.book.symlink, **how)  # type: ignore[arg-type]

    def link(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path, to = self.some("file", one), self.new(two, two + one)
        if path is None or to is None or self.model.fstype in ("vfat", "exfat"):
            return False
        node = self.model.node(path)
        assert node is not None
        self.model.linked.add(node.number)
        self._edited(self.book.link(path, to, returns=returns, errno=errno), (to, node.number), errno=errno)
        return True

    def unlink(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some(("file", "file", "symlink")[two % 3], one)
        if path is None:
            return False
        self._edited(self.book.unlink(path, returns=returns, errno=errno), (path, None), errno=errno)
        return True

    def rmdir(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        empty = [path for path in self.model.paths("directory") if not self._node(path).names]
        if not empty:
            return False
        path = empty[one % len(empty)]
        self._edited(self.book.rmdir(path, returns=returns, errno=errno), (path, None), errno=errno)
        return True

    def _node(self, path: str) -> Node:
        node = self.model.node(path)
        assert node is not None
        return node

    def rename(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some(("file", "file", "file", "directory")[two % 4], one)
        above = self.directory(two // 4)
        to = f"{above}/{NAMES[one % 3]}" if above else NAMES[one % 3]
        if path is None or path == to or f"{to}/".startswith(f"{path}/") or to.count("/") > 2:
            return False
        moved, victim = self._node(path), self.model.node(to)
        if victim is not None and (victim.kind != moved.kind or victim is moved or victim.names):
            return False
        number = self.book.rename(path, to, returns=returns, errno=errno)
        if moved.kind == "directory":
            self.model.moved.add(moved.number)
        self._edited(number, (path, None), (to, moved.number), errno=errno)
        return True

    # --- data ---------------------------------------------------------------------------------------------------------

    def write(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path, first = self.some("file", one), two % (MOST - 2)
        if path is None:
            return False
        node, blocks = self._node(path), 1 + two // MOST % 2
        number = self.book.write(path, first, blocks, returns=returns, errno=errno)
        if not errno or self.model.random.random() < 0.5:
            self.model.store(node, number, first, blocks)
        return True

    def failed_write(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some("file", one)
        if path is None or not self._node(path).data:
            return False
        node = self._node(path)
        first = two % len(node.data)
        number = self.book.write(path, first, 1, errno=5)
        self.model.doubted.add(node.number)
        if self.model.random.random() < 0.5:
            self.model.store(node, number, first, 1)
        return True

    def append(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some("file", one)
        if path is None or len(self._node(path).data) > MOST - 3:
            return False
        node, blocks = self._node(path), 1 + two % 2
        self.book.sizes[path] = len(node.data)
        number = self.book.append(path, blocks, returns=returns)
        self.model.store(node, number, len(node.data), blocks)
        return True

    def mmap(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some("file", one)
        if path is None or not self._node(path).data:
            return False
        node = self._node(path)
        first = two % len(node.data)
        late = self.model.dead or not returns
        number = self.book.mmap(path, first, returns=returns, errno=5 if self.model.dead and returns else 0)
        self.model.store(node, number, first, 1)
        if late:
            self.model.fail_sync(node)
        elif self.model.flushes or self.model.powered:
            self.model.write_back(node, {first})
        return True

    def truncate(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some("file", one)
        if path is None:
            return False
        number = self.book.truncate(path, two % MOST, returns=returns)
        self.model.resize(self._node(path), number, two % MOST)
        return True

    # --- syncs --------------------------------------------------------------------------------------------------------

    def _lies(self) -> bool:
        """f2fs and FAT may report success although the disk is gone."""
        return self.model.fstype not in ("ext4", "xfs", "btrfs") and self.model.random.random() < 0.5

    def _file_sync(self, path: str | None, call: Callable[..., int], *, returns: bool, names: bool) -> bool:
        if path is None:
            return False
        failed = self.model.dead and returns and not self._lies()
        if failed or not returns:
            self.model.fail_sync(self._node(path))
        elif not self.model.dead:
            self.model.sync_file(self._node(path), names=names)
        call(path, returns=returns, errno=5 if failed else 0)
        return True

    def fsync(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        return self._file_sync(self.some("file", one), self.book.fsync, returns=returns, names=True)

    def fdatasync(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        return self._file_sync(self.some("file", one), self.book.fdatasync, returns=returns, names=False)

    def failed_fsync(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.some("file", one)
        if path is None:
            return False
        self.model.fail_sync(self._node(path))
        self.book.fsync(path, errno=5)
        return True

    def fsyncdir(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        path = self.directory(one)
        failed = self.model.dead and returns and not self._lies()
        if returns and not failed:
            self.model.sync_directory(self._node(path))
        self.book.fsyncdir(path, returns=returns, errno=5 if failed else 0)
        return True

    def sync(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        self.model.sync_all() if returns else None
        self.book.sync(returns=returns)
        return True

    def settle(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        """What a careful program does: fsync of a file and of every directory above it."""
        path = self.some("file", one)
        if path is None or not self.fsync(one, two, returns=True, errno=0) or self.model.dead:
            return False
        for depth in range(1, path.count("/") + 2):
            above = path.rsplit("/", depth)[0] if depth <= path.count("/") else ""
            self.model.sync_directory(self._node(above))
            self.book.fsyncdir(above)
        return True

    def syncfs(self, one: int, two: int, *, returns: bool, errno: int) -> bool:
        self.model.sync_all() if returns else None
        self.book.syncfs(returns=returns)
        return True


def play(
    fstype: FilesystemClass, plan: list[Action], seed: int, *, powered: bool = False, flushes: bool = True
) -> Played:
    """Play a plan through up to a cut, which may come inside its last action."""
    random = Random(seed)
    player = Player(Model(fstype, random, powered=powered, flushes=flushes))
    ending = random.choice(("whole", "whole", "inside", "failed"))
    names = ("create", "mkdir", "link", "unlink", "rename", "rmdir")
    for number, action in enumerate(plan):
        last = number == len(plan) - 1
        error = errno.EIO if last and ending == "failed" and action[0] in names and not player.model.dead else 0
        player.do(action, returns=not (last and ending == "inside"), error=error)
        for _ in range(random.randrange(3)):
            player.model.background()
    return Played(player.model, CutEffect(player.cut_at, powered=powered, flushes=flushes))


# --- what a scan finds ------------------------------------------------------------------------------------------------


def scan(played: Played) -> FoundTree:
    """What is on the disk."""
    model = played.model
    entries: list[FoundEntry] = []
    links: dict[int, int] = {}
    _walk(model, TOP, "", entries, links)
    if not model.journaled:
        entries = _unsettled(played, entries)
    return FoundTree(entries=tuple(entries), removal_tried=True)


def _walk(model: Model, at: int, above: str, entries: list[FoundEntry], links: dict[int, int]) -> None:
    everywhere = [number for names in model.disk.names.values() for number in names.values()]
    for name, number in model.disk.names[at].items():
        node, path = model.nodes[number], f"{above}{name}"
        inode = 100 + number if model.fstype not in ("vfat", "exfat") else 7000 + len(entries)
        if node.kind == "directory":
            inside = [model.nodes[n].kind for n in model.disk.names[number].values()]
            entries.append(FoundEntry(path=path, kind="directory", links=2 + inside.count("directory"), inode=inode))
            _walk(model, number, f"{path}/", entries, links)
        elif node.kind == "symlink":
            entries.append(FoundEntry(path=path, kind="symlink", inode=inode, target=node.target))
        else:
            content = _content(model, node)
            size = B * model.disk.size[number]
            count = everywhere.count(number)
            entries.append(FoundEntry(path=path, kind="file", size=size, links=count, inode=inode, content=content))


def _content(model: Model, node: Node) -> tuple[Stretch, ...]:
    made = []
    for block in range(model.disk.size[node.number]):
        value = model.disk.data[node.number].get(block, 0)
        made.append(stretch_of(model, node.number, block, value))
    return tuple(made)


def stretch_of(model: Model, number: int, block: int, value: int) -> Stretch:
    """One block as it is found: perhaps garbled, perhaps a mix of what is on the disk and what was on its way."""
    node, random = model.nodes[number], model.random
    if (number, block) in model.garbled:
        return Stretch(content="damaged", first=block, blocks=1, raw=random.randbytes(B))
    cached = node.data[block] if block < len(node.data) else 0
    if value and cached and value != cached and block in node.dirty and not model.dead and random.random() < 0.1:
        one, two = (stamp_of(model.book, each, number, block) for each in (value, cached))
        at = 8 * random.randrange(1, B // 8)
        return Stretch(content="damaged", first=block, blocks=1, raw=one[:at] + two[at:])
    if not value:
        return Stretch(content=random.choice(("hole", "zero")), first=block, blocks=1)
    return Stretch(content="stamped", first=block, blocks=1, run=RUN, file=number, number=value, origin=block)


def _unsettled(played: Played, entries: list[FoundEntry]) -> list[FoundEntry]:
    """FAT after a cut: what was not settled is anything at all, and may be there under several names."""
    model, random = played.model, played.model.random
    made = []
    settled = {path for path in model.paths("file") if model.whole(path)}
    needed = {path.rsplit("/", depth)[0] for path in settled for depth in range(1, path.count("/") + 1)}
    for entry in entries:
        if entry.path in settled or entry.path in needed:
            made.append(entry)
        elif entry.kind != "directory" and random.random() < 0.7:
            garbage = Stretch(content="damaged", first=0, blocks=1, raw=random.randbytes(B))
            other = Stretch(content="stamped", first=0, blocks=1, run=RUN, file=1, number=2, origin=3)
            changed = random.choice((entry, _with(entry, garbage), _with(entry, other), _with(entry)))
            made.append(changed)
    return made


def _with(entry: FoundEntry, *content: Stretch) -> FoundEntry:
    return FoundEntry(path=entry.path, kind=entry.kind, size=B * len(content), inode=entry.inode, content=content)


def written(book: FileBook) -> dict[int, op.Operation]:
    """Operations that wrote data, by number."""
    kinds = op.WriteBlocks | op.AppendBlocks | op.WriteMapped
    return {one.number: one for one in book.made.operations if isinstance(one, kinds)}
