"""Mounts that nobody else sees: what unshare needs for them, and whether it is here."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest


@cache
def why_no_mounts() -> str:
    """Why mounts of one's own cannot be made here; empty if they can. They need root, and a root directory that is a
    mount point, which a plain chroot's is not."""
    if shutil.which("unshare") is None:
        return "there is no unshare"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"mounts cannot be made where nobody else sees them: {done.stderr.strip()}"


def require_mounts() -> None:
    """Skip the test where mounts of one's own cannot be made."""
    if reason := why_no_mounts():
        pytest.skip(reason)
