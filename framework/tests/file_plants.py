"""Losses planted into what a filesystem shows after a cut. What must be there is known from the model alone."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec
from file_books import RUN, B
from file_model import TOP, Model
from file_plays import Played, written

from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, Stretch, Unremovable
from plugpull.integrity.oracle.files.wrong import FileDamage

Planted = tuple[FoundTree, set[FileDamage]]
"""What is found then, and what it may be called."""
Plant = Callable[[Played, FoundTree, Random], Planted | None]


def slots_of(model: Model, path: str) -> list[tuple[int, str]]:
    """The slots on the way to a path."""
    made, at = [], TOP
    for name in path.split("/"):
        made.append((at, name))
        at = model.nodes[at].names[name]
    return made


def kept_paths(model: Model, kind: str = "file") -> list[str]:
    """Paths whose names, and those of the directories above, were synced and not changed since."""
    if not model.journaled:
        return [path for path in model.paths(kind) if kind == "file" and model.whole(path) and not doubted(model, path)]
    return [
        path
        for path in model.paths(kind)
        if all(model.listed.get(slot, 0) > model.named.get(slot, 0) for slot in slots_of(model, path))
    ]


def doubted(model: Model, path: str) -> bool:
    node = model.node(path)
    return node is None or node.number in model.doubted


def kept_content(played: Played, found: FoundTree) -> list[FoundEntry]:
    """Found files whose data were synced and not changed since."""
    model = played.model
    made = []
    for entry in found.entries:
        node = model.node(entry.path)
        if entry.kind != "file" or node is None or node.number in model.doubted or node.kind != "file":
            continue
        if model.synced.get(node.number, 0) <= model.touched.get(node.number, 0):
            continue
        shown = {one.file for one in entry.content if one.file} <= {node.number}
        if shown and (model.journaled or model.whole(entry.path)):
            made.append(entry)
    return made


def replaced(found: FoundTree, old: FoundEntry, *new: FoundEntry) -> FoundTree:
    entries = [*(one for one in found.entries if one is not old), *new]
    return msgspec.structs.replace(found, entries=tuple(entries))


def with_block(entry: FoundEntry, block: int, content: Stretch) -> FoundEntry:
    stretches = list(entry.content)
    stretches[block] = msgspec.structs.replace(content, first=block)
    return msgspec.structs.replace(entry, content=tuple(stretches))


# --- names ------------------------------------------------------------------------------------------------------------


def lost_file(played: Played, found: FoundTree, random: Random) -> Planted | None:
    paths = [path for path in kept_paths(played.model) if any(one.path == path for one in found.entries)]
    if not paths:
        return None
    path = random.choice(paths)
    (entry,) = [one for one in found.entries if one.path == path]
    return replaced(found, entry), {FileDamage.LOST}


def lost_directory(played: Played, found: FoundTree, random: Random) -> Planted | None:
    paths = kept_paths(played.model, "directory")
    if not paths or not played.model.journaled:
        return None
    path = random.choice(paths)
    left = tuple(one for one in found.entries if one.path != path and not one.path.startswith(f"{path}/"))
    return msgspec.structs.replace(found, entries=left), {FileDamage.LOST}


def unlinked_files(model: Model) -> set[int]:
    """Files that never had more than one name at a time."""
    return {number for number, node in model.nodes.items() if node.kind == "file"} - model.linked


def both_names(played: Played, found: FoundTree, random: Random) -> Planted | None:
    model = played.model
    single = unlinked_files(model)
    directories = {"": TOP} | {one.path: one.inode - 100 for one in found.entries if one.kind == "directory"}
    paths = {number: path for path, number in directories.items()}
    taken = {one.path for one in found.entries}
    options = []
    for entry in found.entries:
        shown = {one.file for one in entry.content if one.file} & single
        for number in shown if model.journaled and entry.kind == "file" else ():
            for parent, name in model.places[number]:
                above = paths.get(parent)
                path = None if above is None else f"{above}/{name}" if above else name
                if path is not None and path not in taken:
                    options.append((entry, path))
    if not options:
        return None
    entry, path = random.choice(options)
    second = msgspec.structs.replace(entry, path=path)
    return replaced(found, entry, entry, second), {
        FileDamage.BOTH_NAMES,
        FileDamage.OLD_VERSION,
        FileDamage.RESURRECTED,
    }


def neither_name(played: Played, found: FoundTree, random: Random) -> Planted | None:
    model = played.model
    present = [model.node(path) for path in model.paths("file")]
    single = unlinked_files(model) & model.born
    numbers = [node.number for node in present if node is not None and node.number in single]
    if model.fstype == "f2fs":
        numbers = [number for number in numbers if len(model.places[number]) == 1]
    if not numbers or not model.journaled or model.broken:
        return None
    number = random.choice(sorted(set(numbers)))
    left = tuple(one for one in found.entries if one.inode != 100 + number)
    return msgspec.structs.replace(found, entries=left), {FileDamage.NEITHER_NAME, FileDamage.LOST}


def resurrected(played: Played, found: FoundTree, random: Random) -> Planted | None:
    model = played.model
    present = {node.number for path in model.paths("file") if (node := model.node(path)) is not None}
    taken = {one.path for one in found.entries}
    options = []
    for parent, name in sorted(model.emptied if model.journaled and not model.broken else ()):
        above = "" if parent == TOP else next((o.path for o in found.entries if o.inode == 100 + parent), None)
        path = None if above is None else f"{above}/{name}" if above else name
        for number in sorted(model.places):
            if (parent, name) in model.places[number] and number not in present and path and path not in taken:
                options.append((path, number))
    if not options:
        return None
    path, number = random.choice(options)
    node = model.nodes[number]
    if node.kind != "file":
        return None
    entry = FoundEntry(path=path, kind="file", inode=100 + number)
    return replaced(found, entry, entry), {FileDamage.RESURRECTED, FileDamage.OLD_VERSION, FileDamage.BOTH_NAMES}


def wrong_links(played: Played, found: FoundTree, random: Random) -> Planted | None:
    files = [one for one in found.entries if one.kind == "file"]
    if not files or not played.model.journaled:
        return None
    entry = random.choice(files)
    changed = msgspec.structs.replace(entry, links=entry.links + random.choice((1, -1)))
    return replaced(found, entry, changed), {FileDamage.LINK_COUNT}


# --- data -------------------------------------------------------------------------------------------------------------


def old_block(played: Played, found: FoundTree, random: Random) -> Planted | None:
    options = []
    for entry in kept_content(played, found):
        for block, stretch in enumerate(entry.content):
            if stretch.content != "stamped":
                continue
            earlier = [0]
            for number, one in written(played.book).items():
                first, blocks = getattr(one, "offset", 0) // B, getattr(one, "length", 0) // B
                same = played.model.stored.get(number) == stretch.file
                if same and number < stretch.number and first <= block < first + blocks:
                    earlier.append(number)
            options += [(entry, block, stretch, number) for number in earlier]
    if not options:
        return None
    entry, block, stretch, number = random.choice(options)
    hole = Stretch(content="hole", first=block, blocks=1)
    new = msgspec.structs.replace(stretch, number=number) if number else hole
    kind = FileDamage.OLD_VERSION if number else FileDamage.LOST
    return replaced(found, entry, with_block(entry, block, new)), {kind}


def _any_block(played: Played, found: FoundTree, random: Random) -> tuple[FoundEntry, int] | None:
    """A block that may not hold just anything."""
    model = played.model
    if model.journaled:
        entries = [one for one in found.entries if one.kind == "file" and one.content and not model.garbled]
        entries = [one for one in entries if model.fstype != "f2fs" or not model.doubted]
        entries = [one for one in entries if any(stretch.file for stretch in one.content)]
    else:
        entries = [one for one in kept_content(played, found) if one.content]
    if not entries:
        return None
    entry = random.choice(entries)
    return entry, random.randrange(len(entry.content))


def foreign_block(played: Played, found: FoundTree, random: Random) -> Planted | None:
    chosen = _any_block(played, found, random)
    if chosen is None:
        return None
    entry, block = chosen
    other = Stretch(content="stamped", first=block, blocks=1, run=RUN, file=9999, number=1, origin=block)
    return replaced(found, entry, with_block(entry, block, other)), {FileDamage.FOREIGN}


def corrupt_block(played: Played, found: FoundTree, random: Random) -> Planted | None:
    chosen = _any_block(played, found, random)
    if chosen is None:
        return None
    entry, block = chosen
    noise = Stretch(content="damaged", first=block, blocks=1, raw=random.randbytes(B))
    return replaced(found, entry, with_block(entry, block, noise)), {FileDamage.CORRUPT}


def wrong_size(played: Played, found: FoundTree, random: Random) -> Planted | None:
    entries = kept_content(played, found)
    if not entries:
        return None
    entry = random.choice(entries)
    if entry.content and random.random() < 0.5:
        new = msgspec.structs.replace(entry, content=entry.content[:-1], size=entry.size - B)
    else:
        hole = Stretch(content="hole", first=len(entry.content), blocks=1)
        new = msgspec.structs.replace(entry, content=(*entry.content, hole), size=entry.size + B)
    return replaced(found, entry, new), {FileDamage.WRONG_SIZE}


# --- the whole --------------------------------------------------------------------------------------------------------


def unremovable(played: Played, found: FoundTree, random: Random) -> Planted | None:
    left = (Unremovable(path="d", errno=39),)
    return (
        (msgspec.structs.replace(found, unremovable=left), {FileDamage.UNREMOVABLE}) if played.model.journaled else None
    )


def unmountable(played: Played, found: FoundTree, random: Random) -> Planted | None:
    if played.model.fstype == "ntfs3":
        return None
    return FoundTree(mount_errno=117), {FileDamage.UNMOUNTABLE}


PLANTS: dict[str, Plant] = {
    "lost file": lost_file,
    "lost directory": lost_directory,
    "both names": both_names,
    "neither name": neither_name,
    "resurrected": resurrected,
    "wrong links": wrong_links,
    "old block": old_block,
    "foreign block": foreign_block,
    "corrupt block": corrupt_block,
    "wrong size": wrong_size,
    "unremovable": unremovable,
    "unmountable": unmountable,
}
