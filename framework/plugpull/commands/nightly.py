"""``plugpull nightly``: what a timer calls every night: check the rigs, run, add to the archive, say what is new."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from plugpull.plain import clean_line

if TYPE_CHECKING:
    from plugpull.archive.trend import Trend
    from plugpull.commands.base import Commands
    from plugpull.commands.nightly_preflight import Preflight

ROOM = 2_000_000_000
"""Bytes that must be free before a run."""
LOGS = ".nightly"
"""The directory in the archive with the output of runs."""
WAIT = 600.0
"""Seconds that a run gets to restore power when the night is ended by a signal."""
_SIZES = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}

EPILOG = """\
examples:
  plugpull nightly --rig rigs/quick.toml --archive /srv/plugpull
  plugpull nightly --rig desk.toml --rig shelf.toml --kernel ~/linux --keep-days 400 --keep-size 200G

The units plugpull-nightly.service and plugpull-nightly.timer in framework/plugpull/archive/templates
are examples for systemd.

exit status:
  0  nothing new; with --fail-on any: everything passed
  1  something new failed or became worse; with --fail-on any: anything failed
  2  wrong usage: nothing was started
  3  a rig could not be run, or a run was UNKNOWN"""


def add(commands: Commands) -> None:
    """Add the parser of ``nightly``."""
    parser = add_command(
        commands,
        "nightly",
        help="run rigs unattended, archive the runs, and say what is new",
        description="Check each rig, run its scenarios, add the runs to the archive, and write the archive's page. A "
        "rig whose check fails is reported, and does not stop the others. Real rigs run side by side, virtual ones one "
        "after the other.",
        epilog=EPILOG,
    )
    parser.add_argument("--rig", metavar="FILE", action="append", default=[], type=Path, help="a rig file; repeatable")
    parser.add_argument("--kernel", metavar="KERNEL", action="append", default=[], help="virtual rigs: as for run")
    parser.add_argument("--archive", metavar="DIR", type=Path, default=Path("runs"), help="the archive (default: runs)")
    parser.add_argument("-k", metavar="EXPR", dest="expression", help="only scenarios whose names match, as for run")
    parser.add_argument(
        "--fail-on", choices=("new", "any"), default="new", help="what makes the exit status 1 (default: new)"
    )
    parser.add_argument("--keep-days", metavar="N", type=float, help="remove runs older than N days")
    parser.add_argument("--keep-runs", metavar="N", type=int, help="remove the oldest runs beyond this number")
    parser.add_argument(
        "--keep-size", metavar="SIZE", type=size, help="remove the oldest runs beyond this total size, such as 200G"
    )
    parser.set_defaults(action=_nightly)


def size(text: str) -> int:
    """Bytes of a size such as ``500M`` or ``200G`` (powers of 1000)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it as 500M or 200G")
    return int(float(found[1]) * _SIZES[found[2]])


@dataclass(frozen=True)
class _Ended:
    """A rig's run. ``status`` is its exit status."""

    rig: str
    status: int


def _nightly(arguments: argparse.Namespace) -> int:
    from plugpull.archive.page import write_page
    from plugpull.archive.retention import Retention, prune
    from plugpull.commands.nightly_preflight import preflight
    from plugpull.fleet.preflight import PreflightRecord, write_preflight

    if not arguments.rig:
        raise UsageError("no rig was named", hint="name one with --rig FILE, or several")
    archive = _archive(arguments.archive)
    begun = time.time()
    checked = [preflight(file, archive, ROOM) for file in arguments.rig]
    for one in checked:
        _announce(one)
        write_preflight(archive, PreflightRecord(one.name, _now(), one.troubles))
        if one.troubles:
            _record(one, archive)
    ended = _run_all([one for one in checked if not one.troubles], arguments, archive)
    retention = Retention(arguments.keep_days, arguments.keep_runs, arguments.keep_size)
    for folder in prune(archive, retention, time.time()):
        _say(f"removed {folder}, as it is older than what is kept")
    page, trend = write_page(archive)
    print(Path(page.with_suffix(".txt")).read_text("utf-8"), end="")
    _say(f"page: {page}")
    return _status(arguments.fail_on, trend, begun, ended, left_out=any(one.troubles for one in checked))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _archive(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the archive {directory}: {error.strerror}", hint="name another directory with --archive"
        ) from None
    return directory.absolute()


def _announce(one: Preflight) -> None:
    if not one.troubles:
        _say(f"rig {one.name}: ready")
    for trouble in one.troubles:
        _say(f"rig {one.name}: left out: {trouble}")


def _record(one: Preflight, archive: Path) -> None:
    """Put a night without a run on record: a bench that decays is seen in the archive."""
    from plugpull import __version__
    from plugpull.judging.results import RESULTS_VERSION, DutInfo, Results, Verdict
    from plugpull.judging.results_io import write_results

    now = datetime.now(UTC)
    name = re.sub(r"[^\w.-]", "_", one.name)
    folder = archive / f"{now.strftime('%Y%m%dT%H%M%SZ')}-{name}-left-out"
    folder.mkdir(exist_ok=True)
    results = Results(
        schema=RESULTS_VERSION,
        plugpull=__version__,
        rig=one.name,
        dut=DutInfo(kind=one.rig.dut.kind if one.rig is not None else ""),
        verdict=Verdict.UNKNOWN,
        sentence=f"UNKNOWN: not run: {one.troubles[0]}.",
        started=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        seconds=0.0,
        seed=0,
        scenarios=(),
        complete=False,
        unknowns=one.troubles,
    )
    write_results(folder, results)


# --- runs ------------------------------------------------------------------------------------------------------------


def _run_all(ready: Sequence[Preflight], arguments: argparse.Namespace, archive: Path) -> list[_Ended]:
    """Run real rigs side by side and virtual ones, which share this machine, one after the other."""
    from plugpull.interrupts import signals_raise

    real = [one for one in ready if one.rig is not None and one.rig.dut.kind != "virtual"]
    virtual = [one for one in ready if one not in real]
    running: list[tuple[str, subprocess.Popen[bytes]]] = []
    ended = []
    with ExitStack() as held:
        held.enter_context(signals_raise())
        held.callback(_end, running)
        for one in real:
            running.append((one.name, _start(one, arguments, archive, held)))
        for one in virtual:
            running.append((one.name, started := _start(one, arguments, archive, held)))
            started.wait()
        for name, started in running:
            ended.append(_Ended(name, started.wait()))
            _say(f"rig {name}: ended with exit status {ended[-1].status}")
    return ended


def _start(one: Preflight, arguments: argparse.Namespace, archive: Path, held: ExitStack) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "plugpull",
        "run",
        "--rig",
        str(one.file),
        "--out",
        str(archive),
        "--rotate",
        "today",
    ]
    if one.rig is not None and one.rig.dut.kind == "virtual":
        command += [word for kernel in arguments.kernel for word in ("--kernel", kernel)]
    if arguments.expression:
        command += ["-k", arguments.expression]
    log = _log(archive, one.name)
    held.callback(log.close)
    _say(f"rig {one.name}: running, its output is in {log.name}")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def _log(archive: Path, rig: str) -> IO[bytes]:
    folder = archive / LOGS
    folder.mkdir(exist_ok=True)
    return (folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', rig)}.log").open("wb")


def _end(running: Sequence[tuple[str, subprocess.Popen[bytes]]]) -> None:
    """End runs that are still going on, as after a signal. They restore power themselves."""
    for _, started in running:
        if started.poll() is None:
            started.terminate()
    for _, started in running:
        with suppress(subprocess.TimeoutExpired):
            started.wait(WAIT)


# --- the end ---------------------------------------------------------------------------------------------------------


def _status(fail_on: str, trend: Trend, begun: float, ended: Sequence[_Ended], *, left_out: bool) -> int:
    """The exit status of the night. New is what began with one of its runs."""
    statuses = {one.status for one in ended}
    failed = EXIT_FAIL in statuses if fail_on == "any" else _is_new(trend, begun)
    if failed:
        return EXIT_FAIL
    # A failure that is not new does not count against the bench; anything but PASS and FAIL does.
    return EXIT_UNKNOWN if left_out or statuses - {EXIT_PASS, EXIT_FAIL} else EXIT_PASS


def _is_new(trend: Trend, begun: float) -> bool:
    from plugpull.archive.trend_show import direction

    failures = [one.since for one in trend.series if one.name == "new"]
    worse = [one.at for one in trend.changes if direction(one) == "worse"]
    return any(_when(name) >= begun - 1.0 for name in (*failures, *worse))


def _when(started: str) -> float:
    try:
        return datetime.fromisoformat(started).timestamp()
    except ValueError:
        return 0.0


def _say(text: str) -> None:
    print(f"plugpull: {clean_line(text)}", file=sys.stderr, flush=True)
