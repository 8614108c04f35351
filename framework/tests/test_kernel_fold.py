"""Multi-line reports of the kernel are one thing each, whatever comes in between."""

from __future__ import annotations

import io

from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.line import LogLine
from plugpull.kernel.diagnosis.log_reader import LONGEST_REPORT, read_log
from plugpull.kernel.diagnosis.reports import FRAMES, Report, reports_in
from plugpull.kernel.diagnosis.show import as_json, as_text

OOPS = """\
BUG: kernel NULL pointer dereference, address: 0000000000000010
#PF: supervisor read access in kernel mode
Oops: 0000 [#1] PREEMPT SMP NOPTI
CPU: 1 PID: 321 Comm: usb-storage Not tainted 6.1.0-28-amd64 #1  Debian 6.1.119-1
Hardware name: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 1.16.2-debian-1.16.2-1 04/01/2014
RIP: 0010:usb_stor_invoke_transport+0x1b/0x5a0 [usb_storage]
Code: 0f 1f 44 00 00 41 57 41 56 41 55 41 54 55 53 48 89 f3 48 83 ec 10
RSP: 0018:ffffb2e0c0a4fe50 EFLAGS: 00010246
RAX: 0000000000000000 RBX: ffff9d5f4a1a5c00 RCX: 0000000000000000
Call Trace:
 <TASK>
 ? __die_body.cold+0x1a/0x1f
 ? asm_exc_page_fault+0x22/0x30
 usb_stor_transparent_scsi_command+0xd/0x20 [usb_storage]
 usb_stor_control_thread+0x16e/0x2a0 [usb_storage]
 kthread+0xd7/0x100
 ret_from_fork+0x1f/0x30
 </TASK>
Modules linked in: uas usb_storage sd_mod
---[ end trace 0000000000000000 ]---
""".splitlines()

HUNG = """\
INFO: task fio:812 blocked for more than 120 seconds.
      Not tainted 6.1.0-28-amd64 #1
"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
task:fio             state:D stack:0     pid:812   ppid:811    flags:0x00000002
Call Trace:
 <TASK>
 __schedule+0x34d/0x9e0
 schedule+0x5a/0xd0
 blkdev_direct_IO.part.0+0x1b/0x5a0
 blkdev_write_iter+0x130/0x2c0
 </TASK>
""".splitlines()

OTHERS = ["usb 1-2: new high-speed USB device number 7 using xhci_hcd", "audit: type=1400 apparmor=STATUS"]
"""What else is said meanwhile."""


def fold(lines: list[str]) -> list[Report]:
    return reports_in(LogLine(text) for text in lines)


def stamped(lines: list[str], caller: str = "", begin: float = 100.0) -> list[str]:
    return [
        f"[{begin + number / 1000:12.6f}]{f'[ {caller:>5}]' if caller else ''} {line}"
        for number, line in enumerate(lines)
    ]


def test_an_oops_is_one_report_with_the_frames_that_matter() -> None:
    (report,) = fold(stamped(OOPS))
    assert report.event.kind == "fatal.oops"
    assert report.headline == f"{OOPS[0]} in usb_stor_invoke_transport"
    assert report.frames == (
        "usb_stor_invoke_transport [usb_storage]",
        "usb_stor_transparent_scsi_command [usb_storage]",
        "usb_stor_control_thread [usb_storage]",
    )
    assert (report.first, report.last) == (1, len(OOPS))
    assert OOPS[3] in report.lines
    assert OOPS[5] in report.lines
    assert OOPS[6] not in report.lines


def test_other_messages_in_between_are_none_of_it() -> None:
    mixed = [line for one in OOPS for line in (one, *OTHERS)]
    (report,) = fold(stamped(mixed))
    (alone,) = fold(stamped(OOPS))
    assert (report.headline, report.frames, report.lines) == (alone.headline, alone.frames, alone.lines)


def test_two_cpus_that_report_at_once_are_kept_apart() -> None:
    one, two = stamped(OOPS, "T321"), stamped(HUNG, "T39")
    two += [""] * (len(one) - len(two))
    oops, hung = fold([line for pair in zip(one, two, strict=True) for line in pair if line])
    assert oops.frames == fold(OOPS)[0].frames
    assert hung.event.kind == "fatal.hung-task"
    assert hung.frames == ("blkdev_direct_IO.part.0", "blkdev_write_iter")


def test_one_report_after_the_other_are_two() -> None:
    reports = fold(stamped([*OOPS, *OTHERS, *HUNG]))
    assert [report.event.kind for report in reports] == ["fatal.oops", "fatal.hung-task"]
    assert reports[1].first == len(OOPS) + len(OTHERS) + 1


def test_what_a_panic_says_after_an_oops_is_the_same_report() -> None:
    (report,) = fold(stamped([*OOPS[:-1], "Kernel panic - not syncing: Fatal exception", "Kernel Offset: disabled"]))
    assert report.headline.startswith(OOPS[0])
    assert report.event.severity is Severity.FATAL


def test_a_healthy_log_has_none() -> None:
    assert fold(stamped(OTHERS * 50)) == []


def test_a_report_is_bounded() -> None:
    endless = ["WARNING: CPU: 0 PID: 1 at fs/inode.c:1 iput+0x1/0x2", "Call Trace:"]
    endless += [f" function_{number}+0x1/0x2" for number in range(5000)]
    (report,) = fold(stamped(endless))
    assert len(report.frames) == FRAMES


def test_a_log_file_tells_reports_with_their_headlines() -> None:
    text = "\n".join(stamped([*OTHERS, *OOPS])).encode() + b"\n"
    found = list(read_log(io.BytesIO(text), "kern.log"))
    first = next(event for event in found if event.report)
    assert first.line == len(OTHERS) + 1
    assert b'"headline":"BUG: kernel NULL pointer dereference, address: 0000000000000010 in usb_stor' in as_json(first)
    shown = "\n".join(as_text(found))
    assert "in usb_stor_invoke_transport [usb_storage] < usb_stor_transparent_scsi_command" in shown
    assert "Oops: 0000" not in shown, "a part of the report is shown as if it were another thing"


def test_where_a_read_ends_does_not_cut_a_report() -> None:
    lines = stamped(OTHERS * 9000 + OOPS + OTHERS * 9000)
    text = "\n".join(lines).encode()
    assert len(text) > 2 * LONGEST_REPORT
    at = text.index(b"BUG: kernel NULL") + 200

    class Halves(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(at if self.tell() == 0 else size)

    (report,) = [event.report for event in read_log(Halves(text), "x") if event.report]
    assert len(report.frames) == 3
