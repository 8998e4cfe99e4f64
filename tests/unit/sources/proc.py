"""A made-up /proc and /sys in a folder, as Linux writes them."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = """MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    400 kB
Cached:          200 kB
SwapTotal:        50 kB
SwapFree:         20 kB
HugePages_Total:   0
"""
_NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 99999    1    0    0    0     0          0         0    99999    1    0    0    0     0       0          0
  eth0: {rx}    1    0    0    0     0          0         0    {tx}    1    0    0    0     0       0          0
  ib0:{rx}    1    0    0    0     0          0         0    {tx}    1    0    0    0     0       0          0
"""
INIT = "pid:[4026531836]"


class Root:
    """A folder that stands before /proc and /sys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file under the root."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def remove(self, path: str) -> None:
        """Take a file away."""
        (self.folder / path).unlink()

    def link(self, path: str, target: str) -> None:
        """Write a symbolic link, which may lead nowhere."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, place)

    def machine(
        self, busy: int = 0, idle: int = 0, waited: int = 0, sectors: int = 0, rx: int = 0, tx: int = 0
    ) -> None:
        """Write the files of the machine; the second of two cores does all the work."""
        lines = [
            f"cpu  {busy} 0 0 {idle * 2} {waited} 0 0 0 0 0",
            f"cpu0 0 0 0 {idle} {waited} 0 0 0 0 0",
            f"cpu1 {busy} 0 0 {idle} 0 0 0 0 0 0",
            "intr 1 2 3",
            "ctxt 400",
            "procs_running 3",
            "procs_blocked 1",
        ]
        self.write("proc/stat", "\n".join(lines) + "\n")
        self.write("proc/vmstat", "pgpgin 1\npswpin 2\npswpout 3\npgmajfault 5\n")
        self.write("proc/meminfo", _MEMINFO)
        self.write("proc/loadavg", "0.50 1.25 2.00 3/456 7890\n")
        self.write("proc/net/dev", _NET.format(rx=rx, tx=tx))
        disks = ("259 0 nvme0n1", "259 1 nvme0n1p1", "253 0 dm-0", "7 0 loop0", "9 0 md0")
        self.write("proc/diskstats", "".join(f" {d} 1 0 {sectors} 0 1 0 {2 * sectors} 0 0 0 0\n" for d in disks))
        for disk in ("nvme0n1", "dm-0", "loop0", "md0"):
            (self.folder / "sys/block" / disk).mkdir(parents=True, exist_ok=True)

    def process(
        self,
        pid: int,
        name: str = "python",
        *,
        command: tuple[str, ...] = (),
        parent: int = 1,
        cpu: int = 0,
        reaped: int = 0,
        traffic: tuple[int, int] | None = (0, 0),
        started: int = 1000,
        resident: int = 10,
        cgroup: str = "",
        environ: tuple[str, ...] = (),
        state: str = "S",
        wchan: str = "",
    ) -> None:
        """Write the files of a process; `cpu`, `reaped` and `started` in clock ticks, `resident` in pages, `traffic` in bytes."""
        times = [str(cpu), "0", str(reaped), "0"]
        fields = [state, str(parent), *["0"] * 9, *times, *["0"] * 4, str(started), "0", str(resident), "0", "0"]
        if traffic is not None:
            io = f"rchar: 1\nwchar: 2\nread_bytes: {traffic[0]}\nwrite_bytes: {traffic[1]}\n"
            self.write(f"proc/{pid}/io", io)
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(fields)}\n")
        if wchan:
            self.write(f"proc/{pid}/wchan", wchan)  # without a newline, as the kernel does
        self.write(f"proc/{pid}/cmdline", "".join(f"{word}\0" for word in command))
        self.write(f"proc/{pid}/cgroup", cgroup)
        self.write(f"proc/{pid}/environ", "".join(f"{entry}\0" for entry in environ))
