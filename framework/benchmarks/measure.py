"""Shared parts of the benchmarks: statistics, the bench they run on, and the printing of results."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
QUICK_RIG = ROOT / "rigs" / "quick.toml"

# Two-sided 95 % quantiles of Student's t, by degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
_T = {
    **dict(enumerate((12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228), start=1)),
    **dict(enumerate((2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086), start=11)),
    25: 2.060,
    30: 2.042,
    40: 2.021,
    50: 2.009,
    60: 2.000,
    80: 1.990,
    100: 1.984,
    200: 1.972,
    1000: 1.962,
}

console = Console(highlight=False, width=max(100, min(120, Console().width)))


@dataclass(frozen=True)
class Interval:
    """A mean and the half width of its 95 % confidence interval."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


def t_interval(values: Sequence[float]) -> Interval:
    """Student's interval for the mean of at least two independent values."""
    freedom = len(values) - 1
    # Between two lines of the table the smaller number of degrees gives the wider interval.
    quantile = _T[max(known for known in _T if known <= freedom)]
    return Interval(statistics.fmean(values), quantile * statistics.stdev(values) / math.sqrt(len(values)))


def spread(values: Sequence[float]) -> tuple[str, str, str]:
    """Median, least and most, in seconds, as table cells."""
    return (f"{statistics.median(values):.3f}", f"{min(values):.3f}", f"{max(values):.3f}")


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="left" if number == 0 else "right")
    return made


def against(value: float, limit: float, unit: str) -> str:
    """A value, its limit and their ratio."""
    verdict = "kept" if value <= limit else "MISSED"
    return f"{value:.3g} {unit} of {limit:g} {unit} allowed: ratio {value / limit:.2f}, {verdict}"


def machine() -> str:
    """What this was measured on, and how busy it is: load from elsewhere makes every figure worse."""
    from plugpull.virtual.machine import qemu_version

    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) >> 10 for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    load = os.getloadavg()[0]
    return (
        f"{len(os.sched_getaffinity(0))} CPUs ({names[0] if names else 'unknown'}), {memory} MiB, "
        f"Linux {os.uname().release}, {qemu_version()}; load average before: {load:.2f}"
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def begin(description: str | None, **options: tuple[type, object, str]) -> argparse.Namespace:
    """Parse the command line (each option: its type, default and help) and print where this runs."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n\n")[0])
    for name, (kind, default, text) in options.items():
        flag = f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
        parser.add_argument(flag, type=kind, default=default, help=f"{text} (default: {default})")
    arguments = parser.parse_args()
    console.print(f"[dim]{machine()}[/dim]")
    return arguments


def notify(text: str) -> None:
    console.print(f"[dim]{text}[/dim]", markup=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for what a benchmark's runs write; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="plugpull-benchmark-") as folder:
        yield Path(folder)


def pip_install(package: str, target: Path) -> None:
    """Install a package and what it needs into a directory of its own. Raises CalledProcessError."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, "--target", str(target), package], check=True, stdout=sys.stderr)
