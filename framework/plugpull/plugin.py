"""The pytest plugin: options, the ``rig`` fixture, and verdicts in pytest's own reports.

Everything else is imported only when a test asks for the fixture. Projects that merely have the plugin installed do not
notice it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plugpull.output import SteadyOutput
from plugpull.plugin_stash import ITEMS, SKIPPED, STDOUT, VERDICT, stock_rig

if TYPE_CHECKING:
    from plugpull.plugin_session import PlugpullSession
    from plugpull.rig.model import Rig
    from plugpull.scenario import ScenarioRig
    from plugpull.soak import Soak

SESSION: pytest.StashKey[PlugpullSession] = pytest.StashKey()
RIG: pytest.StashKey[Rig] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("plugpull", "pull-the-plug testing of storage (plugpull)")
    group.addoption(
        "--rig", metavar="FILE", help="the rig file that describes the bench (default: the stock rig quick.toml)"
    )
    group.addoption(
        "--plugpull-kernel",
        metavar="KERNEL",
        help="virtual rigs: the kernel to test: an installed version, a .deb file, a kernel build tree, or a directory "
        "with boot/vmlinuz-VERSION and lib/modules/VERSION (default: the distribution's own)",
    )
    group.addoption(
        "--plugpull-module",
        metavar="FILE.ko",
        action="append",
        default=[],
        help="virtual rigs: load this build of a driver in place of the kernel's own; may be given several times",
    )
    group.addoption("--plugpull-out", metavar="DIR", help="where run directories are made (default: runs)")
    group.addoption(
        "--plugpull-seed", metavar="N", type=int, help="repeat the random choices of the run that recorded this seed"
    )
    group.addoption(
        "--plugpull-accel",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        help="virtual rigs: run the guest with KVM or emulated (default: auto, KVM if a trial guest starts)",
    )
    _add_choices(group)
    group.addoption(
        "--plugpull-for",
        metavar="LENGTH",
        help="run only soaks, for so long: 90s, 2h, 4d (default: soaks are left out)",
    )
    group.addoption("--plugpull-resume", metavar="RUN", help="go on with the soak in this run directory")
    group.addoption("--plugpull-command", action="append", default=[], help=argparse.SUPPRESS)


def _add_choices(group: pytest.OptionGroup) -> None:
    """Add the options that choose scenarios and victims."""
    group.addoption(
        "--plugpull-every-victim",
        action="store_true",
        help="run each scenario that chooses a disk or a hub once with each of those it could choose",
    )
    group.addoption(
        "--plugpull-rotate",
        metavar="N|today",
        help="take victims in turn instead of drawing them: N is the number of the night, today that of this day",
    )
    group.addoption(
        "--plugpull-repeats", metavar="N", type=int, help="how often a study measures each condition (default: 5)"
    )
    group.addoption(
        "--plugpull-studies",
        choices=("too", "only", "none"),
        default="too",
        help="whether to run studies, which measure and cut nothing (default: too)",
    )
    group.addoption(
        "--plugpull-shard",
        metavar="I/N",
        help="run only every N-th scenario, beginning with the I-th, so that N machines share the run",
    )
    group.addoption("--plugpull-rows", metavar="X01,X06", help="only scenarios marked with one of these rows")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # Capturing begins after this. The run's progress must still reach the terminal, and must not wait for it.
        config.stash[STDOUT] = sys.stdout if isinstance(sys.stdout, SteadyOutput) else _steady_stdout()
    config.addinivalue_line("markers", "row(id): the experiment that this scenario stands for, such as X06")
    config.addinivalue_line("markers", "study(design=FUNCTION): it measures this design of disks and cuts nothing")
    if config.getoption("--plugpull-shard"):
        _choose_shard(config)


def _choose_shard(config: pytest.Config) -> None:
    from plugpull.errors import UsageError
    from plugpull.jobs.shard import ShardPlugin, shard_of

    try:
        shard = shard_of(config.getoption("--plugpull-shard"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(ShardPlugin(shard), "plugpull-shard")


def pytest_unconfigure(config: pytest.Config) -> None:
    stdout = config.stash.get(STDOUT, None)
    if stdout is not None and stdout is not sys.stdout:
        stdout.close()


def _steady_stdout() -> SteadyOutput:
    with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace") as stdout:
        return SteadyOutput(stdout)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plugpull_victim" not in metafunc.fixturenames or not metafunc.config.getoption("--plugpull-every-victim"):
        return
    from plugpull.draw import candidates_of

    names = candidates_of(metafunc.function, _rig_of(metafunc.config))
    if names:  # without any, it runs once and reports why it cannot be served
        metafunc.parametrize("plugpull_victim", names, indirect=True, ids=names)


def _rig_of(config: pytest.Config) -> Rig:
    """The rig of ``--rig``, read once. Raises pytest.UsageError."""
    if RIG not in config.stash:
        from plugpull.errors import UsageError
        from plugpull.rig.load import load_rig

        try:
            config.stash[RIG] = load_rig(Path(config.getoption("--rig") or stock_rig()))
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[RIG]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rows, studies = config.getoption("--plugpull-rows"), config.getoption("--plugpull-studies")
    lasting = bool(config.getoption("--plugpull-for") or config.getoption("--plugpull-resume"))
    kept = [item for item in items if is_soak(item) == lasting]
    if studies != "too":
        only = studies == "only"
        kept = [item for item in kept if (item.get_closest_marker("study") is not None) == only]
    if rows:
        wanted = set(rows.split(","))
        named = [
            item for item in kept if any(mark.args[:1] and mark.args[0] in wanted for mark in item.iter_markers("row"))
        ]
        # A rig file that names no row of a study leaves the choice of studies open.
        kept = named if named or studies != "only" else kept
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def is_soak(item: pytest.Item) -> bool:
    """True if this test uses plugpull's ``soak`` fixture."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(definition.func.__module__ == __name__ for definition in known.get("soak", ()))


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[ITEMS] = list(session.items)


def _session(config: pytest.Config) -> PlugpullSession:
    """The run; it begins when the first scenario needs it."""
    if SESSION not in config.stash:
        from plugpull.plugin_session import PlugpullSession

        config.stash[SESSION] = PlugpullSession(config)
        config.pluginmanager.register(config.stash[SESSION], "plugpull-session")
    return config.stash[SESSION]


@pytest.fixture
def plugpull_victim(request: pytest.FixtureRequest) -> str:
    """The disk or hub that the scenario chooses first, with ``--every-victim``; empty: it is drawn."""
    return str(getattr(request, "param", ""))


@pytest.fixture
def rig(request: pytest.FixtureRequest, plugpull_victim: str) -> Generator[ScenarioRig]:
    """The rig of ``--rig``, with every declared disk attached: choose a victim, load, cut, judge.

    Each scenario gets a new bench, and all its actions are recorded. The checks that it passes to ``rig.judge`` decide
    whether the test passes, fails or ends UNKNOWN.
    """
    session = _session(request.config)
    with session.scenario(request.node, plugpull_victim) as scenario:
        yield scenario


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> Generator[Soak]:
    """A run that lasts, for as long as ``plugpull run --for`` says: ``for turn in soak.turns(): with turn as rig: ...``

    Every turn is a scenario of the run, with its own verdict; a disk that does not come back is left out of the next.
    """
    with _session(request.config).soak(request.node) as soak:
        yield soak


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    session = pyfuncitem.config.stash.get(SESSION, None)
    if session is not None and is_soak(pyfuncitem):
        result = yield
        session.conclude_soak(pyfuncitem)
        return result
    if session is None or "rig" not in pyfuncitem.funcargs:
        return (yield)
    try:
        result = yield
    except (Exception, KeyboardInterrupt, pytest.skip.Exception, pytest.fail.Exception) as error:
        session.raised(error)
        if isinstance(error, KeyboardInterrupt):
            raise
        result = None
    session.conclude(pyfuncitem)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    session = item.config.stash.get(SESSION, None)
    if session is not None and call.excinfo is not None:
        session.erred(item, call.when, call.excinfo.value)
    report = yield
    if session is not None:
        session.annotate(item, report)
    elif report.skipped and report.when == "setup":
        item.config.stash.setdefault(SKIPPED, []).append((item, _reason(report)))
    return report


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return str(where[2]).removeprefix("Skipped: ") if isinstance(where, tuple) else str(where or "")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    verdict = getattr(report, VERDICT, None)
    if verdict is None or report.when != "call":
        return None
    category = {"PASS": "passed", "FAIL": "failed"}.get(verdict, "unknown")
    return category, {"PASS": ".", "FAIL": "F"}.get(verdict, "?"), verdict


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    # pytest's own hook tears fixtures down (also after Ctrl-C). The run ends after the last of them, and before the
    # terminal's wrapper, which is around this one, prints the summary.
    try:
        yield
    finally:
        # This restores ports that are off, even after a failure such as a terminal that hung up.
        ours = session.config.stash.get(SESSION, None)
        if ours is not None and not hasattr(session.config, "workerinput"):
            session.exitstatus = ours.finish(int(session.exitstatus))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.summarize(terminalreporter)
