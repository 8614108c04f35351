"""A probable cause, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    CERTAIN = "almost certainly"
    PROBABLE = "probably"
    POSSIBLE = "possibly"


@dataclass(frozen=True)
class Hint:
    """A probable cause. ``culprit`` is the kind of thing and ``subject`` which one; ``evidence`` holds one clause per
    fact. ``remedy`` is a kernel parameter that may help, or names what is missing to write it."""

    culprit: str
    subject: str
    confidence: Confidence
    evidence: tuple[str, ...]
    remedy: str = ""
