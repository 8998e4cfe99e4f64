"""Model FLOPs utilization: against dense peaks only, and with a reason where there is no figure."""

from __future__ import annotations

import pytest

from gpulse.analysis.summary import mfu
from gpulse.model.peaks import DTYPES, SOURCES, dtype_named, peak, peak_rows

H100 = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("model", "dtype", "tera"),
    [
        ("NVIDIA H200", "bfloat16", 989.5),
        (H100, "float8", 1979),
        ("NVIDIA H100 PCIe", "float16", 756),
        ("NVIDIA H100 NVL", "bfloat16", 835.5),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156),
        ("NVIDIA A100 80GB PCIe", "bfloat16", 312),
        ("NVIDIA A10", "float16", 125),
        ("NVIDIA L4", "bfloat16", 121),
        ("NVIDIA L40", "bfloat16", 181.05),
        ("NVIDIA L40S", "bfloat16", 362.05),
        ("Tesla T4", "float16", 65),
        ("Tesla V100-SXM2-16GB", "float16", 125),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 165.2),
        ("AMD Instinct MI300X", "bfloat16", 1307.4),
    ],
)
def test_the_dense_peak_of_a_model(model: str, dtype: str, tera: float) -> None:
    assert peak(model, dtype) == pytest.approx(tera * 1e12)


@pytest.mark.parametrize(
    "model",
    [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H1000",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A100X",
        "",
        "H100 NVL MIG",
    ],
)
def test_a_part_of_a_gpu_and_a_similar_name_have_no_peak(model: str) -> None:
    assert all(peak(model, dtype) is None for dtype in DTYPES)


def test_a_type_that_the_card_does_not_have_has_no_peak() -> None:
    assert peak("Tesla T4", "bfloat16") is None


def test_every_row_has_a_source_and_rates_that_fall_with_the_width_of_the_type() -> None:
    used = set()
    for pattern, rates, source in peak_rows():
        assert len(rates) == len(DTYPES), pattern
        assert source.startswith("https://")
        used.add(source)
        known = [rate for rate in rates if rate is not None]
        assert known == sorted(known), pattern
    assert used == set(SOURCES.values())


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("torch.bfloat16", "bfloat16"),
        ("bf16", "bfloat16"),
        ("FP16", "float16"),
        ("torch.float8_e4m3fn", "float8"),
        ("int8", None),
        (None, None),
    ],
)
def test_names_of_types(given: object, name: str | None) -> None:
    assert dtype_named(given) == name


def test_the_share_of_the_peak_of_all_gpus() -> None:
    found = mfu({"bfloat16": 989.5e12}, [H100, H100])
    assert found.percent == pytest.approx(50.0)
    assert found.rate == 989.5e12


def test_each_type_needs_its_part_of_the_time_at_its_own_peak() -> None:
    found = mfu({"bfloat16": 0.25 * 989.5e12, "tf32": 0.25 * 494.5e12}, [H100])
    assert found.percent == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("per_second", "models", "reason"),
    [
        ({"bfloat16": 1e12}, ["Acme One"], "the dense bfloat16 peak of Acme One is not known"),
        ({"": 1e12}, [H100], 'the data type is not known: pass dtype="bfloat16" or whichever your model computes in'),
        ({"bfloat16": 1e12}, [], "the program used no GPU that was sampled"),
    ],
)
def test_without_a_peak_there_is_a_rate_and_a_reason(
    per_second: dict[str, float], models: list[str], reason: str
) -> None:
    found = mfu(per_second, models)
    assert (found.percent, found.rate, found.reason) == (None, 1e12, reason)


def test_without_steps_there_is_nothing() -> None:
    found = mfu({}, [H100], "torch counted no operations in the second step")
    assert (found.percent, found.rate, found.reason) == (None, None, "torch counted no operations in the second step")
