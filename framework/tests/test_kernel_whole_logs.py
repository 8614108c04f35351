"""What only a whole log shows: restarts, parts of a message on several lines, lines that a mail program wrapped."""

from __future__ import annotations

import io
import textwrap

import pytest

from plugpull.kernel.diagnosis import log_reader
from plugpull.kernel.diagnosis.error_story import story_of_log
from plugpull.kernel.diagnosis.log_reader import LogEvent, read_log
from plugpull.kernel.diagnosis.restarts import DIED, RESTARTED
from plugpull.kernel.diagnosis.unwrap import unwrapped


def events_of(*lines: str) -> list[LogEvent]:
    return list(read_log(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), "log"))


def kinds_of(*lines: str) -> list[str]:
    return [each.event.kind for each in events_of(*lines)]


# --- restarts ---------------------------------------------------------------------------------------------------

BANNER = "[    0.000000] Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12 12.2.0)"
BOOT = ("[    0.000000] Booting Linux on physical CPU 0x0", BANNER, "[    0.000000] Command line: quiet")
RUNNING = ("[  812.100000] usb 2-1: USB disconnect, device number 4", "[  815.500000] audit: type=1400")


def test_a_boot_in_the_middle_of_a_log_is_a_death() -> None:
    died = [each for each in events_of(*BOOT, *RUNNING, *BOOT) if each.event.kind == DIED]
    (one,) = died
    assert (one.line, one.event.severity) == (6, "fatal")
    assert one.report is not None
    assert one.report.headline.endswith("without a last word; its last message at 815.500000 s: audit: type=1400")


def test_a_log_that_begins_with_a_boot_is_healthy() -> None:
    assert kinds_of(*BOOT, "[    1.200000] clocksource: tsc") == []
    bootloader = ("U-Boot 2020.01 (Apr 20 2020)", "Starting kernel ...", "")
    assert kinds_of(*bootloader, *BOOT) == []


@pytest.mark.parametrize(
    "last",
    [
        "[  816.000000] reboot: Restarting system",
        "[  816.000000] Kernel panic - not syncing: Fatal exception",
        "[  816.000000] sysrq: Resetting",
        "[  816.000000] kexec_core: Starting new kernel",
        "[  816.000000] systemd-shutdown[1]: Rebooting.",
    ],
)
def test_a_restart_that_was_announced_is_not_a_death(last: str) -> None:
    found = kinds_of(*BOOT, *RUNNING, last, *BOOT)
    assert DIED not in found
    assert RESTARTED in found


def test_each_boot_is_reported_once() -> None:
    assert kinds_of(*BOOT, *RUNNING, *BOOT, *RUNNING, *BOOT).count(DIED) == 2


def test_time_stamps_that_jump_back_to_zero_are_a_boot() -> None:
    """With a high console level the banner is not printed."""
    assert DIED in kinds_of(*RUNNING, "[    0.000000] Memory: 1 GiB available")
    assert DIED not in kinds_of(*RUNNING, "[    5.000000] lines of two logs, or out of order")


def test_a_log_without_time_stamps_of_the_kernel() -> None:
    banner = BANNER.partition("] ")[2]
    kernel = [f"Nov 12 13:45:0{second} host kernel: usb 2-1: new high-speed USB device" for second in range(3)]
    boot = f"Nov 12 13:46:00 host kernel: {banner}"
    # Only the kernel's lines: a file that is written by syslog does not hold the kernel's last words.
    assert RESTARTED in kinds_of(*kernel, boot)
    everything = [*kernel, "Nov 12 13:45:30 host CRON[812]: (root) CMD (true)"]
    assert DIED in kinds_of(*everything, boot)
    in_order = [*everything, "Nov 12 13:45:40 host systemd[1]: Stopped target Basic System."]
    assert RESTARTED in kinds_of(*in_order, boot)


def test_a_syslog_that_begins_with_its_daemon_has_no_restart() -> None:
    daemon = "Dec  4 11:16:33 host kernel: imklog 5.8.11, log source = /proc/kmsg started."
    boot = [f"Dec  4 11:16:33 host kernel: {line}" for line in BOOT]
    assert kinds_of(daemon, *boot) == []
    before = "Dec  4 11:10:00 host kernel: [  812.100000] audit: type=1400"
    assert kinds_of(before, daemon, *boot) == [RESTARTED]


def test_a_restart_is_found_where_a_block_begins() -> None:
    lines = [*BOOT, *(f"[ {100 + number}.000000] audit: type=1400 number {number}" for number in range(3000)), *BOOT]
    original, log_reader.BLOCK = log_reader.BLOCK, 4096
    try:
        assert kinds_of(*lines) == [DIED]
    finally:
        log_reader.BLOCK = original


def test_the_story_of_a_death_accuses_the_machine_not_its_kernel() -> None:
    from plugpull.kernel.diagnosis.culprit import hints

    (hint,) = hints(story_of_log(events_of(*BOOT, RUNNING[1], *BOOT)))
    assert (hint.culprit, hint.subject) == ("power supply, watchdog or reset", "the machine")
    assert "815.500000" in hint.evidence[0]


# --- parts of a message -----------------------------------------------------------------------------------------


def subjects_of(*lines: str) -> list[tuple[str, str]]:
    return [(each.event.kind, each.subject) for each in events_of(*lines)]


def test_the_lines_of_an_old_scsi_result_belong_to_its_disk() -> None:
    found = subjects_of(
        "[ 8347.731183] sd 5:0:0:0: [sde]  ",
        "[ 8347.731185] Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE",
        "[ 8347.731188] sd 5:0:0:0: [sde]  ",
        "[ 8347.731190] Sense Key : Medium Error [current] [descriptor]",
        "[ 8347.731211] Add. Sense: Unrecovered read error - auto reallocate failed",
        "[ 8347.731214] sd 5:0:0:0: [sde] CDB: ",
    )
    assert found == [("scsi.error", "sde")] * 4


def test_a_result_long_after_a_disks_message_is_not_the_disks() -> None:
    found = subjects_of("[    1.000000] sd 5:0:0:0: [sde]  ", "[    9.000000] Result: hostbyte=DID_OK")
    assert found == [("scsi.error", "")]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            "Buffer I/O error on device sdb1, logical block 5",
            "lost page write due to I/O error on sdb1",
            ("block.error", "sdb1"),
        ),
        ("Buffer I/O error on dev sdb1, logical block 5,", "lost async page write", ("block.error", "sdb1")),
        (
            "FAT-fs (sdb1): error, fat_get_cluster: invalid cluster chain (i_pos 0)",
            "    File system has been set read-only",
            ("fs.readonly", "sdb1"),
        ),
        (
            "md/raid1:md126: Disk failure on sdb, disabling device.",
            "Operation continuing on 1 devices.",
            ("md.failure", "sdb"),
        ),
        (
            "ata1.00: cmd 60/08:00:00:e1:59/00:00:a2:00:00/40 tag 0 ncq 4096 in",
            "         res 40/00:10:d0:5d:a8/00:00:b2:00:00/40 Emask 0x4 (timeout)",
            ("ata.error", "ata1.00"),
        ),
    ],
)
def test_a_line_that_continues_another(first: str, second: str, expected: tuple[str, str]) -> None:
    assert subjects_of(f"[   10.000000] {first}", f"[   10.000100] {second}")[1] == expected
    (alone,) = subjects_of(f"[   10.000100] {second}")
    assert alone == (expected[0], expected[1] if expected[1] in second else "")


def test_the_device_of_an_access_beyond_the_end_is_on_the_next_line() -> None:
    found = subjects_of(
        "[   10.000000] attempt to access beyond end of device", "[   10.000001] sdb1: rw=0, want=2050, limit=2048"
    )
    assert found == [("block.error", "sdb1")] * 2


def test_the_story_has_continued_lines_under_their_disk() -> None:
    story = story_of_log(
        events_of(
            "[   10.000000] sd 5:0:0:0: [sde]  ",
            "[   10.000001] Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
            "[   10.000002] end_request: I/O error, dev sde, sector 2048",
        )
    )
    (one,) = story.troubled
    assert one.device.name == "sde"
    assert [step.kind for step in one.steps] == ["scsi.error", "block.error"]


# --- wrapped lines ----------------------------------------------------------------------------------------------

LOG = (
    "[11843.298598] usb 2-2: reset high-speed USB device number 2 using xhci_hcd",
    "[11844.103922] usb 2-2: USB disconnect, device number 2",
    "[11844.111282] device offline error, dev sdb, sector 60278752 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    "[11844.111301] sd 6:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
    "[11844.200000] xhci_hcd 0000:0b:00.3: xHCI host not responding to stop endpoint command.",
    "[11844.300000] audit: type=1400 audit(1700341471.031:60): apparmor=STATUS operation=profile_replace info=same",
    "[11844.400000] usb 2-2: device descriptor read/64, error -71",
)


def wrapped(width: int, *, quote: str = "") -> list[str]:
    pieces = [textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) for line in LOG]
    return [f"{quote}{piece}" for each in pieces for piece in each]


@pytest.mark.parametrize("width", [66, 72, 76, 78, 80])
@pytest.mark.parametrize("quote", ["", "> ", "> > "])
def test_wrapped_lines_are_read_as_if_they_were_not(width: int, quote: str) -> None:
    expected = [(each.event.kind, each.subject) for each in events_of(*LOG)]
    assert len(wrapped(width)) > len(LOG) + 2
    found = events_of(*wrapped(width, quote=quote))
    assert [(each.event.kind, each.subject) for each in found] == expected
    assert [each.event.text.removeprefix(quote) for each in found] == [each.event.text for each in events_of(*LOG)]


def test_wrapped_lines_with_levels_in_words_are_joined() -> None:
    """What dmesg -x prints begins with a word, as a piece does."""
    log = [f"kern  :err   : {line}" for line in LOG]
    broken = [part for line in log for part in textwrap.wrap(line, 76, break_on_hyphens=False)]
    assert [each.event.text for each in events_of(*broken)] == [each.event.text for each in events_of(*log)]


@pytest.mark.parametrize("width", [72, 80, 84, 90])
@pytest.mark.parametrize("stripped", [False, True])
def test_lines_that_a_terminal_broke_are_joined_without_a_space(width: int, stripped: bool) -> None:
    broken = [line[at : at + width] for line in LOG for at in range(0, len(line), width)]
    if stripped:
        broken = [line.rstrip() for line in broken]
    assert [(each.event.text, each.event.kind) for each in events_of(*broken)] == [
        (each.event.text, each.event.kind) for each in events_of(*LOG)
    ]
    assert unwrapped("\n".join([*broken, "a remark"]).encode()).joints == ()


def test_the_numbers_of_lines_are_those_of_the_file() -> None:
    lines = wrapped(72)
    for each in events_of(*lines):
        assert lines[each.line - 1].startswith(each.event.text[:30])


@pytest.mark.parametrize(
    "lines",
    [
        LOG,  # not wrapped
        (*LOG[:2], "I then plugged it in again and saw", *LOG[2:]),  # a remark
        (*wrapped(72)[:3], "x" * 30, LOG[5]),  # one message is longer than the width
        ("[    1.000000] usb 1-1: a short one", "what a person wrote", "[    2.000000] usb 1-1: another", "and again"),
        ("no time stamps at all " * 3, "and a second line", "and a third line of prose") * 3,
        tuple(f"Nov 12 13:45:01 host app[{number}]: a message" for number in range(9)),
    ],
)
def test_what_is_not_certainly_wrapped_stays_as_it_is(lines: tuple[str, ...]) -> None:
    text = "\n".join(lines).encode()
    assert unwrapped(text) == (text, ())


def test_lines_that_a_wide_terminal_broke() -> None:
    width, log = 118, "Aug 30 11:26:36 host kernel: [12225.4453{:02}][T20556] "
    long = (
        "I/O error, dev sdb, sector 314643672 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s",
        "sd 1:0:0:0: [sdb] tag#9 CDB: Write(10) 2a 00 12 c1 11 48 00 00 08 00",
        "usb 3-9: USB disconnect, device number 14",
    )
    whole = [log.format(at) + line for at, line in enumerate(long)]
    broken = [line[at : at + width].rstrip() for line in whole for at in range(0, len(line), width)]
    assert len(broken) == 7
    assert [each.event.text for each in events_of(*broken)] == whole


def test_lines_of_dmesg_d_that_a_mail_program_wrapped() -> None:
    lines = [
        ">> [  +0.000003] sd 6:0:4:0: No reference found at driver, assuming",
        ">> scmd(0x00000000eb0d9438) might have completed",
        ">> [  +0.000003] sd 6:0:4:0: task abort: SUCCESS scmd(0x00000000eb0d9438)",
        ">> [  +0.000012] sd 6:0:4:0: attempting task",
        ">> abort!scmd(0x0000000075f63919), outstanding for 30397 ms & timeout",
        ">> 30000 ms",
    ]
    assert [(each.line, each.event.kind) for each in events_of(*lines)] == [(at, "scsi.error") for at in (1, 3, 4)]


def test_soft_breaks_of_a_mail_are_removed() -> None:
    """Body of a mail in quoted-printable (RFC 2045, section 6.7), as archives keep it."""
    lines = [
        "> 1634475910.615126 host kernel: sd 9:0:2:0: [sdd] tag#840 CDB: ATA comma=",
        "nd pass through(16) 85 08 2e 00 00 00 01 00 00 00 00 00 00 00 ec 00",
        "> 1634475910.807083 host kernel: sd 9:0:2:0: Power-on or device reset occ=",
        "urred",
        "> [  945.370085] sd 9:0:2:0: [sdd] tag#1 FAILED Result: hostbyte=3DDID_TI=",
        "ME_OUT driverbyte=3DDRIVER_OK",
        "> [  945.390685] usb 2-1: USB disconnect, device number 3",
    ]
    found = events_of(*lines)
    assert [(each.line, each.event.kind) for each in found] == [
        (1, "scsi.error"),
        (3, "scsi.reset"),
        (5, "scsi.error"),
        (7, "usb.disconnect"),
    ]
    assert found[2].event.text.endswith("FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK")


@pytest.mark.parametrize(
    "lines",
    [
        ("[    1.000000] foo: value=", "[    1.000001] foo: other=", "[    1.000002] usb 2-1: new"),
        (
            "> [    1.000000] usb-storage: us->srb =",
            "> ffff9d66b02e3528",
            "> [    2.000000] usb-storage: us->srb =",
            "> ffff",
        ),
        ("zio pool=a vdev=b error=", "and then", "zio pool=a vdev=c error=", "again"),
        ("x" * 80 + "=", "y", "x" * 80 + "=", "y"),
    ],
)
def test_an_equals_sign_at_the_end_of_a_line_is_part_of_it(lines: tuple[str, ...]) -> None:
    text = "\n".join(lines).encode()
    assert unwrapped(text) == (text, ())


def test_parts_of_a_message_that_are_indented_are_not_joined() -> None:
    lines = [
        "[  246.686946] ata2.00: cmd 61/08:18:00:d0:59/00:00:02:00:00/40 tag 3 ncq dma 4096 out",
        "                        res 40/00:01:00:4f:c2/00:00:00:00:00/00 Emask 0x4 (timeout)",
    ] * 3
    text = "\n".join(lines).encode()
    assert unwrapped(text) == (text, ())
