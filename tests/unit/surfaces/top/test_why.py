"""What limits each GPU, on the screen."""

from __future__ import annotations

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.painter import paint
from gpulse.surfaces.top.settings import ScreenSettings
from gpulse.surfaces.top.state import State
from tests.unit.analysis.diagnosis.machines import samples


def screen(dialog: str = "", columns: int = 120) -> str:
    settings, _ = ScreenSettings.load({})
    state = State(settings, History(settings.charts))
    taken = samples({"tensor_active": 0, "dram_active": 88, "power_draw": 500}, {}, seconds=20, interval=1.0)
    state.live = state.shown = taken[-1]
    state.now = taken[-1].time
    state.columns, state.rows = columns, 40
    state.diagnosis = diagnose(taken)
    state.selected = 4242
    state.dialog = dialog
    return "\n".join("".join(row) for row in paint(state).chars)


def test_the_title_of_a_gpu_says_it_in_two_words() -> None:
    assert "memory bandwidth" in screen()
    assert "healthy" in screen()
    assert "memory bandwidth" in screen(columns=80)


def test_the_dialog_explains_every_gpu() -> None:
    shown = screen("why")
    assert "Limited by memory bandwidth" in shown
    assert "DRAM active" in shown
    assert "torch.compile" in shown


def test_the_details_of_a_process_explain_its_gpus() -> None:
    shown = screen("details")
    assert "Why GPU 0" in shown
    assert "Limited by memory bandwidth" in shown
