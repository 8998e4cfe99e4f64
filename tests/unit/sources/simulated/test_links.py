"""NVLinks of the simulated machines: those of eight GPUs on one board, and none between GPUs of several vendors."""

from __future__ import annotations

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import GPU_METRICS
from gpulse.model.select import Wanted
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource

LINKS = tuple(key for key in GPU_METRICS if key.startswith("nvlink_"))


def sampled(mixed: bool) -> Sampler:
    clock = ManualClock()
    source = SimulatedSource(clock=clock.monotonic, mixed=mixed)
    return Sampler(source, Wanted((*LINKS, "topology")), clock=clock).open()


def test_the_eight_are_linked_and_every_figure_of_the_links_is_there() -> None:
    snapshot = sampled(mixed=False).read()
    for gpu in snapshot.gpus:
        assert [key for key in LINKS if gpu.get(key) is None] == []
        assert sum(gpu.nvlink_states or ()) == gpu.nvlink_links == len(gpu.nvlink_speeds or ()) == 18


def test_gpus_of_several_vendors_have_no_links() -> None:
    snapshot = sampled(mixed=True).read()
    for gpu in snapshot.gpus:
        assert {gpu.gaps.get(key) for key in LINKS} == {"unsupported"}
        assert len(gpu.topology or ()) == len(snapshot.gpus) - 1
        assert not any("NV" in word for word in gpu.topology or ())


@pytest.mark.parametrize("option", ["-s", "-c", "-e", "-R", "-gt d"])
def test_nvlink_answers_on_the_demo(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["smi", "nvlink", *option.split(), "--demo"]) == 0
    out = capfd.readouterr().out
    assert out.count("NVIDIA H100") == 8
    assert "Link 17" in out
    assert "N/A" not in out
