"""The ``plugpull`` command. Thin: each subcommand imports what it needs and hands over."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from plugpull import __version__
from plugpull.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE, PlugpullError, UsageError

EPILOG = """exit status: 0 PASS, 1 FAIL (the device under test did something wrong), 2 wrong usage (nothing was started),
3 UNKNOWN (the bench did not do what it was told, or evidence was lost)"""


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run scenarios on a rig and judge them",
        description="Run scenarios on a rig. Without PATH and -k, the rows that the rig file names are run (all if it names none).",
        epilog=EPILOG,
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
        help="virtual rigs: an installed version, a .deb, a build tree, or an unpacked package",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.ko",
        action="append",
        default=[],
        help="virtual rigs: use this build of a driver; repeatable",
    )
    parser.add_argument("--out", metavar="DIR", help="where run directories are made (default: runs)")
    parser.add_argument("--seed", metavar="N", type=int, help="repeat the random choices of an earlier run")
    parser.add_argument(
        "--accel",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        help="virtual rigs: how the guest is run (default: auto)",
    )
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    import pytest

    from plugpull.locate import scenarios_dir, stock_dir
    from plugpull.plugin import stock_rig

    rig = Path(arguments.rig) if arguments.rig else stock_rig()
    from plugpull.rig.load import load_rig

    rows = load_rig(rig).rig.rows
    line = [
        "--rig",
        str(rig),
        "--plugpull-accel",
        arguments.accel,
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-q",
        "--no-header",
    ]
    for path in arguments.path:
        if not Path(path.split("::")[0]).exists():
            raise UsageError(f"there is no scenario {path}", mend=f"the stock scenarios are in {scenarios_dir()}")
    line += arguments.path or [str(scenarios_dir())]
    if arguments.expression:
        line += ["-k", arguments.expression]
    elif rows and not arguments.path:
        line += ["--plugpull-rows", ",".join(rows)]
    for option, value in (("kernel", arguments.kernel), ("out", arguments.out), ("seed", arguments.seed)):
        if value is not None:
            line += [f"--plugpull-{option}", str(value)]
    for module in arguments.module:
        line += ["--plugpull-module", module]
    for word in ("plugpull", *arguments.words):
        line.append(f"--plugpull-command={word}")
    status = int(pytest.main(["--rootdir", str(stock_dir()), *line]))
    return EXIT_USAGE if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED) else status


def _add_rig(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("rig", help="look at rig files")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="report every mistake in a rig file, or show what each cut would take away",
        description="Check a rig file without touching any hardware; then print its tree with each cut point's blast radius.",
        epilog="exit status: 0 no mistake, 2 mistakes",
    )
    check.add_argument("file", metavar="FILE", type=Path, help="the rig file")
    check.set_defaults(action=_rig_check)


def _rig_check(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.rig.check import rig_check

    return rig_check(arguments.file, Console())


def _add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="judge a recorded run again, offline",
        description="Judge a recorded run again, from its history alone.",
        epilog=EPILOG,
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


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="write a recorded run's report again",
        description="Judge a recorded run and write its report again.",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory, such as runs/latest")
    parser.set_defaults(action=_report)


def _report(arguments: argparse.Namespace) -> int:
    from plugpull.outcome import write_outcome

    if not arguments.run.is_dir():
        raise UsageError(f"{arguments.run} is no run directory", mend="name a run directory, such as runs/latest")
    print(write_outcome(arguments.run.resolve())[1])
    return EXIT_PASS


def _add_cache(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cache", help="show or clear what was made once and kept: kernels, snapshots, environments"
    )
    parser.set_defaults(action=_cache_show)
    actions = parser.add_subparsers(metavar="ACTION")
    clear = actions.add_parser("clear", help="remove what is not in use")
    clear.add_argument("--older-than", metavar="AGE", help="only what was not used for this long, such as 14d or 12h")
    clear.add_argument("--kind", metavar="KIND", help="only entries of this kind, such as snapshot")
    clear.set_defaults(action=_cache_clear)


def _cache_show(_: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.virtual.cache import Cache, show

    show(Cache.default(), Console())
    return EXIT_PASS


def _cache_clear(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from plugpull.virtual.cache import Cache, clear, parse_age

    age = parse_age(arguments.older_than) if arguments.older_than else None
    clear(Cache.default(), Console(), age, arguments.kind)
    return EXIT_PASS


def _add_test(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "test",
        help="run the framework's own tests and linters, as CI does",
        description="Run the framework's own tests: linters, types, unit tests, and tests that boot guests. Other arguments go to pytest.",
    )
    parser.set_defaults(action=_test)


def _test(arguments: argparse.Namespace) -> int:
    from plugpull.setup.selftest import run_tests

    return run_tests(arguments.rest)


def parser() -> argparse.ArgumentParser:
    """The command line. Built apart from ``main`` so that the documentation's commands can be tested against it."""
    top = argparse.ArgumentParser(
        prog="plugpull",
        description="Pull-the-plug testing for storage on Linux: cut a cable, a hub or a disk's power under load, and judge "
        "kernel recovery, data integrity and the throughput of the disks that survive.",
        epilog=EPILOG,
    )
    top.add_argument("--version", action="version", version=f"plugpull {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_run, _add_rig, _add_check, _add_report, _add_cache, _add_test):
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
    except BrokenPipeError:
        return EXIT_FAIL
