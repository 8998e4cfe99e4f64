"""Rules that users write, and the sentences that say what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.alerts import BUILT_IN, RuleSet, rules_from
from gpulse.errors import ConfigError
from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_text
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, turns, watch

BUSY = {"name": "busy", "metric": "utilization", "above": 95, "clear": 90, "for": "10m"}


def own(**values: Any) -> RuleSet:
    return book(rule=[{**BUSY, **values}])


class TestThreshold:
    def test_above_for_a_while_fires_and_below_clear_is_over(self) -> None:
        found = watch(own(clear_for=0), lambda at: gpu(utilization=99 if at < 1000 else 91 if at < 1200 else 90), 1500)
        assert turns(found) == [("busy", "fire", 600.0), ("busy", "clear", 1200.0)]
        assert [alert_text(one) for one in found] == [
            "GPU 0: Utilization is 99 %, above 95 %",
            "GPU 0: Utilization is 90 %",
        ]

    def test_an_active_alert_tells_the_value_of_now_and_when_it_fired(self) -> None:
        rules = own(**{"for": 0})
        watch(rules, lambda at: gpu(utilization=96 + at), 3)
        (active,) = rules.active
        assert (alert_text(active), active.time) == ("GPU 0: Utilization is 98 %, above 95 %", START)

    def test_below_is_the_mirror(self) -> None:
        rule = {"name": "idle", "metric": "power_draw", "below": 100, "clear": 150, "clear_for": 0}
        found = watch(book(rule=[rule]), lambda at: gpu(power_draw=[200, 99, 120, 99, 149, 150, 120][int(at)]), 7)
        assert turns(found) == [("idle", "fire", 1.0), ("idle", "clear", 5.0)]

    def test_zero_is_a_value(self) -> None:
        found = watch(
            book(rule=[{"name": "off", "metric": "utilization", "below": 1}]), lambda at: gpu(utilization=0), 3
        )
        assert [one.values for one in found] == [{"utilization": 0, "below": 1.0, "metric": "utilization"}]

    def test_a_missing_value_neither_fires_nor_clears(self) -> None:
        values = [99, None, None, 99, 99, None, 99]
        found = watch(own(**{"for": 1}), lambda at: gpu(utilization=values[int(at)]), 7)
        assert turns(found) == [("busy", "fire", 4.0)]

    @pytest.mark.parametrize("words", ["0-1", ["0", 1], "0,1", ["GPU-a", "b0"], ["0", "01:00.0"]])
    def test_gpus_are_chosen_when_first_seen_and_stay_so_under_new_numbers(self, words: Any) -> None:
        def machine(at: float) -> tuple[Gpu, ...]:
            order = (0, 1, 2) if at < 5 else (2, 0, 1)
            made = [("GPU-a0", "0000:00:00.0"), ("GPU-b0", "0000:01:00.0"), ("GPU-c0", "0000:02:00.0")]
            return tuple(gpu(n, uuid=u, pci_bus_id=b, utilization=99) for n, (u, b) in zip(order, made, strict=True))

        found = watch(own(gpu=words, **{"for": 10}), machine, 20)
        assert [(one.uuid, one.gpu) for one in found] == [("GPU-a0", "2"), ("GPU-b0", "0")]

    def test_a_number_means_a_gpu_and_not_an_instance_of_another(self) -> None:
        def machine(at: float) -> tuple[Gpu, ...]:
            part = gpu(1, uuid="MIG-1", utilization=99)
            return gpu(0).replace(instances=(part,)), gpu(1, utilization=99)

        assert [one.uuid for one in watch(own(gpu="1", **{"for": 1}), machine, 5)] == ["GPU-1"]
        assert [one.uuid for one in watch(own(gpu="0", **{"for": 1}), machine, 5)] == ["MIG-1"]
        assert [one.uuid for one in watch(own(gpu="MIG-1", **{"for": 1}), machine, 5)] == ["MIG-1"]

    def test_the_machine_has_metrics_too(self) -> None:
        rules = book(rule=[{"name": "full", "metric": "host.memory_used", "above": "120GiB", "severity": "critical"}])
        found = rules.observe(Snapshot(START, (gpu(),), Host({"memory_used": 121 * GIB})))
        assert [(one.uuid, alert_text(one), one.severity) for one in found] == [
            ("", "host: Memory used is 121 GiB, above 120 GiB", "critical")
        ]
        assert rules.wanted.host == frozenset({"memory_used"})

    def test_metrics_may_be_called_as_nvidia_smi_calls_them(self) -> None:
        assert "power_draw" in book(rule=[{"name": "a", "metric": "power.draw", "above": 1}]).wanted.gpu

    @given(
        st.lists(st.none() | st.floats(0, 100), max_size=120),
        st.floats(1, 99),
        st.floats(0, 1),
        st.integers(0, 20),
        st.integers(0, 20),
    )
    def test_fire_and_clear_take_turns_and_never_too_early(
        self, values: list[float | None], above: float, part: float, wait: int, calm: int
    ) -> None:
        rules = own(above=above, clear=above * part, clear_for=calm, **{"for": wait})
        found = watch(rules, lambda at: gpu(utilization=values[int(at)]), len(values))
        assert [one.state for one in found] == [("fire", "clear")[at % 2] for at in range(len(found))]
        for one in found:
            at = int(one.time - START)
            fires = one.state == "fire"
            seconds = wait if fires else calm
            known = [value for value in values[: at + 1] if value is not None]
            assert all(value > above if fires else value <= above * part for value in known[-1 - seconds :])
            assert len(known) > seconds
        assert bool(rules.active) == (len(found) % 2 == 1)


class TestSettings:
    def test_the_rule_for_verdicts_is_there_when_asked_for(self) -> None:
        assert "diagnosis" in [rule.name for rule in rules_from({"diagnosis": {"for": "5m"}})]
        assert [rule.name for rule in rules_from({"enable": ["diagnosis"]})] == ["diagnosis"]

    def test_a_rule_is_also_found_by_the_condition_it_tells_of(self) -> None:
        names = [
            rule.name for rule in rules_from({"enable": ["memory_leak", "memory-nearly-full", "driver_unresponsive"]})
        ]
        assert names == ["lost", "memory", "leak"]

    def test_all_built_in_rules_are_there_by_default(self) -> None:
        names = [rule.name for rule in rules_from({})]
        assert names == [name for name in BUILT_IN if name not in ("diagnosis", "stalled")]
        assert set(names) == {
            *("lost", "xid", "ecc", "throttled", "hot", "pcie_degraded", "link_errors", "memory", "leak"),
            *("idle_allocation", "allocation_unused", "job_finished", "gpu_free"),
            *("serving_queue", "serving_first_token", "serving_errors", "serving_stuck"),
            *("nvlink_down", "fabric_not_ready", "port_flaps", "slower_than_peers"),
        }

    def test_they_are_chosen_by_name(self) -> None:
        assert [rule.name for rule in rules_from({"enable": ["hot", "lost"]})] == ["lost", "hot"]
        assert [rule.name for rule in rules_from({"enable": ["hot", "lost"], "disable": ["hot"]})] == ["lost"]

    @pytest.mark.parametrize(
        ("table", "sentence"),
        [
            ({"disable": ["hott"]}, "alerts.disable: unknown rule 'hott' (did you mean 'hot'?)"),
            ({"enable": "hot"}, "alerts.enable is not a list of names;"),
            ({"hot": {"abve": 3}}, "alerts.hot: unknown key 'abve' (did you mean 'above'?)"),
            ({"hot": {"above": "warm"}}, "alerts.hot.above: 'warm' is not a number."),
            ({"hot": {"above": True}}, "alerts.hot.above: True is not a number."),
            ({"hot": {"for": "5x"}}, "alerts.hot.for: '5x' is not a duration;"),
            ({"hot": {"for": -1}}, "alerts.hot.for: -1 is not a duration such as 30s, 10m or 2h."),
            ({"hot": 3}, "alerts.hot is not a table;"),
            ({"leak": {"rise": "much"}}, "alerts.leak.rise: 'much' is not a size;"),
            ({"rule": {"name": "a"}}, "alerts.rule is not a list of tables;"),
            ({"rule": [{"metric": "power_draw", "above": 1}]}, "alerts.rule 1: name is missing;"),
            ({"rule": [{**BUSY, "name": "hot"}]}, "alerts.rule: there is more than one rule 'hot';"),
            ({"rule": [BUSY, BUSY]}, "alerts.rule: there is more than one rule 'busy';"),
            (
                {"rule": [{**BUSY, "metric": "utilisation"}]},
                "unknown metric 'utilisation' (did you mean 'utilization'?)",
            ),
            ({"rule": [{**BUSY, "metric": "host.memory_percent"}]}, "alerts.rule busy.metric: unknown metric"),
            ({"rule": [{**BUSY, "metric": "name"}]}, "alerts.rule busy.metric: name is not a changing number;"),
            ({"rule": [{**BUSY, "below": 3}]}, "alerts.rule busy: either above or below is required;"),
            ({"rule": [{**BUSY, "clear": 96}]}, "alerts.rule busy.clear is on the wrong side of above;"),
            ({"rule": [{**BUSY, "gpus": 1}]}, "alerts.rule busy: unknown key 'gpus' (did you mean 'gpu'?)"),
            ({"rule": [{**BUSY, "gpu": True}]}, "alerts.rule busy.gpu: True is not a list of GPUs;"),
            ({"rule": [{**BUSY, "severity": 3}]}, "alerts.rule busy.severity: unknown severity 3;"),
            (
                {"rule": [{"name": "a", "metric": "host.iowait", "above": 3, "gpu": 1}]},
                "host.iowait is a metric of the host",
            ),
        ],
    )
    def test_mistakes_are_said_in_a_sentence_that_names_the_key(self, table: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ConfigError) as raised:
            rules_from(table)
        assert sentence in str(raised.value)
        assert "\n" not in str(raised.value)
