"""The operations of a step: given, or counted once by the real torch."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import gpulse
from gpulse.errors import UsageError
from gpulse.monitor.flops import StepFlops

H100 = "NVIDIA H100 80GB HBM3"
FORWARD = 2 * 32 * 64 * 128


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def counted(torch: Any, steps: int = 3, dtype: object = None) -> StepFlops:
    flops = StepFlops("count", dtype)
    layer = torch.nn.Linear(64, 128)
    for _ in range(steps):
        layer(torch.ones(32, 64, requires_grad=True)).sum().backward()
        if flops.waiting:
            flops.at_step()
    return flops


def test_given_operations_against_the_peak() -> None:
    found = StepFlops(98.95e12, "bfloat16").mfu(5.0, [H100])
    assert found.percent == pytest.approx(50.0)


def test_every_process_of_the_job_computes_such_steps() -> None:
    flops = StepFlops(98.95e12, "bfloat16", processes=8)
    assert flops.mfu(5.0, [H100] * 8).percent == pytest.approx(50.0)
    assert flops.mfu(5.0, [H100]).percent == pytest.approx(50.0)  # sees only its own GPU
    assert StepFlops(98.95e12, "bfloat16").mfu(5.0, [H100] * 2).percent == pytest.approx(25.0)


@pytest.mark.parametrize("flops", [0, -1.0, True, "many", float("nan"), float("inf")])
def test_what_is_no_number_of_operations_is_an_error(flops: Any) -> None:
    with pytest.raises(UsageError, match="is not a number of floating-point operations"):
        gpulse.Monitor(flops_per_step=flops)


def test_a_type_alone_and_an_unknown_type_are_errors() -> None:
    with pytest.raises(UsageError, match="dtype is given without flops_per_step"):
        gpulse.Monitor(dtype="bfloat16")
    with pytest.raises(UsageError, match="'int8' is not a floating-point type"):
        gpulse.Monitor(flops_per_step=1e12, dtype="int8")


def test_torch_counts_one_step_forward_and_backward(torch: Any) -> None:
    flops = StepFlops("count", "bfloat16")
    seen: list[float] = []
    flops._take = lambda counted, total: seen.append(total)  # type: ignore[method-assign]
    layer = torch.nn.Linear(64, 128)
    for _ in range(4):
        layer(torch.ones(32, 64, requires_grad=True)).sum().backward()
        if flops.waiting:
            flops.at_step()
    assert seen == [3 * FORWARD]  # forward, gradient of the input, gradient of the weights
    assert not flops.waiting


def test_what_was_computed_on_the_cpu_is_not_the_gpus_work(torch: Any) -> None:
    flops = counted(torch)
    assert flops.by_dtype == {}
    assert flops.reason == "the counted step computed on the CPU"


def test_operations_are_told_apart_by_type(torch: Any) -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    flops = StepFlops("count", None)
    flops.at_step()
    counter = flops._counter
    torch.ones(8, 16, dtype=torch.bfloat16) @ torch.ones(16, 4, dtype=torch.bfloat16)
    torch.ones(8, 16) @ torch.ones(16, 4)
    assert counter.counted == {(False, "bfloat16"): 1024.0, (False, "float32"): 1024.0}
    flops.close()
    assert _get_current_dispatch_mode() is None


def test_a_mode_of_the_program_is_not_ended_with_the_count(torch: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

    class Mine(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    flops = StepFlops("count", None)
    flops.at_step()
    with Mine() as mine:
        flops.at_step()
        assert _get_current_dispatch_mode() is mine
        assert flops.waiting
    flops.at_step()
    assert _get_current_dispatch_mode() is None
    assert not flops.waiting


def test_another_thread_does_not_end_the_count(torch: Any) -> None:
    flops = StepFlops("count", None)
    flops.at_step()
    other = threading.Thread(target=flops.at_step)
    other.start()
    other.join()
    assert flops.waiting
    flops.at_step()
    assert not flops.waiting


@gpulse.testing.scripted(gpus=[{"name": H100, "processes": []}])
def test_a_monitor_counts_and_says_why_there_is_no_figure(torch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    layer = torch.nn.Linear(64, 128)
    with gpulse.Monitor(flops_per_step="count") as monitor:
        for _ in monitor.batches(range(4)):
            layer(torch.ones(32, 64)).sum().backward()
    summary = monitor.summary()
    assert summary is not None
    assert summary.mfu is not None
    assert summary.mfu.percent is None
    assert "flops_per_step: the counted step computed on the CPU; there is no MFU." in capsys.readouterr().err
