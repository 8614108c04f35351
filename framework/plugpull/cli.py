"""The ``plugpull`` command. Thin: each subcommand imports what it needs and hands over."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull import __version__
from plugpull.commands import discover, log, switch
from plugpull.commands.base import EXIT_STATUS, add_command
from plugpull.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE, PlugpullError, UsageError

if TYPE_CHECKING:
    import pytest

    from plugpull.commands.base import Commands
    from plugpull.rig.model import Rig

TOP_EPILOG = f"""\
examples:
  plugpull run                          what the stock virtual bench is for
  plugpull rig check rigs/quick.toml    is this rig file right, and what does each cut take away?
  plugpull check runs/latest            judge the newest run again
  plugpull run --help                   everything about one command

{EXIT_STATUS}"""
RUN_EPILOG = f"""\
examples:
  plugpull run                                            the rows that the stock rig names
  plugpull run scenarios                                  every stock scenario (in a checkout)
  plugpull run -k "hub or writing"                        scenarios whose names match
  plugpull run --rig rigs/external-disk-study.toml        another bench
  plugpull run --kernel ~/linux                           the kernel built in that tree
  plugpull run --kernel 6.1.0-56-amd64 --module uas.ko    that kernel, with your build of a driver
  plugpull run -k writing --seed 790603560                the choices of an earlier run; its report has the seed

what --kernel takes:
  6.1.0-56-amd64                      a version installed here, or in the distribution's packages
  linux-image-6.1.0-56-amd64          a kernel package of the distribution
  ~/linux-image-6.12.0_1_amd64.deb    package files, separated by commas, or a directory of them
  ~/linux                             a kernel build tree, or the arch/x86/boot/bzImage in it
  /srv/kernels/test                   a directory with boot/vmlinuz-VERSION and lib/modules/VERSION
  /srv/bzImage,/srv/modules/6.12.0    an image and its modules
Packages are unpacked into the cache and never installed.

{EXIT_STATUS}"""


# --- run -------------------------------------------------------------------------------------------------------


def _add_run(commands: Commands) -> None:
    parser = add_command(
        commands,
        "run",
        help="run scenarios on a rig and judge them",
        description="Run scenarios on a rig, judge them and write a report. Without PATH and -k, the rows that the rig "
        "file names are run, all scenarios if it names none.",
        epilog=RUN_EPILOG,
    )
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="scenario files, directories or node ids (default: the stock scenarios)"
    )
    parser.add_argument(
        "--rig", metavar="FILE", help="the rig file (default: the stock rig quick.toml, a virtual bench)"
    )
    parser.add_argument("-k", metavar="EXPR", dest="expression", help="only scenarios whose names match, as pytest -k")
    parser.add_argument(
        "--kernel",
        metavar="KERNEL",
        help="virtual rigs: the kernel to test, see below (default: the distribution's own)",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.ko",
        action="append",
        default=[],
        help="virtual rigs: load this build of a driver in place of the kernel's own; repeatable",
    )
    parser.add_argument("--out", metavar="DIR", help="where run directories are made (default: runs)")
    parser.add_argument("--seed", metavar="N", type=int, help="repeat the random choices of an earlier run")
    parser.add_argument(
        "--accel",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        help="virtual rigs: run the guest with KVM or emulated (default: auto, KVM if a trial guest starts)",
    )
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    import pytest

    from plugpull.locate import rigs_dir, scenarios_dir, stock_dir
    from plugpull.rig.load import load_rig

    file = Path(arguments.rig) if arguments.rig else rigs_dir() / "quick.toml"
    rig = load_rig(file)
    _refuse(arguments, rig)
    line = ["--rig", str(file), "--plugpull-accel", arguments.accel]
    line += ["--tb=short", "-p", "no:cacheprovider", "-q", "--no-header"]
    line += arguments.path or [str(scenarios_dir())]
    if arguments.expression:
        line += ["-k", arguments.expression]
    elif rig.rig.rows and not arguments.path:
        line += ["--plugpull-rows", ",".join(rig.rig.rows)]
    for option, value in (("kernel", arguments.kernel), ("out", arguments.out), ("seed", arguments.seed)):
        if value is not None:
            line += [f"--plugpull-{option}", str(value)]
    for module in arguments.module:
        line += ["--plugpull-module", module]
    for word in ("plugpull", *arguments.words):
        line.append(f"--plugpull-command={word}")
    passed_over = _PassedOver()
    status = int(pytest.main(["--rootdir", str(stock_dir()), *line], plugins=[passed_over]))
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise passed_over.error(arguments, rig)
    return EXIT_USAGE if status == pytest.ExitCode.USAGE_ERROR else status


def _refuse(arguments: argparse.Namespace, rig: Rig) -> None:
    """What can be found wrong before pytest is started. Raises UsageError, and RigError when the cache is full."""
    from plugpull.locate import scenarios_dir

    for path in arguments.path:
        if not Path(path.split("::")[0]).exists():
            raise UsageError(f"there is no scenario {path}", mend=f"the stock scenarios are in {scenarios_dir()}")
    for module in arguments.module:
        if not Path(module).is_file():
            raise UsageError(
                f"there is no module {module}",
                mend="--module takes the .ko file of a driver built for the kernel under test",
            )
    if arguments.kernel is not None and rig.dut.kind == "virtual":
        from plugpull.cache import Cache
        from plugpull.virtual.kernel import find_kernel

        # What is unpacked here is in the cache when the run asks for it again.
        find_kernel(arguments.kernel, Cache.default(tell=_tell), tell=_tell)


def _tell(text: str) -> None:
    print(f"plugpull: {text}", file=sys.stderr)


class _PassedOver:
    """A pytest plugin that notes which scenarios were not asked for, to name them when nothing is left."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._names += [item.name for item in items]

    def error(self, arguments: argparse.Namespace, rig: Rig) -> UsageError:
        if not self._names:
            return UsageError(f"no scenario in {' '.join(arguments.path) or 'the stock scenarios'}")
        mend = f"there are: {', '.join(dict.fromkeys(self._names))}"
        if arguments.expression:
            return UsageError(f"no scenario matches -k {arguments.expression!r}", mend=mend)
        return UsageError(
            f"no scenario stands for a row of the rig {rig.rig.name}: {', '.join(rig.rig.rows)}", mend=mend
        )


# --- rig files and recorded runs -------------------------------------------------------------------------------


def _add_rig(commands: Commands) -> None:
    parser = add_command(commands, "rig", help="look at rig files", description="Look at rig files.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = add_command(
        actions,
        "check",
        help="report every mistake in a rig file, or show what each cut would take away",
        description="Check a rig file without touching any hardware. Prints every mistake as FILE:LINE:COLUMN, or, if "
        "there is none, the tree of the bench with each cut point's blast radius: the disks that its cut takes away.",
        epilog="exit status:\n  0  no mistake\n  2  mistakes",
    )
    check.add_argument("file", metavar="FILE", type=Path, help="the rig file")
    check.set_defaults(action=_rig_check)
    discover.add(actions)


def _rig_check(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.rig.check import rig_check

    return rig_check(arguments.file, Console())


def _add_check(commands: Commands) -> None:
    parser = add_command(
        commands,
        "check",
        help="judge a recorded run again, offline",
        description="Judge a recorded run again with the checks of this version, from its history alone: offline, on "
        "any machine, also while the run is still going on. Writes nothing.",
        epilog=EXIT_STATUS,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory or a history.jsonl, such as runs/latest")
    parser.add_argument("--json", action="store_true", help="print results.json instead of sentences")
    parser.set_defaults(action=_check)


def _check(arguments: argparse.Namespace) -> int:
    from plugpull.outcome import judge_run
    from plugpull.results_io import encode_results

    results = judge_run(arguments.run)[1]
    if arguments.json:
        sys.stdout.write(encode_results(results).decode())
    else:
        for scenario in results.scenarios:
            print(f"{scenario.verdict.value:8}{scenario.id}\n        {scenario.sentence}")
        print(results.sentence)
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL}.get(results.verdict.value, EXIT_UNKNOWN)


def _add_report(commands: Commands) -> None:
    parser = add_command(
        commands,
        "report",
        help="write a recorded run's report again",
        description="Judge a recorded run again and write its results.json, junit.xml, kernel.log and report.html "
        "anew. Prints the path of the report.",
        epilog="exit status:\n  0  the report was written, whatever the verdict\n  2  there is no such run",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory, such as runs/latest")
    parser.set_defaults(action=_report)


def _report(arguments: argparse.Namespace) -> int:
    from plugpull.outcome import write_outcome

    if not arguments.run.is_dir():
        raise UsageError(f"{arguments.run} is no run directory", mend="name a run directory, such as runs/latest")
    print(write_outcome(arguments.run.resolve())[1])
    return EXIT_PASS


def _add_cache(commands: Commands) -> None:
    parser = add_command(
        commands,
        "cache",
        help="show or clear what was made once and kept: kernels, snapshots, environments",
        description="Show what was made once and kept, or clear it. The cache is in PLUGPULL_CACHE, or in plugpull in "
        "XDG_CACHE_HOME, or in ~/.cache/plugpull. What is missing is made again when it is needed.",
    )
    parser.set_defaults(action=_cache_show)
    actions = parser.add_subparsers(metavar="ACTION")
    clear = add_command(actions, "clear", help="remove what is not in use", description="Remove what is not in use.")
    clear.add_argument("--older-than", metavar="AGE", help="only what was not used for this long, such as 14d or 12h")
    clear.add_argument("--kind", metavar="KIND", help="only entries of this kind, such as snapshot")
    clear.set_defaults(action=_cache_clear)


def _cache_show(_: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.cache import Cache, show

    show(Cache.default(), Console())
    return EXIT_PASS


def _cache_clear(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.cache import Cache, clear, parse_age

    age = parse_age(arguments.older_than) if arguments.older_than else None
    clear(Cache.default(), Console(), age, arguments.kind)
    return EXIT_PASS


def _add_test(commands: Commands) -> None:
    parser = add_command(
        commands,
        "test",
        help="run the framework's own tests and linters, as CI does",
        description="Run the framework's own tests: linters, types, quick tests, and tests that boot guests. Arguments "
        "go to pytest, and then only pytest is run. Needs a checkout.",
        epilog="exit status:\n  0  all of them passed\n  1  something failed",
    )
    parser.set_defaults(action=_test)


def _test(arguments: argparse.Namespace) -> int:
    from plugpull.setup.selftest import run_tests

    return run_tests(arguments.rest)


def parser() -> argparse.ArgumentParser:
    """The command line. Built apart from ``main`` so that the documentation's commands can be tested against it."""
    top = argparse.ArgumentParser(
        prog="plugpull",
        description=textwrap.fill(
            "Pull-the-plug testing for storage on Linux: cut a cable, a hub or a disk's power under load, and judge "
            "kernel recovery, data integrity and the throughput of the disks that survive.",
            80,
        ),
        epilog=TOP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"plugpull {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_run, _add_rig, _add_check, _add_report, log.add, switch.add, _add_cache, _add_test):
        add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Everything after "test" is pytest's, options included; argparse would claim some for itself.
    rest = words[1:] if words[:1] == ["test"] and not {"-h", "--help"} & set(words) else []
    arguments = parser().parse_args(words[:1] if rest else words)
    arguments.words, arguments.rest = words, rest
    try:
        return int(arguments.action(arguments))
    except UsageError as error:
        print(f"plugpull: {error}", file=sys.stderr)
        return EXIT_USAGE
    except PlugpullError as error:
        print(f"plugpull: {error}", file=sys.stderr)
        return EXIT_UNKNOWN
    except KeyboardInterrupt:
        print("plugpull: interrupted", file=sys.stderr)
        return EXIT_UNKNOWN
    except BrokenPipeError:
        return EXIT_FAIL
