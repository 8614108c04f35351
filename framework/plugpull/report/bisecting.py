"""How to find the commit between two kernels, of which only one passes."""

from __future__ import annotations

import re


def bisection(scenario: str, good: str, bad: str) -> tuple[str, str]:
    """Two shell commands for a kernel tree. ``good`` and ``bad`` are the versions of the kernels."""
    name = re.sub(r"[^A-Za-z0-9_]", "", scenario.rpartition("::")[2].partition("[")[0])
    return (
        f"git bisect start BAD GOOD  # the commits of {_plain(bad)} and {_plain(good)}",
        f"git bisect run sh -c 'make -j8 || exit 125; plugpull bisect-step --kernel . -k {name}'",
    )


def _plain(text: str) -> str:
    """A kernel's version in a command."""
    return re.sub(r"[^A-Za-z0-9._+~-]", "_", text)[:80]
