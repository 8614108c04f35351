"""``plugpull rig discover``: drafts the rig file of a machine."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

EPILOG = """\
examples:
  plugpull rig discover -o rigs/desk.toml              this machine
  plugpull rig discover --dut bench2 -o shelf.toml     a machine behind ssh

exit status:
  0  the draft was written
  2  the file exists already, or cannot be written
  3  the machine could not be reached"""


def add(actions: Commands) -> None:
    """Add the parser of ``rig discover``."""
    parser = add_command(
        actions,
        "discover",
        help="draft the rig file of a machine from what is plugged into it",
        description="Inspect a machine and draft its rig file: controllers, hubs, disks with their serial numbers and "
        "places, and the switches that are likely to be used. Reads only. No disk in the draft is scratch until you "
        "edit the file.",
        epilog=EPILOG,
    )
    parser.add_argument("--dut", metavar="HOST", help="a machine behind ssh (default: this one)")
    parser.add_argument(
        "--ssh-option",
        metavar="WORD",
        action="append",
        default=[],
        help="with --dut: one more argument for ssh; repeatable",
    )
    parser.add_argument("--sudo", action="store_true", help="with --dut: read with sudo")
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="write the draft to FILE (default: print it)")
    parser.set_defaults(action=_discover)


def _discover(arguments: argparse.Namespace) -> int:
    if arguments.out is not None and arguments.out.exists():
        raise UsageError(f"{arguments.out} exists already", hint="name another file, or remove this one")
    text = _remote(arguments) if arguments.dut else _local()
    if arguments.out is None:
        sys.stdout.write(text)
        return EXIT_PASS
    try:
        arguments.out.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {arguments.out}: {error.strerror}") from None
    print(f"written: {arguments.out}; compare it with the bench, then: plugpull rig check {arguments.out}")
    return EXIT_PASS


def _local() -> str:
    from plugpull.discover.rig_file import draft, usb_tree
    from plugpull.discover.switches import find_all, tables
    from plugpull.dut.agent.disks import all_disks
    from plugpull.switches.host_local import LocalHost

    host = LocalHost()
    return draft("desk", {"kind": "local"}, usb_tree(host), all_disks(), tables(find_all(host).found))


def _remote(arguments: argparse.Namespace) -> str:
    from plugpull.discover.rig_file import draft, usb_tree
    from plugpull.discover.switches import find_all, tables
    from plugpull.dut.conversation.hello import ANSWER
    from plugpull.dut.real.connect import connect
    from plugpull.dut.real.dut_host import DutHost
    from plugpull.dut.real.reach import reach_of
    from plugpull.rig.model import Dut
    from plugpull.switches.host_local import LocalHost

    options = tuple(arguments.ssh_option)
    dut = Dut(kind="ssh", host=arguments.dut, ssh_options=options, sudo=arguments.sudo)
    keys: dict[str, object] = {"kind": "ssh", "host": arguments.dut}
    if options:
        keys["ssh_options"] = list(options)
    if arguments.sudo:
        keys["sudo"] = True
    with ExitStack() as held:
        link, _ = connect(reach_of(dut), lambda message: None, held, {})
        host = DutHost(link)
        names: Counter[str] = Counter()
        on_dut = find_all(host).found
        there = tables(on_dut, via="dut", seen=names)
        # If the DUT is this machine, its switches are already in the list.
        here = tables(tuple(one for one in find_all(LocalHost()).found if one not in on_dut), seen=names)
        return draft("bench", keys, usb_tree(host), link.call("disks", ANSWER), [*there, *here])
