"""A rig as a printed tree: what is plugged in where, and what each cut takes away."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from plugpull.plain import clean_line
from plugpull.rig.model import Controller, Disk, Hub, Rig
from plugpull.rig.quantities import format_rate, format_size
from plugpull.rig.topology import CutPoint, Topology, plugged

_WIDE = 500
"""Columns. Wider than any line of a tree, so that no line is wrapped."""


def render_tree(rig: Rig) -> Tree:
    """Controllers, hubs and disks as they are plugged in, each with its cut points and their blast radius; meters."""
    topology = Topology(rig)
    points = topology.cut_points()
    root = Tree(_line(rig.rig.name, f"{rig.dut.kind} DUT, {_count(len(rig.disk), 'disk')}", rig.rig.description))
    _add_cuts(root, "dut", points)
    for controller in rig.controller:
        _add(root, controller, topology, points)
    for meter in rig.meter:
        side = "before the power supply" if meter.side == "mains" else "on the USB side"
        root.add(_line(f"meter {meter.name}", meter.driver, f"{side} of {', '.join(meter.disks)}"))
    return root


def tree_text(rig: Rig) -> str:
    """The same tree as plain text, without colour, for a file or a pipe."""
    out = StringIO()
    Console(file=out, width=_WIDE, color_system=None, force_terminal=False).print(render_tree(rig))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _add(parent: Tree, device: Controller | Hub | Disk, topology: Topology, points: dict[str, CutPoint]) -> None:
    branch = parent.add(_describe(device))
    _add_cuts(branch, device.name, points)
    for child in topology.children(device.name):
        _add(branch, topology.device(child), topology, points)


def _add_cuts(branch: Tree, name: str, points: dict[str, CutPoint]) -> None:
    for kind in ("cable", "power"):
        point = points.get(f"{name}.{kind}")
        if point is not None:
            takes = ", ".join(point.victims) or "no disk"
            shared = f", shared with {', '.join(point.shares_with)}" if point.shares_with else ""
            cut = f"cut {point.name} ({point.mechanism.value} by {point.outlet}{shared}) takes {takes}"
            branch.add(Text(clean_line(cut), style="yellow"))


def _describe(device: Controller | Hub | Disk) -> Text:
    if isinstance(device, Controller):
        return _line(device.name, device.model or device.path or "", _count(device.ports, "port"))
    port = f"{plugged(device)[1]}: {device.name}"
    if isinstance(device, Hub):
        return _line(port, _count(device.ports, "port"))
    use = "scratch" if device.scratch else "not scratch, never written"
    rate = format_rate(device.rate) if device.rate is not None else ""
    fed = "" if device.self_powered else "powered by VBUS"
    unit = f"unit {device.lun}" if device.lun else ""
    return _line(port, unit, device.serial, format_size(device.size), device.protocol, rate, fed, use)


def _line(name: str, *details: str) -> Text:
    text = ", ".join(detail for detail in details if detail)
    return Text.assemble((clean_line(name), "bold"), "  ", clean_line(text))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
