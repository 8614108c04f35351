"""Finds kernels for the guest: a package, an installed kernel, a directory or a build tree.

Nothing is installed: packages are unpacked into the cache, and the machine's own ``/boot`` is only read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.cache import Cache
from plugpull.errors import UsageError
from plugpull.setup.apt import DEFAULT_KERNELS, Apt, KernelSource
from plugpull.virtual.chosen_packages import chosen_packages
from plugpull.virtual.kernel_modules import ModuleIndex, kmod_tool, module_name, read_module, required

__all__ = ["NEEDED", "KernelTree", "find_kernel", "missing_modules", "module_name", "read_module", "required_modules"]

NEEDED = ("xhci-pci", "usb-storage", "uas", "sd_mod", "virtio_pci", "virtio_console")
"""Modules that the virtual bench requires."""

_PACKAGE_BYTES = 500 << 20
_KINDS = (
    "pass --kernel a version installed here (6.1.0-56-amd64), a kernel package of the distribution, .deb files, a "
    "kernel build tree, a directory with boot/vmlinuz-VERSION and lib/modules/VERSION, or IMAGE,MODULES-DIRECTORY"
)


@dataclass(frozen=True)
class KernelTree:
    """A bootable kernel. ``modules`` is a ``lib/modules/VERSION`` directory that depmod has indexed.

    ``digest`` changes when the image or a module does; ``source`` describes the origin for people.
    """

    version: str
    image: Path
    modules: Path
    source: str
    digest: str

    @cached_property
    def index(self) -> ModuleIndex:
        """Its modules. Raises UsageError when depmod has not indexed them."""
        return ModuleIndex.read(self.modules)


def find_kernel(
    spec: str | None,
    cache: Cache,
    *,
    apt: Apt | None = None,
    root: Path = Path("/"),
    notify: Callable[[str], None] = lambda _: None,
) -> KernelTree:
    """Find the kernel that ``spec`` names, or the distribution's default kernel if it is ``None``.

    ``_KINDS`` lists the forms of ``spec``; ``root`` is the root directory of installed kernels. Raises UsageError with
    the possible forms, and RigError when the cache is full.
    """
    source = KernelSource(cache.root / "apt", notify, apt or Apt())
    if spec is None:
        tree = _from_packages(DEFAULT_KERNELS, source, cache, notify)
    elif "," in spec or "/" in spec or Path(spec).exists():
        tree = _from_paths([Path(part).expanduser().absolute() for part in spec.split(",")], cache, notify)
    elif (root / "lib/modules" / spec).is_dir() and _readable(root / f"boot/vmlinuz-{spec}"):
        tree = _tree(spec, root / f"boot/vmlinuz-{spec}", root / "lib/modules" / spec, "installed here")
    else:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+~_-]*", spec):
            raise UsageError(f"{spec!r} does not name a kernel", hint=_KINDS)
        names = [spec] if spec.startswith("linux-image-") else [f"linux-image-{spec}"]
        tree = _from_packages(names, source, cache, notify)
    _check_usable(tree)
    return tree


def missing_modules(tree: KernelTree, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that the kernel has neither as a module nor built in."""
    return [name for name in names if not tree.index.has(name)]


def required_modules(tree: KernelTree, wanted: list[str], overrides: Mapping[str, Path] | None = None) -> list[Path]:
    """Files to load for ``wanted`` and ``overrides``, in order.

    ``overrides`` (module name -> file) replace the kernel's own. Files may be compressed: ``read_module`` decompresses
    them. Raises UsageError.
    """
    return required(tree.index, wanted, overrides or {})


# --- packages ----------------------------------------------------------------------------------------------


def _from_packages(
    names: Sequence[str], source: KernelSource, cache: Cache, notify: Callable[[str], None]
) -> KernelTree:
    packages = chosen_packages(cache, source.apt, "kernel", names, lambda: source.resolve(names))
    title = ", ".join(map(str, packages))

    def build(place: Path) -> None:
        with TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as folder:
            notify(f"downloading {title} (it is unpacked, not installed)")
            _unpack(source.fetch(packages, Path(folder)), place, Path(folder) / "unpacked")

    place = cache.get("kernel", _key("pkg", title), build, description=title, needs=_PACKAGE_BYTES)
    return _only_tree(place, title)


def _unpack(debs: Sequence[Path], place: Path, stage: Path) -> None:
    """Unpack the parts of kernel packages that a guest needs into ``place``, and index the modules with depmod."""
    for deb in debs:
        answer = subprocess.run(["dpkg-deb", "-x", str(deb), str(stage)], capture_output=True, text=True, check=False)
        if answer.returncode:
            raise UsageError(f"{deb} cannot be unpacked: {answer.stderr.strip()}")
    # Newer packages have /usr/lib/modules.
    modules = next((path for path in (stage / "lib/modules", stage / "usr/lib/modules") if path.is_dir()), None)
    images = sorted((stage / "boot").glob("vmlinuz-*"))
    if modules is None or not images:
        lacks = "modules" if modules is None else "kernel image"
        raise UsageError(
            f"no {lacks} found in {', '.join(deb.name for deb in debs)}",
            hint="Ubuntu's kernels are two packages: give linux-image-... and linux-modules-..., separated by a comma",
        )
    shutil.move(str(stage / "boot"), str(place / "boot"))
    (place / "lib").mkdir()
    shutil.move(str(modules), str(place / "lib/modules"))
    for image in images:
        _depmod(place, image.name.removeprefix("vmlinuz-"))


def _depmod(place: Path, version: str) -> None:
    # A depmod built for merged /usr expects usr/lib/modules.
    (place / "usr").mkdir(exist_ok=True)
    if not (place / "usr/lib").exists():
        (place / "usr/lib").symlink_to("../lib")
    answer = subprocess.run(
        [kmod_tool("depmod"), "-b", str(place), version], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise UsageError(f"depmod cannot index the modules of {version}: {answer.stderr.strip()}")


# --- files and directories ---------------------------------------------------------------------------------


def _from_paths(paths: Sequence[Path], cache: Cache, notify: Callable[[str], None]) -> KernelTree:
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist", hint=_KINDS)
    if all(path.suffix == ".deb" for path in paths):
        return _from_debs(paths, cache)
    first = paths[0]
    if len(paths) == 2 and first.is_file() and paths[1].is_dir():
        return _tree(paths[1].name, first, paths[1], f"{first} with {paths[1]}")
    if len(paths) > 1:
        raise UsageError(f"{', '.join(map(str, paths))}: not all of these are .deb files", hint=_KINDS)
    if first.is_file():
        # A bzImage inside a build tree stands for that tree.
        if first.name == "bzImage" and (first.absolute().parents[3] / "include/config").is_dir():
            return _from_build(first.absolute().parents[3], cache, notify)
        raise UsageError(f"{first} comes without modules", hint=f"write {first},MODULES-DIRECTORY; or {_KINDS}")
    if debs := sorted(first.glob("*.deb")):
        return _from_debs(debs, cache)
    if (first / "include/config").is_dir() or (first / "modules.order").is_file() or (first / "Kbuild").is_file():
        return _from_build(first, cache, notify)
    return _only_tree(first, str(first))


def _from_debs(debs: Sequence[Path], cache: Cache) -> KernelTree:
    title = ", ".join(deb.name for deb in debs)
    digest = sha256()
    for deb in debs:
        digest.update(deb.read_bytes())

    def build(place: Path) -> None:
        with TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as folder:
            _unpack(debs, place, Path(folder))

    place = cache.get("kernel", f"deb-{digest.hexdigest()[:16]}", build, description=title, needs=_PACKAGE_BYTES)
    return _only_tree(place, title)


def _from_build(tree: Path, cache: Cache, notify: Callable[[str], None]) -> KernelTree:
    """The kernel of a build tree. Its modules are copied, so that a rebuild does not change a kernel during a run."""
    release = tree / "include/config/kernel.release"
    image = tree / "arch/x86/boot/bzImage"
    for path, target in ((release, "make"), (image, "make bzImage")):
        if not path.is_file():
            raise UsageError(f"the kernel tree {tree} is not built: no {path}", hint=f"run '{target}' there")
    version = release.read_text().strip()
    modules = _built_modules(tree)
    digest = sha256(image.read_bytes())
    for name, path in modules.items():
        status = path.stat()
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())

    def build(place: Path) -> None:
        notify(f"copying {len(modules)} modules of {version} from {tree}")
        target = place / "lib/modules" / version
        for name, path in modules.items():
            (target / "kernel" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / "kernel" / name)
        target.mkdir(parents=True, exist_ok=True)
        (target / "modules.order").write_text("".join(f"kernel/{name}\n" for name in modules))
        for name in ("modules.builtin", "modules.builtin.modinfo"):
            if (tree / name).is_file():
                shutil.copy2(tree / name, target / name)
        (place / "boot").mkdir()
        shutil.copy2(image, place / "boot" / f"vmlinuz-{version}")
        _depmod(place, version)

    needs = image.stat().st_size + sum(path.stat().st_size for path in modules.values())
    description = f"{version} built in {tree}"
    key = f"tree-{digest.hexdigest()[:16]}"
    return _only_tree(cache.get("kernel", key, build, description=description, needs=needs), description)


def _built_modules(tree: Path) -> dict[str, Path]:
    """Modules of a build tree by their name below ``kernel/``.

    ``modules.order`` lists objects since 6.2 and module files before; before 5.3 it has the names of installed module
    files (scripts/Makefile.modpost, scripts/Makefile.modinst).
    """
    order = tree / "modules.order"
    names = [] if not order.is_file() else [re.sub(r"\.o$", ".ko", line) for line in order.read_text().split()]
    modules = {
        name: tree / name
        for name in (name.removeprefix("kernel/") if not (tree / name).exists() else name for name in names)
    }
    if absent := [name for name, path in modules.items() if not path.is_file()]:
        raise UsageError(
            f"{tree}: {len(absent)} modules are not built, for example {absent[0]}", hint="run 'make modules' there"
        )
    return modules


def _only_tree(folder: Path, source: str) -> KernelTree:
    """The one kernel in a directory that is laid out like a root directory."""
    bases = [path for path in (folder / "lib/modules", folder / "usr/lib/modules") if path.is_dir()]
    found: dict[str, tuple[Path, Path]] = {}
    for modules in (path for base in bases for path in sorted(base.iterdir())):
        for image in (folder / "boot" / f"vmlinuz-{modules.name}", modules / "vmlinuz"):
            if image.is_file():
                found.setdefault(modules.name, (image, modules))
    if not found:
        raise UsageError(
            f"{folder} has no kernel: neither boot/vmlinuz-VERSION with lib/modules/VERSION nor a build", hint=_KINDS
        )
    if len(found) > 1:
        pairs = " or ".join(f"{image},{modules}" for image, modules in found.values())
        raise UsageError(f"{folder} has {len(found)} kernels: {', '.join(found)}", hint=f"choose one: {pairs}")
    ((version, (image, modules)),) = found.items()
    return _tree(version, image, modules, source)


# --- common to all kinds -----------------------------------------------------------------------------------


def _tree(version: str, image: Path, modules: Path, source: str) -> KernelTree:
    release = _image_release(image)
    if release != version:
        raise UsageError(
            f"{image} is kernel {release}, but the modules in {modules} are for {version}",
            hint="give the image and the modules of one build",
        )
    return KernelTree(version, image, modules, source, _digest(image, modules))


def _image_release(image: Path) -> str:
    """The release in a bzImage's header (Documentation/arch/x86/boot.rst: kernel_version). Raises UsageError."""
    try:
        with image.open("rb") as file:
            head = file.read(0x10000)
    except OSError as error:
        raise UsageError(f"{image} cannot be read: {error.strerror}", hint="check its permissions") from None
    if head[0x202:0x206] != b"HdrS":
        raise UsageError(f"{image} is not an x86 kernel image (bzImage)", hint=_KINDS)
    start = 0x200 + int.from_bytes(head[0x20E:0x210], "little")
    return head[start : head.index(b"\0", start)].split(b" ")[0].decode(errors="replace")


def _digest(image: Path, modules: Path) -> str:
    """Digest of the image's content and the modules' names, sizes and times: hashing 400 MB takes too long."""
    digest = sha256(image.read_bytes())
    for folder, folders, names in os.walk(modules):
        folders.sort()
        for name in sorted(name for name in names if ".ko" in name):
            status = os.stat(os.path.join(folder, name))
            digest.update(f"{os.path.relpath(folder, modules)}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _check_usable(tree: KernelTree) -> None:
    if missing := missing_modules(tree, NEEDED):
        cloud = " (a 'cloud' kernel, built without USB)" if "cloud" in tree.version or "kvm" in tree.version else ""
        raise UsageError(
            f"the kernel {tree.version}{cloud} cannot run the virtual bench: it lacks {', '.join(missing)}",
            hint="use the distribution's default kernel (leave --kernel out) or another one that has them",
        )


def _key(kind: str, text: str) -> str:
    return f"{kind}-{sha256(text.encode()).hexdigest()[:16]}"


def _readable(path: Path) -> bool:
    # On Ubuntu only root can read /boot/vmlinuz; the same version is also available as a package.
    return os.access(path, os.R_OK)
