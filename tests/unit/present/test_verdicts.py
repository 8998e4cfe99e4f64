"""Every verdict has its words, and whatever processes are called, the words are harmless."""

from __future__ import annotations

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.rules import RULES
from gpulse.model.condition import CONDITIONS
from gpulse.model.verdict import Budget, Diagnosis, Evidence, Holder, Verdict
from gpulse.present.explanation import answer
from gpulse.present.figures import ADVICE, FIGURES, evidence_text
from gpulse.present.theme import Theme
from gpulse.present.verdict_titles import TITLES
from gpulse.present.verdicts import advice, findings, line, short, style, time_lines, times, title, worded
from tests.unit.analysis.diagnosis.machines import QUIET, judged, samples
from tests.unit.analysis.diagnosis.test_jobs import SPINNING, rank
from tests.unit.analysis.diagnosis.test_rules import DEVICE, LIMITS

KEYS = [rule.key for rule in RULES]


@pytest.mark.parametrize("key", KEYS)
def test_every_verdict_has_words(key: str) -> None:
    assert key in TITLES
    assert short(Verdict(key)) == CONDITIONS[key].title
    assert style(Verdict(key)) in ("good", "warn", "critical", "label")
    assert title(Verdict(key)).endswith(".")


def test_every_advice_of_every_rule_is_known() -> None:
    assert {key for rule in RULES for key in rule.advice} <= ADVICE.keys()


@pytest.mark.parametrize("values", [*DEVICE.values(), *LIMITS.values()])
def test_a_title_is_one_sentence_without_holes(values: dict[str, object]) -> None:
    verdict = judged(values)
    for one in (verdict, *verdict.also):
        text = title(one)
        assert text.endswith(".")
        assert "  " not in text
        assert " ." not in text
        assert len(text) < 200


def test_a_number_stands_beside_its_threshold() -> None:
    assert evidence_text(Evidence("sm_active", 4.4, 40.0, "below")) == "SM active 4.4 % (below 40 %)"
    assert evidence_text(Evidence("cpu_main", 1.0, 0.8, "above")) == "CPU of the process 1.0 cores (at least 0.8 cores)"
    assert evidence_text(Evidence("memory_used", 2**31)) == "Memory used 2.0 GiB"
    assert evidence_text(Evidence("throttle_reasons", ("hw_slowdown",))) == "Throttle reasons hardware slowdown"


def test_figures_have_kinds_that_can_be_written() -> None:
    assert all(
        evidence_text(Evidence(name, 5.0, 4.0, "above")).lower().startswith(label.lower())
        for name, (label, _) in FIGURES.items()
    )


def test_an_xid_comes_with_the_action_of_nvidia() -> None:
    verdict = judged({"xid_last": lambda second: 79 if second > 5 else None})
    assert "fallen off the bus" in title(verdict)
    assert advice(verdict)[0].startswith("XID 79")
    assert "catalog" in advice(judged({"xid_last": 999}))[0]


def test_the_name_of_a_process_cannot_act_on_a_terminal() -> None:
    verdict = Verdict(
        "idle_allocation", processes=[Holder(1, "\x1b[31mevil", "\x07", memory=1.0)], values={"held": 1.0}
    )
    assert "\x1b" not in line(verdict)
    assert "\x07" not in line(verdict)


def test_a_hang_names_the_gpu_that_does_nothing() -> None:
    stuck = rank(2, **SPINNING) | {"utilization": 0, "graphics_active": 0, "sm_active": 0}
    assert "; GPU 2 does nothing" in title(
        judged(rank(0, **SPINNING), rank(1, **SPINNING), stuck, seconds=40, interval=1.0)
    )
    several = Verdict("hang", values={"stuck": (2.0, 3.0, 4.0, 7.0), "gpus": 8.0})
    assert "; GPUs 2-4, 7 do nothing and may be the cause" in title(several)


def test_several_processes_are_listed_and_the_rest_counted() -> None:
    people = [Holder(pid, "python", "ada") for pid in range(1, 6)]
    one, two, three = (f"ada's python (pid {pid})" for pid in (1, 2, 3))
    assert f": {one}, {two}, {three} and 2 more compute" in title(Verdict("contention", processes=people))
    assert f": {one}, {two} and {three} compute" in title(Verdict("contention", processes=people[:3]))
    assert f"{one} and 4 more hold" in title(Verdict("idle_allocation", processes=people))


@pytest.mark.parametrize(
    ("key", "metric", "count", "text"),
    [
        ("memory_errors", "ecc_uncorrected", 1.0, "1 memory error could not be corrected."),
        ("memory_errors", "ecc_uncorrected", 3.0, "3 memory errors could not be corrected."),
        ("serving_cache_full", "waiting", 1.0, "The key-value cache is full:  in use with 1 request waiting."),
    ],
)
def test_one_is_not_many(key: str, metric: str, count: float, text: str) -> None:
    assert title(Verdict(key, evidence=[Evidence(metric, count)])) == text


def test_a_worded_diagnosis_has_every_text() -> None:
    found = worded(Diagnosis([judged({"pcie_width": 8, "pcie_rx": 1e9, "tensor_active": 0, "dram_active": 88})]))[0]
    assert found.title
    assert found.remedies
    assert all(one.text for one in found.evidence)
    assert found.also[0].title


def test_findings_group_what_is_well_and_leave_out_what_is_idle() -> None:
    idle = QUIET | {"processes": (), "memory_used": 0}
    told = findings(diagnose(samples({}, {}, {}, {"pcie_width": 8, "pcie_rx": 1e9}, idle)))
    assert [text.split(":")[0] for text in told] == ["GPUs 0-2", "GPU 3"]
    assert told[1].endswith("Reseat the GPU; check riser, slot and cable.")


def test_gpus_that_are_well_share_a_bar_of_their_time() -> None:
    busy = [Budget(10, {"tensor": 0.8, "idle": 0.2}), Budget(30, {"tensor": 0.4, "idle": 0.6})]
    waiting = Budget(60, {"tensor": 0.25, "workers": 0.75}, ["workers"])
    verdicts = [Verdict("healthy", index=at, budget=one) for at, one in enumerate(busy)]
    verdicts += [Verdict("input_bound_cpu", index=2, budget=waiting), Verdict("idle", index=3, budget=busy[0])]
    assert time_lines(times([*verdicts, Verdict("healthy", index=4)])) == [
        "GPUs 0, 1 time  ############............  # tensor cores 50 % · . idle 50 %",
        "GPU 2 time      ######wwwwwwwwwwwwwwwwww  w waiting for workers ~75 % · # tensor cores 25 %",
    ]
    assert time_lines(times([])) == []


def test_mig_instances_are_named_and_the_card_is_counted_once() -> None:
    parts = [
        Verdict("idle", index=0, uuid="MIG-1", instance="1"),
        Verdict("memory_leak", index=0, uuid="MIG-2", instance="2"),
    ]
    lines = answer(Diagnosis(parts, 0.0, 20.0, 20), {0: "H100"}, Theme(), 80)
    assert lines[0] == "1 GPU with 2 MIG instances over 20s, 20 samples: 1 warning"
    assert lines[2].startswith("▲ GPU 0 MIG 2  memory leak")
    assert [line for line in lines[3:] if line.startswith("GPU")] == ["GPU 0 MIG 2  H100", "GPU 0 MIG 1  H100"]
    assert findings(Diagnosis(parts))[0].startswith("GPU 0 MIG 2: Memory leak")
