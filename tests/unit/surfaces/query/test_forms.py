"""Values as nvidia-smi writes them."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from gpulse.model.catalog import THROTTLE_BITS
from gpulse.model.snapshot import Snapshot
from gpulse.sources.nvidia.readers import throttle_words
from gpulse.surfaces.query import field
from gpulse.surfaces.query.field import listed, rate, short

MIB = 1 << 20


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (field.whole, 0, "0"),
        (field.whole, 99.4, "99"),
        (field.mib, 0, "0"),
        (field.mib, 1, "1"),
        (field.mib, 644939776, "616"),
        (field.mib, 150754820096, "143771"),
        (field.watts, 77.6, "77.60"),
        (field.watts, 0.0, "0.00"),
        (field.microseconds, 8.468724, "8468724"),
        (field.microseconds, 0.0, "0"),
        (field.enabled, True, "Enabled"),
        (field.enabled, False, "Disabled"),
        (field.yes, True, "Yes"),
        (field.yes, False, "No"),
        (field.truth, True, "True"),
        (field.truth, False, "False"),
        (field.validity, True, "valid"),
        (field.validity, False, "invalid"),
        (field.bandwidth, True, "Degraded"),
        (field.bandwidth, False, "Full"),
        (field.pstate, 8, "P8"),
        (field.hexadecimal(4), 0, "0x0000"),
        (field.hexadecimal(2), 6, "0x06"),
        (field.hexadecimal(1), 3, "0x3"),
        (field.hexadecimal(8), 0x233510DE, "0x233510DE"),
        (field.compute_mode, "default", "Default"),
        (field.compute_mode, "exclusive_process", "Exclusive_Process"),
        (field.compute_mode, "prohibited", "Prohibited"),
        (field.addressing_mode, "none", "None"),
        (field.addressing_mode, "hmm", "HMM"),
        (field.recovery, "none", "None"),
        (field.recovery, "reset", "Reset"),
        (field.recovery, "drain_p2p", "Drain P2P"),
        (field.recovery, "drain_and_reset", "Drain and Reset"),
        (field.titled, "low_double_precision", "Low Double Precision"),
        (field.titled, "in_progress", "In Progress"),
        (field.peer, "direct", "Direct Connected"),
        (field.program, "python3 train.py --lr 1", "python3"),
        (field.program, "python3", "python3"),
        (field.mask, (), "0x0000000000000000"),
        (field.mask, ("gpu_idle",), "0x0000000000000001"),
        (field.mask, ("sw_power_cap", "hw_thermal_slowdown", "0x200"), "0x0000000000000244"),
        (field.mask, ("a word from another vendor",), "0x0000000000000000"),
        (field.reason("gpu_idle"), ("gpu_idle",), "Active"),
        (field.reason("gpu_idle"), (), "Not Active"),
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
    assert int(field.mask(throttle_words(bits)), 16) == bits


def test_reasons_have_the_bits_of_the_driver() -> None:
    assert {word: int(field.mask([word]), 16) for word in THROTTLE_BITS} == THROTTLE_BITS


def test_a_time_stamp_is_local_time_to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert field.time_stamp(Snapshot(0.9999)) == "1970/01/01 05:30:00.999"
        assert field.time_stamp(Snapshot(1794728904.991)) == "2026/11/15 13:18:24.991"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", field.time_stamp(Snapshot(time.time())))
