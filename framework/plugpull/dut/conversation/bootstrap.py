"""How the agent gets onto a DUT that has only python3: through the pipe that it then uses.

A line of Python that the DUT's interpreter runs reads the zip from standard input into anonymous memory
(memfd_create(2)) and runs it from there. Nothing is written to the DUT's disks, so nothing is left to clean up.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Sequence

from plugpull.dut.conversation.agent_zip import agent_zip

OLDEST = (3, 9)
"""The oldest Python the agent runs on."""
NO_PYTHON = 127
"""The exit status of a shell that does not find a program (POSIX, 2.8.2)."""
TOO_OLD = 86
"""The exit status with which the bootstrap refuses a Python."""
ISOLATED = "-I"
"""Python imports nothing from the current directory, PYTHONPATH or the user's site-packages. The agent runs as root in
a directory that others may be able to write to."""
_DIGITS = 12

_BOOTSTRAP = textwrap.dedent(
    f"""
    import os, sys
    if sys.version_info < {OLDEST!r}:
        sys.stderr.write("plugpull: python " + sys.version.split()[0] + "\\n")
        sys.exit({TOO_OLD})
    def take(count):
        got = b""
        while len(got) < count:
            more = os.read(0, count - len(got))
            if not more:
                sys.exit(0)
            got += more
        return got
    agent = take(int(take({_DIGITS})))
    file = os.memfd_create("plugpull-agent")
    while agent:
        agent = agent[os.write(file, agent):]
    path = "/proc/self/fd/%d" % file
    sys.argv = [path]
    import runpy
    runpy.run_path(path, run_name="__main__")
    """
)


def boot_command(python: str, sudo: bool) -> list[str]:
    """The command that waits for the agent on standard input. Its words need no quoting in any shell but for the last,
    which has double quotes in it."""
    code = base64.b64encode(_BOOTSTRAP.encode()).decode()
    bootstrap = f'import base64;exec(base64.b64decode("{code}"))'
    return [*(["sudo", "-n"] if sudo else []), python, ISOLATED, "-c", bootstrap]


def boot_payload() -> bytes:
    """The bytes for the waiting command: the length of the agent, and the agent."""
    agent = agent_zip()
    return b"%0*d%s" % (_DIGITS, len(agent), agent)


def quoted(words: Sequence[str]) -> str:
    """One line for a remote login shell of any family (sh, csh, fish): no word has a single quote, a backslash or an
    exclamation mark in it."""
    return " ".join(
        word if word.replace("-", "").replace("/", "").replace(".", "").isalnum() else f"'{word}'" for word in words
    )
