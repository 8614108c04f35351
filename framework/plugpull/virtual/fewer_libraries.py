"""A program without the libraries of what it is not used for here.

fio is linked against the clients of several kinds of network storage, 60 libraries in all, and the loader binds all
their symbols before ``main``: ``fio --version`` took 34 ms with all of them and 5 ms without them, on a machine that is
not emulated. The copy that a guest gets has the same instructions; only its tables ask the loader for less.
Sources: elf(5); the System V ABI, "Dynamic Section"; the Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

_TAG = struct.Struct("<qQ")
_NEED = struct.Struct("<HHIII")
"""A needed version of the symbols of a library: version, count, offset of its name, and of its list and of the next
one, from here."""
_INDEX = struct.Struct("<H")
_NO_VERSION = 1
_BINDING, _WEAK = 4, 2
"""The place of a symbol's binding in its entry, and what says that it may be missing."""
_NEEDED, _VERSIONS, _VERSION_COUNT = 1, 0x6FFFFFFE, 0x6FFFFFFF
C_LIBRARY = "libc.so.6"


@dataclass(frozen=True)
class _NeededVersions:
    """What is needed of one library, and where the table says so. ``indexes``: what its symbols are marked with."""

    place: int
    library: str
    indexes: tuple[int, ...]


def with_libraries(program: bytes, kept: Collection[str]) -> bytes:
    """The program, which asks the loader for these libraries and that of C alone. ``kept`` are names without what
    follows ``.so``, such as ``libaio``. What it would call of the others becomes a null pointer.

    Raises ``ValueError`` for a program that is not of this kind.
    """
    kept = {*kept, "libc", "ld-linux-x86-64"}
    image = bytearray(program)
    try:
        elf = ELFFile(io.BytesIO(program))
        if elf.elfclass != 64 or not elf.little_endian:
            raise ValueError("it is not an ELF file of 64 bits, little-endian")
        dynamic = next((one for one in elf.iter_segments() if isinstance(one, DynamicSegment)), None)
        if dynamic is None:
            raise ValueError("it is linked statically")
        versions = list(_needed_versions(elf))
        _drop_libraries(image, dynamic, kept)
        _drop_versions(image, elf, dynamic, [one for one in versions if _stem(one.library) in kept])
        dropped = (one.indexes for one in versions if _stem(one.library) not in kept)
        _let_symbols_be_missing(image, elf, {index for indexes in dropped for index in indexes})
    except (ELFError, struct.error, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return bytes(image)


def _section(elf: ELFFile, name: str) -> Any:
    section = elf.get_section_by_name(name)
    if section is None:
        raise ValueError(f"it has no section {name}")
    return section


def _needed_versions(elf: ELFFile) -> Iterator[_NeededVersions]:
    section = _section(elf, ".gnu.version_r")
    place = section["sh_offset"]
    for need, listed in section.iter_versions():
        yield _NeededVersions(place, need.name, tuple(one["vna_other"] for one in listed))
        place += need["vn_next"]


def _drop_libraries(image: bytearray, dynamic: DynamicSegment, kept: Collection[str]) -> None:
    """A library that is not kept is asked for under the name of the C library, which the loader has already."""
    tags: list[Any] = list(dynamic.iter_tags("DT_NEEDED"))
    c_library = next((tag.entry.d_val for tag in tags if tag.needed == C_LIBRARY), None)
    if c_library is None:
        raise ValueError(f"it is not linked against {C_LIBRARY}")
    for place, tag in _tags(dynamic):
        if tag.entry.d_tag == "DT_NEEDED" and _stem(tag.needed) not in kept:
            _TAG.pack_into(image, place, _NEEDED, c_library)


def _stem(library: str) -> str:
    """``libaio.so.1t64`` -> ``libaio``."""
    return library.partition(".so")[0]


def _tags(dynamic: DynamicSegment) -> Iterator[tuple[int, Any]]:
    start = dynamic["p_offset"]
    return ((start + number * _TAG.size, tag) for number, tag in enumerate(dynamic.iter_tags()))


def _drop_versions(image: bytearray, elf: ELFFile, dynamic: DynamicSegment, kept: Collection[_NeededVersions]) -> None:
    """Chain up the libraries of which versions are still needed."""
    if not kept:
        raise ValueError("it needs no version of what is kept")
    section = _section(elf, ".gnu.version_r")
    places = [one.place for one in kept]
    for here, after in zip(places, [*places[1:], places[-1]], strict=True):
        version, count, name, first, _ = _NEED.unpack_from(image, here)
        _NEED.pack_into(image, here, version, count, name, first, after - here)
    for place, tag in _tags(dynamic):
        if tag.entry.d_tag == "DT_VERNEED":
            _TAG.pack_into(image, place, _VERSIONS, section["sh_addr"] + places[0] - section["sh_offset"])
        elif tag.entry.d_tag == "DT_VERNEEDNUM":
            _TAG.pack_into(image, place, _VERSION_COUNT, len(places))


def _let_symbols_be_missing(image: bytearray, elf: ELFFile, dropped: Collection[int]) -> None:
    """Make weak what the program needs of libraries that are not kept: symbols of their versions, and those without
    one, for nothing says whose these are. The loader binds a weak symbol too, where there is one."""
    symbols, versions = _section(elf, ".dynsym"), _section(elf, ".gnu.version")
    for number, symbol in enumerate(symbols.iter_symbols()):
        if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name:
            continue
        place = versions["sh_offset"] + number * _INDEX.size
        (index,) = _INDEX.unpack_from(image, place)
        if index in dropped:
            _INDEX.pack_into(image, place, _NO_VERSION)
        if index in dropped or index <= _NO_VERSION:
            info = symbols["sh_offset"] + number * symbols["sh_entsize"] + _BINDING
            image[info] = (_WEAK << 4) | (image[info] & 0xF)
