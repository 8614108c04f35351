"""Numbers and foreign text as a reader should see them.

Kernel messages, serial numbers and tracebacks come from outside: they may hold anything that fits in a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from plugpull.judging.results import CutResult
from plugpull.plain import clean

CIRCUMSTANCES = (
    "after and as at before between by during for from if in on once or then through to under until when while with "
    "without"
)
"""First words of a scenario's name that need the name of its file to be understood."""
MECHANISMS = ("data", "vbus", "data+vbus", "mains", "logical")
"""In the order of their patterns."""
NONE = "\N{EN DASH}"
"""Shown where a value is missing."""


def one_line(text: str, limit: int = 200) -> str:
    """``text`` cleaned, on one line, cut to ``limit`` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def stamp(seconds: float | None) -> str:
    """A DUT time as the kernel log prints it, to the millisecond."""
    return NONE if seconds is None else f"{seconds:.3f}"


def offset(seconds: float | None) -> str:
    """A signed distance in time, such as ``+0.071 s``."""
    return NONE if seconds is None else f"{seconds:+.3f} s"


def duration(seconds: float | None) -> str:
    """A length of time: ``0.214 s``, ``12.3 s``, ``4 min 05 s``."""
    if seconds is None:
        return NONE
    if seconds < 10:
        return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def skew(seconds: float | None) -> str:
    """A short time between two things that were meant to be one: ``4.2 ms``."""
    if seconds is None or seconds >= 1:
        return duration(seconds)
    return f"{seconds * 1000:.1f} ms"


def error_bound(seconds: float) -> str:
    """The bound on a mapped time: ``± 0.8 ms``."""
    return f"± {seconds * 1000:.1f} ms" if seconds < 1 else f"± {seconds:.2f} s"


def rate(bytes_per_second: float | None) -> str:
    """Bytes per second in decimal units, as link and disk rates are quoted."""
    if bytes_per_second is None:
        return NONE
    for unit, scale in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_second >= scale:
            return f"{bytes_per_second / scale:.3g} {unit}"
    return f"{bytes_per_second:.0f} B/s"


def size(count: int) -> str:
    """Bytes in binary units, as memory is quoted."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value * 100:.0f} %"


def measure(value: float | None, unit: str) -> str:
    """What a check measured, in its unit (``CheckResult.unit``)."""
    if value is None or unit == "s":
        return duration(value)
    if unit == "B/s":
        return rate(value)
    return ratio(value) if unit == "of the baseline" else f"{value:g} {unit}".rstrip()


def title_of(scenario_id: str) -> str:
    """A pytest node id in words: ``scenarios/test_x.py::test_cable_cut[write]`` becomes ``cable cut (write)``.

    A name that only says when or where, such as ``test_while_idle``, is put after the words of its file.
    """
    path, _, function = scenario_id.rpartition("::")
    name, _, parameters = function.partition("[")
    words = _words(name) or scenario_id
    if words.split(" ", 1)[0] in CIRCUMSTANCES.split():
        words = f"{_words(path.rpartition('/')[2].removesuffix('.py'))} {words}".strip()
    return f"{words} ({parameters.rstrip(']')})" if parameters else words


def _words(name: str) -> str:
    return re.sub(r"^test_", "", name).replace("_", " ").strip()


def under_test(kernel: str, kind: str, accel: str = "", modules: Iterable[str] = (), host: str = "") -> str:
    """What is being tested, in words: the kernel, the machine that runs it, and replaced modules."""
    emulated = {"tcg": "emulated by TCG", "kvm": "with KVM"}.get(accel, accel)
    machine = {
        "virtual": f" in a QEMU guest{f' ({emulated})' if emulated else ''}",
        "local": " of this machine",
        "ssh": f" on {host or 'the DUT'}",
    }.get(kind, "")
    replaced = ", ".join(modules)
    return f"kernel {kernel or 'unknown'}{machine}" + (f", with {replaced} replaced" if replaced else "")


def hatch_of(mechanism: str) -> str:
    """The pattern that a cut of this mechanism is drawn with: the number in ``templates/symbols.html.j2``."""
    return str(MECHANISMS.index(mechanism)) if mechanism in MECHANISMS else "0"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts ``disk10`` after ``disk9``."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts)


def executed(cut: CutResult) -> bool:
    """Whether the switch obeyed: commanded, acknowledged, and its read-back, if it has one, agrees."""
    return cut.commanded_at is not None and cut.acknowledged_at is not None and cut.read_back is not False


def cuts_executed(cuts: Iterable[CutResult]) -> str:
    """``N of M cuts executed``."""
    planned = list(cuts)
    noun = "cut" if len(planned) == 1 else "cuts"
    return f"{sum(map(executed, planned))} of {len(planned)} {noun} executed"
