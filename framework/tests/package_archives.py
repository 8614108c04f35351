"""Packages made up for tests, and apt with an archive of them as its only source."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from plugpull.setup.apt import Apt


def deb(folder: Path, name: str, version: str, depends: str = "", content: Path | None = None) -> str:
    """Build a package with dpkg-deb; returns its paragraph for a Packages file."""
    build = folder / f"build-{name}"
    if content is not None:
        shutil.copytree(content, build)
    (build / "DEBIAN").mkdir(parents=True)
    needs = f"Depends: {depends}\n" if depends else ""
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <n@example.org>\n{needs}"
    control += "Description: test\n"
    (build / "DEBIAN" / "control").write_text(control)
    path = folder / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", build, path], check=True, capture_output=True)
    shutil.rmtree(build)
    data = path.read_bytes()
    return f"{control}Filename: ./{path.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"


def apt_for(folder: Path, packages: list[str]) -> Apt:
    """apt as if ``folder`` were the only archive there is."""
    (folder / "Packages").write_text("\n".join(packages))
    state = folder / "state"
    for path in ("lists/partial", "archives/partial", "parts"):
        (state / path).mkdir(parents=True)
    (state / "sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")
    options = (
        f"Dir::Etc::SourceList={state}/sources.list", f"Dir::Etc::SourceParts={state}/parts",
        f"Dir::State::Lists={state}/lists", f"Dir::Cache={state}", "APT::Sandbox::User=root",
    )  # fmt: skip
    return Apt(tuple(word for option in options for word in ("-o", option)))
