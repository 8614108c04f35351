"""``plugpull test``: the framework's own tests, the very ones CI runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.errors import EXIT_FAIL, EXIT_PASS, UsageError
from plugpull.locate import checkout

_SOURCES = ("framework/plugpull", "framework/tests", "framework/benchmarks", "scenarios", "fixtures", "conftest.py")
_QUICK = ("-m", "not bench", "-n", "auto", "--maxprocesses", "4", "--dist", "worksteal")
_GUESTS = ("-m", "bench", "-n", "auto", "--maxprocesses", "2", "--dist", "loadfile", "-v")
"""Two guests side by side, because a guest waits for disks half of its time; with more, they would starve each other
and their verdicts become UNKNOWN. The tests of a file come one after the other: they share a guest, or the serial
numbers that a real rig is leased by. The files with the most tests come first."""
_MARK = "PLUGPULL_TEST_RUN"
_ENDS_WITHIN = 60.0
"""Seconds that a tool gets after Ctrl-C: a worker of pytest has 10 to put its guest away."""
_GONE_WITHIN = 10.0


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
    if argv:
        return _summary([*_pytest("pytest", root, argv)])
    # Beside the quick tests, guests would be starved.
    return _summary([*_lint(root), *_pytest("quick tests", root, _QUICK), *_pytest("guests", root, _GUESTS)])


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
    begun = time.monotonic()
    status = _run(command, root, os.environ)
    return Step(name, status == 0, time.monotonic() - begun, Counter())


def _pytest(name: str, root: Path, arguments: Sequence[str]) -> list[Step]:
    """Run tests, and look whether they left processes behind."""
    mark = f"{os.getpid()}-{uuid.uuid4()}"
    with TemporaryDirectory(prefix="plugpull-test-") as folder:
        report = Path(folder) / "junit.xml"
        begun = time.monotonic()
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]
        status = _run(command, root, os.environ | {_MARK: mark})
        ran = Step(name, status == 0, time.monotonic() - begun, _counts(report))
    begun = time.monotonic()
    left = _left_behind(mark)
    if not left:
        return [ran]
    print("left behind by tests:", *left, sep="\n", flush=True)
    return [ran, Step("leftovers", False, time.monotonic() - begun, Counter())]


def _run(command: list[str], root: Path, environment: Mapping[str, str]) -> int:
    """The command's exit status. Raises KeyboardInterrupt when Ctrl-C ended it; the terminal interrupts the command
    too, which is waited for: it may have to put things away."""
    print(f"$ {shlex.join(command)}", flush=True)
    with subprocess.Popen(command, cwd=root, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            try:
                process.wait(_ENDS_WITHIN)
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                process.kill()
            raise


def _left_behind(mark: str) -> list[str]:
    """Command lines of what still runs and was started with this mark in its environment."""
    deadline = time.monotonic() + _GONE_WITHIN
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)  # processes of others: there is nothing to wait on
    return left


def _marked(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (process / "environ").read_bytes():
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"  pid {process.name}: {line[:120]}")
        except OSError:  # it ended, or is somebody else's
            continue
    return found


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
