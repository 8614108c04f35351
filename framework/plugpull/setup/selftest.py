"""``plugpull test``: the framework's own tests, the very ones CI runs."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.errors import EXIT_FAIL, EXIT_PASS, UsageError
from plugpull.locate import checkout

_SOURCES = ("framework/plugpull", "framework/tests", "framework/benchmarks", "scenarios", "fixtures", "conftest.py")


@dataclass(frozen=True)
class Step:
    """One tool that was run. ``counts`` are pytest's, by outcome."""

    name: str
    ok: bool
    seconds: float
    counts: Counter[str]


def run_tests(argv: list[str]) -> int:
    """Linters, types, quick tests, then the tests that boot guests; all of them, whatever fails on the way.

    Arguments go to pytest, and then only pytest is run, once. Returns 0 or 1; raises UsageError outside a checkout.
    """
    root = checkout()
    if root is None:
        raise UsageError("the framework's own tests are not part of the installed package", mend="run it in a checkout")
    # What a shell starts in the background ignores SIGINT, and what nohup starts SIGHUP: tests that send them would
    # inherit that. A signal that has a handler here has its default in what is started from here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)
    return _summary([_pytest("pytest", root, argv)] if argv else [*_lint(root), *_side_by_side(root)])


_WHOLE_RUNS = (
    "test_compare.py",
    "test_cut_at_once_in_guest.py",
    "test_death_in_guest.py",
    "test_defects.py",
    "test_documents.py",
    "test_driver_bugs.py",
    "test_interrupts.py",
    "test_kernel_source.py",
    "test_survivors_data_in_guest.py",
)
"""Files whose tests make whole runs, on rigs that several of them use: a rig is leased to one run at a time."""


def _side_by_side(root: Path) -> list[Step]:
    """The quick tests, then two lots of those that boot guests at once: guests spend most of their time waiting for
    disks to come back. Beside the quick tests they would be starved, and their verdicts UNKNOWN. What is not shown as
    it happens is shown in one piece when it is done."""
    tests = root / "framework" / "tests"
    runs = [str(tests / name) for name in _WHOLE_RUNS if (tests / name).is_file()]
    others = [f"--ignore={name}" for name in runs]
    quick = _pytest("quick tests", root, ["-m", "not bench"])
    with ThreadPoolExecutor(1, "aside") as aside:
        guests = aside.submit(_pytest, "guests", root, ["-m", "bench", *others], aside=True)
        whole = _pytest("whole runs", root, ["-m", "bench", *runs])
        return [quick, guests.result(), whole]


def _lint(root: Path) -> list[Step]:
    sources = [name for name in _SOURCES if _has_python(root / name)]
    ruff = [sys.executable, "-m", "ruff"]
    return [
        _tool("ruff check", root, [*ruff, "check", "."]),
        _tool("ruff format", root, [*ruff, "format", "--check", "."]),
        _tool("mypy", root, [sys.executable, "-m", "mypy", "--strict", *sources]),
    ]


def _has_python(path: Path) -> bool:
    return path.is_file() or any(path.rglob("*.py"))


def _tool(name: str, root: Path, command: list[str]) -> Step:
    print(f"$ {shlex.join(command)}", flush=True)
    begun = time.monotonic()
    status = subprocess.run(command, cwd=root, check=False).returncode
    return Step(name, status == 0, time.monotonic() - begun, Counter())


def _pytest(name: str, root: Path, arguments: list[str], *, aside: bool = False) -> Step:
    with TemporaryDirectory(prefix="plugpull-test-") as folder:
        report, said = Path(folder) / "junit.xml", Path(folder) / "output"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]
        print(f"$ {shlex.join(command)}", flush=True)
        begun = time.monotonic()
        if aside:
            with said.open("wb") as output:
                status = subprocess.run(command, cwd=root, check=False, stdout=output, stderr=output).returncode
            print(f"\n$ {shlex.join(command)}\n{said.read_text(errors='replace')}", flush=True)
        else:
            status = subprocess.run(command, cwd=root, check=False).returncode
        counts = _counts(report)
    return Step(name, status == 0, time.monotonic() - begun, counts)


def _counts(report: Path) -> Counter[str]:
    """Outcomes by pytest's own words, from its JUnit file; empty when it did not live to write one."""
    counts: Counter[str] = Counter()
    if not report.is_file():
        return counts
    for case in ET.parse(report).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            counts["failed"] += 1
        else:
            counts["skipped" if "skipped" in outcomes else "passed"] += 1
    return counts


def _summary(steps: list[Step]) -> int:
    """Print how each step went and, last, the sum of all tests. No test at all is a failure too."""
    print()
    for step in steps:
        print(f"{'ok' if step.ok else 'FAILED':<7} {step.name:<12} {step.seconds:7.1f} s")
    total = sum((step.counts for step in steps), Counter[str]())
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    fine = all(step.ok for step in steps) and total["passed"] > 0
    return EXIT_PASS if fine else EXIT_FAIL
