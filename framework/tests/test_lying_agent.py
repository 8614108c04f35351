"""A hostile DUT: whatever it sends, the controller keeps a bounded part of it and is not delayed."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import MOST_OF_A_LINE, AgentLink, LineSplitter, Message
from plugpull.dut.conversation.translation import MOST_ITEMS, MOST_TEXT, bounded, translate
from plugpull.dut.real.reach import MOST_WORDS, Connection, SshReach
from plugpull.history import events as ev
from plugpull.load.fio_report import MOST, MOST_BAD, parse_report
from plugpull.rig.model import Dut

QUICK = 2.0
"""Seconds of processor time for a megabyte. When it went with the square of the length, 98 kB took 9.9 s."""


def seconds_of(output: str) -> float:
    begun = time.thread_time()
    parse_report(output)
    return time.thread_time() - begun


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("verify: " * (MOST // 8), id="reasons"),
        pytest.param("verify: " + " file " * (MOST // 6), id="files"),
        pytest.param("verify: " + " file x offset 1" * (MOST // 16), id="offsets"),
        pytest.param("verify: x file " + " offset 1, length" * (MOST // 17), id="lengths"),
        pytest.param("crc32c: x\n" * (MOST // 10), id="lines"),
        pytest.param("verify: x file y offset 1, length 2\n" * (MOST // 36), id="bad blocks"),
        pytest.param("a-" * (MOST // 2), id="one word"),
        pytest.param("{\n" * (MOST // 2), id="objects"),
        pytest.param('{\n"jobs": ' + "[" * (MOST // 2) + "}", id="nested"),
        pytest.param('{\n"jobs": [{"error": ' + "9" * (MOST // 2) + "}]}", id="digits"),
        pytest.param(" " * MOST, id="blanks"),
        pytest.param("verify: a file " * MOST, id="far too long"),
    ],
)
def test_fio_s_output_is_read_in_time_in_proportion_to_its_length(output: str) -> None:
    assert seconds_of(output) < QUICK


def test_only_so_many_bad_blocks_are_kept() -> None:
    report = parse_report("verify: x file y offset 1, length 2\n" * (MOST_BAD + 100))
    assert len(report.bad) <= MOST_BAD
    assert report.bad[0] == (1, 2, "verify: x")


def test_what_fio_says_of_a_bad_block_is_understood() -> None:
    said = (
        "verify: bad magic header 0, wanted acca at file /dev/sdb offset 65536, length 65536 (requested block: "
        "offset=65536, length=65536, flags=88)\n"
        "fio: crc32c: verify failed at file /proc/self/fd/5 offset 131072, length 4096\n"
        "ordinary words about a file at offset 1, length 2\n"
    )
    assert parse_report(said).bad == (
        (65536, 65536, "verify: bad magic header 0, wanted acca"),
        (131072, 4096, "crc32c: verify failed"),
    )


@pytest.mark.parametrize(
    "job",
    [
        {"error": "x"},
        {"error": -5},
        {"read": {"io_bytes": -1}},
        {"read": {"io_bytes": 1 << 70}},
        {"read": {"io_bytes": "7"}},
        {"read": {"io_bytes": 1.5}},
        {"usr_cpu": "x"},
        {"usr_cpu": 1e400},
        {"read": []},
    ],
)
def test_numbers_that_are_none_make_no_report(job: dict[str, object]) -> None:
    whole = {"error": 0, "read": {"io_bytes": 1}, "write": {"io_bytes": 2}, "usr_cpu": 0.5, "sys_cpu": 0.5}
    assert parse_report(json.dumps({"jobs": [whole]}, indent=1)).complete
    assert not parse_report(json.dumps({"jobs": [whole | job]}, indent=1)).complete


# --- the link ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_lines_are_those_of_the_stream_but_for_the_long_ones(chunks: list[bytes], most: int) -> None:
    lines = LineSplitter(most)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    wanted = b"".join(chunks).split(b"\n")[:-1]
    assert found == [line if len(line) <= most else None for line in wanted]


def test_a_line_without_end_is_not_kept() -> None:
    lines = LineSplitter(1000)
    for _ in range(10_000):
        assert list(lines.feed(b"x" * 100)) == []
        assert len(lines._kept) <= 1000
    assert list(lines.feed(b"\n{}\n")) == [None, b"{}"]


def linked(send: bytes, times: int, after: bytes, wanted: int) -> tuple[AgentLink, list[Message]]:
    """A link that was sent ``send`` so many times and then ``after``, and the messages it passed on."""
    ours, theirs = socket.socketpair()
    reported: list[Message] = []
    arrived = threading.Event()

    def receive(message: Message) -> None:
        reported.append(message)
        if len(reported) >= wanted:
            arrived.set()

    link = AgentLink(ours, receive)
    try:
        for _ in range(times):
            theirs.sendall(send)
        theirs.sendall(after)
        assert arrived.wait(60)
    finally:
        link.close()
        ours.close()
        theirs.close()
    return link, [message for message in reported if message.get("ev") != "link.lost"]


def test_a_dut_that_never_ends_its_line_is_read_on_and_the_next_line_is_understood() -> None:
    megabyte = b"x" * (1 << 20)
    link, reported = linked(megabyte, 3 * (MOST_OF_A_LINE >> 20), b'\n{"ev": "kmsg"}\n', 1)
    assert reported == [{"ev": "kmsg"}]
    assert link.unreadable == 1


@pytest.mark.parametrize(
    "line", [b'{"ev": "x", "at": NaN}', b'{"at": -Infinity}', b'{"id": true}', b'{"id": 1.0}', b"[" * 9999]
)
def test_what_is_no_message_is_counted(line: bytes) -> None:
    link, reported = linked(line + b"\n", 2, b'{"ev": "end"}\n', 1)
    assert (reported, link.unreadable) == ([{"ev": "end"}], 2)


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_texts_and_lists_are_cut_to_lengths_that_no_honest_agent_reaches() -> None:
    disk_table = DiskTable({}, {})
    said: Message = {"ev": "kmsg", "at": 1.0, "text": "x" * (1 << 20), "level": 3, "seq": 1}
    event = translate(said, disk_table)
    assert isinstance(event, ev.KernelMessage)
    assert len(event.text) < MOST_TEXT + 100
    assert event.text.endswith("more left out]")
    assert len(bounded(list(range(100_000)))) == MOST_ITEMS
    assert len(bounded({str(number): 0 for number in range(100_000)})) == MOST_ITEMS
    honest = {"ev": "kmsg", "text": "x" * 8192, "n": 1, "stack": ["a"] * 100}
    assert bounded(honest) == honest


def test_a_dut_cannot_fill_the_controller_s_disk_through_ssh_s_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nhead -c 1 >/dev/null\nexec yes 'what a DUT says' >&2\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    connection = Connection(SshReach(Dut(kind="ssh", host="dut")))
    try:
        connection._process.wait(60)
        assert len(connection.words()) <= 1 << 16
        assert connection._errors.seek(0, 2) <= MOST_WORDS
    finally:
        connection.close()


def test_the_socket_that_a_disk_was_first_seen_in_is_remembered() -> None:
    first, other = ["0000:00:14.0/usb2-1:0"], ["0000:00:14.0/usb3-1:0"]
    kept: dict[str, tuple[str, ...]] = {}
    said: Message = dict.fromkeys(("serial", "place", "driver", "speed", "model", "sysfs", "devt"), "")
    said |= {"kname": "sda", "diskseq": 1, "size": 512, "serial": "S-1"}
    disk_table = DiskTable({"disk1": "S-1"}, {}, kept)
    assert disk_table.attach(said, 1.0).sockets == ()
    assert disk_table.attach({**said, "sockets": first}, 2.0).sockets == tuple(first)
    disk_table.detach("sda", 3.0)
    disk_table.attach({**said, "sockets": other}, 4.0)
    disk_table.attach({**said, "serial": "nobody's", "sockets": other}, 5.0)
    assert kept == disk_table.sockets == {"disk1": tuple(first)}
    assert DiskTable({"disk1": "S-1"}, {}, kept).sockets == kept, "the next scenario knows it too"
