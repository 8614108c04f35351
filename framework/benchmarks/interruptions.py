"""Every port must be on within 5 s of an interruption at a random moment, and after SIGKILL by the next start.

Commands that turn ports off are interrupted: `plugpull switch cycle` and `switch qualify` on emulated serial boards and
on `command` switches whose state is a file, and, with `--runs N`, `plugpull run` on the virtual bench. The state of the
ports is watched from outside, at the board or the file; for a run, in its history.

signals    SIGINT, SIGTERM, SIGHUP, SIGQUIT: the ports stay off for minutes unless the signal ends that.
terminal   the command runs on a terminal of its own, which is closed.
pipe       the reader of its output goes away. That ends nothing: the ports come back when their time is over.
full       nothing can be written to any file any more (RLIMIT_FSIZE of the process is set to 0) and its output goes to
           /dev/full. That ends nothing either. Of a run, only the output.
kill       SIGKILL, and then `plugpull switch on` of a port of another switch. Of a run, no process may be left.

Most moments are chosen within a second of the first port's going off, the others between the start and the end.
Exit status 1 if a port stayed off.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP), str(TOP / "framework")]

from benchmarks.interruptions_bench import (  # noqa: E402
    CHEAP,
    ENDLESS,
    MARK,
    MEANS,
    SIGNALS,
    SLOWLY,
    START,
    Bench,
    Outcome,
    Running,
    Trial,
    bench,
    command_of,
    environment,
    wait_until,
)


def interrupt(trial: Trial) -> Outcome:
    """One trial on a bench of its own."""
    with bench(trial.command) as here:
        running = Running(trial, command_of(trial, here.folder), here.folder)
        try:
            if not trial.early:
                wait_until(lambda: running.ended() or not here.all_on(), START)
            wait_until(running.ended, trial.moment)
            off = not here.all_on()
            begun = time.monotonic()
            running.interrupt()
            if trial.means == "kill":
                _next_start(here.folder)
                return Outcome(trial, time.monotonic() - begun if here.all_on() else None, off, None, running.said())
            took = _on_for_good(here, running, begun, goes_on=trial.means in ENDLESS)
            return Outcome(trial, took, off, running.process.poll(), running.said())
        finally:
            running.close()


def _on_for_good(here: Bench, running: Running, begun: float, *, goes_on: bool) -> float | None:
    """Seconds until all ports were on and the command had ended, so that nothing turns one off any more; what is
    counted is the time of the last one's going on. Where the command ``goes_on``, a port may still go off, and then the
    time counts from there."""
    since: float | None = None
    deadline = begun + START
    while time.monotonic() < deadline:
        over, on = running.ended(), here.all_on()
        if goes_on and since is not None and not on:
            begun = time.monotonic()
        since = (since or time.monotonic()) if on else None
        if over:
            return since - begun if since is not None else None
        time.sleep(0.005)  # as above
    return None


def _next_start(folder: Path) -> None:
    words = ["switch", "on", "second.2", "--rig", str(folder / "rig.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "plugpull", *words],
        env=environment(folder),
        cwd=folder,
        capture_output=True,
        timeout=START,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# --- whole runs -----------------------------------------------------------------------------------------------


def interrupt_run(trial: Trial, rig: Path, select: str) -> Outcome:
    """A run on the virtual bench: its ports are QEMU's and are gone with it, so the history is what is looked at."""
    with tempfile.TemporaryDirectory(prefix="plugpull-interrupted-") as name:
        folder = Path(name)
        words = ["run", "--rig", str(rig), "--out", str(folder / "runs"), "-k", select]
        cache = os.environ.get("PLUGPULL_CACHE")
        wrapped = ["env", "-u", "PLUGPULL_CACHE", f"{MARK}={name}", *([f"PLUGPULL_CACHE={cache}"] if cache else [])]
        running = Running(trial, [*wrapped, sys.executable, "-m", "plugpull", *words], folder)
        try:
            wait_until(lambda: running.ended() or trial.early or bool(off_in(folder)), 6 * START, SLOWLY)
            wait_until(running.ended, trial.moment)
            off, begun = bool(off_in(folder)), time.monotonic()
            if trial.means != "full":  # without its history there would be nothing to look at; its output is full
                running.interrupt()
            if trial.means == "kill":
                gone = wait_until(lambda: not _left(name), START, SLOWLY)
                return Outcome(trial, time.monotonic() - begun if gone else None, off, None, running.said())
            wait_until(lambda: running.ended() or not off_in(folder), START, SLOWLY)
            took = time.monotonic() - begun
            wait_until(running.ended, 6 * START, SLOWLY)
            return Outcome(trial, None if off_in(folder) else took, off, running.process.poll(), running.said())
        finally:
            running.close()


def off_in(folder: Path) -> set[str]:
    """Ports that are off by the last acknowledged edge of each in the history of a run in this folder."""
    off: set[str] = set()
    for history in folder.glob("runs/2*/history.jsonl"):
        for line in history.read_bytes().splitlines():
            if b'"acknowledged"' not in line:
                continue
            with suppress(ValueError):  # the last line may be half-written
                event = json.loads(line)
                if event["type"] == "edge" and event["phase"] == "acknowledged":
                    port = f"{event['switch']}.{event['port']}"
                    off = off | {port} if event["state"] == "off" else off - {port}
    return off


def _left(mark: str) -> list[str]:
    """Processes that a run has left behind."""
    found = []
    for directory in Path("/proc").iterdir():
        with suppress(OSError):
            if directory.name.isdigit() and f"{MARK}={mark}".encode() in (directory / "environ").read_bytes():
                found.append(directory.name)
    return found


# --- all of it ------------------------------------------------------------------------------------------------


def trials(count: int, seed: int, commands: Sequence[str] = CHEAP, span: float = 1.0) -> list[Trial]:
    """Every command with every means in turn, each at a moment of its own."""
    generator = random.Random(seed)
    pairs = [(command, means) for means in MEANS for command in commands if possible(command, means)]
    generator.shuffle(pairs)
    made = []
    for number in range(count):
        early = generator.random() < 0.25
        moment = generator.uniform(0.0, 2.5 * span if early else span)
        made.append(Trial(*pairs[number % len(pairs)], moment, early))
    return made


def possible(command: str, means: str) -> bool:
    """A switch that is a file cannot be switched where no file can be written."""
    return not (means == "full" and command.endswith("files"))


def show(outcomes: Sequence[Outcome]) -> None:
    counted: Counter[tuple[str, str]] = Counter((one.trial.command, one.trial.means) for one in outcomes)
    print(f"{'command':<16} {'means':<10} {'times':>5} {'off':>4} {'on late':>7}  slowest")
    for (command, means), count in sorted(counted.items()):
        these = [one for one in outcomes if (one.trial.command, one.trial.means) == (command, means)]
        slowest = max((one.took for one in these if one.took is not None), default=0.0)
        late, off = sum(not one.good for one in these), sum(one.off for one in these)
        print(f"{command:<16} {means:<10} {count:>5} {off:>4} {late:>7}  {slowest:.2f} s")
    bad = sum(not one.good for one in outcomes)
    print(f"{len(outcomes)} interruptions, {sum(one.off for one in outcomes)} with a port off, {bad} bad")


def _default_actions() -> None:
    """Give ignored signals their default action. A shell without job control starts background processes with SIGINT
    and SIGQUIT ignored, and nohup ignores SIGHUP; the commands would inherit that and respect it."""
    for number in (signal.Signals[name] for name in SIGNALS):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=64, help="interruptions of switch cycle and qualify (default: 64)")
    parser.add_argument("--runs", metavar="N", type=int, default=0, help="interruptions of whole runs (default: 0)")
    parser.add_argument("--rig", type=Path, default=TOP / "rigs" / "quick.toml", help="the rig of those runs")
    parser.add_argument("-k", dest="select", default="while_writing", help="the scenario of those runs")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    parser.add_argument("--out", type=Path, help="append a line of JSON per interruption to this file")
    arguments = parser.parse_args(argv)
    _default_actions()
    cheap = trials(arguments.n, arguments.seed)
    runs = trials(arguments.runs, arguments.seed, ("run",), span=3.0)
    outcomes: list[Outcome] = []
    for trial in (*cheap, *runs):
        whole = trial.command == "run"
        outcomes.append(interrupt_run(trial, arguments.rig, arguments.select) if whole else interrupt(trial))
        if arguments.out:
            with arguments.out.open("a") as file:
                file.write(json.dumps({**asdict(outcomes[-1]), "good": outcomes[-1].good}) + "\n")
        if not outcomes[-1].good:
            print(f"BAD: {outcomes[-1]}", flush=True)
    show(outcomes)
    return 1 if any(not one.good for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
