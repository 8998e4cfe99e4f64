"""The alert for a GPU that something limits for long."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.present.events import event_text
from tests.unit.analysis.diagnosis.machines import samples


def test_it_fires_once_after_a_while_and_clears_when_all_is_well() -> None:
    book = RuleSet(rules_from({"enable": ["diagnosis"], "diagnosis": {"for": "2m", "clear_for": "30s"}}))
    chip = {
        "tensor_active": lambda second: 0.0 if second < 300 else 50.0,
        "fp32_active": lambda second: 60.0 if second < 300 else 2.0,
    }
    turned = [one for sample in samples(chip, seconds=600, interval=2.0) for one in book.observe(sample)]
    assert [(one.state, one.severity) for one in turned] == [("fire", "warn"), ("clear", "warn")]
    assert event_text(turned[0].event) == "GPU 0: FP32, no tensor cores"


def test_a_mig_instance_has_its_own_alert() -> None:
    book = RuleSet(rules_from({"enable": ["diagnosis"], "diagnosis": {"for": "1m"}}))
    turned = []
    for one in samples({"tensor_active": 0.0, "fp32_active": 60.0}, seconds=180, interval=2.0):
        part = Gpu({**dict(one.gpus[0].items()), "uuid": "MIG-1", "gpu_instance": 1}, processes=one.gpus[0].processes)
        turned += book.observe(Snapshot(one.time, (Gpu({"uuid": "GPU-0", "index": 0}, instances=(part,)),), one.host))
    assert [(one.state, one.event.uuids) for one in turned] == [("fire", ("MIG-1",))]
    assert event_text(turned[0].event) == "GPU 0 MIG 1: FP32, no tensor cores"


WITHOUT_COUNTERS = {
    "sm_active": None,
    "sm_occupancy": None,
    "tensor_active": None,
    "dram_active": None,
    "fp32_active": None,
    "fp16_active": None,
}


@pytest.mark.parametrize(
    ("verdict", "chip"),
    [
        ("healthy", {}),
        ("busy", WITHOUT_COUNTERS),
        ("memory_bandwidth", {"dram_active": 92.0, "tensor_active": 5.0}),
        ("lost", {"state": "lost"}),
    ],
)
def test_what_is_fine_or_told_by_another_rule_is_no_alert(verdict: str, chip: dict[str, Any]) -> None:
    taken = samples(chip, seconds=300, interval=2.0)
    assert diagnose(taken)[0].key == verdict
    book = RuleSet(rules_from({"enable": ["diagnosis"], "diagnosis": {"for": "1m"}}))
    assert not [one for sample in taken for one in book.observe(sample)]
