"""The messages in the source: each call that prints, with its format as the kernel composes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import PurePosixPath
from typing import NamedTuple

from plugpull.kernel.census.source import Call, CFile, Tokens, alternatives, calls_in, string_macros, text_of
from plugpull.kernel.census.wrappers import CONTINUED, DEFAULT, LEVELS, NOT_LOGGED, UNKNOWN, Wrapper, Wrappers

_WORDS = {
    "PRIu64": "llu", "PRId64": "lld", "PRIx64": "llx", "PRIu32": "u", "PRId32": "d", "PRIx32": "x", "__func__": "%s",
    "__FUNCTION__": "%s", "__FILE__": "%s", "HW_ERR": "[Hardware Error]: ", "FW_BUG": "[Firmware Bug]: ",
    "FW_WARN": "[Firmware Warn]: ", "FW_INFO": "[Firmware Info]: ", "BDEVNAME_FMT": "%s", "DRIVER_NAME": "%s",
}  # fmt: skip
_SPECIAL = re.compile(r"[\\{}|]")
_CONVERSION = re.compile(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|L|q|j|z|t)?(?:p[A-Za-z\d]*|[A-Za-z%])")
_NAMED = re.compile(r"<(\w+)>")


class Message(NamedTuple):
    """One message of the kernel. ``level`` is a digit, ``w``, ``c`` or ``?``; ``format`` is in the notation of the
    catalogue."""

    path: str
    function: str
    level: str
    format: str


class Unresolved(NamedTuple):
    """A call whose format is not a literal: ``text`` is the expression."""

    path: str
    function: str
    text: str


class SourceTree:
    """Some files of a kernel's source by path, and what they can print."""

    def __init__(self, sources: Mapping[str, CFile], table: Wrappers) -> None:
        self._files = sources
        self._table = table
        self._speakers = _speakers()

    def messages(self) -> Iterator[Message | Unresolved]:
        """Everything that the files can print, in the order of the source; several lines of one format apart."""
        for path, file in sorted(self._files.items()):
            known = self._table.of(path)
            names = frozenset(name for name, wrapper in known.items() if wrapper.level != NOT_LOGGED)
            strings = string_macros(self._files, [*self._near(file), path])
            for call in calls_in(file, names):
                if call.function not in known:
                    yield from self._of_call(file, call, known[call.name], strings)

    def _near(self, file: CFile) -> list[str]:
        folder = str(PurePosixPath(file.path).parent)
        return [f"{folder}/{name}" for name in file.includes]

    def _of_call(
        self, file: CFile, call: Call, wrapper: Wrapper, strings: Mapping[str, Tokens]
    ) -> Iterator[Message | Unresolved]:
        if len(call.arguments) <= wrapper.argument:
            return
        for tokens in alternatives(call.arguments[wrapper.argument]):
            level, text = self._literal(tokens, strings)
            if text is None:
                if not _is_declaration(tokens) and not _is_parameter(file, call, tokens):
                    yield Unresolved(file.path, call.function, " ".join(tokens))
                continue
            if "%pV" in text:
                continue  # A wrapper prints what its callers gave it; their calls are counted.
            if wrapper.level.startswith("#"):
                level = self._literal(call.arguments[int(wrapper.level[1:])], strings)[0] or UNKNOWN
            elif wrapper.level != "=":
                level = wrapper.level
            elif not level:
                level = DEFAULT
            text = _filled(text, call, wrapper)
            yield from self._lines(file, call, level, wrapper.prefix, text)

    def _lines(self, file: CFile, call: Call, level: str, prefix: str, text: str) -> Iterator[Message]:
        prefix = self._prefix(file, prefix)
        first = True
        for line in text.strip("\n").split("\n"):
            whole = (prefix if first else "") + _SPECIAL.sub(r"\\\g<0>", line.replace("\t", " "))
            if line.strip() or (first and prefix):
                yield Message(file.path, call.function, level if first else CONTINUED, whole.strip())
            first = False

    def _literal(self, tokens: Tokens, strings: Mapping[str, Tokens], depth: int = 0) -> tuple[str, str | None]:
        """(level, text) of a literal that may consist of several and of macros; no text if there is no literal."""
        level, text, literal = "", "", False
        for token in tokens:
            if token.startswith('"'):
                literal, text = True, text + text_of(token)
            elif token.startswith("KERN_"):
                level = CONTINUED if token == "KERN_CONT" else LEVELS.get(token[5:], DEFAULT)
            elif token in strings and depth < 4:
                inner_level, inner = self._literal(strings[token], strings, depth + 1)
                level, text = inner_level or level, text + (inner or "")
                literal |= inner is not None
            elif token in _WORDS:
                text += _WORDS[token]
            elif token.isidentifier() and len(tokens) > 1:
                text += "%s"
        if text.startswith("\x01") and len(text) > 1:
            level, text = text[1], text[2:]
        return level, text if literal else None

    # --- what comes before the format --------------------------------------------------------------------------------

    def _prefix(self, file: CFile, prefix: str) -> str:
        if prefix.startswith("<pr>"):
            return self._fmt(file, "pr_fmt", "") + prefix[4:]
        if prefix.startswith("<dev>"):
            return f"{{{self._speaker(file.path)}}}: " + self._fmt(file, "dev_fmt", "") + prefix[5:]
        strings = string_macros(self._files, [*self._near(file), file.path])
        return _NAMED.sub(lambda found: self._literal(strings.get(found[1], ()), strings)[1] or "%s", prefix)

    def _fmt(self, file: CFile, name: str, otherwise: str) -> str:
        """What ``pr_fmt`` of a file puts before the format. A header gets that of a file that includes it."""
        folder = str(PurePosixPath(file.path).parent)
        users = [path for path, other in self._files.items() if path.startswith(folder + "/")
                 and PurePosixPath(file.path).name in other.includes] if file.path.endswith(".h") else []  # fmt: skip
        for path in (file.path, *self._near(file), *users):
            for macro in self._files[path].macros if path in self._files else ():
                if macro.name == name:
                    if macro.body and macro.body[0] == "pr_fmt" and name != "pr_fmt":
                        return self._fmt(file, "pr_fmt", otherwise)
                    return self._before(file, macro.body, (macro.parameters or ("fmt",))[0])
        return otherwise

    def _before(self, file: CFile, body: Sequence[str], parameter: str) -> str:
        text = ""
        for token in body:
            if token in (parameter, ","):
                break
            if token.startswith('"'):
                text += text_of(token)
            elif token == "KBUILD_MODNAME":
                text += _module(file.path)
            elif token.isidentifier():
                strings = string_macros(self._files, [*self._near(file), file.path])
                text += self._literal(strings.get(token, ()), strings)[1] or "%s"
        return _SPECIAL.sub(r"\\\g<0>", text)

    def _speaker(self, path: str) -> str:
        return next((name for pattern, name in self._speakers if fnmatchcase(path, pattern)), "device")


def _filled(text: str, call: Call, wrapper: Wrapper) -> str:
    """The format with those of its strings filled in that are literals or the function's name."""
    arguments = iter(call.arguments[wrapper.argument + 1 :])

    def value(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return found[0]
        for _ in range(found[0].count("*")):
            next(arguments, ())
        argument = next(arguments, ())
        if found[0] == "%s" and argument in (("__func__",), ("__FUNCTION__",)) and call.function:
            return call.function
        if found[0] == "%s" and len(argument) == 1 and argument[0].startswith('"'):
            return text_of(argument[0]).replace("%", "%%")
        return found[0]

    return _CONVERSION.sub(value, text)


def _is_declaration(tokens: Tokens) -> bool:
    """Whether this is a parameter of a function that is declared or defined here, rather than called."""
    return bool({"const", "bool", "va_list"} & set(tokens)) or list(tokens[:2]) == ["char", "*"] or not tokens


def _is_parameter(file: CFile, call: Call, tokens: Tokens) -> bool:
    """Whether the format is a parameter of the macro that has the call: a wrapper, whose own calls are counted."""
    macros = [macro for macro in file.macros if macro.name == call.function]
    return any(set(tokens) & {name.removesuffix("...").strip() for name in macro.parameters or ()} for macro in macros)


def _module(path: str) -> str:
    """KBUILD_MODNAME: the module's name, which is the file's if the module has one file."""
    found = next((name for pattern, name in _MODULES if fnmatchcase(path, pattern)), None)
    return found or PurePosixPath(path).stem.replace("-", "_")


def _table(name: str) -> list[tuple[str, str]]:
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [(pattern, name) for name, *patterns in rows for pattern in patterns]


def _speakers() -> list[tuple[str, str]]:
    return _table("speakers.txt")


_MODULES = (
    ("drivers/usb/core/*", "usbcore"),
    ("drivers/nvme/host/fabrics.c", "nvme_fabrics"),
    ("drivers/nvme/host/*", "nvme%s"),
    ("fs/btrfs/*", "btrfs"),
    ("fs/isofs/*", "isofs"),
)
