"""Every defect of the firmware shows to a plain NBD client, and a healthy one has none of them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

import pytest
from nbd_client import Nbd, NbdError

from plugpull.rig import lint_virtual
from plugpull.rig.model import Defect, Disk
from plugpull.virtual.defects import FLIPPED_AT, BitFlip
from plugpull.virtual.firmware import PARAMETERS, Firmware, Model, model_of
from plugpull.virtual.firmware_defects import KINDS
from plugpull.virtual.firmware_drive import Traits
from plugpull.virtual.firmware_slow import LINGERS

SIZE = 4 << 20
CACHE = 1 << 20
BLOCK = 16 << 10
COUNT = 48
"""How many blocks are written: less than the cache holds, as much as a slow disk does in a second."""
GIVEN: dict[str, dict[str, Any]] = {
    "long-transfer-stall": {"seconds": 0.4, "every": 1},
    "garbage-collection": {"seconds": 0.4, "sectors": 512},
    "command-timeout": {"seconds": 0.4},
    "slow-through": {"rate": 256 << 10},
    "crowded": {"disks": 0, "rate": 512 << 10},
    "errors-at": {"sector": 1600},
    "errors-scattered": {"every": 20},
}
"""Parameters that have to be given, or whose defaults are too long to wait for."""
SMALL = {"cache-collapse": 256 << 10}
"""The cache of a disk that has to be full."""

Symptom = Callable[["Story"], bool]


class Story:
    """A disk is written, flushed, written over and flushed, written once more, and loses its power."""

    def __init__(self, directory: Path, kind: str, parameters: dict[str, Any], size: int = CACHE) -> None:
        defects = ((kind, parameters),) if kind else ()
        self.firmware = Firmware("disk", Model(Traits(SIZE, cache=size), defects, seed=1), directory)
        self.slowest = 0.0
        self.failed: set[int] = set()
        try:
            with Nbd(self.firmware.socket) as client:
                begun = time.monotonic()
                self._write(client)
                self.took = time.monotonic() - begun
                self.before = client.read(0, COUNT * BLOCK)
                self.firmware.power_off()
            self.after = self.firmware.medium.read_bytes()
            self.fired = self.firmware.counters()["fired"]
        finally:
            self.firmware.close()

    def _write(self, client: Nbd) -> None:
        for version in (1, 2):
            for number in range(COUNT):
                self._timed(partial(self._stamp, client, version), number * BLOCK)
            client.flush()
        for at in range(0, COUNT * BLOCK, 4 * BLOCK):
            self._timed(partial(self._stamp, client, 3), at)
        self._timed(lambda at: client.write(at, bytes(128 << 10)), 2 << 20)
        self._timed(lambda at: client.write(at, bytes(128 << 10), fua=True), 3 << 20)
        for at in (SIZE - 4096, 8192 * 100):
            self._timed(lambda at: client.read(at, 4096), at)

    def _stamp(self, client: Nbd, version: int, at: int) -> None:
        client.write(at, self.stamp(version, at))

    def _timed(self, request: Callable[[int], object], at: int) -> None:
        begun = time.monotonic()
        try:
            request(at)
        except NbdError:
            self.failed.add(at)
        self.slowest = max(self.slowest, time.monotonic() - begun)

    @staticmethod
    @cache
    def stamp(version: int, at: int) -> bytes:
        """No two sectors and no two halves of one are alike."""
        return b"".join(
            b"%08d %06d" % (at + offset, version) + bytes([version]) * 241 for offset in range(0, BLOCK, 256)
        )

    def sectors(self) -> list[tuple[bytes, tuple[bytes, ...]]]:
        """Of every sector that was written: what it holds after the cut, and its versions; the second was flushed."""
        found = []
        for at in range(0, COUNT * BLOCK, 512):
            block, low = at // BLOCK * BLOCK, at % BLOCK
            versions = tuple(self.stamp(version, block)[low : low + 512] for version in (1, 2, 3))
            found.append((self.after[at : at + 512], versions))
        return found

    def lost(self) -> bool:
        """A sector has an older version than the one that was flushed."""
        return any(found in (bytes(512), versions[0]) for found, versions in self.sectors())

    def torn(self) -> bool:
        """A sector has the halves of two versions."""
        return any(
            found not in versions
            and found[:256] in (version[:256] for version in versions)
            and found[256:] in (version[256:] for version in versions)
            for found, versions in self.sectors()
        )

    def foreign(self) -> bool:
        """A sector of the medium has what belongs at another place."""
        return any(
            self.after[at : at + 8].isdigit() and int(self.after[at : at + 8]) != at for at in range(0, SIZE, 512)
        )

    def flipped(self) -> bool:
        """A sector differs from what was written in one bit."""

        def bits(found: bytes, written: bytes) -> int:
            return (int.from_bytes(found, "big") ^ int.from_bytes(written, "big")).bit_count()

        return any(min(bits(found, v) for v in versions) == 1 for found, versions in self.sectors())

    def slow(self) -> bool:
        return self.slowest >= 0.3


SYMPTOMS: dict[str, Symptom] = {
    "flush-lost": Story.lost,
    "cache-lied": Story.lost,
    "reordered": Story.lost,
    "torn-sector": Story.torn,
    "misdirected": Story.foreign,
    "lost-write": Story.lost,
    "lost-pass": Story.lost,
    "torn-write": Story.torn,
    "wraps": lambda story: story.before[: 128 << 10] == bytes(128 << 10),
    "capacity-off-by-one": lambda story: SIZE - 4096 in story.failed,
    "stale": Story.lost,
    "bit-flips": Story.flipped,
    "long-transfer-stall": Story.slow,
    "garbage-collection": Story.slow,
    "command-timeout": Story.slow,
    "cache-collapse": lambda story: story.took >= 0.8,
    "slow-through": Story.slow,
    "crowded": lambda story: story.took >= 0.8,
    "errors-at": lambda story: 8192 * 100 in story.failed,
    "errors-scattered": lambda story: len(story.failed) > 2,
}
SLOW = ("long-transfer-stall", "garbage-collection", "command-timeout", "cache-collapse", "slow-through", "crowded")


@pytest.mark.parametrize("kind", KINDS)
def test_it_shows(kind: str, tmp_path: Path) -> None:
    story = Story(tmp_path, kind, GIVEN.get(kind, {}), SMALL.get(kind, CACHE))
    assert story.fired
    assert SYMPTOMS[kind](story)


def test_a_healthy_one_has_none_of_them(tmp_path: Path) -> None:
    story = Story(tmp_path, "", {})
    # How slow a request may be is not said here: that is the machine's affair.
    shown = [kind for kind, symptom in SYMPTOMS.items() if kind not in SLOW and symptom(story)]
    assert (shown, story.fired, story.failed) == ([], 0, set())


@pytest.mark.parametrize(("cache", "slow"), [(64 << 10, True), (256 << 10, True), (8 << 20, False)])
def test_a_full_cache_is_slow_for_requests_that_do_not_fit_into_it_too(cache: int, slow: bool, tmp_path: Path) -> None:
    """1 MiB at 1 MiB/s. Requests of 128 KiB went past a cache of 64 KiB at full speed before."""
    defects = (("cache-collapse", {"rate": 1 << 20}),)
    firmware = Firmware("disk", Model(Traits(SIZE, cache=cache), defects, seed=1), tmp_path)
    try:
        with Nbd(firmware.socket) as client:
            begun = time.monotonic()
            for number in range(8):
                client.write(number * (128 << 10), b"x" * (128 << 10))
            took = time.monotonic() - begun
            assert client.read(0, 1 << 20) == b"x" * (1 << 20)
        assert bool(firmware.counters()["fired"]) == slow
        assert took >= 0.5 or not slow  # 256 KiB fit into the larger cache first
    finally:
        firmware.close()


def test_flush_lost_lies_about_fua_too(tmp_path: Path) -> None:
    firmware = Firmware("disk", Model(Traits(SIZE, cache=CACHE), (("flush-lost", {}),)), tmp_path)
    try:
        with Nbd(firmware.socket) as client:
            client.write(0, b"x" * 512, fua=True)
            assert client.read(0, 512) == b"x" * 512
            assert not any(firmware.medium.read_bytes())
    finally:
        firmware.close()


def test_a_bit_is_flipped_once_for_each_content(tmp_path: Path) -> None:
    """A load that pauses lets the defect act again; a second flip of the same sector would repair it."""
    firmware = Firmware("disk", Model(Traits(SIZE), (), seed=1), tmp_path)
    flip = BitFlip(firmware)

    def content() -> int:
        return firmware.medium.read_bytes()[FLIPPED_AT]

    try:
        flip()
        assert content() == 1
        flip()
        assert content() == 1
        with firmware.medium.open("r+b") as file:
            file.seek(FLIPPED_AT)
            file.write(b"x")
        flip()
        assert content() == ord("x") ^ 1
    finally:
        firmware.close()


def test_a_data_cut_neither_tears_nor_ages_anything(tmp_path: Path) -> None:
    """What happens when power fails happens then, not when the client goes away."""
    for kind in ("torn-sector", "stale"):
        directory = tmp_path / kind
        directory.mkdir()
        firmware = Firmware("disk", Model(Traits(SIZE, cache=CACHE), ((kind, {}),)), directory)
        try:
            with Nbd(firmware.socket) as client:
                client.write(0, b"x" * 512)
                client.flush()
                client.write(0, b"y" * 512)
            with Nbd(firmware.socket) as again:
                assert again.read(0, 512) == b"y" * 512
            assert firmware.medium.read_bytes()[:512] == b"x" * 512
            assert firmware.counters()["fired"] == 0
        finally:
            firmware.close()


def test_a_crowd_is_more_than_so_many_busy_disks(tmp_path: Path) -> None:
    """Two disks of a bench are as fast as one; three have their low rate, and are fast again when one rests."""
    defects = (("crowded", {"disks": 2, "rate": 512 << 10}),)
    disks = [Firmware(f"disk{n}", Model(Traits(SIZE), defects), tmp_path) for n in (1, 2, 3)]
    try:
        with Nbd(disks[0].socket) as one, Nbd(disks[1].socket) as two, Nbd(disks[2].socket) as three:

            def took(*clients: Nbd) -> float:
                """Seconds for 8 writes of 32 KiB to each, in turn."""
                begun = time.monotonic()
                for number in range(8):
                    for client in clients:
                        client.write(number << 15, bytes(32 << 10))
                return time.monotonic() - begun

            took(one, two)
            assert [disk.counters()["fired"] for disk in disks] == [0, 0, 0]
            assert took(one, two, three) >= 1.0, "3 times 256 KiB, one after the other, at 512 KiB/s"
            time.sleep(LINGERS * 1.2)  # the third has been quiet for long enough
            fired = [disk.counters()["fired"] for disk in disks]
            took(one, two)
            assert [disk.counters()["fired"] for disk in disks] == fired
    finally:
        for disk in disks:
            disk.close()


def test_garbage_collection_can_slow_instead_of_stopping(tmp_path: Path) -> None:
    defects = (("garbage-collection", {"sectors": 512, "seconds": 1.0, "rate": 1 << 20}),)

    def took(attempt: int) -> float:
        folder = tmp_path / str(attempt)
        folder.mkdir()
        firmware = Firmware("disk", Model(Traits(SIZE), defects), folder)
        try:
            with Nbd(firmware.socket) as client:
                for number in range(8):  # 256 KiB, after which it begins
                    client.write(number << 15, bytes(32 << 10))
                begun = time.monotonic()
                for number in range(16):
                    client.write(number << 15, bytes(32 << 10))
                return time.monotonic() - begun
        finally:
            firmware.close()

    shortest = took(0)
    for attempt in range(1, 20):
        if shortest < 2.0:
            break
        shortest = min(shortest, took(attempt))  # a busy machine adds time of its own
    assert 0.4 <= shortest < 2.0, "512 KiB at 1 MiB/s"


def test_writes_past_the_cache_are_slow_and_others_are_not(tmp_path: Path) -> None:
    firmware = Firmware("disk", Model(Traits(SIZE, cache=CACHE), (("slow-through", {"rate": 256 << 10}),)), tmp_path)
    try:
        with Nbd(firmware.socket) as client:
            for number in range(8):
                client.write(number << 15, bytes(32 << 10))
            assert firmware.counters()["fired"] == 0
            begun = time.monotonic()
            for number in range(4):
                client.write(number << 15, bytes(32 << 10), fua=True)
            assert time.monotonic() - begun >= 0.45, "128 KiB at 256 KiB/s"
    finally:
        firmware.close()


def test_a_crowd_is_a_matter_of_all_scratch_disks() -> None:
    disk = Disk(name="disk1", at="usb.1", serial="S", size=SIZE, scratch=True)
    crowd = Defect(kind="crowded", disks=3)
    assert model_of(disk, [crowd]).defects == (("crowded", {"disks": 3}),)
    assert model_of(disk.model_copy(update={"scratch": False}), [crowd]).plain


def test_the_rig_file_and_the_firmware_mean_the_same() -> None:
    assert lint_virtual.FIRMWARE.keys() == KINDS.keys()
    assert set(KINDS) <= set(get_args(Defect.model_fields["kind"].annotation))
    for kind, made in KINDS.items():
        parameters = set(inspect.signature(made).parameters) if "__init__" in vars(made) else set()
        assert parameters == lint_virtual.FIRMWARE[kind]
        assert parameters <= set(PARAMETERS)
