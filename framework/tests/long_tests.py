"""Tests that would make the whole test command much longer, and run when they are asked for."""

from __future__ import annotations

import os

import pytest

ASKED = os.environ.get("PLUGPULL_LONG_TESTS", "") not in ("", "0")
only_if_asked = pytest.mark.skipif(not ASKED, reason="takes long: PLUGPULL_LONG_TESTS=1 runs it")
