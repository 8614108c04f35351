"""Reading Python source: the statements of a module, at any depth."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Block = ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case


def statements(block: Block) -> Iterator[ast.stmt]:
    """Every statement in a module or in another statement, also in nested ones. No expression contains a statement."""
    for part in ast.iter_child_nodes(block):
        if isinstance(part, ast.stmt):
            yield part
        if isinstance(part, Block):
            yield from statements(part)
