"""Energy between two readings of a counter."""

from __future__ import annotations

from collections.abc import Sequence

from gpulse.analysis.energy import EnergyMeter
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Cadence


def total(times: list[float], energies: Sequence[float | None], watts: float = 100.0) -> tuple[float, float]:
    """Return joules and the seconds they belong to."""
    meter, cadence, tally = EnergyMeter(), Cadence(), Tally()
    joules = watched = 0.0
    last = times[0]
    for time, energy in zip(times, energies, strict=True):
        seconds, _ = cadence.next(time)
        unseen = time - last > seconds + 1e-9
        watched += seconds
        gpu = Gpu({"energy": energy, "power_draw": watts} if energy is not None else {"power_draw": watts})
        joules += sum(part for _, part in meter.add(gpu, [(tally, seconds)], seconds, watched, unseen)[0])
        last = time
    return joules + sum(part for _, part in meter.rest()), watched


def test_energy_of_a_hole_is_left_out_as_its_time_is() -> None:
    times = [*map(float, range(21)), *(10_000.0 + at for at in range(20))]
    energies = [100.0 * (at // 5 * 5) for at in range(21)] + [1e6 + 100.0 * (at // 5 * 5) for at in range(20)]
    joules, watched = total(times, energies)
    assert watched == 40.0
    assert joules == 100.0 * 40


def test_a_gpu_that_does_not_tell_right_after_a_hole_is_not_charged_for_it_later() -> None:
    times = [*map(float, range(10)), *(10_000.0 + at for at in range(10))]
    energies = [100.0 * at for at in range(10)] + [None] * 3 + [1e6 + 100.0 * at for at in range(3, 10)]
    assert total(times, energies) == (1900.0, 19.0)


def test_what_the_counter_has_not_told_yet_at_the_end_is_estimated_from_power() -> None:
    times = [float(at) for at in range(8)]
    joules, _ = total(times, [0.0] * 5 + [500.0] * 3)
    assert joules == 700.0


def test_a_slower_interval_is_no_hole() -> None:
    cadence = Cadence()
    seconds = [cadence.next(time)[0] for time in [0, 1, 2, 3, 13, 23, 33, 34, 35, 95, 155, 215]]
    assert seconds == [0, 1, 1, 1, 10, 10, 10, 1, 1, 60, 60, 60]


def test_a_sample_after_a_hole_stands_for_the_usual_interval() -> None:
    cadence = Cadence()
    assert [cadence.next(time)[0] for time in [0, 1, 2, 3, 5000, 5001]] == [0, 1, 1, 1, 1, 1]
