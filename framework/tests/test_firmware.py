"""A healthy firmware: what was flushed is there after a power cut, what was not may be gone, nothing else happens."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbd_client import Nbd, NbdError
from rig_builder import a_rig

from plugpull.errors import RigError
from plugpull.virtual.firmware import Firmware, Model, model_of
from plugpull.virtual.firmware_drive import Drive, DriveCounters, FailingSectors, Traits

SIZE = 1 << 20
CACHE = 64 << 10


def pattern(number: int, length: int = 4096) -> bytes:
    return bytes([number]) * length


@contextlib.contextmanager
def powered(model: Model) -> Iterator[tuple[Firmware, Nbd]]:
    with TemporaryDirectory() as folder:
        firmware = Firmware("disk", model, Path(folder))
        try:
            with Nbd(firmware.socket) as client:
                yield firmware, client
        finally:
            firmware.close()


# --- a model: what may be on the disk ------------------------------------------------------------------------------

UNIT, UNITS = 256, 24
"""Half a sector: the model sees requests that begin and end within one."""

ranges = st.tuples(st.integers(0, UNITS - 1), st.integers(1, UNITS)).map(lambda r: (r[0], min(r[1], UNITS - r[0])))
steps = st.one_of(
    st.tuples(st.just("write"), ranges, st.booleans()),
    st.tuples(st.just("zero"), ranges, st.booleans()),
    st.tuples(st.just("flush")),
    st.tuples(st.just("read"), ranges),
    st.tuples(st.just("age")),
    st.tuples(st.just("cut")),
)


class Expected:
    """Of every half sector, all contents it may have if the power failed now; the last is what a read gives."""

    def __init__(self) -> None:
        self.versions: list[list[int]] = [[0] for _ in range(UNITS)]

    def write(self, begin: int, count: int, value: int, durable: bool) -> None:
        # A sector is written as a whole: its other half becomes durable with it, or is lost with it.
        for unit in range(begin, begin + count):
            self.versions[unit].append(value)
        if durable:
            self.settle(range(begin // 2 * 2, -(-(begin + count) // 2) * 2))

    def settle(self, units: range) -> None:
        for unit in units:
            del self.versions[unit][:-1]

    def take(self, found: list[int]) -> None:
        """After a cut: what was found is legal, and from now on it is the only thing that is."""
        for unit, value in enumerate(found):
            assert value in self.versions[unit], f"half sector {unit} holds {value}, not one of {self.versions[unit]}"
            self.versions[unit] = [value]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(steps, max_size=40),
    st.sampled_from(["oldest", "random", "newest"]),
    st.sampled_from([0, 1, 3, 8]),
    st.integers(0, 2**32),
)
def test_against_a_model(plan: list[tuple[Any, ...]], eviction: str, sectors: int, seed: int) -> None:
    traits = Traits(UNIT * UNITS, cache=sectors * 512, eviction=eviction)
    expected = Expected()
    with TemporaryDirectory() as folder, (Path(folder) / "medium").open("x+b", buffering=0) as medium:
        medium.truncate(traits.size)
        counters = DriveCounters(Path(folder) / "counters")

        def new() -> Drive:
            return Drive(medium.fileno(), traits, counters, seed=seed)

        def read(begin: int, count: int) -> list[int]:
            buffer = bytearray(count * UNIT)
            drive.read(begin * UNIT, memoryview(buffer))
            assert all(len(set(buffer[at : at + UNIT])) == 1 for at in range(0, len(buffer), UNIT)), "torn"
            return list(buffer[::UNIT])

        drive = new()
        for number, (step, *arguments) in enumerate(plan):
            if step in ("write", "zero"):
                (begin, count), durable = arguments
                value = number + 1 if step == "write" else 0
                if step == "write":
                    drive.write(begin * UNIT, pattern(value, count * UNIT), durable)
                else:
                    drive.zero(begin * UNIT, count * UNIT, durable)
                expected.write(begin, count, value, durable)
            elif step == "read":
                begin, count = arguments[0]
                assert read(begin, count) == [expected.versions[unit][-1] for unit in range(begin, begin + count)]
            elif step == "flush":
                drive.flush()
                expected.settle(range(UNITS))
            elif step == "age":
                drive.write_out_older_than(0.0)
                expected.settle(range(UNITS))
            else:
                drive = new()
                expected.take(read(0, UNITS))
        drive.flush()
        assert read(0, UNITS) == [versions[-1] for versions in expected.versions]


# --- the process ---------------------------------------------------------------------------------------------------


def test_a_power_cut_loses_what_was_not_flushed_and_nothing_else() -> None:
    with powered(Model(Traits(SIZE, cache=CACHE))) as (firmware, client):
        assert (client.size, client.fua) == (SIZE, True)
        client.write(0, pattern(1))
        client.flush()
        client.write(4096, pattern(2))
        client.write(8192, pattern(3), fua=True)
        client.write(0, pattern(4, 1024))
        assert client.read(0, 4096) == pattern(4, 1024) + pattern(1, 3072)
        assert firmware.counters()["dirty_bytes"] == 4096 + 1024
        client.close()
        firmware.power_off()
        assert firmware.counters()["dirty_bytes"] == 4096 + 1024
        assert firmware.medium.read_bytes() == pattern(1) + pattern(0) + pattern(3) + bytes(SIZE - 12288)
        firmware.power_on()
        with Nbd(firmware.socket) as again:
            assert again.read(0, SIZE) == firmware.medium.read_bytes()
        counted = firmware.counters()
        assert (counted["flushes"], counted["fua"], counted["writes"], counted["fired"]) == (1, 1, 4, 0)


def test_trimmed_is_zero() -> None:
    with powered(Model(Traits(SIZE, cache=CACHE))) as (firmware, client):
        client.write(0, pattern(1, SIZE))
        client.trim(512, 1024)
        client.zero(SIZE - 100, 100, fua=True)
        assert client.read(0, 2048) == pattern(1, 512) + bytes(1024) + pattern(1, 512)
        assert firmware.medium.read_bytes()[-512:] == pattern(1, 412) + bytes(100)


@pytest.mark.parametrize("eviction", ["oldest", "newest", "random"])
def test_a_full_cache_makes_room(eviction: str) -> None:
    with powered(Model(Traits(SIZE, cache=CACHE, eviction=eviction), seed=1)) as (firmware, client):
        for number in range(17):
            client.write(number * 4096, pattern(number + 1))
        out = [at // 4096 for at in range(0, 17 * 4096, 4096) if any(firmware.medium.read_bytes()[at : at + 4096])]
        assert firmware.counters()["dirty_bytes"] <= CACHE
        assert {"oldest": out == [0], "newest": out == [15], "random": out and 16 not in out}[eviction], out
        assert client.read(0, 17 * 4096) == b"".join(pattern(number + 1) for number in range(17))


def test_what_is_old_is_written_out_by_itself() -> None:
    with powered(Model(Traits(SIZE, cache=CACHE, write_back=0.1))) as (firmware, client):
        client.write(0, pattern(1))
        deadline = time.monotonic() + 30
        while firmware.medium.read_bytes()[:4096] != pattern(1):
            assert time.monotonic() < deadline
            time.sleep(0.01)  # nothing says when it left
        assert firmware.counters()["flushes"] == 0


def test_killed_at_any_moment_it_leaves_whole_sectors_of_legal_versions() -> None:
    """Flushes, evictions and writes past the cache are cut short; what was flushed before stays."""
    randomly = random.Random(7)
    for attempt in range(12):
        with powered(Model(Traits(SIZE, cache=CACHE, eviction="random"))) as (firmware, client):
            client.write(0, pattern(1, SIZE))
            client.flush()
            flushed = [1]
            with ThreadPoolExecutor(1) as writer:
                writer.submit(_write_on, Nbd(firmware.socket), flushed)
                time.sleep(randomly.uniform(0.0, 0.03))  # the moment of the cut is what is random here
                firmware.power_off()
            found = firmware.medium.read_bytes()
            legal = range(flushed[-1], flushed[-1] + 2)
            for at in range(0, SIZE, 512):
                assert len(set(found[at : at + 512])) == 1, f"attempt {attempt}: torn at {at}"
                assert found[at] in legal, f"attempt {attempt}: {found[at]} at {at}, not of {legal}"


def _write_on(client: Nbd, flushed: list[int]) -> None:
    """The whole disk again and again, in requests larger than the cache and, every other time, small ones."""
    with client, contextlib.suppress(OSError):
        for number in range(2, 250):
            step = 128 << 10 if number % 2 else 16 << 10
            for at in range(0, SIZE, step):
                client.write(at, pattern(number, step))
            client.flush()
            flushed.append(number)


def test_requests_in_parallel() -> None:
    with powered(Model(Traits(SIZE, cache=CACHE, latency=0.05))) as (firmware, client):

        def write(number: int) -> None:
            with Nbd(firmware.socket) as own:
                own.write(number * 4096, pattern(number + 1))

        begun = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(64)))
        took = time.monotonic() - begun
        assert took >= 64 / 8 * 0.05
        client.flush()
        assert firmware.medium.read_bytes()[: 64 * 4096] == b"".join(pattern(number + 1) for number in range(64))


def test_an_empty_cache_is_flushed_at_once_while_a_write_is_on_its_way() -> None:
    slow = Model(Traits(SIZE, cache=CACHE, latency=600.0))
    with ThreadPoolExecutor(1) as writer, powered(slow) as (firmware, client):

        def write() -> None:
            with contextlib.suppress(OSError), Nbd(firmware.socket) as own:  # it ends with the firmware
                own.write(0, pattern(1))

        writer.submit(write)
        client.flush()
        counted = firmware.counters()
        assert (counted["flushes"], counted["writes"], counted["dirty_bytes"]) == (1, 0, 0)


# --- commands while it runs ----------------------------------------------------------------------------------------


def test_it_stalls_and_fails_when_told_and_keeps_its_cache() -> None:
    with powered(Model(Traits(SIZE, cache=CACHE))) as (firmware, client):
        client.write(0, pattern(1))
        firmware.stall(60)
        with ThreadPoolExecutor(1) as reader:
            answer = reader.submit(client.read, 0, 4096)
            with pytest.raises(TimeoutError):
                answer.result(0.2)
            firmware.stall(0)
            assert answer.result(30) == pattern(1)
        firmware.fail(FailingSectors(8, 2, writes=False))
        with pytest.raises(NbdError):
            client.read(0, 8192)
        client.write(4096, pattern(2))
        assert client.read(0, 4096) == pattern(1)
        firmware.fail()
        assert client.read(4096, 4096) == pattern(2)
        assert not any(firmware.medium.read_bytes())
        firmware.write_out()
        assert firmware.medium.read_bytes()[:8192] == pattern(1) + pattern(2)


@pytest.mark.parametrize("cache", [0, CACHE])
def test_what_it_was_sent_while_it_stood_still(cache: int) -> None:
    """A disk with a cache forgets it, and a plain one executes it late."""
    with powered(Model(Traits(SIZE, cache=cache))) as (firmware, client):
        client.write(0, pattern(1))
        firmware.stand_still(True)
        with ThreadPoolExecutor(1) as writer:
            answer = writer.submit(client.write, 0, pattern(2))
            with pytest.raises(TimeoutError):
                answer.result(0.2)
            firmware.stand_still(False)
            if cache:
                with pytest.raises(NbdError):
                    answer.result(30)
            else:
                answer.result(30)
        assert client.read(0, 4096) == pattern(1 if cache else 2)
        client.write(0, pattern(3))
        assert client.read(0, 4096) == pattern(3)


def test_a_plain_disk_cannot_be_asked_and_a_dead_one_does_not_answer() -> None:
    with powered(Model(Traits(SIZE))) as (firmware, client):
        client.write(0, pattern(1))
        assert firmware.medium.read_bytes()[:4096] == pattern(1)
        with pytest.raises(RigError, match="has no counters and takes no commands"):
            firmware.counters()
        with pytest.raises(RigError, match="has no counters and takes no commands"):
            firmware.stall(1)
    with powered(Model(Traits(SIZE, cache=CACHE))) as (firmware, _):
        firmware.power_off()
        with pytest.raises(RigError, match="did not answer the command 'stall'"):
            firmware.stall(1)


def test_a_rig_file_says_what_the_firmware_is() -> None:
    rig = (
        a_rig("r")
        .controller()
        .disk("a", "usb.1", "A", "1 MiB", cache="64 KiB", logical_block=4096)
        .disk("b", "usb.2", "B", "1 MiB")
        .table("defect", kind="misdirected", disk="a", every=7)
        .table("defect", kind="stalls", disk="b")
        .load()
    )
    first, second = (model_of(disk, rig.defect) for disk in rig.disk)
    assert first == Model(Traits(SIZE, 4096, CACHE), (("misdirected", {"every": 7}),))
    assert second.plain
