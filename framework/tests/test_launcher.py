"""The real launcher, in a made-up checkout whose environment is quick to make and needs no network."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugpull.locate import checkout, rigs_dir, scenarios_dir
from plugpull.setup import packages
from plugpull.setup.environment import BUILDERS, environment_key, locked
from plugpull.setup.packages import PACKAGES, Package, apt_command, groups_for, missing
from plugpull.setup.place import SetupError, cache_root

DEADLINE = 300.0
TOP = Path(__file__).resolve().parents[2]

# A build backend in the tree: hatchling would have to be downloaded.
BACKEND = """
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    info = "pytest_plugpull-0.dist-info/"
    name = "pytest_plugpull-0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        code = "import sys\\ndef main():\\n    print('the command', sys.argv[1:], sys.prefix)\\n"
        wheel.writestr("stub_cli.py", code)
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: pytest-plugpull\\nVersion: 0\\n")
        kind = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\n" + kind)
        wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nplugpull = stub_cli:main\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def checkout_in(folder: Path) -> Path:
    """A checkout with nothing in it but the launcher and what it needs."""
    top = folder / "checkout"
    shutil.copytree(TOP / "framework/plugpull/setup", top / "framework/plugpull/setup")
    for module in ("__init__.py", "errors.py", "exit_status.py"):
        shutil.copy(TOP / "framework/plugpull" / module, top / "framework/plugpull")
    shutil.copy(TOP / "plugpull", top)
    (top / "backend.py").write_text(BACKEND)
    (top / "pyproject.toml").write_text(PYPROJECT)
    (top / "requirements.lock").write_text("")
    return top


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return checkout_in(tmp_path)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment was made."""
    top = checkout_in(tmp_path_factory.mktemp("ready"))
    assert finish(start(top, "log"))[0] == 0
    return top


def start(top: Path, *words: str, **environ: str) -> subprocess.Popen[str]:
    env = os.environ | {"PLUGPULL_CACHE": str(top.parent / "cache")} | environ
    return subprocess.Popen(
        [sys.executable, top / "plugpull", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


def environments(top: Path) -> list[Path]:
    return sorted(path for path in (top.parent / "cache/env").iterdir() if path.is_dir())


def test_one_environment_is_made_through_a_kill_and_a_race(small: Path) -> None:
    killed = start(small, "log")
    deadline = time.monotonic() + DEADLINE
    while not list((small.parent / "cache").glob("env/*/content/bin/python")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=DEADLINE)

    # Settings that would make pip install elsewhere, or refuse the checkout, must not lead it astray.
    elsewhere = small.parent / "elsewhere"
    astray = {"PIP_USER": "1", "PIP_TARGET": str(elsewhere), "PIP_REQUIRE_HASHES": "1"}
    both = [finish(process) for process in [start(small, "log", "a b", **astray) for _ in range(2)]]
    assert not elsewhere.exists()
    (place,) = environments(small)
    for status, out, _ in both:
        assert status == 0
        assert out == f"the command ['log', 'a b'] {place / 'content'}\n"
    assert sum("making the Python environment" in err for _, _, err in both) == 1

    # From then on it says nothing and is the command.
    assert finish(start(small, "cache")) == (0, f"the command ['cache'] {place / 'content'}\n", "")


def test_an_environment_belongs_to_a_checkout_and_what_it_locks(small: Path, tmp_path: Path) -> None:
    first = environment_key(str(small))
    assert environment_key(str(small)) == first
    other = shutil.copytree(small, tmp_path / "other")
    assert environment_key(str(other)) != first
    (small / "requirements.lock").write_text("# changed\n")
    assert environment_key(str(small)) != first
    with pytest.raises(SetupError, match="No such file"):
        environment_key(str(tmp_path / "nowhere"))


def test_a_package_that_cannot_be_had_is_told_with_pips_words(small: Path) -> None:
    (small / "requirements.lock").write_text("no-such-thing==1.0 --hash=sha256:" + "0" * 64 + "\n")
    status, _, err = finish(start(small, "log", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(small)))
    assert status == 2
    assert "No matching distribution found for no-such-thing==1.0" in err
    assert "hint: see the full output in" in err
    assert not list(environments(small)[0].glob("entry.json"))


def test_a_cache_that_cannot_be_made_is_told_with_the_way_out(small: Path) -> None:
    (small.parent / "cache").write_text("in the way")
    status, _, err = finish(start(small, "log"))
    assert status == 2
    assert "cannot be written" in err
    assert "PLUGPULL_CACHE" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("part", ["", "env", "env/*[!k]", "env/*/content"])
def test_an_environment_that_another_user_made_is_not_run(ready: Path, part: str) -> None:
    cache = ready.parent / "cache"
    (victim,) = cache.glob(part) if part else [cache]
    os.chown(victim, 65534, 65534)
    try:
        status, out, err = finish(start(ready, "log"))
    finally:
        os.chown(victim, os.geteuid(), os.getegid())
    assert (status, out) == (2, "")
    assert f"{victim} belongs to uid 65534, but this process has uid 0" in err
    assert "PLUGPULL_CACHE" in err


def test_where_the_cache_is() -> None:
    assert cache_root({"PLUGPULL_CACHE": "/x", "XDG_CACHE_HOME": "/y"}) == "/x"
    assert cache_root({"XDG_CACHE_HOME": "/y", "HOME": "/h"}) == "/y/plugpull"
    assert cache_root({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == "/h/.cache/plugpull"
    assert cache_root({}).endswith("/.cache/plugpull")


def test_what_is_published_as_source_is_built_by_what_the_lock_file_has() -> None:
    """pip would fetch a build backend for it, unpinned."""
    lock = str(TOP / "requirements.lock")
    builders = locked(lock, BUILDERS).splitlines()
    assert [line.split("==")[0] for line in builders if "==" in line] == list(BUILDERS)
    assert all("--hash=sha256:" in line for line in builders if "==" not in line)
    assert len(builders) > len(BUILDERS)
    assert locked(lock, ("no-such-package",)) == ""


def test_every_package_of_the_lock_file_has_hashes() -> None:
    entries = (TOP / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in entry for entry in entries if entry.strip() and not entry.startswith("#"))


def test_what_a_command_needs() -> None:
    assert groups_for([]) == {"base"}
    assert groups_for(["log", "FILE"]) == {"base"}
    assert groups_for(["run", "--help"]) == {"base"}
    assert groups_for(["run", "-k", "cable"]) == {"base", "bench"}
    assert groups_for(["test"]) == {"base", "bench", "test"}
    assert {package.group for package in PACKAGES} == {"base", "bench", "test"}


def test_packages_are_found_by_what_they_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = Package("fio", ("plugpull-no-such-tool", f"{tmp_path}/file-*|{tmp_path}/other"), "loads the disks")
    assert missing(["bench"], [wanted]) == [wanted]
    tool = tmp_path / "plugpull-no-such-tool"
    tool.write_text("")
    tool.chmod(0o755)
    assert missing(["bench"], [wanted]) == [wanted]
    (tmp_path / "other").write_text("")
    assert missing(["bench"], [wanted]) == []
    assert missing(["base"], [wanted]) == []


def test_nothing_is_removed_and_nothing_recommended_comes_along() -> None:
    command = apt_command(["fio"])
    assert "--no-remove" in command
    assert "--no-install-recommends" in command
    if shutil.which("apt-get"):
        assert subprocess.run([*command, "--simulate"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that other users reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="plugpull-test-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is what is refused here")
def test_without_rights_the_exact_command_is_given(open_folder: Path) -> None:
    (open_folder / "apt-get").symlink_to(shutil.which("apt-get") or "")
    body = f"""
import os, sys
from plugpull.setup import launch
os.environ |= {{"PATH": {str(open_folder)!r}, "PLUGPULL_CACHE": {str(open_folder / "cache")!r}}}
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
sys.exit(launch.main("/nowhere", ["run"]))
"""
    answer = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=False)
    assert answer.returncode == 2, answer.stderr
    assert "fio               loads the disks" in answer.stderr
    command = next(line for line in answer.stderr.splitlines() if "hint: run: " in line)
    assert f"sudo apt-get update && sudo {' '.join(apt_command([]))} " in command
    assert " fio " in command


def test_an_optional_package_is_gone_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no apt-get either
    browser = Package("browser", ("plugpull-no-such-tool",), "looks at reports", "test", optional=True)
    needed = browser._replace(name="needed", optional=False)
    assert packages.install([browser], str(tmp_path / "log"), lambda _, work: work()) == [browser]
    with pytest.raises(SetupError, match="by hand: needed"):
        packages.install([browser, needed], str(tmp_path / "log"), lambda _, work: work())


def test_an_old_python_can_at_least_read_the_launcher() -> None:
    ast.parse((TOP / "plugpull").read_text(), feature_version=(3, 5))


def test_an_old_python_is_told_politely(tmp_path: Path) -> None:
    folders = [Path("/usr/bin"), *Path.home().glob(".pyenv/versions/3.*/bin")]
    old = next((path for folder in folders for path in folder.glob("python3.[6-9]") if path.exists()), None)
    old = old or next((folder / "python3.10" for folder in folders if (folder / "python3.10").exists()), None)
    if old is None:
        pytest.skip("no Python before 3.11 on this machine")
    answer = subprocess.run(
        [old, TOP / "plugpull", "log"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "plugpull needs Python 3.11 or newer" in answer.stderr


def test_starting_up_imports_nothing_that_has_to_be_installed() -> None:
    body = "import sys; import plugpull.setup.launch; print(*{name.split('.')[0] for name in sys.modules})"
    environ = os.environ | {"PYTHONPATH": str(TOP / "framework")}
    answer = subprocess.run([sys.executable, "-S", "-c", body], env=environ, capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()) - {"plugpull", "__main__"} <= sys.stdlib_module_names


def test_a_checkout_is_used_where_it_is() -> None:
    assert checkout() == TOP
    assert scenarios_dir() == TOP / "scenarios"
    assert rigs_dir() == TOP / "rigs"
