"""A filesystem that is played through, for the tests of the oracle for files. It shares no code with the oracle.

What the writer sees is the cache. What a cut leaves is the disk. Blocks reach the disk one by one at any moment, and so
do operations on names, each as a whole and after those that it depends on. A sync takes to the disk what its filesystem
takes, or more. All of that is decided by a random generator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from file_books import FileBook

from plugpull.integrity.oracle.files.promises import FilesystemClass

TOP = 0
JOURNALED = ("ext4", "xfs", "btrfs", "f2fs")
NAMES_NEW = ("ext4", "xfs", "btrfs")
MOST = 8
"""Blocks of a file at most."""


@dataclass
class Node:
    """A file, a directory or a symlink, as the writer sees it. Data are the numbers of operations, 0 for zeros."""

    number: int
    kind: str
    target: str = ""
    names: dict[str, int] = field(default_factory=dict)
    data: list[int] = field(default_factory=list)
    dirty: set[int] = field(default_factory=set)
    cuts: list[int] = field(default_factory=list)
    """Truncations that are not on the disk."""


@dataclass
class Step:
    """An operation on names that is not on the disk: (directory, name, before, after) of each slot it changes."""

    number: int
    edits: list[tuple[int, str, int | None, int | None]]

    @property
    def objects(self) -> set[int]:
        return {number for _, _, before, after in self.edits for number in (before, after) if number is not None}

    @property
    def slots(self) -> set[tuple[int, str]]:
        return {(parent, name) for parent, name, _, _ in self.edits}


@dataclass
class Disk:
    """What a cut leaves: names of each directory, and data and size of each file."""

    names: dict[int, dict[str, int]] = field(default_factory=lambda: {TOP: {}})
    data: dict[int, dict[int, int]] = field(default_factory=dict)
    size: dict[int, int] = field(default_factory=dict)


class Model:
    """One filesystem with one writer. ``powered``: the disk keeps its power; ``flushes``: flushes reach it."""

    def __init__(self, fstype: FilesystemClass, random: Random, *, powered: bool = False, flushes: bool = True) -> None:
        self.fstype = fstype
        self.random = random
        self.powered = powered
        self.flushes = flushes
        self.book = FileBook(inodes=fstype not in ("vfat", "exfat"))
        self.nodes: dict[int, Node] = {TOP: Node(TOP, "directory")}
        self.disk = Disk()
        self.steps: list[Step] = []
        self.garbled: set[tuple[int, int]] = set()
        self.dead = False
        # Numbers of the last operations that changed a file, synced it, changed a slot, synced it; directories moved.
        self.touched: dict[int, int] = {}
        self.synced: dict[int, int] = {}
        self.named: dict[tuple[int, str], int] = {}
        self.listed: dict[tuple[int, str], int] = {}
        self.moved: set[int] = set()
        # Files with a failed sync or write; objects that were kept with a name, and slots that were kept empty.
        self.doubted: set[int] = set()
        self.born: set[int] = {TOP}
        self.emptied: set[tuple[int, str]] = set()
        # Every slot that an object ever had, files with hard links, and the file that an operation wrote to.
        self.places: dict[int, set[tuple[int, str]]] = {}
        self.linked: set[int] = set()
        self.stored: dict[int, int] = {}
        self.broken = False

    @property
    def journaled(self) -> bool:
        return self.fstype in JOURNALED

    # --- what the writer sees -----------------------------------------------------------------------------------------

    def node(self, path: str) -> Node | None:
        node = self.nodes[TOP]
        for name in path.split("/") if path else ():
            number = node.names.get(name)
            if number is None:
                return None
            node = self.nodes[number]
        return node

    def paths(self, kind: str, at: int = TOP, above: str = "") -> list[str]:
        """Paths of all objects of a kind."""
        made = []
        for name, number in self.nodes[at].names.items():
            path = f"{above}{name}"
            if self.nodes[number].kind == kind:
                made.append(path)
            if self.nodes[number].kind == "directory":
                made += self.paths(kind, number, f"{path}/")
        return made

    def edit(self, number: int, *edits: tuple[str, int | None], applied: bool = True) -> Step:
        """An operation puts these objects at these paths."""
        step = Step(number, [])
        for path, after in edits:
            parent, _, name = path.rpartition("/")
            above = self.node(parent)
            assert above is not None
            step.edits.append((above.number, name, above.names.get(name), after))
        self.steps.append(step)
        for parent_number, name, _, after in step.edits:
            if after is not None:
                self.places.setdefault(after, set()).add((parent_number, name))
        for parent_number, name, before, after in step.edits if applied else ():
            names = self.nodes[parent_number].names
            names.pop(name, None)
            self.named[parent_number, name] = number
            self.emptied.discard((parent_number, name))
            if after is not None:
                names[name] = self.touched_by(number, after)
            if before is not None:
                self.touched_by(number, before)
        return step

    def touched_by(self, number: int, node: int) -> int:
        self.touched[node] = number
        return node

    def store(self, node: Node, number: int, first: int, blocks: int) -> None:
        """Data go into the cache."""
        self.stored[number] = node.number
        self.touched[node.number] = number
        node.data += [0] * (first + blocks - len(node.data))
        for block in range(first, first + blocks):
            node.data[block] = number
            node.dirty.add(block)

    def resize(self, node: Node, number: int, blocks: int) -> None:
        self.touched[node.number] = number
        if blocks < len(node.data):
            node.cuts.append(blocks)
            node.dirty -= set(range(blocks, MOST * 2))
        node.data = (node.data + [0] * blocks)[:blocks]

    # --- what reaches the disk ----------------------------------------------------------------------------------------

    def commit(self, wanted: list[Step]) -> None:
        """Take operations on names to the disk, and those that they depend on before them."""
        chosen = [] if self.dead else list(wanted)
        for step in chosen:
            for earlier in self.steps:
                if earlier.number < step.number and earlier not in chosen and self._depends(step, earlier):
                    chosen.append(earlier)
        for step in sorted(chosen, key=lambda each: each.number):
            self._apply(step)
        self.steps = [step for step in self.steps if step not in chosen]

    def _depends(self, step: Step, earlier: Step) -> bool:
        made = {after for _, _, before, after in earlier.edits if before is None and after is not None}
        gone = {before for _, _, before, after in step.edits if before is not None}
        needs = step.objects | {parent for parent, *_ in step.edits}
        emptied = {parent for parent, *_ in earlier.edits} & gone
        return bool(step.objects & earlier.objects or step.slots & earlier.slots or made & needs or emptied)

    def _apply(self, step: Step) -> None:
        for parent, name, _, after in step.edits:
            self.disk.names[parent].pop(name, None)
            if after is None:
                continue
            self.disk.names[parent][name] = after
            if self.nodes[after].kind == "directory":
                self.disk.names.setdefault(after, {})
            elif self.nodes[after].kind == "file":
                self.disk.data.setdefault(after, {})
                self.disk.size.setdefault(after, 0)

    def settle_cuts(self, node: Node) -> None:
        if self.dead:
            return
        data = self.disk.data.setdefault(node.number, {})
        for blocks in node.cuts:
            self.disk.size[node.number] = min(blocks, self.disk.size.get(node.number, 0))
            for block in [block for block in data if block >= blocks]:
                del data[block]
        node.cuts = []

    def write_back(self, node: Node, blocks: set[int]) -> None:
        """Take blocks to the disk, which extends the file there as far as they need."""
        if self.dead:
            return
        self.settle_cuts(node)
        for block in blocks & node.dirty:
            self.garbled.discard((node.number, block))
            self.disk.data[node.number][block] = node.data[block]
            self.disk.size[node.number] = max(self.disk.size.get(node.number, 0), block + 1)
        node.dirty -= blocks

    def flush(self, node: Node) -> None:
        self.write_back(node, set(node.dirty))
        self.disk.size[node.number] = len(node.data)

    def background(self) -> None:
        """Something reaches the disk without being asked to."""
        files = [node for node in self.nodes.values() if node.kind == "file"]
        what = self.random.randrange(5)
        if self.dead or (what < 2 and not self.steps) or (what >= 2 and not files):
            return
        if what < 2:
            self.commit([self.random.choice(self.steps)])
            return
        node = self.random.choice(files)
        if what == 2:
            self.settle_cuts(node)
        elif what == 3 and len(node.data) > self.disk.size.get(node.number, 0):
            self.settle_cuts(node)
            low = self.disk.size.get(node.number, 0)
            self.disk.data.setdefault(node.number, {})
            self.disk.size[node.number] = self.random.randint(low, len(node.data))
        elif node.dirty:
            self.write_back(node, {self.random.choice(sorted(node.dirty))})

    # --- syncs --------------------------------------------------------------------------------------------------------

    def sync_file(self, node: Node, *, names: bool) -> None:
        if self.dead or not (self.flushes or self.powered):
            return
        self.flush(node)
        if self.journaled or names:
            self.synced[node.number] = self.book.next
        touching = [step for step in self.steps if node.number in step.objects]
        generous = self.random.random() < 0.3
        if generous or (self.fstype in NAMES_NEW and names):
            self.commit(touching if generous or self.random.random() < 0.5 else touching[:1])
        elif self.fstype == "f2fs":
            self._replace_holder(node)

    def _replace_holder(self, node: Node) -> None:
        """f2fs with fsync_mode=posix: recovery puts a new file's name there, whatever held it (generic/342)."""
        created = [s for s in self.steps if len(s.edits) == 1 and s.edits[0][3] == node.number]
        if not created or self.random.random() < 0.5:
            return
        parent, name, before, _ = created[0].edits[0]
        holder = self.disk.names.get(parent, {}).get(name)
        if before is None and holder is not None and self.nodes[holder].kind == "file":
            self.steps = [s for s in self.steps if holder not in s.objects and s is not created[0]]
            self._apply(created[0])

    def sync_directory(self, node: Node) -> None:
        if self.dead or not (self.flushes or self.powered):
            return
        inside = [step for step in self.steps if any(parent == node.number for parent, *_ in step.edits)]
        self.commit(self.steps if self.random.random() < 0.2 else inside)
        self._list(node)

    def _list(self, node: Node) -> None:
        """The names of a directory are kept, and so is that it has no others."""
        self.listed |= {(node.number, name): self.book.next for name in node.names}
        if node.number in self.born:
            self.born |= set(node.names.values())
        self.emptied |= {slot for slot in self.named if slot[0] == node.number and slot[1] not in node.names}

    def sync_all(self) -> None:
        if self.dead or not (self.powered or (self.flushes and self.journaled)):
            return
        self.commit(self.steps)
        for node in self.nodes.values():
            if node.kind == "file":
                self.flush(node)
                self.synced[node.number] = self.book.next
        for _ in range(3):  # directories of directories
            for node in self.nodes.values():
                self._list(node)

    def fail_sync(self, node: Node) -> None:
        """An fsync fails or is under way at the cut: some blocks are written, the others count as clean."""
        self.doubted.add(node.number)
        written = {block for block in node.dirty if self.random.random() < 0.5}
        if self.fstype == "f2fs" and not self.powered:
            self.garbled |= {(node.number, block) for block in node.dirty if self.random.random() < 0.3}
        self.write_back(node, written)
        node.dirty.clear()

    # --- FAT ----------------------------------------------------------------------------------------------------------

    def whole(self, path: str) -> bool:
        """True if FAT has a file on the disk for sure, with its data, its name and the directories above it."""
        node, slots, at = self.node(path), [], TOP
        for name in path.split("/"):
            slots.append((at, name))
            at = self.nodes[at].names[name]
        assert node is not None
        if self.synced.get(node.number, 0) <= self.touched.get(node.number, 0):
            return False
        if any(self.nodes[slot[0]].number in self.moved for slot in slots):
            return False
        return all(self.listed.get(slot, 0) > self.named.get(slot, 0) for slot in slots)
