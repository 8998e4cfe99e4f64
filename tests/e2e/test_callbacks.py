"""Callbacks in real trainings with the frameworks that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import callback_programs as programs
from tests.e2e.lab import Forking
from tests.e2e.trainings import SLEEP, run, trainings

SENTENCES = [
    "interval=0 is not a number of seconds from 0.1 to 3600; try interval=1.",
    "unknown sink 'cvs:bad.csv' (did you mean 'csv'?)",
    "unknown source 'dmeo' (did you mean 'demo'?)",
    "unknown metric 'utilisation' (did you mean 'utilization'?)",
    'gpus=[] names no GPUs; write it as gpus=[0, 2], "visible" or "all".',
]


@pytest.fixture(scope="module")
def server() -> Iterator[Forking]:
    """The program that has imported the frameworks."""
    with trainings() as program:
        yield program


@pytest.fixture(scope="class")
def told(request: pytest.FixtureRequest, server: Forking, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program of a class told about its monitors."""
    return run(server, request.cls.program, tmp_path_factory.mktemp("training"), *request.cls.needs)


class LeavesNothing:
    """What holds after every program."""

    def test_nothing_is_left_behind(self, told: Any) -> None:
        assert [each["agents"] for each in told.values()] == [0] * len(told)
        assert not any(each["runs"] or each["errors"] for each in told.values())


class SurvivesErrors(LeavesNothing):
    """What holds for frameworks that have no hook for errors."""

    def test_an_error_passes_and_the_next_training_stops_what_it_left(self, told: Any) -> None:
        failed = told["failed"]
        assert failed["ran"] == [True]
        assert failed["passed"]
        assert not failed["lost_runs"]
        assert failed["steps"] == 3

    def test_a_copy_runs_nothing(self, told: Any) -> None:
        assert told["failed"]["copies_run"] == [False, False]


class TestAccelerate(LeavesNothing):
    """The Accelerate tracker in real loops."""

    program, needs = programs.ACCELERATE, ("accelerate", "torch")

    def test_a_loop_has_samples_steps_phases_and_epochs(self, told: Any) -> None:
        fast = told["fast"]
        assert fast["samples"] >= 16, "two more came in each of eight batches"
        assert fast["steps"] == 8
        assert list(fast["phases"]) == ["evaluate"]
        assert fast["marks"] == [["epoch", 0]]

    def test_the_name_finds_the_tracker_and_its_options(self, told: Any) -> None:
        assert told["slow"]["samples"] > 0
        assert told["slow"]["steps"] == 6

    def test_only_a_slow_loader_makes_it_wait(self, told: Any) -> None:
        fast, slow = told["fast"], told["slow"]
        assert slow["waited"] >= 6 * SLEEP
        assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]

    def test_steps_of_an_earlier_run_are_not_counted(self, told: Any) -> None:
        assert told["resumed"]["steps"] == 9


class TestKeras(SurvivesErrors):
    """The Keras callback in real trainings, on the torch backend, which calls the ends of batches from other threads."""

    program, needs = programs.KERAS, ("keras", "torch")

    def test_a_fit_has_samples_steps_phases_and_epochs(self, told: Any) -> None:
        fast = told["fast"]
        assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
        assert fast["steps"] == fast["phases"]["fit"]["steps"] == 8
        assert list(fast["phases"]) == ["fit", "fit/evaluate"]
        assert fast["phases"]["fit/evaluate"]["steps"] == 0
        assert fast["marks"] == [["epoch", 0], ["epoch", 1]]

    def test_the_history_is_the_user_s_own(self, told: Any) -> None:
        assert told["fast"]["history"] == ["loss", "val_loss"]

    def test_only_a_slow_loader_makes_it_wait(self, told: Any) -> None:
        fast, slow = told["fast"], told["slow"]
        assert slow["waited"] >= 6 * SLEEP
        assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]

    def test_another_fit_counts_from_the_start(self, told: Any) -> None:
        assert told["slow"]["steps"] == 6

    def test_evaluating_and_predicting_alone_are_monitored(self, told: Any) -> None:
        assert list(told["alone"]["phases"]) == ["evaluate"]
        assert told["alone"]["waited"] >= 5 * SLEEP
        assert list(told["predicted"]["phases"]) == ["predict"]


class TestLightning(LeavesNothing):
    """The Lightning callback in real trainings."""

    program, needs = programs.LIGHTNING, ("lightning", "torch")

    def test_a_fit_has_samples_steps_phases_and_epochs(self, told: Any) -> None:
        fast = told["fast"]
        assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
        assert fast["steps"] == fast["phases"]["fit"]["steps"] == fast["global_step"] == 4
        assert list(fast["phases"]) == ["fit", "fit/sanity", "fit/validate"]
        assert fast["phases"]["fit/validate"]["steps"] == 0
        assert fast["marks"] == [["epoch", 0], ["epoch", 1]]

    def test_values_reach_the_loggers_in_the_thread_that_trains(self, told: Any) -> None:
        calls = told["fast"]["logged"]
        assert len(calls) >= 8
        assert all(main for main, _, _ in calls)
        steps = [step for _, step, _ in calls]
        assert steps == sorted(steps)
        assert steps[-1] == 4
        assert {"gpulse/gpu0/memory_used", "gpulse/host/cpu_percent", "gpulse/train/steps_per_second"} <= {
            key for _, _, keys in calls for key in keys
        }
        assert "gpulse/gpu0/memory_used" in told["fast"]["csv"]

    def test_only_a_slow_loader_makes_it_wait(self, told: Any) -> None:
        fast, slow = told["fast"], told["slow"]
        assert slow["waited"] >= 6 * SLEEP
        assert slow["phases"]["fit"]["waited"] == pytest.approx(slow["waited"])
        assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]

    def test_validating_is_not_waiting(self, told: Any) -> None:
        assert told["fast"]["waited"] < 2 * 2 * 2 * SLEEP, "two batches in each of two epochs"

    def test_another_fit_counts_from_the_start(self, told: Any) -> None:
        assert told["slow"]["steps"] == 6

    def test_batches_are_the_steps_of_other_stages(self, told: Any) -> None:
        assert list(told["test"]["phases"]) == ["test"]
        assert told["test"]["steps"] == 5

    def test_an_error_passes_and_stops_the_monitor(self, told: Any) -> None:
        failed = told["failed"]
        assert failed["ran"] == [True]
        assert failed["passed"]
        assert not failed["runs"]

    def test_a_copy_runs_nothing_until_it_is_used(self, told: Any) -> None:
        assert told["failed"]["copies_run"] == [False, False]
        assert told["copy"]["steps"] == 3


class TestTransformers(SurvivesErrors):
    """The Transformers callback in real trainings of a model of some hundred weights."""

    program, needs = programs.TRANSFORMERS, ("transformers", "accelerate", "torch", "tensorboard")

    def test_a_training_has_samples_steps_phases_and_marks(self, told: Any) -> None:
        fast = told["fast"]
        assert fast["samples"] >= 16, "two more came in each of four batches of two epochs"
        assert fast["steps"] == fast["phases"]["train"]["steps"] == fast["global_step"] == 4
        assert list(fast["phases"]) == ["train", "train/evaluate"]
        assert fast["marks"][:3] == [["epoch", 0], ["save", 2], ["epoch", 1]]

    def test_values_go_beside_the_reporter_and_not_into_the_history(self, told: Any) -> None:
        assert told["fast"]["spoiled"] == []
        for output, training in (("out", "fast"), ("again", "slow")):
            theirs, ours = sorted(
                {Path(path).parent for path in told[training]["curves"]}, key=lambda path: len(path.parts)
            )
            assert theirs.parent == Path(output, "runs")
            assert ours == theirs / "gpulse", "one folder holds one run"

    def test_evaluating_alone_is_not_monitored(self, told: Any) -> None:
        assert told["fast"]["ran_for_evaluate"] is False

    def test_only_a_slow_loader_makes_it_wait(self, told: Any) -> None:
        fast, slow = told["fast"], told["slow"]
        assert slow["waited"] >= 6 * SLEEP
        assert slow["phases"]["train"]["waited"] == pytest.approx(slow["waited"])
        assert fast["waited"] / fast["steps"] < slow["waited"] / slow["steps"]

    def test_evaluating_is_not_waiting(self, told: Any) -> None:
        assert told["slow"]["waited"] < (6 + 2 * 2 * 2) * SLEEP, "of which two batches in each of two evaluations"

    def test_another_training_counts_from_the_start(self, told: Any) -> None:
        assert told["slow"]["steps"] == 6


class TestYaml:
    """Callbacks configured from YAML: by LightningCLI from signatures alone, for the other frameworks as keyword arguments."""

    program, needs = (
        programs.YAML,
        ("lightning", "jsonargparse", "transformers", "accelerate", "keras", "torch", "yaml"),
    )

    @pytest.mark.parametrize(("framework", "steps"), [("lightning", 8), ("transformers", 3), ("keras", 3)])
    def test_yaml_configures_a_training(self, told: Any, framework: str, steps: int) -> None:
        assert told[framework]["steps"] == steps
        assert {tag.partition("/")[0] for tag in told[framework]["columns"]} == {"gpu0", "gpu2"}
        assert {tag.partition("/")[2] for tag in told[framework]["columns"]} == {"utilization", "power_draw"}
        assert not told[framework]["errors"]

    def test_lightning_makes_a_sink_from_its_class_path(self, told: Any) -> None:
        assert told["lightning"]["jsonl"] >= 1

    def test_lightning_refuses_what_the_signature_does_not_have(self, told: Any) -> None:
        name, kind, *_ = told["lightning"]["refused"]
        assert name == "Option 'intervall' is not accepted"
        assert kind == "Expected a <class 'float'>. Got value: fast"

    @pytest.mark.parametrize("framework", ["lightning", "transformers", "keras"])
    def test_a_wrong_argument_is_refused_before_the_training(self, told: Any, framework: str) -> None:
        refused = told[framework]["refused"]
        assert all(refused), "each of them"
        for sentence in SENTENCES:
            assert any(sentence in one.replace("0.0 is", "0 is") for one in refused), "\n".join(refused)

    @pytest.mark.parametrize("framework", ["transformers", "keras"])
    def test_without_a_parser_names_and_types_are_refused_as_well(self, told: Any, framework: str) -> None:
        refused = told[framework]["refused"]
        assert "unexpected keyword argument 'intervall'" in refused[0]
        assert refused[1] == "UsageError: interval='fast' is not a number of seconds from 0.1 to 3600; try interval=1."
        assert refused[3] == 'UsageError: unknown mode=\'threads\'; choose "process" or "thread".'
        assert refused[7] == "UsageError: alerts=3 is neither True nor False; write alerts=True or alerts=False."
        assert refused[9].startswith("UsageError: metrics='utilization' is not a list;")

    def test_a_refused_callback_has_written_nothing(self, told: Any) -> None:
        assert told["files"] == []

    def test_callbacks_have_the_arguments_and_defaults_of_a_monitor_with_types(self, told: Any) -> None:
        signatures = told["signatures"]
        assert signatures["missing"] == [[], [], [], []]
        assert signatures["own"] == [["log"], ["log"], [], ["run_name"]]
        assert signatures["hints"] == [["return"]] * 4
