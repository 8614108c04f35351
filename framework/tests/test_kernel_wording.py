"""The notation for the wording of messages, and the entries of the catalogue that are written in it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from plugpull.kernel.catalogue.entries import BEGINNINGS, SUBSYSTEMS, read_entries, read_text
from plugpull.kernel.catalogue.finder import finder_of, named, words_in
from plugpull.kernel.catalogue.wording import examples_of, needles_of, pattern_of

FOREIGN = (
    "audit: type=1400 audit(1700000000.123:4567): apparmor=ALLOWED operation=open profile=/usr/bin/x",
    "systemd[1]: Started Daily apt download activities.",
    "docker0: port 1(veth1a2b3c4) entered blocking state",
    "[UFW BLOCK] IN=eth0 OUT= MAC=01:00:5e SRC=192.168.1.1 DST=224.0.0.1 LEN=36 TOS=0x00 TTL=1 ID=0 DF PROTO=2",
    "wlan0: authenticate with 00:11:22:33:44:55",
    "sshd[4321]: Accepted publickey for user from 192.168.1.2 port 50022 ssh2: RSA SHA256:abcdef",
    "e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx",
)
"""What fills logs. A word of an entry that is in such lines makes reading them slow, at four times the cost."""


@pytest.mark.parametrize("line", FOREIGN)
def test_no_entry_has_to_look_at_what_fills_logs(line: str) -> None:
    assert words_in(line.encode()) == []


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ("device descriptor read/%s, error %d", "device descriptor read/64, error -71"),
        ("{usb}: USB disconnect, device number %d", "usb 1-2.3: USB disconnect, device number 5"),
        ("%s: rw=%d, {want|sector}=%llu", "sdb1: rw=1, want=77"),
        ("sector 0x%08x %#lx", "sector 0x0001ffee 0xdead"),
        ("CPU%d is 100%% busy$", "CPU3 is 100% busy"),
        (r"a \{b\} \| c", "a {b} | c"),
        ("tasks %*ph of %pISc%c", "tasks 00 01 of [::1]."),
        ("%sin the middle %sagain", "in the middle or again"),
        ("block 0x%llx %s", "block 0x2"),
    ],
)
def test_a_wording_matches_its_messages(wording: str, message: str) -> None:
    assert re.match(pattern_of(wording, BEGINNINGS), message)
    assert finder_of(wording)(message)


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ("no configuration$", "no configuration descriptor"),
        ("{usb}: config failed", "mouse 1-2: config failed"),
        ("{Bus|Target} reset", "Buss reset"),
        ("error %d", "error none"),
        ("anchored", "not anchored"),
        ("%sfirst %sthen", "then the first of them"),
        ("%sdone$", "done it"),
    ],
)
def test_a_wording_does_not_match_others(wording: str, message: str) -> None:
    assert not re.match(pattern_of(wording, BEGINNINGS), message)
    assert not finder_of(wording)(message)


def test_words_of_a_wording() -> None:
    assert needles_of("%s{one thing|another}") == {"one thing", "another"}
    assert needles_of("%sUSBSTS:%d") == {"USBSTS:"}
    assert max(map(len, needles_of("{usb}: not enough host controller resources"))) <= 16
    with pytest.raises(ValueError, match="word"):
        needles_of("%d %s")


def test_each_variant_of_a_wording_has_an_example() -> None:
    assert list(examples_of("{a|b|} %d{x|y}", {})) == ["a 7x", "b 7y", "7y"]


@pytest.mark.parametrize(
    "find",
    [re.compile(pattern_of("%sab%sab%sab%sab%sc", BEGINNINGS)).match, finder_of("%sab%sab%sab%sab%sc")],
    ids=["pattern", "finder"],
)
def test_a_wording_that_cannot_match_takes_linear_time(find: Callable[[str], object]) -> None:
    def seconds(size: int) -> float:
        begun = time.process_time()
        for _ in range(3):
            assert not find("ab" * size)
        return time.process_time() - begun

    assert seconds(40_000) < 20 * max(seconds(10_000), 0.001)


def test_spaces_that_a_web_page_makes_one() -> None:
    pattern = re.compile(pattern_of("AER:   Error of   %s", BEGINNINGS))
    assert pattern.match("AER:   Error of   it")
    assert pattern.match("AER: Error of it")
    assert not pattern.match("AER:Error of it")
    assert needles_of("ab   ERROR of") == {"ERROR of"}


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_each_entry_recognises_a_line_made_from_its_wording(subsystem: str) -> None:
    wrong = [
        (entry.wording, example, found)
        for entry in read_entries(subsystem, read_text(subsystem))
        for example in examples_of(entry.wording, BEGINNINGS)
        if (found := named(example)) is None or (found.kind, found.severity) != (entry.kind, entry.severity)
    ]
    assert wrong == []


def nested(wording: str) -> bool:
    """Whether a wording has a choice within a choice, which the notation does not know, or one that is not closed."""
    left = re.sub(r"\{[^{}]*\}", "", re.sub(r"\\.", "", wording))
    return any(mark in left for mark in "{}|")


def test_no_choice_is_within_another() -> None:
    assert nested("{mmc}: {a|error %d {doing|during} |b}")
    assert nested("{usb}: {a|b")
    assert not nested(r"{usb}: {a|b} \{c\} %d")
    assert [
        entry.wording for name in SUBSYSTEMS for entry in read_entries(name, read_text(name)) if nested(entry.wording)
    ] == []


def test_an_entry_needs_an_answer_and_a_source() -> None:
    with pytest.raises(ValueError, match=r"x\.txt:2: 'wording' has no answer"):
        list(read_entries("x", "@ file.c\nwording\n"))
