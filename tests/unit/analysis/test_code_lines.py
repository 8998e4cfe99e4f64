"""Which lines of a program keep its GPU waiting: stacks joined with activity, and the user's lines of stacks."""

from __future__ import annotations

import random

import pytest

from gpulse.analysis.gpu_activity import wait_shares
from gpulse.analysis.lost_time import CodeTally
from gpulse.analysis.own_lines import code_lines, own_line, worker_frames
from gpulse.model.catalog import Gpu, Process
from gpulse.model.stacks import CodeLine, Frame, Stack

SITE = "/opt/venv/lib/python3.12/site-packages/"
STANDARD = "/usr/lib/python3.12/"
TRAIN = Frame("/home/ada/train.py", 10, "train")
MAIN = Frame("/home/ada/train.py", 99, "<module>")
LOADER = Frame(SITE + "torch/utils/data/dataloader.py", 700, "__next__")
FETCH = Frame(SITE + "torch/utils/data/_utils/fetch.py", 50, "fetch")
WORKER = Frame(SITE + "torch/utils/data/_utils/worker.py", 300, "_worker_loop")
MODULE = Frame(SITE + "torch/nn/modules/module.py", 1500, "_call_impl")
LINEAR = Frame(SITE + "torch/nn/modules/linear.py", 100, "forward")


def at(line: int, function: str = "train", call: str = "", file: str = "/home/ada/train.py") -> Frame:
    return Frame(file, line, function, call)


@pytest.mark.parametrize(
    ("frames", "line", "call", "within"),
    [
        pytest.param([MAIN, at(12, call="loss.item")], 12, "loss.item", "", id="a call of C"),
        pytest.param([MAIN, at(12), LOADER], 12, "DataLoader.__next__", "", id="a loader"),
        pytest.param([MAIN, at(12), LOADER, FETCH, at(40, "__getitem__")], 40, "", "DataLoader.__next__", id="no workers"),
        pytest.param([MAIN, at(13, call="model"), MODULE, LINEAR], 13, "model", "", id="a model"),
        pytest.param(
            [MAIN, at(14), Frame(SITE + "torch/serialization.py", 900, "save")], 14, "torch.save", "", id="a checkpoint"
        ),
        pytest.param(
            [MAIN, at(15), Frame(SITE + "pandas/io/parsers/readers.py", 1, "read_csv")], 15, "pandas.read_csv", "", id="pandas"
        ),
        pytest.param([MAIN, at(16), Frame(STANDARD + "json/__init__.py", 3, "dumps")], 16, "json.dumps", "", id="json"),
        pytest.param(
            [MAIN, at(17), Frame("<frozen importlib._bootstrap>", 1, "_find_and_load")], 17, "import", "", id="an import"
        ),
        pytest.param([MAIN, at(18, "f1"), at(18, "<genexpr>")], 18, "", "", id="a generator expression"),
        pytest.param([Frame("<string>", 3, "<module>"), Frame("<string>", 2, "__init__")], 3, "", "", id="python -c"),
        pytest.param([Frame("/tmp/ipykernel_7/123.py", 5, "<module>")], 5, "", "", id="a cell"),
    ],
)  # fmt: skip
def test_the_line_is_the_innermost_of_the_users_own(frames: list[Frame], line: int, call: str, within: str) -> None:
    found = own_line(frames)
    assert found is not None
    assert (found.frame.line, found.call, found.within) == (line, call, within)


def test_an_installed_program_is_named_by_its_outermost_line() -> None:
    found = own_line([Frame(STANDARD + "runpy.py", 1, "run"), Frame(SITE + "trainer/main.py", 7, "main"), MODULE])
    assert found is not None
    assert found.frame.line == 7


def test_a_notebook_between_two_cells_has_no_line() -> None:
    idle = [
        Frame(SITE + "ipykernel/kernelapp.py", 1, "start"),
        Frame(STANDARD + "asyncio/base_events.py", 1, "run_forever"),
    ]
    assert own_line(idle) is None


def test_the_frames_that_a_worker_was_forked_with_are_not_its_own() -> None:
    assert worker_frames([MAIN, TRAIN, LOADER, WORKER, FETCH, at(40)]) == (WORKER, FETCH, at(40))


def test_the_share_without_work_belongs_to_the_moments_with_the_least_power() -> None:
    assert wait_shares([700, 120, 121, 690], 0.5) == [0.0, 1.0, 1.0, 0.0]
    assert wait_shares([700, 120, 250, 690], 0.25) == [0.0, 1.0, 0.0, 0.0]
    assert wait_shares([700, 120, 120, 690], 0.75) == [0.5, 1.0, 1.0, 0.5]  # work that does not fill the GPU
    assert wait_shares([250, 251, 249, 250], 0.8) == pytest.approx([0.8] * 4)
    assert wait_shares([], 0.5) == []


PID = 77


class Machine:
    """A GPU and a program that share a script: repeated parts of seconds, share of work, and stack."""

    def __init__(self, *script: tuple[float, float, tuple[Frame, ...]]) -> None:
        self.script = script
        self.period = sum(seconds for seconds, _, _ in script)

    def part(self, time: float) -> tuple[float, float, tuple[Frame, ...]]:
        left = time % self.period
        for part in self.script:
            if left < part[0]:
                return part
            left -= part[0]
        return self.script[-1]

    def work(self, start: float, end: float) -> float:
        moments = [start + (end - start) * (place + 0.5) / 1000 for place in range(1000)]
        return sum(self.part(moment)[1] for moment in moments) / len(moments)

    def sample(self, time: float, trace: str, interval: float) -> Gpu:
        values: dict[str, float | str | tuple[float, ...]] = {
            "uuid": "GPU-0",
            "index": 0,
            "sm_active": 100 * self.work(time - interval, time),
        }
        if trace == "power":
            moments = [time - 0.02 * (49 - place) - 0.03 for place in range(50)]
            values["power_trace"] = tuple(120 + 500 * self.part(moment)[1] + random.uniform(0, 3) for moment in moments)
        if trace == "utilization" and round(time) % 10 == 0:
            ends = [time - 0.2 * (49 - place) for place in range(50)]
            values["utilization_trace"] = tuple(round(100 * self.work(end - 0.2, end)) for end in ends)
        return Gpu(values, processes=(Process({"pid": PID}),))


def run(machine: Machine, seconds: int, trace: str = "power", start: float = 0.0) -> CodeTally:
    random.seed(5)
    tally = CodeTally()
    for second in range(seconds):
        for tenth in range(10):
            time = start + second + 0.1 * tenth + random.uniform(0.0, 0.1)
            tally.add_stacks([Stack(time, machine.part(time)[2])])
        tally.add_sample(start + second + 1, [machine.sample(start + second + 1, trace, 1.0)], {PID})
    return tally


STEP = (MAIN, at(20, call="model"), MODULE, LINEAR)
METRIC = (MAIN, at(30, call="compute_f1"), at(84, "compute_f1"))


@pytest.mark.parametrize("trace", ["power", "utilization"])
def test_seconds_are_those_of_the_pauses(trace: str) -> None:
    machine = Machine((0.9, 1.0, STEP), (0.6, 0.0, METRIC))
    tally = run(machine, 120, trace)
    first, second = code_lines(tally.stacks())[:2]
    assert (first.line, first.function) == (84, "compute_f1")
    assert first.waited == pytest.approx(0.4 * 120, rel=0.1)
    assert second.line == 20
    assert second.computed == pytest.approx(0.6 * 120, rel=0.1)
    assert tally.waited + tally.computed == pytest.approx(120, abs=3)


def test_without_the_drivers_samples_a_moment_counts_as_its_sample_does() -> None:
    tally = run(Machine((3.0, 1.0, STEP), (3.0, 0.0, METRIC)), 120, "none")
    first = code_lines(tally.stacks())[0]
    assert first.line == 84
    assert first.waited == pytest.approx(60, rel=0.1)


def test_the_start_and_the_end_of_a_program_are_no_waits() -> None:
    idle, work = Machine((1.0, 0.0, METRIC)), Machine((0.5, 1.0, STEP), (0.5, 0.0, METRIC))
    tally = CodeTally()
    random.seed(2)
    for second in range(60):
        machine = work if 20 <= second < 40 else idle
        for tenth in range(10):
            time = second + 0.1 * tenth + 0.05
            tally.add_stacks([Stack(time, machine.part(time)[2])])
        tally.add_sample(second + 1.0, [machine.sample(second + 1.0, "power", 1.0)], {PID})
    assert tally.waited + tally.computed == pytest.approx(20, abs=1.5)
    assert code_lines(tally.stacks())[0].waited == pytest.approx(10, abs=1.5)


def test_what_follows_the_last_work_within_a_sample_is_no_wait() -> None:
    work, tally = Machine((0.5, 1.0, STEP), (0.5, 0.0, METRIC)), CodeTally()
    machine = Machine((20.5, 0.0, METRIC))
    random.seed(3)
    for second in range(30):
        for tenth in range(10):
            time = second + 0.1 * tenth + 0.05
            tally.add_stacks([Stack(time, (work if time < 20.5 else machine).part(time)[2])])
        chosen = work if second <= 20 else machine
        tally.add_sample(second + 1.0, [chosen.sample(second + 1.0, "power", 1.0)], {PID})
    assert tally.waited == pytest.approx(9.5, abs=0.2)  # the first second is that of the first sample
    assert code_lines(tally.stacks())[0].waited == pytest.approx(9.5, abs=0.3)


def test_power_is_that_of_the_moment_at_which_the_driver_sampled_it() -> None:
    """The driver samples 0.4 to 46 ms apart, 12 ms late, and the stacks have another clock."""
    machine, tally, epoch = Machine((0.12, 1.0, STEP), (0.05, 0.0, METRIC)), CodeTally(), 1_790_000_000.0
    random.seed(4)
    newest = 0.0
    for second in range(60):
        for tenth in range(10):
            time = second + 0.1 * tenth + random.uniform(0.0, 0.1)
            tally.add_stacks([Stack(time, machine.part(time)[2])])
        stamps: list[float] = []
        while newest < second + 0.97:
            newest += random.choice((0.005, 0.01, 0.02, 0.02, 0.02, 0.045))
            stamps.append(newest)
        power = tuple(120 + 600 * machine.work(at - 0.022, at - 0.002) for at in stamps)
        sample = machine.sample(second + 1.0, "none", 1.0)
        traced = sample.replace(power_trace=power, power_trace_times=tuple(epoch + at for at in stamps))
        tally.add_sample(second + 1.0, [traced], {PID}, epoch)
    first = code_lines(tally.stacks())[0]
    assert first.line == 84
    assert first.waited == pytest.approx(59 * 0.05 / 0.17, rel=0.1)


def test_a_gpu_that_the_program_is_not_on_does_not_count() -> None:
    tally = CodeTally()
    for second in range(5):
        tally.add_stacks([Stack(second + 0.5, STEP)])
        gpu = Gpu({"uuid": "GPU-1", "index": 1, "sm_active": 50.0}, processes=(Process({"pid": 1}),))
        tally.add_sample(second + 1.0, [gpu], {PID})
    assert (tally.waited, tally.computed, tally.stacks()) == (0.0, 0.0, [])


def test_a_thread_that_trains_while_the_main_thread_waits_counts() -> None:
    tally = CodeTally()
    waiting = (Frame("/home/ada/app.py", 5, "<module>"), Frame(STANDARD + "threading.py", 1, "join"))
    for second in range(10):
        for tenth in range(10):
            time = second + 0.1 * tenth
            tally.add_stacks([Stack(time, waiting), Stack(time, STEP, role="thread", thread="trainer")])
        tally.add_sample(second + 1.0, [Machine((1.0, 0.5, STEP)).sample(second + 1.0, "power", 1.0)], {PID})
    assert [line.line for line in code_lines(tally.stacks())] == [20]


def test_the_line_of_a_worker_is_named_where_the_program_waits_for_it() -> None:
    tally = CodeTally()
    waiting = (MAIN, at(12), LOADER)
    for second in range(60):
        for tenth in range(10):
            time = second + 0.1 * tenth + 0.05
            frames = waiting if tenth < 5 else STEP
            inside = (MAIN, TRAIN, LOADER, WORKER, FETCH, at(40, "augment", file="/home/ada/data.py"))
            workers = [Stack(time, inside, role="worker", pid=pid) for pid in (2, 4)]
            tally.add_stacks([Stack(time, frames), *workers])
        machine = Machine((0.5, 0.0, waiting), (0.5, 1.0, STEP))
        tally.add_sample(second + 1.0, [machine.sample(second + 1.0, "power", 1.0)], {PID})
    first = code_lines(tally.stacks())[0]
    assert (first.line, first.function, first.role) == (40, "augment", "worker")
    assert first.waited == pytest.approx(30, rel=0.1)


def lines(*stacks: tuple[tuple[Frame, ...], float, float]) -> list[CodeLine]:
    return list(code_lines(stacks))


def test_a_function_that_only_keeps_the_gpu_waiting_is_one_entry_at_its_hottest_line() -> None:
    found = lines(
        ((MAIN, at(30), at(84, "compute_f1")), 3.0, 0.1),
        ((MAIN, at(30), at(85, "compute_f1")), 9.0, 0.0),
        ((MAIN, at(30), at(86, "compute_f1"), at(5, "harmonic", file="/home/ada/means.py")), 1.0, 0.0),
        (STEP, 2.0, 50.0),
    )
    assert [(line.line, line.waited) for line in found] == [(85, 13.0), (20, 2.0)]
    assert found[0].caller == "/home/ada/train.py:30"


def test_a_function_that_does_most_of_the_work_of_another_is_named_instead() -> None:
    found = lines(
        ((MAIN, at(30), at(84, "evaluate"), at(5, "f1")), 9.0, 0.0),
        ((MAIN, at(30), at(85, "evaluate")), 1.0, 0.0),
        (STEP, 0.0, 5.0),
    )
    assert (found[0].line, found[0].function, found[0].waited) == (5, "f1", 10.0)


def test_lines_of_the_loop_that_launches_stay_apart() -> None:
    found = lines(((MAIN, at(12), LOADER), 5.0, 0.0), ((MAIN, at(13, call="print")), 2.0, 0.0), (STEP, 1.0, 10.0))
    assert [(line.line, line.waited) for line in found] == [(12, 5.0), (13, 2.0), (20, 1.0)]


def test_waits_for_launches_count_for_the_call_that_had_waited_for_the_gpu() -> None:
    found = lines(((MAIN, at(40, call="loss.item")), 0.0, 6.0), (STEP, 4.0, 1.0))
    assert [(line.line, line.waited) for line in found] == [(40, 4.0), (20, 0.0)]


def test_a_launch_bound_loop_does_not_blame_a_call_that_hardly_waits() -> None:
    found = lines(((MAIN, at(40, call="loss.item")), 0.0, 0.5), (STEP, 8.0, 1.0))
    assert [(line.line, line.waited) for line in found] == [(20, 7.5), (40, 0.5)]
