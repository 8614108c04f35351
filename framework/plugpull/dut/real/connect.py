"""Connects to a new agent on a real DUT."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from plugpull.dut.conversation.hello import ANSWER
from plugpull.dut.conversation.link import AgentGone, AgentLink, Message
from plugpull.dut.real.reach import CONNECT_WITHIN, Connection, Reach


def ignore(message: Message) -> None:
    """For links whose messages nobody needs."""


def connect(
    reach: Reach, tell: Callable[[Message], None], held: ExitStack, last: Message, within: float = CONNECT_WITHIN
) -> tuple[AgentLink, Message]:
    """A link to a new agent, and its hello; ``held`` closes it. ``last`` is the hello of an agent that it succeeds.
    Raises RigError, Unreachable when it may help to try again."""
    connection = Connection(reach, within)
    answer = min(ANSWER, 2 * within)

    def hear(message: Message) -> None:
        if message.get("ev") == "link.lost":
            words = connection.words().splitlines()
            message = {**message, "why": f"{reach.name}: {message['why']}{f': {words[-1]}' if words else ''}"}
        tell(message)

    opened = ExitStack()
    opened.callback(connection.close)
    try:
        link = AgentLink(connection.socket, hear)
        opened.callback(link.close)
        link.map_clock(answer)
        # What a login shell prints comes before an agent's first word, and is none of it.
        link.unreadable = 0
        said: Message = link.call("hello", answer)
        if last and last["boot_id"] == said["boot_id"]:
            link.call("retire", answer, pid=last["pid"], started=last["started"])
    except AgentGone:
        why = connection.why()
        opened.close()
        raise why from None
    except BaseException:
        opened.close()
        raise
    held.push(opened)
    return link, said
