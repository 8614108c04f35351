"""The process of one bench of several: a pytest session that runs the tests that it is given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import pytest


class BenchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of a bench is started with. ``line`` is pytest's command line, ``channel`` is a descriptor, and
    ``earlier`` is the run directory that has the times of the scenarios, if there is one."""

    channel: int
    number: int
    benches: int
    directory: str
    rig: str
    earlier: str
    repeats: int
    line: tuple[str, ...]

    def command(self) -> list[str]:
        """The command that starts the process, with the package that runs here."""
        package = str(Path(__file__).parents[2])
        start = "import sys; sys.path.append(sys.argv[1]); from plugpull.commands.bench import main; sys.exit(main())"
        # -P: the current directory must not be searched for modules.
        return [sys.executable, "-P", "-c", start, package, msgspec.json.encode(self).decode()]


def main() -> int:
    """Run the tests that the other end of the channel gives."""
    import pytest

    from plugpull.jobs.messages import Channel
    from plugpull.jobs.worker import Worker
    from plugpull.output import steady_output

    arguments = msgspec.json.decode(sys.argv[2], type=BenchArguments)
    channel = Channel.inherited(arguments.channel)

    def estimate(items: Sequence[pytest.Item]) -> dict[str, float]:
        from plugpull.commands.run_plugin import study_times, times_of
        from plugpull.rig.load import load_rig

        rig = load_rig(Path(arguments.rig))
        return {**times_of(Path(arguments.earlier)), **study_times(rig, items, arguments.repeats)}

    worker = Worker(channel, arguments.number, arguments.benches, Path(arguments.directory), estimate)
    with steady_output():
        return int(pytest.main(list(arguments.line), plugins=[worker]))
