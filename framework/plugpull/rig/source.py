"""TOML text with the place of every key and value in it.

The values come from ``tomllib``, which does not report their places. The places come from tree-sitter's syntax tree.
Both parse the same text; ``tomllib`` alone decides whether it is valid TOML.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from plugpull.rig.mistakes import Mistake, RigFileErrors, quote

LARGEST_FILE = 1 << 20
"""Bytes. A rig file has some kilobytes; a larger file is a disk image or a device named by mistake."""

KeyPath = tuple[str | int, ...]
"""Keys and indices from the top of the file: ``("disk", 2, "serial")``."""

_TOMLLIB_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_REPEATED = ("Cannot overwrite", "Cannot declare", "Cannot mutate")


@dataclass(frozen=True)
class TextPosition:
    """Line and column, both from 1; columns count characters."""

    line: int
    column: int


TOP = TextPosition(1, 1)


@dataclass(frozen=True)
class Source:
    """A TOML file that was read: ``values`` as ``tomllib`` returns them, and the place of each."""

    path: Path
    values: dict[str, Any]
    keys: dict[KeyPath, TextPosition]
    places: dict[KeyPath, TextPosition]

    def key(self, path: KeyPath) -> TextPosition:
        """The place of a key; for a table, of its header; for a missing key, of the table that should have it."""
        return self._nearest(self.keys, path)

    def value(self, path: KeyPath) -> TextPosition:
        """The place where a value begins; for a missing value, of the table that should have it."""
        return self._nearest(self.places, path)

    @staticmethod
    def _nearest(places: dict[KeyPath, TextPosition], path: KeyPath) -> TextPosition:
        while path and path not in places:
            path = path[:-1]
        return places.get(path, TOP)


def read_source(path: Path) -> Source:
    """Read a TOML file.

    Raises ``RigFileErrors`` when it cannot be read, is not UTF-8 or is not TOML, with the place of every mistake
    that either parser found.
    """
    return parse_source(path, _decode(path, _read_bytes(path)))


def parse_source(path: Path, text: str) -> Source:
    """As ``read_source``, for text. ``path`` is only used in messages."""
    encoded = text.encode()
    tree = Parser(Language(tree_sitter_toml.language())).parse(encoded)
    index = _Index(encoded)
    index.add_document(tree.root_node)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RigFileErrors(tuple(_syntax_mistakes(path, text, error, tree.root_node, index))) from None
    except RecursionError:
        raise RigFileErrors((Mistake(path, 1, 1, "arrays or tables are nested too deeply in this file"),)) from None
    except ValueError:  # not a TOMLDecodeError: int() refuses numbers of thousands of digits
        place = _longest_number(text)
        raise RigFileErrors((Mistake(path, place.line, place.column, "this number has too many digits"),)) from None
    return Source(path, values, index.implied | index.keys, index.implied | index.places)


def _longest_number(text: str) -> TextPosition:
    start = max(re.finditer(r"[0-9_]+", text), key=lambda match: len(match.group())).start()
    return TextPosition(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))


def _read_bytes(path: Path) -> bytes:
    def fail(what: str, hint: str = "") -> RigFileErrors:
        return RigFileErrors((Mistake(path, 0, 0, what, hint),))

    try:
        if path.is_dir():
            raise fail("this is a directory, not a rig file")
        if path.exists() and not path.is_file():
            raise fail("this is not a regular file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise fail("there is no such rig file", _sibling(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise fail(f"this file cannot be read: {reason}") from None
    if len(content) > LARGEST_FILE:
        raise fail("this file is larger than 1 MiB: it is hardly a rig file")
    return content


def _sibling(path: Path) -> str:
    """A rig file with a similar name in the same directory."""
    try:
        names = sorted(entry.name for entry in path.parent.glob("*.toml"))
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1) or difflib.get_close_matches(f"{path.name}.toml", names, 1)
    return str(path.parent / near[0]) if near else ""


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig")) + 1
        what = f"the byte 0x{content[error.start]:02x} is not UTF-8 text, which TOML files are written in"
        raise RigFileErrors((Mistake(path, line, column, what),)) from None


class _Index:
    """Places of keys and values in a syntax tree. If the tree has errors, the places outside of them."""

    def __init__(self, text: bytes) -> None:
        self.keys: dict[KeyPath, TextPosition] = {}
        self.places: dict[KeyPath, TextPosition] = {}
        self.implied: dict[KeyPath, TextPosition] = {}
        self.repeats: list[tuple[KeyPath, TextPosition, TextPosition]] = []
        self._lines = text.split(b"\n")
        self._array_lengths: dict[KeyPath, int] = {}

    def place(self, node: Node) -> TextPosition:
        row, byte = node.start_point
        before = self._lines[row][:byte] if row < len(self._lines) else b""
        return TextPosition(row + 1, len(before.decode(errors="replace")) + 1)

    def add_document(self, root: Node) -> None:
        for child in root.named_children:
            if child.type == "pair":
                self._add_values(child, ())
            elif child.type in ("table", "table_array_element"):
                self._add_table(child)

    def _add_table(self, table: Node) -> None:
        keys = next((names for child in table.named_children if (names := _key_names(child))), None)
        if keys is None:
            return
        parent = self._resolve(keys[:-1])
        path = (*parent, keys[-1])
        if table.type == "table_array_element":
            self.keys.setdefault(path, self.place(table))
            self.places.setdefault(path, self.place(table))
            count = self._array_lengths.get(path, 0)
            self._array_lengths[path] = count + 1
            path = (*path, count)
        self._define(path, self.place(table), self.place(table))
        for child in table.named_children:
            if child.type == "pair":
                self._add_values(child, path)

    def _resolve(self, keys: tuple[str, ...]) -> KeyPath:
        """The path of a header: a key that names an array of tables stands for the array's last element."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            if path in self._array_lengths:
                path = (*path, self._array_lengths[path] - 1)
        return path

    def _define(self, path: KeyPath, key: TextPosition, value: TextPosition) -> None:
        if path in self.keys:
            self.repeats.append((path, key, self.keys[path]))
            return
        self.keys[path] = key
        self.places[path] = value
        for length in range(1, len(path)):  # a.b = 1 makes a table "a" without a header
            self.implied.setdefault(path[:length], key)

    def _add_values(self, pair: Node, table: KeyPath) -> None:
        stack: list[tuple[Node, KeyPath]] = [(pair, table)]
        while stack:
            node, path = stack.pop()
            if node.type == "pair":
                parts = [child for child in node.named_children if child.type not in ("comment", "ERROR")]
                names = _key_names(parts[0]) if len(parts) == 2 else None
                if names is not None:
                    path = (*path, *names)
                    self._define(path, self.place(parts[0]), self.place(parts[1]))
                    stack.append((parts[1], path))
            elif node.type == "inline_table":
                stack.extend((child, path) for child in reversed(node.named_children) if child.type == "pair")
            elif node.type == "array":
                items = [child for child in node.named_children if child.type not in ("comment", "ERROR")]
                for number, item in enumerate(items):
                    self._define((*path, number), self.place(item), self.place(item))
                stack.extend(((item, (*path, number)) for number, item in reversed(list(enumerate(items)))))


def _key_names(node: Node) -> tuple[str, ...] | None:
    """The names in a key such as ``a."b c".d``, or None when the node is not a key."""
    if node.type not in ("bare_key", "quoted_key", "dotted_key"):
        return None
    names: list[str] = []
    while node.type == "dotted_key":  # left-recursive: ((a . b) . c)
        parts = node.named_children
        if len(parts) != 2:
            return None
        names.append(_key_name(parts[1]))
        node = parts[0]
    names.append(_key_name(node))
    return tuple(reversed(names))


def _key_name(node: Node) -> str:
    text = (node.text or b"").decode(errors="replace")
    if node.type != "quoted_key":
        return text
    try:
        return str(tomllib.loads(f"key = {text}")["key"])
    except tomllib.TOMLDecodeError:
        return text


def _syntax_mistakes(
    path: Path, text: str, error: tomllib.TOMLDecodeError, root: Node, index: _Index
) -> Iterator[Mistake]:
    """Mistakes of both parsers: ``tomllib`` is exact but stops at its first error; tree-sitter finds later ones."""
    first, what = _tomllib_place(text, error)
    repeated = what.startswith(_REPEATED)
    repeats = index.repeats if repeated else []
    if root.has_error:  # a broken header makes the keys below it look like repetitions in the table above
        repeats = [repeat for repeat in repeats if repeat[1].line <= first.line]
    for key_path, place, earlier in repeats:
        name = quote(".".join(str(part) for part in key_path if isinstance(part, str)))
        yield Mistake(path, place.line, place.column, f"{name} is given twice: already at line {earlier.line}")
    if not repeats:
        if repeated:
            what = "this is given twice, or as a table in one place and as something else in another"
        yield Mistake(path, first.line, first.column, f"not valid TOML: {what[:1].lower()}{what[1:]}")
    reported = first.line
    for node in _error_nodes(root):
        place = index.place(node)
        if place.line > reported:
            reported = place.line
            yield Mistake(path, place.line, place.column, _error_words(node))


def _tomllib_place(text: str, error: tomllib.TOMLDecodeError) -> tuple[TextPosition, str]:
    message = str(error)
    match = _TOMLLIB_PLACE.search(message)
    if match is None or match.group(1) is None:
        lines = text.split("\n")
        place = TextPosition(len(lines), len(lines[-1]) + 1)
    else:
        place = TextPosition(int(match.group(1)), int(match.group(2)))
    return place, message[: match.start()] if match else message


def _error_nodes(root: Node) -> Iterator[Node]:
    """Outermost nodes that tree-sitter could not parse, in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            stack.extend(reversed(node.children))


def _error_words(node: Node) -> str:
    if node.is_missing:
        return f"not valid TOML: {quote(node.type)} is missing here"
    text = (node.text or b"").decode(errors="replace").split("\n")[0].strip()
    return f"not valid TOML: {quote(text)} cannot be read here" if text else "not valid TOML here"
