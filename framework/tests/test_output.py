"""Output that neither fails nor waits."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

from plugpull.output import MOST, SteadyOutput, steady_output

PATIENCE = 30.0


@contextmanager
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The end to read from, which the block may close, and the stream to write to."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        yield reading, stream


def test_what_is_written_arrives_in_order() -> None:
    with pipe() as (reading, stream):
        steady = SteadyOutput(stream)
        for number in range(100):
            print(number, "\u26a1", file=steady)
        steady.close()
        assert os.read(reading, 65536).decode() == "".join(f"{number} \u26a1\n" for number in range(100))
        os.close(reading)
    assert steady.failure is None


def test_a_closed_pipe_is_not_noticed_by_who_prints() -> None:
    with pipe() as (reading, stream):
        os.close(reading)
        steady = SteadyOutput(stream)
        for _ in range(3):
            print("nobody reads this", file=steady)
            assert steady.drain(PATIENCE)
        steady.close()
    assert isinstance(steady.failure, BrokenPipeError)


def test_neither_is_a_full_disk() -> None:
    with open("/dev/full", "w") as stream:
        steady = SteadyOutput(stream)
        print("there is no room for this", file=steady)
        steady.close()
    assert steady.failure is not None


def test_neither_is_a_terminal_that_hung_up() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stream:
        steady = SteadyOutput(stream)
        assert steady.isatty()
        os.close(master)
        print("nobody reads this", file=steady)
        steady.close()
    assert steady.failure is not None


def test_a_pipe_that_nobody_reads_does_not_block() -> None:
    with pipe() as (reading, stream):
        steady = SteadyOutput(stream)
        begun = time.monotonic()
        for _ in range(20):
            print("x" * 65536, file=steady)
        assert time.monotonic() - begun < PATIENCE
        assert not steady.drain(0.1), "a pipe does not hold that much"
        os.close(reading)
        assert steady.drain(PATIENCE), "now nobody can read it any more, and it is dropped"
        steady.close()


def test_what_nobody_reads_is_not_kept_without_bound() -> None:
    taken: list[bytes] = []

    def read(reading: int) -> None:
        while data := os.read(reading, 1 << 20):
            taken.append(data)

    with pipe() as (reading, stream):
        steady = SteadyOutput(stream)
        for _ in range(40):
            steady.write("x" * (1 << 20))
        reader = threading.Thread(target=read, args=(reading,))
        reader.start()
        assert steady.drain(PATIENCE)
        print("and this is new", file=steady)
        steady.close()
    reader.join(PATIENCE)
    os.close(reading)
    text = b"".join(taken).decode()
    assert MOST <= text.count("x") <= MOST + (2 << 20)
    # What is missing is said once, or twice if the thread that passes it on began in the middle of it.
    said = re.findall(r"x\nplugpull: (\d+) characters of output are missing here: nobody read them\n", text)
    assert sum(map(int, said)) == (40 << 20) - text.count("x")
    assert text.endswith("nobody read them\nand this is new\n")


def test_a_nonblocking_pipe_gets_everything() -> None:
    with pipe() as (reading, stream):
        os.set_blocking(stream.fileno(), False)
        steady = SteadyOutput(stream)
        steady.write("x" * 500_000)
        got = 0
        while got < 500_000:
            got += len(os.read(reading, 65536))
        steady.close()
        os.close(reading)
    assert steady.failure is None


def test_a_stream_without_a_descriptor() -> None:
    stream = io.StringIO()
    steady = SteadyOutput(stream)
    assert not steady.isatty()
    print("in memory", file=steady)
    steady.close()
    assert stream.getvalue() == "in memory\n"


def test_standard_output_and_error_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with steady_output():
        assert isinstance(sys.stdout, SteadyOutput)
        print("out")
        print("err", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("out\n", "err\n")
