"""Column headings in the vendor's own words."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.present.words import heading


@pytest.mark.parametrize(
    ("vendors", "word"),
    [(("nvidia",), "SM"), (("amd", "amd"), "CU"), (("intel",), "EU"), (("amd", "nvidia"), "SM"), ((), "SM")],
)
def test_the_cores_are_called_as_their_vendor_does(vendors: tuple[str, ...], word: str) -> None:
    assert heading(Process.sm_utilization, [Gpu({"vendor": vendor}) for vendor in vendors]) == word


def test_other_headings_stay() -> None:
    assert heading(Process.memory_used, [Gpu({"vendor": "amd"})]) == "GPU MEM"
