"""How many planted losses of files are found: ``planted_files.py RUN...`` for runs with scenarios of files.

Each round of a recorded run that the oracle accepts is judged again, ``-n`` times, with one thing changed in what the
scan found of a file that was synced and not touched again: the file is gone, or one stretch of it holds zeros, another
file's stamps or damaged bytes, or it is longer. Each must be found. The unchanged round must not be accused.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from plugpull.checks.files.file_rounds import FileRound, file_rounds
from plugpull.checks.files.files_kept import cut_effect, found_tree
from plugpull.history.reader import Story, read_history
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, Stretch
from plugpull.integrity.oracle.files.ledger import decode_file_ledger
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect
from plugpull.integrity.oracle.files.replay import Replay, settled_slots
from plugpull.integrity.oracle.files.rules import judge
from plugpull.integrity.oracle.stamp import SECTOR

LIMIT = 0.95
"""The least share of planted losses that must be found."""


def planted(found: FoundTree, entry: FoundEntry, draw: random.Random) -> FoundTree:
    """What was found, with one thing changed of one of its files."""
    others = tuple(other for other in found.entries if other is not entry)
    kind = draw.choice(("gone", "zero", "foreign", "damaged", "longer"))
    if kind == "gone":
        return structs.replace(found, entries=others)
    content = list(entry.content)
    at = draw.randrange(len(content))
    old, size = content[at], entry.size
    if kind == "longer":
        content.append(Stretch(content="hole", first=-(-size // SECTOR), blocks=1))
        size += SECTOR
    elif kind == "zero":
        content[at] = Stretch(content="zero", first=old.first, blocks=old.blocks)
    elif kind == "foreign":
        content[at] = structs.replace(old, file=old.file + 7)
    else:
        raw = b"\x5a" * SECTOR
        content[at : at + 1] = [
            Stretch(content="damaged", first=old.first + block, blocks=1, raw=raw) for block in range(old.blocks)
        ]
    return structs.replace(found, entries=(*others, structs.replace(entry, size=size, content=tuple(content))))


def tried(story: Story, one: FileRound, count: int, draw: random.Random) -> tuple[int, int]:
    """(found, planted) of a round. Raises ValueError if the round itself is accused or cannot be judged."""
    ledger, promises = decode_file_ledger(one.ledger), PROMISES[one.begun.fstype]  # type: ignore[index]
    effect, found = cut_effect(story, one, ledger.operations[0].submitted), found_tree(one)
    if not isinstance(effect, CutEffect) or not judge(ledger, found, promises, effect).intact:
        raise ValueError(f"the round on {one.disk} in {story.id} is not accepted as it is")
    replay = Replay(ledger, promises, effect)
    paths = {
        "/".join([*(name for _, name in reversed(list(replay.names.above(s)))), s[1]]) for s in settled_slots(replay)
    }
    stamped = [
        e for e in found.entries if e.path in paths and e.size and all(s.content == "stamped" for s in e.content)
    ]
    changed = (planted(found, draw.choice(stamped), draw) for _ in range(count if stamped else 0))
    opinions = [judge(ledger, tree, promises, effect) for tree in changed]
    return sum(bool(opinion.wrong) for opinion in opinions), len(opinions)


def rounds_of(runs: list[Path]) -> Iterator[tuple[Story, FileRound]]:
    for run in runs:
        for story in read_history(run).stories:
            yield from ((story, one) for one in file_rounds(story) if one.scan is not None and not one.doubts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("-n", type=int, default=100, help="losses planted in each round (default: 100)")
    options = parser.parse_args()
    found: dict[str, list[int]] = {}
    draw = random.Random("planted")
    for story, one in rounds_of(options.runs):
        hit, count = tried(story, one, options.n, draw)
        sums = found.setdefault(one.begun.fstype, [0, 0, 0])
        found[one.begun.fstype] = [sums[0] + 1, sums[1] + hit, sums[2] + count]
    for fstype, (rounds, hit, count) in sorted(found.items()):
        print(f"{fstype}: {hit} of {count} planted losses found in {rounds} rounds (limit {LIMIT:.0%})")
    return 0 if found and all(hit >= LIMIT * count > 0 for _, hit, count in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
