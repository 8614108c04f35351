"""Which accelerator the virtual bench uses for its guests, and the reason that it gives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plugpull.cache import Cache
from plugpull.errors import PlugpullError, UsageError
from plugpull.virtual.accel import find_accel

NO_KERNEL = Path("/nonexistent/vmlinuz")
kvm_usable = os.access("/dev/kvm", os.R_OK | os.W_OK)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    return Cache.default(notify=lambda text: None)


def test_tcg_when_asked_for_without_trying_anything(cache: Cache) -> None:
    accel = find_accel("tcg", NO_KERNEL, cache)
    assert (accel.name, accel.why) == ("tcg", "as requested")
    assert not (cache.root / "kvm").exists()


@pytest.mark.skipif(kvm_usable, reason="/dev/kvm can be opened here")
def test_without_kvm_tcg_is_used_and_the_reason_said(cache: Cache) -> None:
    accel = find_accel("auto", NO_KERNEL, cache)
    assert accel.name == "tcg"
    assert "/dev/kvm" in accel.why


@pytest.mark.skipif(kvm_usable, reason="/dev/kvm can be opened here")
def test_kvm_that_is_asked_for_and_not_there_is_a_usage_error(cache: Cache) -> None:
    with pytest.raises(UsageError, match="KVM was requested") as error:
        find_accel("kvm", NO_KERNEL, cache)
    assert "tcg" in error.value.hint


@pytest.mark.skipif(not kvm_usable, reason="/dev/kvm cannot be opened here")
def test_a_kvm_that_boots_nothing_is_not_used_and_the_trial_is_remembered(cache: Cache) -> None:
    accel = find_accel("auto", NO_KERNEL, cache)
    assert accel.name == "tcg", "no guest can start from a kernel that is not there"
    assert accel.why.startswith(("QEMU cannot use it: ", "a trial guest printed nothing"))
    assert find_accel("auto", NO_KERNEL, cache) == accel
    with pytest.raises(PlugpullError, match="KVM was requested") as error:
        find_accel("kvm", NO_KERNEL, cache)
    assert "tcg" in error.value.hint
