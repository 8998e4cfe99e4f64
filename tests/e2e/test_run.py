"""A command under `gpulse run`: the same bytes, signals, exit code and surroundings as without."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, environment
from tests.e2e.terminal import CommandTerminal
from tests.fake_nvml import Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

PATIENCE = 60.0
RUN = (sys.executable, "-m", "gpulse", "run")
QUIET = (*RUN, "-q", "--")
PYTHON = (sys.executable, "-S", "-c")
# Says every signal that comes, and ends with the one that is named
LISTENING = """
import signal, sys
every = [getattr(signal, f"SIG{name}") for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "ALRM", "TSTP")]
signal.pthread_sigmask(signal.SIG_BLOCK, every)
print("ready", flush=True)
found = ""
while found != sys.argv[1]:
    found = signal.Signals(signal.sigwait(every)).name
    print(found, flush=True)
"""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A machine whose GPUs answer, so that threads and a driver are there while the command runs."""
    return environment(Scenario.load("h200-idle"), tmp_path_factory.mktemp("machine"), PYTHONDONTWRITEBYTECODE="1")


def both(
    command: Sequence[str], environ: dict[str, str], given: bytes = b""
) -> Iterator[subprocess.CompletedProcess[bytes]]:
    """The command alone, and under gpulse."""
    for before in ((), QUIET):
        yield subprocess.run(
            [*before, *command], env=environ, input=given, capture_output=True, timeout=PATIENCE, check=False
        )


def alike(command: Sequence[str], environ: dict[str, str], given: bytes = b"") -> bytes:
    """What the command writes, which must be the same in both ways, with the same exit."""
    alone, watched = both(command, environ, given)
    assert (watched.stdout, watched.stderr, watched.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    return watched.stdout


# --- streams


def test_input_and_output_pass_byte_for_byte(environ: dict[str, str]) -> None:
    binary = bytes(range(256)) * 40_000  # 10 MB, and no text
    assert alike(["cat"], environ, binary) == binary


def test_both_streams_keep_their_own_bytes(environ: dict[str, str]) -> None:
    assert alike(["sh", "-c", r"printf 'a\000\377'; printf 'b\n\033[1m' >&2; exit 3"], environ) == b"a\0\xff"


def test_our_lines_come_after_all_of_the_command(environ: dict[str, str]) -> None:
    command = ["sh", "-c", "echo out; echo err >&2; exit 7"]
    done = subprocess.run([*RUN, *command], env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("out\n", 7)
    first, ours, *rest = done.stderr.splitlines()
    assert first == "err"
    assert ours.startswith("gpulse: sh -c echo out; echo err >&2; exit 7 · ")
    assert ours.endswith("s · exit 7")
    assert all(line.startswith("  ") for line in rest)


def test_a_closed_stderr_does_not_change_the_exit(environ: dict[str, str]) -> None:
    script = '"$@" 2>&1 >/dev/null | true; exit "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *RUN, "sh", "-c", "sleep 0.3; exit 9"], env=environ, capture_output=True, check=False
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (9, b"")


# --- how it ends


@pytest.mark.parametrize("code", [0, 1, 7, 124, 130, 255])
def test_an_exit_code_passes(environ: dict[str, str], code: int) -> None:
    alike(["sh", "-c", f"exit {code}"], environ)


@pytest.mark.parametrize("name", ["TERM", "SEGV", "KILL", "PIPE", "ABRT", "INT", "HUP", "USR2", "RTMIN"])
def test_a_death_by_signal_is_ours_too(environ: dict[str, str], tmp_path: Path, name: str) -> None:
    number = int(getattr(signal, f"SIG{name}"))
    done = subprocess.run(
        [*RUN, "sh", "-c", f"kill -{number} $$"], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == -number
    assert done.stderr.splitlines()[0].endswith(f"s · ended by SIG{name}")


def test_only_the_command_leaves_a_core(environ: dict[str, str], tmp_path: Path) -> None:
    script = 'ulimit -c unlimited && exec "$@"'
    for before in ((), QUIET):
        subprocess.run(
            ["sh", "-c", script, "sh", *before, "sh", "-c", "kill -SEGV $$"], env=environ, cwd=tmp_path, check=False
        )
        cores = [path.read_bytes() for path in tmp_path.iterdir()]
        if not cores:
            pytest.skip("cores go elsewhere here")
        assert not any(b"posix_spawnp" in core for core in cores)


def test_a_reader_that_leaves_ends_it_silently(environ: dict[str, str]) -> None:
    script = '"$@" yes | head -1; echo "${PIPESTATUS[0]}"'
    said = [
        subprocess.run(["bash", "-c", script, "bash", *before], env=environ, capture_output=True, check=True)
        for before in (("env",), QUIET)
    ]
    assert said[0].stdout == said[1].stdout == b"y\n141\n"
    assert said[0].stderr == said[1].stderr == b""


def test_what_cannot_be_started_has_a_shells_exit_code(environ: dict[str, str], tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("echo hello")
    wrong = {
        "no-such-program": 127,
        "./no/such": 127,
        "": 127,
        str(plain): 126,
        str(tmp_path): 126,
        f"{plain}/x": 126,
        "evil\x1b[2J\n": 127,
        os.fsdecode(b"\xff\xfe"): 127,
    }
    for program, code in wrong.items():
        done = subprocess.run([*QUIET, program], env=environ, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done
        assert "cannot be started" in done.stderr
        assert "\x1b" not in done.stderr


def test_a_script_without_a_first_line_is_run_by_sh(environ: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$0 $1"; exit 4')
    script.chmod(0o755)
    assert alike(["env", str(script), "a b"], environ) == f"{script} a b\n".encode()
    done = subprocess.run([*QUIET, str(script), "a b"], env=environ, capture_output=True, check=False)
    assert (done.stdout, done.returncode) == (f"{script} a b\n".encode(), 4)
    found = environ | {"PATH": f"{tmp_path}:{environ['PATH']}"}
    assert subprocess.run([*QUIET, "script", "x"], env=found, capture_output=True, check=False).returncode == 4


# --- what the command finds around it

STATE = """
import json, os, resource, signal, sys
status = dict(line.split(":\\t") for line in open("/proc/self/status") if line.startswith("Sig"))
fds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        fds[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass  # of the list itself
umask = os.umask(0)
print(json.dumps({
    "environ": open("/proc/self/environ", "rb").read().hex(),
    "fds": {name: where for name, where in fds.items() if not where.startswith("pipe:")},
    "pipes": sorted(name for name, where in fds.items() if where.startswith("pipe:")),
    "cwd": os.getcwd(),
    "umask": umask,
    "nice": os.nice(0),
    "limits": [resource.getrlimit(kind) for kind in range(16)],
    "group": os.getpgrp(),
    "session": os.getsid(0),
    "cpus": sorted(os.sched_getaffinity(0)),
    "blocked": status["SigBlk"].strip(),
    "ignored": hex(int(status["SigIgn"], 16) & ~0x180000000),  # 32 and 33 are glibc's own: posix_spawn ignores them
}))
"""
SURROUND = (
    'umask 027; ulimit -c 0; ulimit -n 200; cd /usr; exec 7</dev/null 9>&1; trap "" USR2 WINCH; exec nice -n 3 "$@"'
)


@pytest.mark.parametrize("locale", [{}, {"LC_CTYPE": "C"}, {"LC_ALL": "C.UTF-8", "LC_CTYPE": "C"}, {"LANG": "C"}])
def test_the_surroundings_are_the_same(environ: dict[str, str], locale: dict[str, str]) -> None:
    plain = {**environ, **locale, "EMPTY": "", "BYTES": os.fsdecode(b"\xff"), "LINES_": "a\nb"}
    state = [sys.executable, "-I", "-S", "-c", STATE]
    for shell in (["sh", "-c", SURROUND, "sh"], ["env"]):
        seen = []
        for before in ((), QUIET):
            done = subprocess.run([*shell, *before, *state], env=plain, capture_output=True, check=True)
            seen.append(json.loads(done.stdout))
        assert seen[0] == seen[1]


def test_blocked_signals_stay_blocked_for_the_command(environ: dict[str, str]) -> None:
    outer = "import os, signal, sys; signal.pthread_sigmask(0, [signal.SIGUSR1, signal.SIGINT]); os.execvp(sys.argv[1], sys.argv[1:])"
    grep = ["grep", "SigBlk", "/proc/self/status"]
    assert b"0000000000000202" in alike([*PYTHON, outer, *grep], environ)
    done = subprocess.run([*PYTHON, outer, *QUIET, *grep], env=environ, capture_output=True, check=True)
    assert b"0000000000000202" in done.stdout


def test_an_ignored_sigchld_does_not_cost_the_exit_code(environ: dict[str, str]) -> None:
    outer = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    words = [*PYTHON, outer, *QUIET, "sh", "-c", "exit 5"]
    done = subprocess.run(words, env=environ, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (5, b"")


# --- signals


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "ALRM", "TSTP"])
def test_a_signal_to_us_alone_reaches_the_command_once(environ: dict[str, str], name: str) -> None:
    last = "SIGUSR1" if name != "USR1" else "SIGTERM"  # what is handed on later comes later
    with subprocess.Popen([*RUN, *PYTHON, LISTENING, last], env=environ, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.stdout.readline() == f"SIG{name}\n"
        process.send_signal(getattr(signal, last))
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == (f"{last}\n", 0)
    assert "exit 0" in err


def test_a_signal_the_command_sends_its_group_is_not_given_back(environ: dict[str, str]) -> None:
    code = """
import os, signal, time
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
os.kill(0, signal.SIGTERM)
time.sleep(0.3)
print(len(seen))
"""
    done = subprocess.run([*QUIET, *PYTHON, code], env=environ, capture_output=True, check=True, start_new_session=True)
    assert done.stdout == b"1\n"


def test_under_nohup_the_command_ignores_what_it_would_ignore(environ: dict[str, str]) -> None:
    command = ["sh", "-c", "kill -HUP $PPID; kill -HUP $$; grep SigIgn /proc/self/status"]
    script = 'trap "" HUP INT; exec "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", *QUIET, *command], env=environ, capture_output=True, check=True)
    assert int(done.stdout.split()[1], 16) & 0b11 == 0b11


# --- terminals


TERMINAL = """
import os, sys, termios, tty
print([os.isatty(fd) for fd in range(3)], os.get_terminal_size(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"raw\\n")
keys = b""
while len(keys) < 4:
    keys += os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, old)
print(keys)
print(input("name? "))
"""


def test_a_terminal_is_the_commands_own(environ: dict[str, str]) -> None:
    raw = []
    for before in ((), QUIET):
        with CommandTerminal(environ, *before, *PYTHON, TERMINAL) as terminal:
            terminal.until(b"raw\n")
            terminal.press(b"a\x03\x1a\x1b")  # as keys and not as signals
            terminal.until(b"name? ")
            terminal.press(b"ada\n")
            assert terminal.wait() == 0
            raw.append(terminal.raw)
    assert raw[0] == raw[1]
    assert b"[True, True, True] os.terminal_size(columns=97, lines=31) True" in raw[0]


def test_much_output_on_a_terminal_is_the_same(environ: dict[str, str]) -> None:
    raw = []
    for before in ((), QUIET):
        with CommandTerminal(environ, *before, "seq", "200000") as terminal:
            assert terminal.wait() == 0
            raw.append(terminal.raw)
    assert raw[0] == raw[1]


def test_an_interrupt_from_the_terminal_comes_once(environ: dict[str, str]) -> None:
    with CommandTerminal(environ, *RUN, *PYTHON, LISTENING, "SIGUSR1") as terminal:
        terminal.until(b"ready\r\n")
        terminal.press(b"\x03")
        terminal.until(b"SIGINT\r\n")
        terminal.press(b"\x1c")
        terminal.until(b"SIGQUIT\r\n")
        terminal.press(b"\x1a")  # it does not stop, so neither do we
        terminal.until(b"SIGTSTP\r\n")
        terminal.process.send_signal(signal.SIGUSR1)
        assert terminal.wait() == 0
    assert b"ready\r\n^CSIGINT\r\n^\\SIGQUIT\r\n^ZSIGTSTP\r\nSIGUSR1\r\n" in terminal.raw


def test_an_interrupt_that_ends_the_command_ends_us_the_same_way(environ: dict[str, str]) -> None:
    with CommandTerminal(environ, *RUN, "sh", "-c", "echo ready; exec sleep 60") as terminal:
        terminal.until(b"ready")
        terminal.press(b"\x03")
        assert terminal.wait() == -signal.SIGINT
    assert b"ended by SIGINT" in terminal.raw


STOPPING = """
import os, signal, sys
print("be" + "gun", flush=True)
os.kill(os.getpid(), signal.SIGTSTP) if sys.argv[1:] else sys.stdin.readline()
print("wo" + "ken", flush=True)
sys.exit(6)
"""


@pytest.mark.parametrize("itself", [False, True])
def test_a_stopped_command_gives_the_shell_back_and_goes_on(
    environ: dict[str, str], tmp_path: Path, itself: bool
) -> None:
    (tmp_path / "stopping.py").write_text(STOPPING)
    line = shlex.join([*RUN, sys.executable, str(tmp_path / "stopping.py"), *(["itself"] if itself else [])])
    with CommandTerminal(
        environ | {"PS1": "prompt> "}, "bash", "--norc", "--noprofile", "--noediting", "-i"
    ) as terminal:
        terminal.until(b"prompt> ")
        terminal.press(f"{line}\n".encode())
        terminal.until(b"begun")
        if not itself:
            terminal.press(b"\x1a")
        terminal.until(b"Stopped")
        terminal.until(b"prompt> ", 2)
        terminal.press(b"fg\n" if itself else b"fg\ngo\n")
        terminal.until(b"woken")
        terminal.until(b"exit 6")
        terminal.press(b"echo code $?\n")
        terminal.until(b"code 6")
        terminal.press(b"exit\n")
        assert terminal.wait() == 0


# --- options


def test_the_commands_own_options_are_its_own(lab: Lab) -> None:
    idle = Scenario.load("h200-idle")
    for line, out in {
        "run -q echo --lr 3 -q --gpus": "--lr 3 -q --gpus\n",
        "run -q -- echo --help --": "--help --\n",
        "run -q -- -- echo": None,
        "run --interval 2 -q printf %s,%s -q": "-q,",
        "run --interval=2 -q -- echo --gpus 5": "--gpus 5\n",
    }.items():
        answer = lab.run(idle, *line.split())
        assert (answer.code, answer.out) == ((0, out) if out is not None else (127, "")), line


@pytest.mark.parametrize(
    "line",
    [
        "run", "run --", "run -q", "run --lr 3 python x.py", "run --gpus", "run --gpus -- true", "run --gpus 0 true",
        "run --gpus x true", "run --gpus -1 true", "run --utilization abc true", "run --utilization nan true",
        "run --utilization 101 true", "run --timeout 5 true", "run --wait true", "run --interval 0 true",
        "run --free-memory lots true", "run --gpus 1 --timeout soon true", "run --gpus 1 --timeout -1 true",
    ],
)  # fmt: skip
def test_a_wrong_line_is_one_sentence_and_exit_2(lab: Lab, line: str) -> None:
    answer = lab.run(Scenario.load("h200-idle"), *line.split())
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert "convert" not in answer.err


def test_our_line_keeps_secrets_and_control_characters_to_itself(environ: dict[str, str]) -> None:
    words = [
        "true",
        "--api-key",
        "s3cret",
        "--password=s3cret",
        "https://ada:s3cret@host/",
        "\x1b[2J\nevil\u202e",
        "é" * 99,
    ]
    done = subprocess.run([*RUN, *words], env=environ | {"LANG": "C.UTF-8"}, capture_output=True, text=True, check=True)
    first = done.stderr.splitlines()[0]
    assert first.startswith("gpulse: true --api-key *** --password=*** https://ada:***@host/")
    assert "s3cret" not in done.stderr
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr
    assert first.endswith("s · exit 0")
    done = subprocess.run([*RUN, "true", words[5]], env=environ, capture_output=True, text=True, check=True)
    assert "evil" in done.stderr.splitlines()[0]
    assert "\x1b" not in done.stderr


def test_a_command_that_clears_the_temporary_folder_keeps_its_exit_code(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script = 'rm -rf "$TMPDIR"/gpulse-run-*; exit 7'
    done = subprocess.run(
        [*RUN, "--report", str(tmp_path / "run.html"), "--", "/bin/sh", "-c", script],
        env={**environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 7
    assert "· exit 7\n" in done.stderr
    assert "  no report: " in done.stderr
