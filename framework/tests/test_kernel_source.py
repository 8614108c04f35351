"""Kernels from packages, directories and build trees: real apt, dpkg and kmod on tiny made-up kernels."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from package_archives import apt_for, deb

from plugpull.cache import Cache
from plugpull.errors import UsageError
from plugpull.virtual.kernel import NEEDED, KernelTree, find_kernel, missing_modules, read_module, required_modules
from plugpull.virtual.kernel_modules import kmod_tool

VERSION = "6.1.0-7-amd64"
MAGIC = "SMP preempt mod_unload modversions "


def image(version: str = VERSION) -> bytes:
    """A bzImage as far as its header goes: boot.rst's magic and the pointer to the version."""
    head = bytearray(0x400)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x100)
    text = f"{version} (someone@somewhere) #1 SMP".encode() + b"\0"
    head[0x300 : 0x300 + len(text)] = text
    return bytes(head)


def module(name: str, version: str = VERSION, depends: str = "", magic: str = MAGIC) -> bytes:
    """A module file with a .modinfo section and nothing in it (ELF64, relocatable, x86-64)."""
    info = f"name={name}\0depends={depends}\0vermagic={version} {magic}\0".encode()
    names = b"\0.modinfo\0.shstrtab\0.symtab\0.strtab\0"
    symbols, strings = bytes(24), b"\0"
    body, sections, offset = b"", [bytes(64)], 64
    table = (
        (b".modinfo", 1, info, 0, 0),
        (b".shstrtab", 3, names, 0, 0),
        (b".symtab", 2, symbols, 4, 24),
        (b".strtab", 3, strings, 0, 0),
    )
    for label, kind, data, link, entry in table:
        place = names.index(label + b"\0")
        sections.append(struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, offset + len(body), len(data), link, 0, 1, entry))
        body += data
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 5, 2)
    return header + body + b"".join(sections)


def fill(root: Path, version: str = VERSION, names: tuple[str, ...] = NEEDED, lib: str = "lib") -> Path:
    """A kernel laid out in a root directory, as packages ship it: without what depmod writes."""
    (root / "boot").mkdir(parents=True, exist_ok=True)
    (root / "boot" / f"vmlinuz-{version}").write_bytes(image(version))
    modules = root / lib / "modules" / version
    (modules / "kernel").mkdir(parents=True)
    for name in names:
        (modules / "kernel" / f"{name}.ko").write_bytes(module(name, version))
    (modules / "modules.order").write_text("".join(f"kernel/{name}.ko\n" for name in names))
    (modules / "modules.builtin").write_text("")
    return root


def index(root: Path, version: str = VERSION) -> None:
    """Have depmod write its files; one made for merged /usr looks in usr/lib."""
    (root / "usr").mkdir(exist_ok=True)
    (root / "usr/lib").symlink_to("../lib")
    subprocess.run([kmod_tool("depmod"), "-b", root, version], check=True, capture_output=True)


def tree_with(folder: Path, dep: str, *, soft: str = "", alias: str = "", builtin: str = "") -> KernelTree:
    """A kernel whose module index is written out here, so that what depends on what is plain to see."""
    modules = folder / "lib/modules" / VERSION
    (modules / "kernel").mkdir(parents=True)
    for line in dep.split("\n"):
        name = Path(line.split(":")[0]).name
        data = module(name.split(".")[0])
        packed = gzip.compress(data) if name.endswith(".gz") else lzma.compress(data) if name.endswith(".xz") else data
        (modules / "kernel" / name).write_bytes(packed)
    for name, text in (("dep", dep), ("softdep", soft), ("alias", alias), ("builtin", builtin)):
        (modules / f"modules.{name}").write_text(text + "\n")
    return KernelTree(VERSION, folder / "vmlinuz", modules, "a test", "0")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def debian(folder: Path) -> list[str]:
    kernel = fill(folder / "kernel")
    return [
        deb(folder, "linux-image-amd64", "6.1.7-1", f"linux-image-{VERSION} (= 6.1.7-1)"),
        deb(folder, f"linux-image-{VERSION}", "6.1.7-1", "kmod, linux-base (>= 4.3~)", kernel),
    ]


def test_the_default_kernel_of_debian_is_unpacked_not_installed(tmp_path: Path, cache: Cache) -> None:
    apt = apt_for(tmp_path, debian(tmp_path))
    notices: list[str] = []
    apt.update()
    tree = find_kernel(None, cache, apt=apt, notify=notices.append)
    assert tree.version == VERSION
    assert tree.image.read_bytes() == image()
    assert tree.modules.name == VERSION
    assert cache.root in tree.modules.parents
    assert "6.1.7-1" in tree.source
    assert missing_modules(tree, NEEDED) == []
    assert len(notices) == 1
    # The second time, and by its own name, it is the same one, without a word from apt.
    assert find_kernel(VERSION, cache, apt=apt, root=tmp_path, notify=notices.append) == tree
    assert len(notices) == 1


def test_the_default_kernel_of_ubuntu_is_put_together_from_two_packages(tmp_path: Path, cache: Cache) -> None:
    version = "6.8.0-31-generic"
    kernel = fill(tmp_path / "kernel", version, lib="usr/lib")
    only_boot, only_modules = tmp_path / "boot-only", tmp_path / "modules-only"
    shutil.copytree(kernel / "boot", only_boot / "boot")
    shutil.copytree(kernel / "usr", only_modules / "usr")
    apt = apt_for(
        tmp_path,
        [
            deb(
                tmp_path, "linux-image-generic", "6.8.0-31.31", f"linux-image-{version} (= 6.8.0-31.31), linux-firmware"
            ),
            deb(tmp_path, f"linux-image-{version}", "6.8.0-31.31", f"kmod, linux-modules-{version}", only_boot),
            deb(tmp_path, f"linux-modules-{version}", "6.8.0-31.31", content=only_modules),
        ],
    )
    # No package lists yet: they are fetched into the cache.
    tree = find_kernel(None, cache, apt=apt)
    assert tree.version == version
    # The image alone does not do, and the message says what does.
    with pytest.raises(UsageError, match="no modules found in") as caught:
        find_kernel(str(tmp_path / f"linux-image-{version}_6.8.0-31.31_all.deb"), cache)
    assert "linux-modules-" in caught.value.hint
    both = ",".join(str(tmp_path / f"linux-{part}-{version}_6.8.0-31.31_all.deb") for part in ("image", "modules"))
    assert find_kernel(both, cache).version == version


def test_an_unknown_kernel_says_which_there_are(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(UsageError, match=r"linux-image-9\.9\.9") as caught:
        find_kernel("9.9.9", cache, apt=apt_for(tmp_path, debian(tmp_path)), root=tmp_path)
    assert f"linux-image-{VERSION}" in caught.value.hint
    with pytest.raises(UsageError, match="does not name a kernel") as caught:
        find_kernel("!", cache)
    assert "build tree" in caught.value.hint


def test_a_stale_package_list_is_fetched_afresh(tmp_path: Path, cache: Cache) -> None:
    apt = apt_for(tmp_path, debian(tmp_path))
    apt.update()
    for path in tmp_path.glob("*.deb"):
        path.unlink()  # the archive moved on
    notices: list[str] = []
    with pytest.raises(UsageError, match="cannot download") as caught:
        find_kernel(None, cache, apt=apt, notify=notices.append)
    assert "network" in caught.value.hint
    assert any("package lists" in text for text in notices)


def test_a_kernel_without_usb_is_refused_by_name(tmp_path: Path, cache: Cache) -> None:
    version = "6.1.0-7-cloud-amd64"
    root = fill(tmp_path / "root", version, names=("sd_mod", "virtio_pci", "virtio_console"))
    index(root, version)
    with pytest.raises(UsageError, match=r"'cloud' kernel.*lacks xhci-pci, usb-storage, uas\n"):
        find_kernel(str(root), cache)


def test_an_installed_kernel_and_a_directory_are_used_where_they_are(tmp_path: Path, cache: Cache) -> None:
    root = fill(tmp_path / "root")
    with pytest.raises(UsageError, match=r"no modules\.dep") as caught:
        find_kernel(str(root), cache)
    assert caught.value.hint == f"run: depmod -b {root} {VERSION}"
    index(root)
    modules = root / "lib/modules" / VERSION
    for spec in (VERSION, str(root), f"{root}/boot/vmlinuz-{VERSION},{modules}"):
        tree = find_kernel(spec, cache, root=root)
        assert (tree.version, tree.modules) == (VERSION, modules)
    assert cache.entries() == []
    fill(root, "6.2.0")
    with pytest.raises(UsageError, match="has 2 kernels"):
        find_kernel(str(root), cache)


def test_the_digest_follows_the_content(tmp_path: Path, cache: Cache) -> None:
    root = fill(tmp_path / "root")
    index(root)
    first = find_kernel(str(root), cache).digest
    assert find_kernel(str(root), cache).digest == first
    (root / "lib/modules" / VERSION / "kernel/uas.ko").write_bytes(module("uas") + b"more")
    assert find_kernel(str(root), cache).digest != first


def test_image_and_modules_of_two_kernels_are_refused(tmp_path: Path, cache: Cache) -> None:
    root = fill(tmp_path / "root")
    (root / "boot" / f"vmlinuz-{VERSION}").write_bytes(image("6.6.6"))
    with pytest.raises(UsageError, match=r"is kernel 6\.6\.6, but the modules"):
        find_kernel(str(root), cache)
    (root / "boot" / f"vmlinuz-{VERSION}").write_bytes(b"not a kernel" * 100)
    with pytest.raises(UsageError, match="not an x86 kernel image"):
        find_kernel(str(root), cache)
    with pytest.raises(UsageError, match="comes without modules"):
        find_kernel(f"{root}/boot/vmlinuz-{VERSION}", cache)
    with pytest.raises(UsageError, match="does not exist"):
        find_kernel(f"{root}/nothing", cache)


def build_tree(folder: Path, version: str = "6.12.0-rc3+") -> Path:
    (folder / "include/config").mkdir(parents=True)
    (folder / "include/config/kernel.release").write_text(f"{version}\n")
    (folder / "arch/x86/boot").mkdir(parents=True)
    (folder / "arch/x86/boot/bzImage").write_bytes(image(version))
    (folder / "drivers/usb").mkdir(parents=True)
    names = [name for name in NEEDED if name != "sd_mod"]
    for name in names:
        (folder / "drivers/usb" / f"{name}.ko").write_bytes(module(name, version))
    (folder / "modules.order").write_text("".join(f"drivers/usb/{name}.o\n" for name in names))
    (folder / "modules.builtin").write_text("kernel/drivers/scsi/sd_mod.ko\n")
    return folder


def test_a_build_tree_is_copied_so_that_a_rebuild_changes_nothing(tmp_path: Path, cache: Cache) -> None:
    source = build_tree(tmp_path / "linux")
    tree = find_kernel(str(source), cache)
    assert tree.version == "6.12.0-rc3+"
    assert required_modules(tree, ["sd_mod", "uas"]) == [tree.modules / "kernel/drivers/usb/uas.ko"]
    assert find_kernel(str(source / "arch/x86/boot/bzImage"), cache) == tree
    (source / "drivers/usb/uas.ko").write_bytes(module("uas", "6.12.0-rc3+") + b"rebuilt")
    again = find_kernel(str(source), cache)
    assert again.digest != tree.digest
    assert not (tree.modules / "kernel/drivers/usb/uas.ko").read_bytes().endswith(b"rebuilt")
    (source / "drivers/usb/uas.ko").unlink()
    with pytest.raises(UsageError, match="1 modules are not built") as caught:
        find_kernel(str(source), cache)
    assert "make modules" in caught.value.hint
    (source / "arch/x86/boot/bzImage").unlink()
    with pytest.raises(UsageError, match=r"not built: no .*bzImage"):
        find_kernel(str(source), cache)


DEP = (
    "kernel/uas.ko: kernel/usb-storage.ko kernel/scsi_mod.ko kernel/usbcore.ko\n"
    "kernel/usb-storage.ko: kernel/scsi_mod.ko kernel/usbcore.ko\n"
    "kernel/scsi_mod.ko:\n"
    "kernel/usbcore.ko:\n"
    "kernel/ext4.ko.xz:\n"
    "kernel/crc32c-intel.ko.gz:\n"
    "kernel/crc32c_generic.ko:"
)


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, DEP, builtin="kernel/sd_mod.ko")
    found = names(required_modules(tree, ["uas", "usb_storage", "sd-mod"]))
    assert sorted(found) == ["scsi_mod.ko", "uas.ko", "usb-storage.ko", "usbcore.ko"]
    assert found.index("uas.ko") == 3
    assert found.index("usb-storage.ko") == 2


def test_soft_dependencies_go_through_aliases(tmp_path: Path) -> None:
    alias = "alias crypto-crc32c crc32c_intel\nalias crypto-crc32c crc32c_generic\nalias usb:v*p* uas"
    tree = tree_with(tmp_path, DEP, soft="softdep ext4 pre: crypto-crc32c not-there", alias=alias)
    assert names(required_modules(tree, ["ext4"])) == ["crc32c-intel.ko.gz", "crc32c_generic.ko", "ext4.ko.xz"]


def test_a_module_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no module btrfs"):
        required_modules(tree_with(tmp_path, DEP), ["uas", "btrfs"])


def test_compressed_modules_are_read_as_they_were(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, DEP)
    assert read_module(tree.modules / "kernel/ext4.ko.xz") == module("ext4")
    assert read_module(tree.modules / "kernel/crc32c-intel.ko.gz") == module("crc32c-intel")
    plain = tree.modules / "kernel/uas.ko"
    subprocess.run(["zstd", "-q", plain, "-o", f"{plain}.zst"], check=True)
    assert read_module(Path(f"{plain}.zst")) == module("uas")


def test_an_override_takes_the_place_and_brings_its_own_needs(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, DEP)
    mine = tmp_path / "usb-storage.ko"
    mine.write_bytes(module("usb_storage", depends="usbcore,crc32c_generic"))
    found = required_modules(tree, ["uas"], {"usb-storage": mine})
    assert mine in found
    assert tree.modules / "kernel/usb-storage.ko" not in found
    assert names(found).index("crc32c_generic.ko") < found.index(mine) < names(found).index("uas.ko")
    extra = tmp_path / "extra.ko"
    extra.write_bytes(module("extra"))
    assert required_modules(tree, [], {"extra": extra}) == [extra]


@pytest.mark.parametrize(("version", "magic"), [("6.6.6", MAGIC), (VERSION, "SMP mod_unload ")])
def test_an_override_for_another_kernel_is_refused(tmp_path: Path, version: str, magic: str) -> None:
    mine = tmp_path / "uas.ko"
    mine.write_bytes(module("uas", version, magic=magic))
    with pytest.raises(UsageError, match="was built for the kernel"):
        required_modules(tree_with(tmp_path, DEP), ["uas"], {"uas": mine})


def test_an_override_of_something_built_in_or_no_module_at_all_is_refused(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, DEP, builtin="kernel/sd_mod.ko")
    mine = tmp_path / "sd_mod.ko"
    mine.write_bytes(module("sd_mod"))
    with pytest.raises(UsageError, match="built into"):
        required_modules(tree, [], {"sd_mod": mine})
    mine.write_bytes(b"text")
    with pytest.raises(UsageError, match="not a kernel module"):
        required_modules(tree, [], {"other": mine})


@pytest.mark.bench
def test_the_distributions_kernel_serves_the_bench() -> None:
    tree = find_kernel(None, Cache.default())
    assert missing_modules(tree, NEEDED) == []
    found = names(required_modules(tree, [*NEEDED, "ext4"]))
    assert any(name.startswith("usb-storage") for name in found)
