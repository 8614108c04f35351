"""A picture of a report, taken by a headless Chromium. The command is in ``commands/screenshot.py``.

The page is rendered twice: once to learn how tall it is, once for the picture. The browser runs in a process group
of its own that is ended whatever happens, with a profile that is thrown away, and may reach no host.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from plugpull.errors import RigError, UsageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
DEADLINE = 90.0
"""Seconds one start of the browser may take, on a machine that is busy."""
TALLEST = 16000
"""Pixels; Chromium draws nothing taller."""
DARK = "--blink-settings=preferredColorScheme=0"


def find_browser() -> str:
    """The path of a Chromium. Raises ``UsageError`` when there is none."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        raise UsageError(
            f"none of {', '.join(BROWSERS)} is installed",
            hint="apt-get install --no-install-recommends chromium",
        )
    return found


def browse(url: str, *options: str, deadline: float = DEADLINE) -> tuple[str, str]:
    """Start Chromium on ``url`` and return what it wrote to (stdout, stderr).

    Raises ``UsageError`` without a browser and ``RigError`` when it fails or takes more than ``deadline`` seconds.
    """
    browser = find_browser()
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="plugpull-browser-", ignore_cleanup_errors=True) as profile:
        command = [browser, *FLAGS, *sandbox, f"--user-data-dir={profile}", *options, url]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            raise RigError(
                f"{browser} did not finish within {deadline:.0f} s", hint="try again on a quieter machine"
            ) from None
        finally:
            _end(process)
    if process.returncode != 0:
        raise RigError(f"{browser} ended with status {process.returncode}: {err.strip()[-400:]}")
    return out, err


def _end(process: subprocess.Popen[str]) -> None:
    """End the browser with its helpers; they are of its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def screenshot(page: Path, picture: Path, *, width: int = 1200, dark: bool = False, fragment: str = "") -> None:
    """Write a PNG of the whole page. ``fragment``: ``all`` unfolds everything, ``zoom`` shows the zoomable charts."""
    url = page.resolve().as_uri() + (f"#{fragment}" if fragment else "")
    theme = (DARK,) if dark else ()
    dom, _ = browse(url, "--dump-dom", f"--window-size={width},1000", *theme)
    height = re.search(r'<body[^>]*\bdata-height="(\d+)"', dom)
    tall = min(int(height[1]) if height else 2000, TALLEST)
    target = picture.resolve()
    browse(url, f"--screenshot={target}", f"--window-size={width},{tall}", *theme)
    if not target.is_file():
        raise RigError(f"the browser wrote no picture to {target}")


def page_of(place: Path) -> Path:
    """The report of a run directory, or the HTML file itself. Raises ``UsageError`` when there is neither."""
    page = place / "report.html" if place.is_dir() else place
    if not page.is_file():
        raise UsageError(f"{page} does not exist", hint="give a run directory or an HTML file")
    return page
