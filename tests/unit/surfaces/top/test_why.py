"""What limits each GPU, on the screen."""

from __future__ import annotations

from gpulse.analysis.concerns import concerns
from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Diagnosis, Holder, Verdict
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State
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


def hot(columns: int = 120, rows: int = 40, **values: object) -> State:
    settings, _ = ScreenSettings.load({})
    state = State(settings, History(settings.charts))
    taken = samples({"throttle_reasons": ("hw_thermal_slowdown",), "temperature": 92}, {}, seconds=20, interval=1.0)
    state.live = state.shown = taken[-1]
    state.now = taken[-1].time
    state.columns, state.rows = columns, rows
    state.diagnosis = diagnose(taken)
    state.concerns = concerns(state.diagnosis)
    for name, value in values.items():
        setattr(state, name, value)
    return state


def test_what_is_wrong_is_told_below_the_header() -> None:
    grid = paint(hot())
    assert grid.text()[1] == "1 critical: GPU 0 too hot  (y: why)"
    assert grid.styles[1][0] == "critical"
    assert paint(hot(columns=30)).text()[1] == "1 critical: GPU 0 too hot"
    assert "critical" not in paint(hot(rows=9)).text()[1]


def test_nothing_is_told_of_the_past_and_when_all_is_well() -> None:
    for quiet in (hot(back=5.0), hot(concerns=())):
        assert not any("critical" in line for line in paint(quiet).text())


def test_the_explanation_starts_with_the_worst() -> None:
    lines = [line.strip("│ ") for line in paint(hot(dialog="why")).text()]
    at = next(at for at, line in enumerate(lines) if line.startswith("2 GPUs over"))
    assert lines[at].endswith(": 1 critical")
    assert lines[at + 2].startswith("■ GPU 0  too hot")


def test_a_mig_instance_has_its_verdict_where_its_card_has_none() -> None:
    state = hot(concerns=())
    assert state.shown is not None
    others = state.shown.gpus[1:]
    card = Gpu(
        {"index": 0, "uuid": "GPU-0", "name": "H100"},
        instances=(Gpu({"uuid": "MIG-1", "name": "MIG 1g.10gb", "memory_used": 1.0, "memory_total": 2.0}),),
    )
    state.shown = state.live = Snapshot(state.shown.time, (card, *others), state.shown.host)
    part = Verdict("memory_leak", index=0, uuid="MIG-1", instance="1", processes=[Holder(4242, "python", "ada")])
    state.diagnosis = Diagnosis([part], state.now - 20, state.now, 20)
    assert any("1g.10gb" in line and "memory leak" in line for line in paint(state).text())
    state.dialog, state.chart_gpu = "gpu", 0
    text = "\n".join(paint(state).text())
    assert "GPU 0 MIG 1" in text
    assert "Memory leak: ada's python" in text
