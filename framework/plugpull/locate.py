"""Where the stock scenarios and rigs are: in the checkout when run from one, in the installed package otherwise."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The checkout's top directory, ``None`` when installed."""
    top = _PACKAGE.parent.parent
    is_one = _PACKAGE.parent.name == "framework" and (top / "pyproject.toml").is_file()
    return top if is_one else None


def stock_dir() -> Path:
    """The directory that holds ``conftest.py``, ``scenarios``, ``rigs`` and ``fixtures``."""
    return checkout() or _PACKAGE / "stock"


def scenarios_dir() -> Path:
    """The stock scenarios."""
    return stock_dir() / "scenarios"


def rigs_dir() -> Path:
    """The stock rig files."""
    return stock_dir() / "rigs"
