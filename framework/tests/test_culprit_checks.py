"""The checks ``no_culprit`` and ``commands_in_time``: errors in their order, their probable cause, and timeouts."""

from __future__ import annotations

from stories import CUT, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import commands_in_time, no_culprit
from plugpull.history import events as ev

OTHER = SURVIVORS[0]
"""A disk that is not cut: sdc, at usb 1-1.2."""


def saying(*lines: tuple[float, str]) -> Bench:
    bench = healthy()
    bench.add(*(ev.KernelMessage(at=at, text=text) for at, text in lines))
    return bench


def io_error(at: float, sector: int, kname: str = "sdc") -> tuple[float, str]:
    return at, f"I/O error, dev {kname}, sector {sector} op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"


def test_nothing_is_accused_without_errors() -> None:
    judgement = healthy().judge(no_culprit())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "no errors to explain"


def test_what_a_cut_explains_has_no_culprit() -> None:
    bench = saying(*(io_error(CUT + 0.1, sector, "sdb") for sector in (8, 80_000, 8)))
    assert bench.judge(no_culprit()).findings == ()


def test_the_events_of_a_device_are_given_in_order_with_their_spacing() -> None:
    slow = (13.0, "EXT4-fs error (device sdc): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0")
    bench = saying(slow, io_error(13.5, 8192), io_error(13.6, 99_000))
    (finding,) = bench.judge(no_culprit()).findings
    assert finding.subject == OTHER
    assert finding.summary.endswith("had errors: fs.error at 13.00 s; then block.error 0.500 s later (2 times)")
    assert finding.at == 13.0


def test_the_same_place_again_and_again_accuses_the_medium() -> None:
    bench = saying(*(io_error(13.0 + number, 8192) for number in range(4)))
    order, culprit = bench.judge(no_culprit()).findings
    assert "block.error" in order.summary
    assert culprit.summary == "probably at fault: medium of disk2 (sdc)"
    assert "sector 8192" in culprit.evidence[0]


def test_a_log_with_a_hole_is_no_proof() -> None:
    bench = healthy()
    bench.add(ev.LogLost(at=14.0, count=3))
    assert bench.unreached(no_culprit())


def counted(timeouts: str, *lines: tuple[float, str]) -> Bench:
    bench = saying(*lines)
    for disk, number in ((VICTIM, 1), (OTHER, 2)):
        for moment in ("attached", "end"):
            value = timeouts if disk == OTHER and moment == "end" else "0x0"
            bench.add(
                ev.DiskProperties(
                    at=11.0 if moment == "attached" else 25.0,
                    disk=disk,
                    kname=f"sd{'_abc'[number + 1]}",
                    diskseq=number,
                    moment=moment,
                    values={"timed_out_commands": value},
                )
            )
    return bench


ABORTED = "sd 3:0:0:0: [sdc] tag#4 uas_eh_abort_handler 0 uas-tag 5 inflight: CMD OUT"


def test_no_timeouts() -> None:
    judgement = counted("0x0").judge(commands_in_time([VICTIM, OTHER]))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "no command timed out"
    assert [one.value for one in judgement.measurements] == [0, 0]


def test_timeouts_are_counted_and_placed() -> None:
    bench = counted("0x2", (13.0, ABORTED))
    (finding,) = bench.judge(commands_in_time([VICTIM, OTHER])).findings
    came = next(event.at for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk == OTHER)
    since = 13.0 - (came or 0.0)
    assert finding.summary == (
        f"2 commands of disk2 timed out, the first {since:.1f} s after it was announced, 1 of them while it started up"
    )
    assert "uas_eh_abort_handler" in finding.evidence[0]


def test_a_timeout_without_a_message() -> None:
    (finding,) = counted("0x1").judge(commands_in_time(OTHER)).findings
    assert finding.summary == "1 command of disk2 timed out, which the kernel counted without a message"


def test_timeouts_that_a_cut_explains_do_not_count() -> None:
    gone = ABORTED.replace("sdc", "sdb").replace("3:0:0:0", "2:0:0:0")
    assert counted("0x0", (CUT + 0.2, gone)).judge(commands_in_time(VICTIM)).findings == ()


def test_counters_that_are_not_on_record_are_unknown() -> None:
    assert "is not on record" in healthy().judge(commands_in_time(OTHER)).unknowns[0]
