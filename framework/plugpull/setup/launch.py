"""The ``./plugpull`` launcher of a checkout: sets up what is missing on the first start, then runs the command."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from plugpull.exit_status import EXIT_USAGE
from plugpull.setup import packages
from plugpull.setup.environment import Environment, make, ready
from plugpull.setup.place import SetupError, cache_root, lock, make_writable

EXIT_INTERRUPTED = 130


def main(checkout: str, argv: Sequence[str]) -> int:
    """Run ``plugpull argv`` in the environment of ``checkout``. Returns only when that cannot be started."""
    try:
        root = cache_root(os.environ)
        set_up_packages(packages.missing(packages.groups_for(argv)), root)
        environment = ready(checkout, root) or set_up_environment(checkout, root)
        become(environment, argv)
    except SetupError as error:
        say(error.what)
        if error.hint:
            say(f"  hint: {error.hint}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        say("interrupted; the next start sets up what is still missing")
        return EXIT_INTERRUPTED


def set_up_packages(wanted: Sequence[packages.Package], root: str) -> None:
    """Print which system packages are missing and why, then install them. One launcher at a time."""
    if not wanted:
        return
    make_writable(root)
    make_writable(root, "log")
    fd = lock(
        os.path.join(root, "packages.lock"),
        on_wait=lambda: say("waiting for another plugpull that is installing packages"),
    )
    assert fd is not None
    try:
        wanted = [p for p in wanted if p in packages.missing([p.group]) or not p.gives]
        if not wanted:
            return
        say("missing on this system:")
        for package in wanted:
            say(f"  {package.name:<16}  {package.why}")
        say("installing them now, once; this takes as long as their download")
        for package in packages.install(wanted, os.path.join(root, "log", "apt.log"), step):
            say(f"continuing without {package.name}, which {package.why}")
        still = [p.name for p in wanted if p in packages.missing([p.group]) and not p.optional]
        if still:
            raise SetupError(f"installed, but still not found: {', '.join(still)}", hint="check PATH")
    finally:
        os.close(fd)


def set_up_environment(checkout: str, root: str) -> Environment:
    """Make the Python environment, and first install the system package for that if needed."""
    say("making a Python environment for this checkout, once; this takes a minute or two")
    make_writable(root)
    if (venv := packages.venv_package(sys.executable)) is not None:
        set_up_packages([venv], root)
    return make(checkout, root, step, say)


def become(environment: Environment, argv: Sequence[str]) -> NoReturn:
    """Replace this process with the command. The lock on its environment stays held."""
    os.set_inheritable(environment.hold, True)
    program = environment.program("plugpull")
    os.execv(program, [program, *argv])


@contextmanager
def _ticking(heading: str, begun: float) -> Iterator[None]:
    """On a terminal, show every second how long the step has been running."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def tick() -> None:
        while not done.wait(1.0):
            print(f"\rplugpull: {heading} ... {time.monotonic() - begun:.0f} s", end="", file=sys.stderr, flush=True)

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
        print(f"\rplugpull: {heading} ...", end="", file=sys.stderr, flush=True)


def say(text: str) -> None:
    print(f"plugpull: {text}", file=sys.stderr, flush=True)


def step(heading: str, work: Callable[[], None]) -> None:
    """Run ``work``; print ``heading`` before it and the time it took after it."""
    print(f"plugpull: {heading} ...", end="", file=sys.stderr, flush=True)
    begun = time.monotonic()
    try:
        with _ticking(heading, begun):
            work()
    except BaseException:
        print(" failed", file=sys.stderr, flush=True)
        raise
    print(f" {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
