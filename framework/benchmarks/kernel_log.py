"""The speed of reading kernel logs: lines per second on one core, beside ``grep -E`` for the fatal messages.

Three logs: one with a relevant line in a thousand, a storm of only relevant lines, and lines made to be slow: each has
every word of the catalogue, but none matches. The last one comes in two sizes: the time per byte must not grow.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measure import begin, console, table
from plugpull.kernel.catalogue.entries import ENTRIES
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.wording import needles_of
from plugpull.kernel.diagnosis.log_reader import read_log

ALIEN = (
    "[ 1234.567890] audit: type=1400 audit(1700000000.%03d:%d): apparmor=ALLOWED operation=open profile=/usr/bin/x\n"
)
STORM = "[ 1234.567890] I/O error, dev sdb, sector %d op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2\n"
GREP = (
    r"BUG:|WARNING:|INFO: task|INFO: rcu|Oops:|general protection fault|Kernel panic - not syncing|kernel BUG at"
    r"|soft lockup|hard LOCKUP|KASAN:|UBSAN:|possible circular locking|inconsistent lock state|Unable to handle kernel"
)


def alien(lines: int) -> str:
    return "".join(STORM % n if n % 1000 == 0 else ALIEN % (n % 1000, n) for n in range(lines))


def adversarial(size: int) -> str:
    words = " ".join(sorted({word for entry in ENTRIES for word in needles_of(entry.wording)}))
    line = "x " + words.replace("\n", " ")[:3000] + "\n"
    return line * (size // len(line))


def seconds_of(path: Path) -> tuple[float, int]:
    begun = time.perf_counter()
    with path.open("rb") as file:
        found = sum(1 for _ in read_log(file, path.name))
    return time.perf_counter() - begun, found


def grep_seconds(path: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(["grep", "-a", "-c", "-E", GREP, str(path)], stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begun


def main() -> None:
    options = begin(__doc__, lines=(int, 1_000_000, "lines of the log with few relevant lines"), n=(int, 3, "repeats"))
    fatal = sum(entry.severity in (Severity.FATAL, Severity.WARNING) for entry in ENTRIES)
    shown = table(
        f"{len(ENTRIES)} entries, {fatal} of them fatal or warnings",
        "log",
        "lines",
        "found",
        "lines/s",
        "limit",
        "grep",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, text, limit in (
            ("mostly not ours", alien(options.lines), "1000000"),
            ("a storm, all ours", "".join(STORM % n for n in range(options.lines // 5)), "200000"),
        ):
            path = Path(folder, "log")
            path.write_text(text)
            lines = text.count("\n")
            best, found = min(seconds_of(path) for _ in range(options.n))
            grep = min(grep_seconds(path) for _ in range(options.n))
            shown.add_row(name, str(lines), str(found), f"{lines / best:.0f}", limit, f"{grep / best:.2f}x")
        console.print(shown)
        small, large = Path(folder, "small"), Path(folder, "large")
        small.write_text(adversarial(2 << 20))
        large.write_text(adversarial(16 << 20))
        one, two = (min(seconds_of(path)[0] for _ in range(options.n)) / path.stat().st_size for path in (small, large))
        console.print(f"lines made to be slow: {1e-6 / one:.1f} MB/s at 2 MiB, {1e-6 / two:.1f} MB/s at 16 MiB")


if __name__ == "__main__":
    main()
