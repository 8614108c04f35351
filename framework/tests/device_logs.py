"""Logs of disks that come up, fail, are reset and leave, and what is read from them."""

from __future__ import annotations

import io
from pathlib import Path

from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import ErrorStory, story_of_log
from plugpull.kernel.diagnosis.hint import Hint
from plugpull.kernel.diagnosis.log_reader import read_log

CORPUS = Path(__file__).resolve().parents[3] / "shared/corpora/usb-storage/logs.jsonl"


def disk(
    letter: str, host: int, port: str, ids: str = "152d:0578", driver: str = "usb-storage", at: float = 1.0
) -> list[str]:
    """How a disk comes up."""
    vendor, product = ids.split(":")
    return [
        f"[{at:12.6f}] usb {port}: New USB device found, idVendor={vendor}, idProduct={product}, bcdDevice= 1.00",
        f"[{at:12.6f}] scsi host{host}: {driver}{'' if driver == 'uas' else f' {port}:1.0'}",
        f"[{at + 1:12.6f}] scsi {host}:0:0:0: Direct-Access     MAKER    MODEL {host}          2.5+ PQ: 0 ANSI: 5",
        f"[{at + 1:12.6f}] sd {host}:0:0:0: [sd{letter}] 131072 512-byte logical blocks: (67.1 MB/64.0 MiB)",
        f"[{at + 1:12.6f}] sd {host}:0:0:0: [sd{letter}] Attached SCSI disk",
    ]


def failed(letter: str, *sectors: int, at: float = 10.0) -> list[str]:
    """Reads that failed, a second apart."""
    lines = "[{:12.6f}] I/O error, dev sd{}, sector {} op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
    return [lines.format(at + number, letter, sector) for number, sector in enumerate(sectors)]


def aborts(letter: str, host: int, *blocks: int, at: float = 40.0) -> list[str]:
    """Writes of so many blocks that uas gave up, and the reset that follows."""
    lines = []
    for tag, length in enumerate(blocks):
        sd = f"[{at + tag:12.6f}] sd {host}:0:0:0: [sd{letter}] tag#{tag}"
        lines.append(f"{sd} uas_eh_abort_handler 0 uas-tag {tag + 1} inflight: CMD OUT ")
        lines.append(f"{sd} CDB: Write(10) 2a 00 00 00 {tag:02x} 00 00 {length >> 8:02x} {length & 255:02x} 00")
    return lines


def read(*lines: list[str]) -> ErrorStory:
    text = "\n".join(line for group in lines for line in group) + "\n"
    return story_of_log(read_log(io.BytesIO(text.encode()), "log"))


def accused(*lines: list[str]) -> dict[str, Hint]:
    return {hint.culprit: hint for hint in hints(read(*lines))}


SCATTERED = (8000, 120_000, 64, 77_777)
RESET = "[{at:12.6f}] usb {port}: reset high-speed USB device number 5 using xhci_hcd"


OOPS = """\
[   60.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   60.000001] CPU: 1 PID: 321 Comm: usb-storage Not tainted 6.1.0-28-amd64 #1
[   60.000002] RIP: 0010:xhci_ring_expansion+0x1d/0x2a0 [xhci_hcd]
[   60.000003] Call Trace:
[   60.000004]  xhci_ring_expansion+0x1d/0x2a0 [xhci_hcd]
[   60.000005] ---[ end trace 0000000000000000 ]---
""".splitlines()


LEFT = "[{:12.6f}] usb {}: USB disconnect, device number 5"


def returns(port: str, *times: tuple[float, float], ids: str = "152d:0578") -> list[str]:
    """A disk that leaves and is found again, at these times."""
    lines = []
    for left, back in times:
        lines += [LEFT.format(left, port), *disk("b", 3, port, ids=ids, at=back)]
    return lines
