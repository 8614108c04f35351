"""``plugpull test``: runs the framework's own tests, the same ones that CI runs."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from plugpull.errors import UsageError
from plugpull.locate import checkout

_SOURCES = ("framework/plugpull", "framework/tests", "framework/benchmarks", "scenarios", "fixtures", "conftest.py")

_HUNG_AFTER = ("--timeout-method", "thread", "--timeout")
"""Seconds follow. A test that takes longer fails, with the stacks of all threads, and the others still run. A thread
watches, not SIGALRM: some tests send that signal themselves."""
_QUICK = ("-m", "not bench", "-n", "auto", "--maxprocesses", "4", "--dist", "worksteal", *_HUNG_AFTER, "900")
_GUESTS = ("-m", "bench", "-n", "auto", "--maxprocesses", "2", "--dist", "loadfile", "-v", *_HUNG_AFTER, "3600")
"""Two guests at once, because a guest waits for disks half of its time. More would starve each other, and then their
verdicts become UNKNOWN. The tests of one file run one after the other, because they share a guest or the serial numbers
by which a real rig is leased. The files with the most tests come first."""
_NO_BYTECODE, _BYTECODE_IN = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"
_MARK = "PLUGPULL_TEST_RUN"
_ENDS_WITHIN = 60.0
"""Seconds that a tool gets to end after Ctrl-C: a pytest worker has 10 to shut its guest down."""
_GONE_WITHIN = 10.0


@dataclass(frozen=True)
class ToolRun:
    """One tool that was run. ``counts`` are pytest's test counts by outcome."""

    name: str
    ok: bool
    seconds: float
    counts: Counter[str]


def run_tests(argv: list[str]) -> bool:
    """Run linters, type checks, quick tests and the tests that boot guests; a failure does not stop the rest.

    With arguments, run only pytest, once, with these arguments. Returns True if everything passed. Raises UsageError
    outside a checkout.
    """
    root = checkout()
    if root is None:
        raise UsageError("the framework's own tests are not part of the installed package", hint="run it in a checkout")
    # A shell starts background processes with SIGINT ignored, and nohup does so with SIGHUP. Tests that send these
    # signals would inherit that. With a handler here, child processes start with the default action.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)
    with _modules_compiled_once():
        return _summary([*_pytest("pytest", root, argv)] if argv else _everything(root))


def _everything(root: Path) -> list[ToolRun]:
    # Guests take longest, and wait for disks half of their time. What the rest takes must not be what a guest needs.
    with _pytest_started("guests", root, [*_GUESTS, *_files_with_guests(root)]) as guests:
        with _collecting(root):
            lint = _lint(root)
        with _pytest_started("quick tests", root, _QUICK, beside=True) as quick:
            return [*lint, *guests(), *quick()]


@contextmanager
def _modules_compiled_once() -> Iterator[None]:
    """Keep compiled modules for all processes of the tests, in a folder of its own, where Python would not write any.

    Else each worker and each command that a test starts compiles hundreds of modules again.
    """
    before = {name: os.environ.pop(name, "") for name in (_NO_BYTECODE, _BYTECODE_IN)}
    with TemporaryDirectory(prefix="plugpull-test-", ignore_cleanup_errors=True) as folder:
        os.environ |= {_BYTECODE_IN: folder} if before[_NO_BYTECODE] else {_BYTECODE_IN: before[_BYTECODE_IN]}
        try:
            yield
        finally:
            os.environ |= before


@contextmanager
def _collecting(root: Path) -> Iterator[None]:
    """Import all test modules once while the linters run, so that the workers find them compiled."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    with Path(os.devnull).open("wb") as nowhere, _started(["nice", *command], root, os.environ, nowhere):
        yield


def _files_with_guests(root: Path) -> list[str]:
    """The test files that boot guests. The others are not even imported: that takes seconds in each worker."""
    tests = sorted((root / "framework" / "tests").glob("test_*.py"))
    return [str(path.relative_to(root)) for path in tests if "mark.bench" in path.read_text(encoding="utf-8")]


def _lint(root: Path) -> list[ToolRun]:
    sources = [name for name in _SOURCES if _has_python(root / name)]
    ruff = [sys.executable, "-m", "ruff"]
    return [
        _tool("ruff check", root, [*ruff, "check", "."]),
        _tool("ruff format", root, [*ruff, "format", "--check", "."]),
        _tool("mypy", root, [sys.executable, "-m", "mypy", "--strict", *sources]),
    ]


def _has_python(path: Path) -> bool:
    return path.is_file() or any(path.rglob("*.py"))


def _tool(name: str, root: Path, command: list[str]) -> ToolRun:
    """A linter, beside others: with less of the processors, and its output is printed in one piece."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="plugpull-test-") as folder:
        said = Path(folder) / "output"
        with said.open("wb") as output, _started(["nice", *command], root, os.environ, output) as process:
            status = process.wait()
        _show(command, said)
    return ToolRun(name, status == 0, time.monotonic() - begun, Counter())


def _show(command: list[str], said: Path) -> None:
    print(f"\n$ {shlex.join(command)}\n{said.read_text(errors='replace')}", flush=True)


def _pytest(name: str, root: Path, arguments: Sequence[str]) -> list[ToolRun]:
    """Run tests, and check that they left no processes behind."""
    with _pytest_started(name, root, arguments) as ended:
        return ended()


@contextmanager
def _pytest_started(
    name: str, root: Path, arguments: Sequence[str], *, beside: bool = False
) -> Iterator[Callable[[], list[ToolRun]]]:
    """Tests that run while the block does; the function waits for them.

    ``beside`` others: with less of the processors, and their output is printed in one piece when they were waited for.
    """
    mark = f"{os.getpid()}-{uuid.uuid4()}"
    with TemporaryDirectory(prefix="plugpull-test-") as folder:
        report, said = Path(folder) / "junit.xml", Path(folder) / "output"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]
        with (
            said.open("wb") if beside else nullcontext() as output,
            _started(["nice", *command] if beside else command, root, os.environ | {_MARK: mark}, output) as process,
        ):

            def ended() -> list[ToolRun]:
                ok = process.wait() == 0
                if beside:
                    _show(command, said)
                return [ToolRun(name, ok, _seconds(report), _counts(report)), *_leftovers(mark)]

            yield ended


def _leftovers(mark: str) -> list[ToolRun]:
    begun = time.monotonic()
    left = _left_behind(mark)
    if not left:
        return []
    print("processes left behind by tests:", *left, sep="\n", flush=True)
    return [ToolRun("leftovers", False, time.monotonic() - begun, Counter())]


@contextmanager
def _started(
    command: list[str], root: Path, environment: Mapping[str, str], output: IO[bytes] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs while the block does. The terminal interrupts it too, and it gets time to clean up.

    Raises KeyboardInterrupt when Ctrl-C ended it."""
    print(f"$ {shlex.join(command)}", flush=True)
    with subprocess.Popen(command, cwd=root, env=environment, stdout=output, stderr=output) as process:
        try:
            yield process
        except KeyboardInterrupt:
            try:
                process.wait(_ENDS_WITHIN)
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                process.kill()
            raise


def _left_behind(mark: str) -> list[str]:
    """Command lines of processes that still run and have this mark in their environment."""
    deadline = time.monotonic() + _GONE_WITHIN
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)  # these are not our children, so there is nothing to wait on
    return left


def _marked(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (process / "environ").read_bytes():
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"  pid {process.name}: {line[:120]}")
        except OSError:  # it has ended, or belongs to somebody else
            continue
    return found


def _counts(report: Path) -> Counter[str]:
    """Test counts by pytest's outcomes, from its JUnit file; empty when pytest died before writing it."""
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


def _seconds(report: Path) -> float:
    """How long pytest ran, from its JUnit file; 0 when it died before writing it."""
    if not report.is_file():
        return 0.0
    return sum(float(suite.get("time", "0")) for suite in ET.parse(report).getroot().iter("testsuite"))


def _summary(steps: list[ToolRun]) -> bool:
    """Print the result of each step and, last, the sum of all tests. Running no test at all is a failure too."""
    print()
    for step in steps:
        print(f"{'ok' if step.ok else 'FAILED':<7} {step.name:<12} {step.seconds:7.1f} s")
    total = sum((step.counts for step in steps), Counter[str]())
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return all(step.ok for step in steps) and total["passed"] > 0
