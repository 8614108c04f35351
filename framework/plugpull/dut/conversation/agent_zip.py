"""The agent as one zip file that python3 can run, to be sent to a DUT or put into a guest image."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from importlib import resources
from pathlib import Path

_MAIN = "from agent.__main__ import main\nmain()\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""One date for every file, so that equal sources give equal bytes and a cache can be keyed by them."""


def agent_zip() -> bytes:
    """The zip's bytes: the agent, and pyudev (pure Python; it needs libudev on the DUT and the agent does without
    where there is none)."""
    files: dict[str, bytes] = {"__main__.py": _MAIN.encode()}
    for entry in resources.files("plugpull.dut.agent").iterdir():
        if entry.name.endswith(".py"):
            files[f"agent/{entry.name}"] = entry.read_bytes()
    spec = importlib.util.find_spec("pyudev")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        for path in root.rglob("*.py"):
            files[f"pyudev/{path.relative_to(root)}"] = path.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), files[name])
    return buffer.getvalue()
