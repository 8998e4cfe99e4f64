"""Values as nvidia-smi writes them."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from gpulse.model.snapshot import Snapshot
from gpulse.sources.nvidia.readers import THROTTLE_WORDS, throttle_words
from gpulse.surfaces.query import forms
from gpulse.surfaces.query.catalog_fields import listed, rate, short

MIB = 1 << 20


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (forms.whole, 0, "0"),
        (forms.whole, 99.4, "99"),
        (forms.mib, 0, "0"),
        (forms.mib, 1, "1"),
        (forms.mib, 644939776, "616"),
        (forms.mib, 150754820096, "143771"),
        (forms.watts, 77.6, "77.60"),
        (forms.watts, 0.0, "0.00"),
        (forms.microseconds, 8.468724, "8468724"),
        (forms.microseconds, 0.0, "0"),
        (forms.enabled, True, "Enabled"),
        (forms.enabled, False, "Disabled"),
        (forms.yes, True, "Yes"),
        (forms.yes, False, "No"),
        (forms.truth, True, "True"),
        (forms.truth, False, "False"),
        (forms.validity, True, "valid"),
        (forms.validity, False, "invalid"),
        (forms.bandwidth, True, "Degraded"),
        (forms.bandwidth, False, "Full"),
        (forms.pstate, 8, "P8"),
        (forms.hexadecimal(4), 0, "0x0000"),
        (forms.hexadecimal(2), 6, "0x06"),
        (forms.hexadecimal(1), 3, "0x3"),
        (forms.hexadecimal(8), 0x233510DE, "0x233510DE"),
        (forms.compute_mode, "default", "Default"),
        (forms.compute_mode, "exclusive_process", "Exclusive_Process"),
        (forms.compute_mode, "prohibited", "Prohibited"),
        (forms.addressing_mode, "none", "None"),
        (forms.addressing_mode, "hmm", "HMM"),
        (forms.recovery, "none", "None"),
        (forms.recovery, "reset", "Reset"),
        (forms.recovery, "drain_p2p", "Drain P2P"),
        (forms.recovery, "drain_and_reset", "Drain and Reset"),
        (forms.titled, "low_double_precision", "Low Double Precision"),
        (forms.titled, "in_progress", "In Progress"),
        (forms.peer, "direct", "Direct Connected"),
        (forms.program, "python3 train.py --lr 1", "python3"),
        (forms.program, "python3", "python3"),
        (forms.mask, (), "0x0000000000000000"),
        (forms.mask, ("gpu_idle",), "0x0000000000000001"),
        (forms.mask, ("sw_power_cap", "hw_thermal_slowdown", "0x200"), "0x0000000000000244"),
        (forms.mask, ("a word from another vendor",), "0x0000000000000000"),
        (forms.reason("gpu_idle"), ("gpu_idle",), "Active"),
        (forms.reason("gpu_idle"), (), "Not Active"),
        (short, 12.0, "12"),
        (short, 12.345, "12.35"),
        (short, 2**63, "9223372036854775808"),
        (short, 0, "0"),
        (rate, 1.5 * MIB, "1.50"),
        (listed, (), "none"),
        (listed, ("gpu_idle", "sync_boost"), "gpu_idle sync_boost"),
        (listed, (1.0, 2.5), "1 2.5"),
    ],
)
def test_a_value_is_written_as_nvidia_smi_writes_it(form: Any, value: Any, text: str) -> None:
    assert form(value) == text


@pytest.mark.parametrize("bits", [0, 1, 0x44, 0x1FF, 0x200, 0xF000_0000_0000_0005])
def test_reasons_become_the_mask_they_came_from(bits: int) -> None:
    assert int(forms.mask(throttle_words(bits)), 16) == bits


def test_reasons_have_the_bits_of_the_driver() -> None:
    assert {word: bit for bit, word in THROTTLE_WORDS.items()} == forms.REASONS


def test_a_time_stamp_is_local_time_to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert forms.time_stamp(Snapshot(0.9999)) == "1970/01/01 05:30:00.999"
        assert forms.time_stamp(Snapshot(1794728904.991)) == "2026/11/15 13:18:24.991"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", forms.time_stamp(Snapshot(time.time())))
