"""The live screens side by side on the scripted driver: CPU, wake-ups per second, bytes, memory, first frame, key to frame.

Each runs in a terminal of 200 by 60 at one sample a second: 8 GPUs, 24 processes, the latencies of an H200.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from statistics import median

from bench.machine import BIN, machine

COLUMNS, ROWS = 200, 60
SETTLE, WINDOW = 6.0, 20.0
TICKS = os.sysconf("SC_CLK_TCK")


class Screen:
    """A program in a terminal that is read and never answers."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=env, stdin=child, stdout=child, stderr=child, start_new_session=True
        )
        os.close(child)
        self.pid = self._process.pid

    def read(self, seconds: float, until: bytes = b"") -> bytes:
        """Read what is drawn for a time, or until some bytes are among it."""
        seen, end = b"", time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0 and (not until or until not in seen):
            if select.select([self._parent], [], [], left)[0]:
                try:
                    seen += os.read(self._parent, 65536)
                except OSError:
                    break
        return seen

    def key(self, text: bytes) -> float:
        """Type a key; return how long it takes until something is drawn, in ms."""
        self.read(0.05)
        start = time.perf_counter()
        os.write(self._parent, text)
        select.select([self._parent], [], [], 2.0)
        return (time.perf_counter() - start) * 1000

    def cpu(self) -> float:
        """Return the CPU seconds spent so far."""
        with open(f"/proc/{self.pid}/stat") as stat:
            words = stat.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def status(self, word: str) -> int:
        """Return a number of /proc/PID/status, summed over threads where each has one."""
        total = 0
        folders = (
            [f"/proc/{self.pid}"]
            if word == "VmRSS"
            else [f"/proc/{self.pid}/task/{task}" for task in os.listdir(f"/proc/{self.pid}/task")]
        )
        for folder in folders:
            with open(f"{folder}/status") as status:
                total += sum(int(line.split()[1]) for line in status if line.startswith(f"{word}:"))
        return total

    def end(self) -> None:
        """Kill it."""
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._parent)


def measure(command: list[str], env: dict[str, str], key: bytes) -> list[str]:
    """Return the cells of one tool's row."""
    screen = Screen(command, env)
    try:
        screen.read(5.0, b"H100")
        first = (time.perf_counter() - screen.started) * 1000
        screen.read(SETTLE)
        cpu, wakes = screen.cpu(), screen.status("voluntary_ctxt_switches")
        drawn = screen.read(WINDOW)
        spent = screen.cpu() - cpu
        woken = (screen.status("voluntary_ctxt_switches") - wakes) / WINDOW
        memory = screen.status("VmRSS") / 1024
        keys = sorted(screen.key(key) for _ in range(20))
    finally:
        screen.end()
    return [
        f"{100 * spent / WINDOW:.2f}",
        f"{first:.0f}",
        f"{len(drawn) / WINDOW / 1024:.1f}",
        f"{memory:.0f}",
        f"{woken:.1f}",
        f"{median(keys):.0f} ({keys[17]:.0f})",
    ]


def table() -> list[str]:
    """Return the Markdown table of one run."""
    tools: dict[str, tuple[list[str], bytes]] = {
        "gpulse top": ([str(BIN / "gpulse"), "top"], b"\x1b[B"),
        "nvitop -m full --interval 1": ([str(BIN / "nvitop"), "-m", "full", "--interval", "1"], b"\x1b[B"),
    }
    if nvtop := shutil.which("nvtop"):
        tools["nvtop -d 10"] = ([nvtop, "-d", "10"], b"\x1b[B")
    out = [
        "| 8 GPUs, 24 processes | CPU % | first frame ms | KiB/s drawn | RSS MiB | wake-ups/s | key to frame ms (p90) |"
    ]
    out.append("| --- | --- | --- | --- | --- | --- | --- |")
    for latency in ("h200", "none"):
        with machine("dgx-h100x8", 8, 24, latency) as env:
            for name, (command, key) in tools.items():
                out.append(
                    f"| `{name}`{' without latencies' if latency == 'none' else ''} | {' | '.join(measure(command, env, key))} |"
                )
    with machine("dgx-h100x8", 64, 64) as env:
        out.append(
            f"| `gpulse top`, 64 GPUs, 64 processes | {' | '.join(measure([str(BIN / 'gpulse'), 'top'], env, b'j'))} |"
        )
    return out


if __name__ == "__main__":
    from bench.machine import install

    install()
    print("\n".join(table()))
