"""On a machine with an NVIDIA GPU: every value and every field beside nvidia-smi's own, idle and under load."""

from __future__ import annotations

import shutil

import pytest

from bench import fields, parity

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no nvidia-smi on this machine"),
]


def test_every_value_agrees_with_nvidia_smi() -> None:
    assert parity.main() == 0


def test_every_field_is_written_as_nvidia_smi_writes_it() -> None:
    assert fields.main() == 0
