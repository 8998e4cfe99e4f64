"""Verdicts are values that JSON takes."""

from __future__ import annotations

import json

import pytest

from gpulse.model.verdict import Diagnosis, Evidence, Holder, Verdict


def _verdict() -> Verdict:
    return Verdict(
        "memory_leak",
        "high",
        [Evidence("memory_growth", 2.5e8, 1e6, "above", "memory growth 250 MB/s")],
        advice=["detach_loss"],
        also=[Verdict("healthy", "medium", index=3, share=0.5)],
        index=3,
        uuid="GPU-3",
        processes=[Holder(42, "python", "ada", "python x.py", "slurm:1", 1e9)],
        start=1_700_000_000.0,
        end=1_700_000_030.5,
        values={"eta": (60.0, 90.0), "kind": "x", "rate": 1.5},
        title="Memory leak.",
        remedies=["Stop it."],
    )


def test_the_json_has_the_documented_shape() -> None:
    plain = json.loads(json.dumps(Diagnosis([_verdict()], 0.0, 1.0, 2).to_plain()))["gpus"][0]
    assert plain["index"] == 3
    assert plain["verdict"] == "memory_leak"
    assert plain["title"] == "Memory leak."
    assert plain["confidence"] == "high"
    assert plain["evidence"][0].keys() >= {"metric", "value", "threshold", "text"}
    assert plain["also"][0]["verdict"] == "healthy"
    assert plain["advice"] == ["Stop it."]
    assert plain["window"].keys() == {"from", "to"}


def test_a_verdict_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        _verdict().key = "idle"  # type: ignore[misc]
    assert _verdict().replace(key="idle").key == "idle"
    assert _verdict() == _verdict()
    assert hash(_verdict()) == hash(_verdict())


def test_a_gpu_is_found_by_index() -> None:
    diagnosis = Diagnosis([_verdict()])
    assert diagnosis.of(3) == diagnosis[0]
    assert diagnosis.of(1) is None
    assert len(diagnosis) == 1
