"""GPUs that have no UUID for a while are known by their place, and forgotten once their UUID can be read again."""

from __future__ import annotations

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.analysis.events import EventDetector
from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot


def _snapshot(time: float, *gpus: Gpu) -> Snapshot:
    return Snapshot(time, gpus, Host({}), {}, ())


def test_a_gpu_whose_uuid_was_missing_at_first_is_not_said_to_be_gone() -> None:
    book, detector = RuleSet(rules_from({})), EventDetector()
    turned, events = [], []
    for second in range(60):
        gpu = Gpu({"index": 0} if second < 5 else {"index": 0, "uuid": "GPU-a"})
        snapshot = _snapshot(1e9 + second, gpu)
        turned += book.observe(snapshot)
        events += detector.observe(snapshot)
    assert not turned
    assert not events


def test_a_gpu_without_a_uuid_that_is_gone_is_still_told() -> None:
    book = RuleSet(rules_from({}))
    turned = []
    for second in range(60):
        gpus = [Gpu({"index": 0}), Gpu({"index": 1})] if second < 5 else [Gpu({"index": 0})]
        turned += book.observe(_snapshot(1e9 + second, *gpus))
    assert [(turn.event.kind, turn.event.gpus) for turn in turned] == [("removed", ("1",))]
