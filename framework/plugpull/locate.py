"""Locates the stock scenarios and rigs: in the checkout, or in the installed package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The checkout's top directory, ``None`` when installed as a package."""
    top = _PACKAGE.parent.parent
    is_one = _PACKAGE.parent.name == "framework" and (top / "pyproject.toml").is_file()
    return top if is_one else None


def stock_dir() -> Path:
    """The directory that holds ``conftest.py``, ``scenarios``, ``rigs`` and ``fixtures``."""
    return checkout() or _PACKAGE / "stock"


def scenarios_dir() -> Path:
    """The directory of the stock scenarios."""
    return stock_dir() / "scenarios"


def rigs_dir() -> Path:
    """The directory of the stock rig files."""
    return stock_dir() / "rigs"
