"""``plugpull rig check FILE``: prints every mistake in a rig file, or the rig as a tree. Touches no hardware."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS, EXIT_USAGE
from plugpull.plain import clean
from plugpull.rig.load import load_rig
from plugpull.rig.tree import render_tree, tree_text


def rig_check(path: Path, console: Console) -> int:
    """Print the rig's tree on ``console`` and return 0, or print its mistakes on stderr, one per line, and return 2."""
    try:
        rig = load_rig(path)
    except UsageError as error:
        print(clean(str(error)), file=sys.stderr)
        return EXIT_USAGE
    if console.is_terminal:
        console.print(render_tree(rig))
    else:  # lines are not wrapped in a file or a pipe
        console.out(tree_text(rig), end="", highlight=False)
    return EXIT_PASS
