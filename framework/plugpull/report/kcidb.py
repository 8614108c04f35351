"""KCIDB 5.3, the format in which results are submitted to KernelCI (https://docs.kernelci.org/kcidb/).

A checkout and a build per kernel, a test per scenario, and a test per measured value. UNKNOWN is ``ERROR``: the test
has no verdict. The format allows no other fields, so everything of plugpull's own is in ``misc``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from plugpull.errors import UsageError
from plugpull.judging.results import Measurement, Results, ScenarioResult, Verdict
from plugpull.plain import clean

ORIGIN = re.compile(r"[a-z0-9_]+")
STATUS = {Verdict.PASS: "PASS", Verdict.FAIL: "FAIL", Verdict.UNKNOWN: "ERROR"}
NO_KERNEL = "unknown kernel"


def render_kcidb(results: Results, origin: str = "plugpull") -> str:
    """The run as one KCIDB document. ``origin`` names the submitting system. Raises UsageError if it is not valid."""
    if not ORIGIN.fullmatch(origin):
        raise UsageError(
            f"{origin!r} is not a KCIDB origin", hint="use lower-case letters, digits and _ only, such as my_lab"
        )
    return json.dumps(_Document(results, origin).data(), indent=2) + "\n"


class _Document:
    def __init__(self, results: Results, origin: str) -> None:
        self._results, self._origin = results, origin
        identity = json.dumps([results.rig, results.started, results.seed, [one.id for one in results.scenarios]])
        self._run = hashlib.sha256(identity.encode()).hexdigest()[:24]
        kernels = [one.kernel or results.dut.kernel or NO_KERNEL for one in results.scenarios]
        self._kernels = list(dict.fromkeys(kernels or [results.dut.kernel or NO_KERNEL]))

    def data(self) -> dict[str, Any]:
        return {
            "version": {"major": 5, "minor": 3},
            "checkouts": [self._checkout(number, kernel) for number, kernel in enumerate(self._kernels)],
            "builds": [self._build(number, kernel) for number, kernel in enumerate(self._kernels)],
            "tests": [*self._tests(), *self._skipped(), *self._whole()],
        }

    def _id(self, *parts: object) -> str:
        return ":".join([self._origin, ".".join([self._run, *map(str, parts)])])

    def _checkout(self, number: int, kernel: str) -> dict[str, Any]:
        checkout = {
            "id": self._id("checkout", number),
            "origin": self._origin,
            "comment": clean(f"Linux {kernel}"),
            "misc": {"kernel": clean(kernel)},
        }
        started = _timestamp(self._results.started)
        return checkout | ({"start_time": started} if started else {})

    def _build(self, number: int, kernel: str) -> dict[str, Any]:
        return {
            "id": self._id("build", number),
            "origin": self._origin,
            "checkout_id": self._id("checkout", number),
            "status": "PASS",
            "comment": clean(f"Linux {kernel}, as it was installed"),
            "misc": {"modules": [clean(module) for module in self._results.dut.modules]},
        }

    def _test(self, number: object, path: str, status: str, kernel: str = "") -> dict[str, Any]:
        known = kernel or self._results.dut.kernel or NO_KERNEL
        build = self._kernels.index(known) if known in self._kernels else 0
        return {
            "id": self._id("test", number),
            "origin": self._origin,
            "build_id": self._id("build", build),
            "path": path,
            "status": status,
            "environment": {"comment": clean(f"rig {self._results.rig} ({self._results.dut.kind})")},
        }

    def _tests(self) -> Iterable[dict[str, Any]]:
        for number, scenario in enumerate(self._results.scenarios):
            test = self._test(number, path_of(scenario.id), STATUS[scenario.verdict], scenario.kernel)
            yield test | {"comment": clean(scenario.sentence), "duration": scenario.seconds, "misc": _misc(scenario)}
            for place, one in enumerate(scenario.measurements):
                yield self._measured(f"{number}.{place}", scenario, one)

    def _measured(self, number: str, scenario: ScenarioResult, one: Measurement) -> dict[str, Any]:
        """A value is DONE and not PASS: nothing was claimed about it."""
        path = path_of("::".join([scenario.id, one.check, one.name, one.subject]))
        known = {"n": one.n, "samples": list(one.samples), "low": one.low, "high": one.high, "better": one.better}
        return self._test(number, path, "DONE", scenario.kernel) | {
            "number": {"value": one.value, "unit": clean(one.unit) or "1", "prefix": "metric"},
            "misc": known | {"parameters": _builtin(one.parameters)},
        }

    def _skipped(self) -> Iterable[dict[str, Any]]:
        for number, skipped in enumerate(self._results.skipped):
            yield self._test(f"skipped.{number}", path_of(skipped.id), "SKIP") | {"comment": clean(skipped.reason)}

    def _whole(self) -> Iterable[dict[str, Any]]:
        """What is unknown of the run as a whole."""
        if self._results.unknowns:
            test = self._test("run", "plugpull.run", "ERROR")
            yield test | {"comment": clean("; ".join(self._results.unknowns))}


def path_of(name: str) -> str:
    """A name as the path of a KCIDB test: words of letters, digits, ``_`` and ``-``, joined by dots."""
    words = (re.sub(r"[^A-Za-z0-9_-]+", "_", part).strip("_") for part in re.split(r"::|/", name.replace(".py", "")))
    return ".".join(["plugpull", *(word for word in words if word)])


def _misc(scenario: ScenarioResult) -> dict[str, Any]:
    return {
        "id": clean(scenario.id),
        "row": clean(scenario.row),
        "seed": scenario.seed,
        "findings": _builtin(scenario.findings),
        "unknowns": _builtin(scenario.unknowns),
        "cuts": [clean(f"{cut.point} ({cut.mechanism}), {cut.trigger}") for cut in scenario.cuts],
    }


def _builtin(value: Any) -> Any:
    """As JSON has it, with every text made safe to show."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, str):
        return clean(plain)
    if isinstance(plain, dict):
        return {clean(str(key)): _builtin(one) for key, one in plain.items()}
    return [_builtin(one) for one in plain] if isinstance(plain, list | tuple) else plain


def _timestamp(text: str) -> str:
    """An RFC 3339 time; empty if this is not one with an offset."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return ""
    return at.isoformat() if at.tzinfo is not None else ""
