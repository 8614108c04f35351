"""``plugpull run``: runs scenarios on a rig, with one kernel or several."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import EXIT_STATUS, add_command
from plugpull.commands.calibrate import add_option as add_calibration
from plugpull.commands.calibrate import calibrate
from plugpull.commands.pytest_line import Session, rig_file
from plugpull.commands.session import session
from plugpull.commands.soak import add_soak, check_soak, resumed
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.plain import clean

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.rig.model import Rig

RUN_EPILOG = f"""\
examples:
  plugpull run                                            the rows that the stock rig file names
  plugpull run scenarios                                  every stock scenario (in a checkout)
  plugpull run -k "hub or writing"                        scenarios whose names match
  plugpull run --rig rigs/external-disk-study.toml        another bench
  plugpull run --kernel ~/linux                           the kernel built in that tree
  plugpull run --kernel 6.1.0-56-amd64 --module uas.ko    that kernel, with your build of a driver
  plugpull run --kernel 6.1.0-56-amd64 --kernel ~/linux   on both kernels, with a comparison
  plugpull run -k writing --seed 790603560                the choices of an earlier run; its report has the seed
  plugpull run scenarios --every-victim                   each disk and hub that could be chosen, one after the other
  plugpull run scenarios --rotate today                   for nightly runs: the next disk each night
  plugpull run scenarios --jobs 2                         on two virtual benches side by side
  plugpull run scenarios --seed 7 --shard 1/4             a quarter of them; see plugpull merge --help
  plugpull run scenarios --calibrate 10                   limits for this rig's file, from ten healthy runs
  plugpull run --for 4d                                   a soak: one random fault after another for four days
  plugpull run --resume runs/latest                       go on with a soak that was killed or interrupted

values of --kernel:
  6.1.0-56-amd64                      a version installed here, or in the distribution's packages
  linux-image-6.1.0-56-amd64          a kernel package of the distribution
  ~/linux-image-6.12.0_1_amd64.deb    package files, separated by commas, or a directory of them
  ~/linux                             a kernel build tree, or the arch/x86/boot/bzImage in it
  /srv/kernels/test                   a directory with boot/vmlinuz-VERSION and lib/modules/VERSION
  /srv/bzImage,/srv/modules/6.12.0    an image and its modules
Packages are unpacked into the cache and never installed.

{EXIT_STATUS}"""


def add(commands: Commands) -> None:
    """Add the parser of ``run``."""
    parser = add_command(
        commands,
        "run",
        help="run scenarios on a rig and judge them",
        description="Run scenarios on a rig, judge them and write a report. Without PATH and -k, the rows that the rig "
        "file names are run, or all scenarios if it names none. Each of several kernels gets its own run with the same "
        "choices, and the runs are compared.",
        epilog=RUN_EPILOG,
    )
    add_options(parser)
    _add_split_options(parser)
    add_soak(parser)
    add_calibration(parser)
    parser.set_defaults(action=_run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run."""
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="scenario files, directories or node ids (default: the stock scenarios)"
    )
    parser.add_argument(
        "--rig", metavar="FILE", help="the rig file (default: the stock rig quick.toml, a virtual bench)"
    )
    parser.add_argument("-k", metavar="EXPR", dest="expression", help="only scenarios whose names match, as pytest -k")
    parser.add_argument(
        "-m", metavar="EXPR", dest="markers", help="only scenarios whose markers match, as pytest -m, such as study"
    )
    _add_kernel_options(parser)
    parser.add_argument("--out", metavar="DIR", help="where run directories are made (default: runs)")
    parser.add_argument("--seed", metavar="N", type=int, help="repeat the random choices of an earlier run")
    _add_victim_options(parser)
    parser.add_argument(
        "--accel",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        help="virtual rigs: run the guest with KVM or emulated (default: auto, KVM if a trial guest starts)",
    )


def _add_kernel_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel",
        metavar="KERNEL",
        action="append",
        default=[],
        help="virtual rigs: the kernel to test; plugpull run --help lists its forms (default: the distribution's own). "
        "Several are run one after the other and compared",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.ko",
        action="append",
        default=[],
        help="virtual rigs: load this build of a driver in place of the kernel's own, and cut disks that it drives; "
        "repeatable",
    )


def _add_split_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs",
        metavar="N|auto",
        type=_jobs,
        default=1,
        help="virtual rigs: run scenarios on N benches side by side, with one report (default: 1); auto is one for "
        "each bench slot of this machine, which all runs share: there is one for each CPU and GiB of memory",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        type=_shard,
        help="run only every N-th scenario, beginning with the I-th, so that N machines share the run; give all "
        "shards the same --seed, and put their runs together with plugpull merge",
    )


def _jobs(text: str) -> int:
    from plugpull.coordination.slots import MOST, slots_here

    if text == "auto":
        return slots_here()
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of benches: 1 to {MOST}, or auto")
    return int(text)


def _shard(text: str) -> str:
    from plugpull.jobs.shard import shard_of

    try:
        return str(shard_of(text))
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.what}: {error.hint}") from None


def _add_victim_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every-victim",
        action="store_true",
        help="run each scenario that chooses a disk or a hub once with each possible choice, so that a fault of one of "
        "them is not missed by chance",
    )
    parser.add_argument(
        "--rotate",
        metavar="N|today",
        type=_night,
        help="take victims in turn instead of drawing them; N is the number of the night, today counts the days. As "
        "many nights as there are candidates cover them all",
    )


def _run(arguments: argparse.Namespace) -> int:
    from plugpull.commands.jobs import check_jobs

    if arguments.resume:
        arguments = resumed(arguments, _parsed)
    rig = check(arguments)
    check_jobs(arguments, rig)
    check_soak(arguments, rig)
    check_kernels(arguments, rig)
    if arguments.calibrate:
        return calibrate(arguments, rig)
    if len(arguments.kernel) < 2:
        return session(arguments, rig, next(iter(arguments.kernel), None), arguments.words).status
    return _several(arguments, rig)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    return parser.parse_args(words)


def _several(arguments: argparse.Namespace, rig: Rig) -> int:
    """One run per kernel, one after the other, all with the same random choices."""
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 32)
    ended: list[Session] = []
    for kernel in arguments.kernel:
        _notify(f"run {len(ended) + 1} of {len(arguments.kernel)}: kernel {kernel}")
        one = session(arguments, rig, kernel, _alone(arguments.words, kernel, arguments.seed))
        ended.append(one)
        if one.interrupted or one.directory is None:
            break  # ended by a signal, or never begun: the reason has been printed
    directories = [one.directory for one in ended if one.directory is not None]
    if len(directories) > 1:
        _compared(directories, Path(arguments.out) if arguments.out else directories[0].parent)
    return worst([one.status for one in ended])


def _compared(directories: Sequence[Path], out: Path) -> None:
    from plugpull.archive.compare import compare
    from plugpull.archive.compare_show import as_text, write

    comparison = compare(directories)
    print()
    for line in as_text(comparison):
        print(line)
    print(f"comparison: {write(comparison, out)}")


def worst(statuses: Sequence[int]) -> int:
    """The exit status of several runs: wrong usage before FAIL, FAIL before UNKNOWN, UNKNOWN before PASS."""
    order = (EXIT_USAGE, EXIT_FAIL, EXIT_UNKNOWN, EXIT_PASS)
    return min(statuses, key=lambda status: order.index(status) if status in order else 0)


def _alone(words: Sequence[str], kernel: str, seed: int) -> list[str]:
    """The command that repeats the run on one of several kernels."""
    kept, skip = [], False
    for word in words:
        if skip or word in ("--kernel", "--seed"):
            skip = not skip
        elif not word.startswith(("--kernel=", "--seed=")):
            kept.append(word)
    return [*kept, "--kernel", kernel, "--seed", str(seed)]


def _night(text: str) -> int:
    from plugpull.draw import night

    try:
        return night(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.what) from None


def check(arguments: argparse.Namespace) -> Rig:
    """Load the rig, and check everything except the kernels before pytest starts. Raises UsageError."""
    from plugpull.locate import scenarios_dir
    from plugpull.rig.load import load_rig

    rig = load_rig(rig_file(arguments))
    for path in arguments.path:
        if not Path(path.split("::")[0]).exists():
            raise UsageError(f"there is no scenario {path}", hint=f"the stock scenarios are in {scenarios_dir()}")
    for module in arguments.module:
        if not Path(module).is_file():
            raise UsageError(
                f"the module {module} does not exist",
                hint="pass --module the .ko file of a driver that was built for the kernel under test",
            )
    return rig


def check_kernels(arguments: argparse.Namespace, rig: Rig) -> None:
    """Check the kernels of the command line. Raises UsageError if one is unusable, RigError when the cache is full."""
    if rig.dut.kind != "virtual":
        return
    from plugpull.cache import Cache
    from plugpull.virtual.kernel import find_kernel

    for kernel in arguments.kernel:
        # The kernel is in the cache when the run needs it again.
        find_kernel(kernel, Cache.default(notify=_notify), notify=_notify)


def _notify(text: str) -> None:
    print(f"plugpull: {clean(text)}", file=sys.stderr)
