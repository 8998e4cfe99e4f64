"""A monitor in odd surroundings and in other processes of a program: it never hurts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.programs import (
    DEMO,
    PATIENCE,
    PRELUDE,
    READY,
    Program,
    agent,
    agents,
    machine,
    on,
    outlived,
    run,
    told,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# --- odd surroundings


def test_what_lies_around_does_not_reach_the_agent(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.mkdir()
    for name in ("json", "select", "gpulse", "sitecustomize", "usercustomize", "os", "signal"):
        (junk / f"{name}.py").write_text(
            f"open({str(tmp_path / 'reached')!r}, 'a').write({name!r}); raise SystemExit(1)"
        )
    code = f"""
os.environ["PYTHONPATH"] = os.environ["PYTHONHOME"] = os.environ["PYTHONSTARTUP"] = {str(junk)!r}
os.chdir({str(junk)!r})
{READY}"""
    ended = run(code, tmp_path, DEMO)
    assert (ended.code, ended.out, ended.err) == (0, "ready\n", "")
    assert not (tmp_path / "reached").exists()


def test_a_module_in_the_way_of_ours_costs_only_the_monitor(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("answer = 42")
    ended = run("m = gpulse.Monitor().start()\nm.step()\nm.stop()\nprint('done')", tmp_path, DEMO)
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "done\n", 1), ended


def test_without_any_standard_stream(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"{PRELUDE}\nm = gpulse.Monitor(interval=0.1).start()\nuntil(lambda: m.latest)\nm._say('into the void')\n"
    code += f"open({str(out)!r}, 'w').write(str(len(m.stop().gpus)))"
    (tmp_path / "program.py").write_text(code)
    started = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")], env=DEMO, preexec_fn=lambda: os.closerange(0, 3)
    )
    assert started.wait(PATIENCE) == 0
    assert out.read_text() == "8"


def test_a_stderr_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    (tmp_path / "program.py").write_text(f"{PRELUDE}\nm = gpulse.Monitor(gpus=[99]).start()\nuntil(lambda: m.errors)")
    try:
        started = subprocess.run(
            [sys.executable, str(tmp_path / "program.py")], env=DEMO, stderr=write, timeout=PATIENCE, check=False
        )
    finally:
        os.close(write)
    assert started.returncode in (0, 120)  # 120: Python's own, for a stderr it could not flush


def test_code_from_the_command_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}{READY}print(len(m.stop().gpus))"],
        env=DEMO,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"ready\n8\n", b"")


def test_an_agent_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    code = """
values = Values()
m = gpulse.Monitor(values.sink, interval=0.1)
thread = threading.Thread(target=m.start)
thread.start()
thread.join()
count = values.count
until(lambda: values.count > count + 3)
print(json.dumps(m.errors))
"""
    assert told(code, tmp_path, DEMO) == 0


def test_starting_and_stopping_in_any_order(tmp_path: Path) -> None:
    code = """
m = gpulse.Monitor(interval=0.1)
said = [m.stop(), m.latest, m.summary(), m.step(), m.mark("x")]
with m.phase("before"): pass
m.start()
with m.phase("left open"):
    assert m.start() is m
    until(lambda: m.latest)
    first = m.stop()
    said += [m.stop(), len(first.gpus), m.summary().seconds == first.seconds]
    m.start()
until(lambda: m.latest)
second = m.stop()
print(json.dumps([*said, len(second.gpus), len(first.phases), len(second.phases), m.errors]))
"""
    assert told(code, tmp_path, DEMO) == [None, None, None, None, None, None, 8, True, 8, 1, 0, 0]


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_starting_again_and_again_leaks_nothing(tmp_path: Path, mode: str) -> None:
    code = f"""
def held():
    return len(os.listdir("/proc/self/fd")), threading.active_count()
m = gpulse.Monitor(interval=0.1, mode={mode!r})
for turn in range(4):
    m.start()
    until(lambda: m.latest)
    m.stop()
    if turn == 0:
        first = held()
until(lambda: held() <= first)
print(json.dumps(True))
"""
    assert told(code, tmp_path, DEMO) is True


def test_two_monitors_at_once(tmp_path: Path) -> None:
    code = """
a, b = gpulse.Monitor(interval=0.1).start(), gpulse.Monitor(interval=0.1, gpus=[0]).start()
with a.phase("a"), b.phase("b"):
    until(lambda: a.latest and b.latest)
sizes = [len(m.latest.gpus) for m in (a, b)]
a.stop()
newest = b.latest
until(lambda: b.latest is not newest)
print(json.dumps([sizes, [[p.name for p in m.summary().phases] for m in (a, b)]]))
"""
    assert told(code, tmp_path, DEMO) == [[8, 1], [["a"], ["b"]]]


def test_monitors_at_once_from_many_threads(tmp_path: Path) -> None:
    code = """
def work():
    with gpulse.Monitor(interval=0.1, mode="thread") as m, m.phase("x"):
        until(lambda: m.latest)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(len(gpulse.monitor.monitor.running)))
"""
    assert told(code, tmp_path, DEMO) == 0


# --- other processes of the program


def test_in_a_forked_child_nothing_happens(tmp_path: Path) -> None:
    code = """
pipes = lambda: {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
before = pipes()
m = gpulse.Monitor(interval=0.1).start()
until(lambda: m.latest)
with m.phase("train"), gpulse.measure("outer", show=False):
    child = os.fork()
    if child == 0:
        m.step(); m.mark("x", 1); m.waited(1.0); m.hasten()
        with m.phase("eval"):
            pass
        assert m.stop() is None and m.summary() is None and m.latest is None and m.collect() == {}
        assert not gpulse.monitor.monitor.running
        assert {name for name in pipes() - before if name.startswith("pipe:")} == set()
if child == 0:
    import gc; gc.collect()
    with open("child", "w") as file:  # takes the number of a pipe that was closed
        m.__init__(); gc.collect()
        file.write("well")
    sys.exit(8)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
newest = m.latest
until(lambda: m.latest is not newest)
summary = m.stop()
print(json.dumps([code, open("child").read(), summary.steps, [p.name for p in summary.phases]]))
"""
    assert told(code, tmp_path, DEMO) == [8, "well", 0, ["train"]]


def test_a_forked_child_may_have_a_monitor_of_its_own(tmp_path: Path) -> None:
    code = f"""{READY}
child = os.fork()
if child == 0:
    m.start()
    until(lambda: m.latest)
    print(m._listener.link._agent.pid, flush=True)
    sys.stdin.readline()
    os._exit(0)
os.waitpid(child, 0)
"""
    with Program(code, tmp_path, DEMO) as program:
        program.line()
        other = int(program.line())
        assert agent(program.pid) != other
        with outlived(other) as wait:
            program.go()
            wait()
        assert program.end().code == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_start_no_agent(tmp_path: Path, method: str) -> None:
    code = """
import multiprocessing, warnings
m = gpulse.Monitor(interval=0.1)

def work(carried):
    for monitor in (m, carried):
        monitor.step()
        with monitor.phase("eval"):
            pass
    assert monitor.stop() is None
    return os.getpid(), len(gpulse.monitor.monitor.running)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    m.start()
    until(lambda: m.latest)
    with multiprocessing.get_context(METHOD).Pool(2) as pool:
        found = pool.map(work, [m] * 4)
        print(found, flush=True)
        sys.stdin.readline()
    m.step()
    print(m.stop().steps, flush=True)
"""
    with Program(code.replace("METHOD", repr(method)), tmp_path, DEMO) as program:
        found = eval(program.line())
        assert {count for _, count in found} == {0}
        assert all(agents(pid) == [] for pid, _ in found)
        assert len(agents(program.pid)) == 1
        program.go()
        assert program.line() == "1"
        ended = program.end()
    assert (ended.code, ended.err) == (0, ""), ended


def test_only_the_first_rank_samples(tmp_path: Path) -> None:
    code = """
sink = Values()
for more in ({}, {"ranks": "all"}):
    m = gpulse.Monitor(sink.sink, interval=0.1, **more).start()
    if m.samples:
        sink()
    with m.phase("train"):
        m.step(3)
    print(m.samples, m.stop().phase("train").steps, flush=True)
"""
    ended = run(code, tmp_path, DEMO | {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"})
    assert (ended.code, ended.out, ended.err) == (0, "False 3\nTrue 3\n", "")


def test_a_first_rank_that_sees_too_few_gpus_says_so(tmp_path: Path) -> None:
    environ = on(machine(), tmp_path, LOCAL_RANK="0", LOCAL_WORLD_SIZE="4", CUDA_VISIBLE_DEVICES="2")
    ended = run(READY, tmp_path, environ)
    assert (ended.code, ended.err.count("\n")) == (0, 1)
    assert "sees 1 GPU(s) and samples for all 4 processes" in ended.err


def test_the_tree_of_the_program_without_its_agent(tmp_path: Path) -> None:
    code = """
import subprocess
values = Values()
m = gpulse.Monitor(values.sink, interval=0.1).start()
def after(fits):  # a phase that ends asks for a look at everything
    def seen(values):
        with m.phase("sample"): pass
        return fits(values)
    return values(seen)
alone = after(lambda seen: seen.get("process/tree_cpu_percent") is not None)
burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
busy = after(lambda seen: seen.get("process/tree_cpu_percent", 0) > 30 + seen["process/cpu_percent"])
burning.kill(); burning.wait()
left = after(lambda seen: seen["process/children"] == 0)
key = "process/tree_cpu_percent"
print(json.dumps([alone["process/children"], busy["process/children"], key in left and left[key] >= 0,
                  busy["process/tree_memory"] > alone["process/tree_memory"], m.summary().program["tree_cpu_percent"].min >= 0]))
"""
    assert told(code, tmp_path, DEMO) == [0, 1, True, True, True]
