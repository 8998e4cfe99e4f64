"""The fleet as text: sums, problems, tables, free GPUs."""

from __future__ import annotations

import pytest

from gpulse.analysis.fleet import FleetWatch, Funnel, free_gpus, losses
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.condition import CONDITIONS
from gpulse.model.fleet import FleetSnapshot, HostReport
from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import Theme
from gpulse.surfaces.fleet.view import TABLES, fleet_view, free_lines, loss_lines
from tests.unit.surfaces.status.pictures import demo

_GIB = 1 << 30
_EVIL = "\x1b]0;owned\x07"
NOW = 1_700_000_000.0


def gpu(index: int, use: float | None = 0.0, users: tuple[str, ...] = (), **more: object) -> Gpu:
    values: dict[str, object] = {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA H100",
        "memory_total": 80 * _GIB,
        **({} if use is None else {"utilization": use, "memory_used": 10.0 * _GIB, "power_draw": 100.0}),
        **more,
    }
    processes = tuple(Process({"pid": 7, "user": user, "name": "python", "job": "slurm:1"}) for user in users)
    return Gpu(values, processes=processes)  # type: ignore[arg-type]


def host(name: str, *gpus: Gpu) -> HostReport:
    return HostReport(name, "ssh", "ok", Snapshot(NOW, gpus, Host({"name": name})), 1.0)


def text(snapshot: FleetSnapshot, columns: int = 120, by: str = "host", theme: Theme | None = None) -> str:
    theme = theme or Theme()
    return "\n".join(line.render(theme, columns) for line in fleet_view(snapshot, theme, columns, by=by))


FLEET = FleetSnapshot(
    NOW,
    (
        host("a", gpu(0, 100.0, ("ada",), sm_active=50.0), gpu(1, 0.0)),
        host("b", gpu(0, 50.0, ("ada", "bob"))),
        HostReport("c", "ssh", "unreachable", None, None, f"no route{_EVIL}"),
        HostReport("d", "ssh", "connecting"),
    ),
)


def test_the_sum_goes_from_all_to_effective() -> None:
    sums = Funnel(one for _, one in FLEET.gpus())
    assert (sums.total, sums.allocated, sums.active, sums.effective, sums.judged) == (3, 2, 1.5, 0.5, 1)
    assert "3 GPUs → 2 allocated (67 %) → 1.5 active (50 %) → 0.5 effective (50 %) of 1 that measure it" in text(FLEET)


@pytest.mark.parametrize("columns", range(12, 130))
def test_a_number_of_the_sum_is_whole_or_left_out(columns: int) -> None:
    whole, shown = text(FLEET, 200).splitlines()[1].rstrip(), text(FLEET, columns).splitlines()[1].rstrip()
    assert whole == shown or whole.startswith((f"{shown} →", f"{shown}   "))


def test_a_gpu_without_a_list_of_processes_counts_by_its_memory() -> None:
    for used, allocated in ((10.0 * _GIB, 1), (1.0, 0)):
        known = Gpu({"index": 0, "uuid": "x", "memory_used": used}, {"processes": "unsupported"})
        assert Funnel([known]).allocated == allocated


def test_a_gpu_that_a_batch_job_has_is_allocated() -> None:
    assert Funnel([gpu(0, job="slurm:1"), gpu(1, job="")]).allocated == 1


def test_64_gpus_leave_room_for_the_numbers_and_a_lost_one_is_seen() -> None:
    gpus = [gpu(index, 100.0, sm_active=90.0) for index in range(63)]
    lost = Gpu({"index": 63, "uuid": "GPU-63", "name": "NVIDIA H100"}, state="lost")
    (row,) = [
        line for line in text(FleetSnapshot(NOW, (host("big", *gpus, lost),)), 80).splitlines() if "big  " in line
    ]
    assert "×" in row
    assert "90%" in row
    assert "GiB" in row


def test_a_gpu_with_instances_works_as_much_as_they_do() -> None:
    parts = tuple(
        Gpu({"name": f"H100 MIG {name}", "sm_active": use}) for name, use in (("4g.40gb", 70.0), ("3g.40gb", 0.0))
    )
    whole = Gpu({"index": 0, "uuid": "GPU-0", "name": "NVIDIA H100"}, instances=parts)
    sums = Funnel([whole])
    assert (round(sums.effective or 0, 2), sums.known) == (0.4, 0)
    (row,) = [
        line for line in text(FleetSnapshot(NOW, (host("mig", whole),)), 80).splitlines() if line.startswith("mig")
    ]
    assert row.split()[4:7] == ["▄", "40%", "-"]


@pytest.mark.parametrize("by", TABLES)
@pytest.mark.parametrize("columns", [40, 80, 120, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_too_long_and_no_text_of_others_controls_the_terminal(by: str, columns: int, unicode: bool) -> None:
    shown = text(FLEET, columns, by, Theme(unicode=unicode))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert max(len(line) for line in shown.splitlines()) <= columns
    assert unicode or shown.isascii()


def test_machines_in_trouble_come_first_and_by_name() -> None:
    lines = text(FLEET).splitlines()
    assert lines[3].startswith("■ c  unreachable: no route")
    assert any(line.startswith("d  connecting") for line in lines)


def test_users_and_jobs_are_added_up_over_machines() -> None:
    rows = text(FLEET, by="user").splitlines()
    assert [row.split()[:2] for row in rows[-2:]] == [["ada", "2"], ["bob", "1"]]
    assert rows[-2].endswith("a, b")
    assert text(FLEET, by="job").splitlines()[-1].split()[:2] == ["slurm:1", "2"]


def test_free_gpus_are_those_that_nobody_holds() -> None:
    assert [one.index for one in free_gpus(FLEET.hosts[0])] == [1]
    theme = Theme()
    assert free_lines(FLEET, 2, 0.0, theme) == []
    assert free_lines(FLEET, 1, 81.0 * _GIB, theme) == []
    shown = [line.render(theme, 80) for line in free_lines(FLEET, 1, 70.0 * _GIB, theme)]
    assert [line.split() for line in shown] == [["HOST", "FREE", "GPUS"], ["a", "GPU", "1", "1", "×", "H100"]]


def test_each_machine_is_judged_by_its_own_samples() -> None:
    watch = FleetWatch()
    found = {}
    for second in range(0, 60, 5):
        at = NOW + second
        busy = Snapshot(at, demo().gpus, demo().host, demo().driver)
        lost = Snapshot(at, (Gpu({"index": 0, "uuid": "GPU-9"}, state="lost"),), Host({"name": "b"}))
        reports = [HostReport(name, "ssh", "ok", one, 1.0) for name, one in (("a", busy), ("b", lost))]
        found = dict(watch.add(FleetSnapshot(at, tuple(reports))))
    assert [concern.key for concern in found["b"]] == ["lost"]
    assert "lost" not in {concern.key for concern in found["a"]}
    added = losses(found)
    assert added == sorted(added, key=lambda loss: -loss.lost)
    assert [(loss.gpus, loss.lost, list(loss.hosts)) for loss in added if loss.key == "lost"] == [(1, 1.0, ["b"])]
    shown = [line.render(Theme(), 100) for line in loss_lines(FleetSnapshot(NOW, ()), found, Theme())]
    assert "GPU hours per day" in shown[0]
    assert any(CONDITIONS["lost"].title in line for line in shown)
