"""Reads C source as tokens: enough to find the calls that print messages, and their arguments.

A full parser would see less: most of the kernel's messages go through macros, whose bodies are plain text to a parser
of C, and conditional compilation in the middle of an expression is a syntax error to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|/\*.*?\*/|//[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<word>[A-Za-z_]\w*)
    |(?P<other>'(?:\\.|[^'\\\n])+'|\d[\w.]*|\#\#|->|<<|>>|&&|\|\||[<>=!]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)([^\n]*)\n?", re.MULTILINE)
_COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_DEFINE = re.compile(r"\s*(\w+)(\(([^)]*)\))?\s*(.*)$", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'", "0": "\0"}
_ESCAPE = re.compile(r"\\(?:x[\da-fA-F]{2}|[0-7]{1,3}|(.))", re.DOTALL)
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_NO_NAMES = frozenset(
    (
        "if",
        "for",
        "while",
        "switch",
        "return",
        "sizeof",
        "typeof",
        "__printf",
        "__attribute__",
        "__aligned",
        "__releases",
    )
)

Tokens = Sequence[str]


class Macro(NamedTuple):
    """``#define name(parameters) body``; ``parameters`` is ``None`` for one without parentheses."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[str, ...]


class Call(NamedTuple):
    """``name(arguments)`` in ``function``: the C function, or the macro whose body has it."""

    name: str
    arguments: tuple[tuple[str, ...], ...]
    function: str


class CFile(NamedTuple):
    """A file of C: its macros and the names of the headers that it includes from its own directory."""

    path: str
    tokens: tuple[str, ...]
    macros: tuple[Macro, ...]
    includes: tuple[str, ...]


def read_c(path: str, text: str) -> CFile:
    """Take a file of C apart. Both branches of every ``#if`` are kept."""
    text = _COMMENT.sub(lambda found: " " if found[0].startswith("/*") else found[0], text.replace("\\\n", " "))
    macros, includes = [], []
    for word, rest in _DIRECTIVE.findall(text):
        if word == "define" and (found := _DEFINE.match(rest)):
            names = tuple(name.strip() for name in found[3].split(",")) if found[2] else None
            macros.append(Macro(found[1], names, tuple(tokens_of(found[4]))))
        elif word == "include":
            includes += re.findall(r'"(?:.*/)?([^"/]+)"', rest)
    return CFile(path, tuple(tokens_of(_DIRECTIVE.sub("\n", text))), tuple(macros), tuple(includes))


def tokens_of(text: str) -> Iterator[str]:
    """The tokens of C without space and comments. A brace in the first column, which begins or ends a function in the
    kernel's style, comes as ``\\n{`` or ``\\n}``."""
    for found in _TOKEN.finditer(text):
        if found.lastgroup == "space":
            continue
        token = found[0]
        if token in "{}" and (found.start() == 0 or text[found.start() - 1] == "\n"):
            token = "\n" + token
        yield token


def calls_in(file: CFile, names: frozenset[str]) -> Iterator[Call]:
    """All calls of these names in a file, also in the bodies of its macros."""
    for macro in file.macros:
        if macro.name not in names:
            for at, name in enumerate(macro.body):
                if name in names:
                    yield from _call(macro.body, at, macro.name)
    function, since = "", 0
    tokens = file.tokens
    for at, token in enumerate(tokens):
        if token == "\n{":
            function = _function_name(tokens[since:at])
        elif token == "\n}" or (token == ";" and not function):
            since = at + 1
            if token != ";":
                function = ""
        elif token in names:
            yield from _call(tokens, at, function)


def _function_name(tokens: Tokens) -> str:
    for one, two in pairwise(tokens):
        if two == "(" and one.isidentifier() and one not in _NO_NAMES:
            if one.startswith("SYSCALL_DEFINE") or one in ("DEFINE_IDTENTRY_RAW", "DEFINE_IDTENTRY"):
                return tokens[tokens.index(one) + 2]
            return one
    return ""


def _call(tokens: Tokens, at: int, function: str) -> Iterator[Call]:
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        return
    depth, arguments, current = 0, list[list[str]](), list[str]()
    for token in tokens[at + 1 : at + 4000]:
        bare = token.strip("\n")
        if bare in _OPEN:
            depth += 1
            if depth == 1:
                continue
        elif bare in _CLOSE:
            depth -= 1
            if depth == 0:
                yield Call(tokens[at], tuple(tuple(each) for each in (*arguments, current)), function)
                return
        if depth == 1 and token == ",":
            arguments.append(current)
            current = []
        else:
            current.append(token)


def text_of(literal: str) -> str:
    """The characters of a string literal."""

    def character(found: re.Match[str]) -> str:
        if found[1] is not None:
            return _ESCAPES.get(found[1], found[1])
        digits = found[0][1:]
        return chr(int(digits[1:], 16) if digits[0] == "x" else int(digits, 8))

    return _ESCAPE.sub(character, literal[1:-1])


def alternatives(tokens: Tokens) -> list[Tokens]:
    """The expressions that ``a ? b : c`` can yield, outside of parentheses; the expression itself if it has none."""
    tokens = _bare(tokens)
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token in _OPEN) - (token in _CLOSE)
        if token == "?" and depth == 0:
            inner = 0
            for end in range(at + 1, len(tokens)):
                inner += (tokens[end] in ("?", *_OPEN)) - (tokens[end] in _CLOSE)
                if tokens[end] == ":":
                    if inner == 0:
                        return [*alternatives(tokens[at + 1 : end]), *alternatives(tokens[end + 1 :])]
                    inner -= 1
    return [tokens]


def _bare(tokens: Tokens) -> Tokens:
    """Without parentheses around all of it."""
    while len(tokens) > 1 and tokens[0] == "(" and tokens[-1] == ")":
        depth = 0
        for at, token in enumerate(tokens):
            depth += (token == "(") - (token == ")")
            if depth == 0 and at < len(tokens) - 1:
                return tokens
        tokens = tokens[1:-1]
    return tokens


def string_macros(files: Mapping[str, CFile], paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The macros without parameters in these files whose body begins with a string or another word."""
    return {
        macro.name: macro.body
        for path in paths
        if path in files
        for macro in files[path].macros
        if macro.parameters is None and macro.body and (macro.body[0].startswith('"') or macro.body[0].isidentifier())
    }
