"""What is built for PyPI: the plugin, the command and the stock scenarios, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from plugpull import __version__

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_the_plugin_the_command_and_the_scenarios(wheel: Path) -> None:
    assert wheel.name == f"pytest_plugpull-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert "plugpull = plugpull.cli:main" in entry_points
    assert "plugpull = plugpull.plugin" in entry_points
    assert {name.split("/")[0] for name in names} == {"plugpull", f"pytest_plugpull-{__version__}.dist-info"}
    for path in (TOP / "scenarios").glob("test_*.py"):
        assert f"plugpull/stock/scenarios/{path.name}" in names
    assert "plugpull/stock/conftest.py" in names
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


def test_the_installed_package_finds_its_own_scenarios(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    body = "from plugpull.locate import *; print(checkout(), scenarios_dir(), rigs_dir().is_dir())"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {body}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout.split() == ["None", str(tmp_path / "plugpull/stock/scenarios"), "True"]


def test_the_installed_command_starts_pytest_without_a_warning(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "test_none.py").write_text("def test_none(): pass\n")
    body = (
        "import pytest, plugpull.cli; print(plugpull.__file__); raise SystemExit(pytest.main(['-q', 'test_none.py']))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", body],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout.startswith(str(tmp_path)), "another plugpull was imported"
    assert "1 passed" in answer.stdout
    assert "Warning" not in answer.stdout + answer.stderr


def test_the_lock_file_names_hashes_and_no_host() -> None:
    text = (TOP / "requirements.lock").read_text()
    assert "://" not in text
    assert "--index-url" not in text
    for requirement in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in requirement, requirement
