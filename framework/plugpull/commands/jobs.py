"""``plugpull run --jobs``: one run on several virtual benches side by side."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from plugpull import __version__
from plugpull.commands.bench import BenchArguments
from plugpull.commands.pytest_line import Session, nothing_collected, pytest_line, rig_file
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.plain import clean, clean_line

if TYPE_CHECKING:
    from plugpull.jobs.benches import Benches
    from plugpull.jobs.messages import FoundTest
    from plugpull.judging.results import Results
    from plugpull.merging.manifest import Manifest
    from plugpull.rig.model import Rig

SHOWN = 25
"""Lines of a bench's output that are shown when it could not begin."""


def check_jobs(arguments: argparse.Namespace, rig: Rig) -> None:
    """Check that this run can have several benches. Raises UsageError."""
    if arguments.jobs > 1 and rig.dut.kind != "virtual":
        raise UsageError(
            f"--jobs is for virtual rigs, and this one's DUT is {rig.dut.kind}: a real rig has one run at a time",
            hint="leave --jobs out; to run several real rigs side by side, start one plugpull run for each of them",
        )
    if arguments.jobs > 1 and arguments.calibrate:
        raise UsageError(
            "--calibrate measures one bench at a time",
            hint="leave --jobs out: limits that are measured on a busy machine are too wide",
        )


def jobs_session(arguments: argparse.Namespace, rig: Rig, kernel: str | None, words: Sequence[str]) -> Session:
    """One run on ``arguments.jobs`` benches. ``words`` is the command that repeats it.

    Raises UsageError if no scenario is left to run.
    """
    from plugpull.interrupts import signals_held

    if arguments.seed is None:
        arguments = argparse.Namespace(**{**vars(arguments), "seed": random.SystemRandom().randrange(1 << 32)})
    run = _JobsRun(arguments, rig, kernel, words)
    interrupted = ""
    with signals_held(then_raise=False) as signals:
        try:
            with signals.interruptible():
                run.benches.run()
        except KeyboardInterrupt as interrupt:
            interrupted = f"interrupted: {interrupt or 'Ctrl-C'}"
            run.benches.end()
        finally:
            run.display.stop()
        return run.finish(interrupted)


class _JobsRun:
    """A run on several benches, from its directory to its report."""

    def __init__(self, arguments: argparse.Namespace, rig: Rig, kernel: str | None, words: Sequence[str]) -> None:
        from rich.console import Console

        from plugpull.jobs.benches import Benches
        from plugpull.jobs.display import display_for
        from plugpull.merging.manifest import PARTS, Manifest, write_manifest
        from plugpull.run_directory import make_directory, point_latest

        self._arguments = arguments
        self._rig = rig
        self._line = tuple(pytest_line(arguments, rig, kernel, words))
        self._earlier = (Path(arguments.out or "runs") / "latest").resolve()
        self.directory = make_directory(Path(arguments.out) if arguments.out else None, rig.rig.name)
        (self.directory / PARTS).mkdir()
        self._manifest: Manifest = Manifest(
            kind="benches",
            rig_name=rig.rig.name,
            seed=arguments.seed,
            argv=("plugpull", *words),
            started=_now(),
            plugpull=__version__,
        )
        write_manifest(self.directory, self._manifest)
        point_latest(self.directory)
        self.display = display_for(Console())
        self.benches: Benches = Benches(self._start, arguments.jobs, self.display, self._planned)

    def _start(self, number: int, theirs: socket.socket) -> subprocess.Popen[bytes]:
        from plugpull.jobs.benches import start_process
        from plugpull.load.timed import REPEATS
        from plugpull.merging.manifest import part_folder

        arguments = BenchArguments(
            channel=theirs.fileno(),
            number=number,
            benches=self._arguments.jobs,
            directory=str(part_folder(self.directory, f"bench-{number}")),
            rig=str(rig_file(self._arguments)),
            earlier=str(self._earlier),
            repeats=REPEATS,
            line=self._line,
        )
        log = os.open(self._log(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            return start_process(arguments.command(), log, theirs)
        finally:
            os.close(log)

    def _log(self, number: int) -> Path:
        return self.directory / f"bench-{number}.log"

    def _planned(self, tests: Sequence[FoundTest]) -> None:
        """Announce the run, and write down what it is to run."""
        from plugpull.commands.run_plugin import announced
        from plugpull.merging.manifest import write_manifest

        ids = [test.scenario for test in tests if test.scenario]
        self._manifest = msgspec.structs.replace(self._manifest, planned=tuple(ids))
        write_manifest(self.directory, self._manifest)
        times = {test.scenario: test.seconds for test in tests if test.seconds is not None}
        if ids:
            _print(f"plugpull: {line}" for line in announced(self._rig, ids, times, benches=self._arguments.jobs))
        self.display.planned(len(tests))

    def finish(self, interrupted: str) -> Session:
        """Put the parts together, judge the run and write its report."""
        from plugpull.judging.outcome import write_outcome
        from plugpull.plugin_session import summary

        if self.benches.died:
            self._restore()
        if not self._list_parts(interrupted):
            return self._not_begun(interrupted)
        results, report = write_outcome(self.directory)
        _print(["", *summary(results), f"report: {report}"])
        return Session(self._status(results), self.directory, interrupted)

    def _restore(self) -> None:
        """Clean up after a bench that was killed."""
        from plugpull.cache import Cache
        from plugpull.left_off import restore_what_was_left_off

        restore_what_was_left_off(Cache.default(), lambda text: _print([f"plugpull: {text}"]))

    def _list_parts(self, interrupted: str) -> bool:
        """List the parts with their digests. Returns whether there is anything to judge."""
        from plugpull.merging.manifest import (
            ListedPart,
            SkippedTest,
            digest_of,
            found_parts,
            history_of,
            write_manifest,
        )

        parts = tuple(
            ListedPart(name=name, sha256=digest_of(history_of(self.directory, name)))
            for name in found_parts(self.directory)
        )
        tests, results = self.benches.tests, self.benches.results
        skipped = tuple(
            SkippedTest(id=tests[index].scenario, reason=result.sentence)
            for index, result in sorted(results.items())
            if tests[index].scenario and result.verdict == "skipped"
        )
        self._manifest = msgspec.structs.replace(
            self._manifest,
            open=False,
            parts=parts,
            skipped=skipped,
            unknowns=tuple(self.benches.faults),
            interrupted=interrupted,
        )
        write_manifest(self.directory, self._manifest)
        lost = any(test.scenario and index not in results for index, test in enumerate(tests))
        return bool(parts) or (lost and not self._usage())

    def _usage(self) -> bool:
        """Whether the benches refused what they were asked to do."""
        refusals = self.benches.refusals
        return bool(refusals) and all(one.status == EXIT_USAGE for one in refusals)

    def _not_begun(self, interrupted: str) -> Session:
        """The end of a run in which no scenario began: its directory is removed."""
        benches, tests = self.benches, self.benches.tests
        texts = dict.fromkeys(one.text for one in benches.refusals)
        if not tests and not texts and benches.faults:
            texts = dict.fromkeys([f"the scenarios could not be collected\n{self._tail()}"])
        for text in texts:
            print(f"plugpull: {clean(text)}", file=sys.stderr)
        with suppress(FileNotFoundError):
            (self.directory.parent / "latest").unlink()
        if self._earlier.is_dir() and self._earlier.parent == self.directory.parent:
            (self.directory.parent / "latest").symlink_to(self._earlier.name)
        shutil.rmtree(self.directory, ignore_errors=True)
        if interrupted:
            return Session(EXIT_UNKNOWN, None, interrupted)
        if texts:
            return Session(EXIT_USAGE, None, "")
        if not tests:
            return nothing_collected(self._arguments, self._rig, benches.deselected, benches.whole)
        failed = any(result.verdict == "failed" for result in benches.results.values())
        return Session(EXIT_FAIL if failed else EXIT_PASS, None, "")

    def _tail(self) -> str:
        with suppress(OSError):
            return "\n".join(self._log(1).read_text(errors="replace").splitlines()[-SHOWN:])
        return ""

    def _status(self, results: Results) -> int:
        tests, ended = self.benches.tests, self.benches.results
        others = any(result.verdict == "failed" and not tests[index].scenario for index, result in ended.items())
        if results.verdict == "PASS":
            return EXIT_FAIL if others else EXIT_PASS
        return EXIT_FAIL if results.verdict == "FAIL" else EXIT_UNKNOWN


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(clean_line(line), flush=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
