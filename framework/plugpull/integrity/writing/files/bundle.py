"""The program for the DUT as one zip file, which Python runs."""

from __future__ import annotations

import io
import zipfile
from importlib import resources

MODULES = (
    "plugpull.integrity.oracle.stamp_format",
    "plugpull.integrity.writing.files.scanner",
    "plugpull.integrity.writing.files.storm",
    "plugpull.integrity.writing.files.writer",
)
_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def file_program() -> bytes:
    """``__main__.py``, the modules that it needs, and empty packages around them. The same bytes every time."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), data)

        add("__main__.py", _source("plugpull.integrity.writing.files", "__main__"))
        packages = {module.rpartition(".")[0] for module in MODULES}
        for package in sorted({".".join(one.split(".")[:n]) for one in packages for n in range(1, one.count(".") + 2)}):
            add(f"{package.replace('.', '/')}/__init__.py", b"")
        for module in MODULES:
            package, _, name = module.rpartition(".")
            add(f"{module.replace('.', '/')}.py", _source(package, name))
    return made.getvalue()


def _source(package: str, name: str) -> bytes:
    return resources.files(package).joinpath(f"{name}.py").read_bytes()
