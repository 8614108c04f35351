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
    reach: Reach, receive: Callable[[Message], None], held: ExitStack, last: Message, within: float = CONNECT_WITHIN
) -> tuple[AgentLink, Message]:
    """A link to a new agent, and its answer to hello.

    ``held`` closes the link. ``last`` is the answer of the agent before it, which is ended. Raises RigError, or
    Unreachable if it may help to try again."""
    connection = Connection(reach, within)
    answer = min(ANSWER, 2 * within)

    def explained(message: Message) -> None:
        if message.get("ev") == "link.lost":
            words = connection.words().splitlines()
            message = {**message, "why": f"{reach.name}: {message['why']}{f': {words[-1]}' if words else ''}"}
        receive(message)

    opened = ExitStack()
    opened.callback(connection.close)
    try:
        link = AgentLink(connection.socket, explained)
        opened.callback(link.close)
        link.map_clock(answer)
        # A login shell may print something before the agent starts. That is not a damaged message.
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
