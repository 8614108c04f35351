"""Runs that last for hours or days: one random fault after another, and what is lost is set aside."""

from plugpull.soak.soak import Soak
from plugpull.soak.turn import Turn

__all__ = ["Soak", "Turn"]
