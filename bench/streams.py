"""What clients cost `gpulse serve`: processor time and memory with none and with 50 streams, on the demo machine of 8 GPUs.

python -m bench.streams           # CPU and memory of 0 and 50 clients, 20 s each
python -m bench.streams --soak    # a day of samples through the hub in a few minutes, clients listening
"""

from __future__ import annotations

import asyncio
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLIENTS = 50
SECONDS = 20.0
ROUNDS = 3
DAY = 86_400
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Print the figures."""
    if "--soak" in sys.argv:
        soak(DAY)
    else:
        cost()
    return 0


def cost() -> None:
    """Print what the clients cost over none, in per cent of a core and MB; several rounds, since a shared machine is noisy."""
    figures = []
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        time.sleep(5)
        for _ in range(ROUNDS):
            alone, before = server.watched(SECONDS)
            streams = [server.stream() for _ in range(CLIENTS)]
            drained(streams, 3.0)
            start = server.cpu()
            received = drained(streams, SECONDS)
            busy, after = 100 * (server.cpu() - start) / SECONDS, server.memory()
            for stream in streams:
                stream.close()
            figures.append((busy - alone, after - before))
            print(
                f"0 clients: {alone:.2f} % of a core, {before:.1f} MB; {CLIENTS} clients: {busy:.2f} %, {after:.1f} MB; "
                f"{received / CLIENTS / SECONDS / 1000:.1f} kB/s each",
                flush=True,
            )
            time.sleep(2)
    cpu, memory = zip(*figures, strict=True)  # memory once taken is kept, so later rounds show less
    print(
        f"{CLIENTS} streams over none: {statistics.median(cpu):.2f} % of a core (median), {max(memory):.1f} MB (most)"
    )


class Server:
    """A `gpulse serve --demo` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._token = folder / "token"
        command = [sys.executable, "-m", "gpulse", "serve", "--demo", "--port", "0", "--token-file", str(self._token)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rstrip("/\n").rpartition(":")[2])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)

    def stream(self) -> socket.socket:
        """Return a client that has asked for the stream."""
        client = socket.create_connection(("127.0.0.1", self.port))
        token = self._token.read_text().strip()
        client.sendall(f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        client.setblocking(False)
        return client

    def cpu(self) -> float:
        """Return the processor seconds until now."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def memory(self) -> float:
        """Return the resident memory in MB."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    def watched(self, seconds: float) -> tuple[float, float]:
        """Return per cent of a core over a while, and the memory at its end."""
        start = self.cpu()
        time.sleep(seconds)
        return 100 * (self.cpu() - start) / seconds, self.memory()


def drained(streams: list[socket.socket], seconds: float) -> int:
    """Read what comes for a while; return the bytes."""
    received, end = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                assert isinstance(key.fileobj, socket.socket)
                received += len(key.fileobj.recv(1 << 16))
    return received


def soak(count: int, clients: int = 10) -> list[float]:
    """Send a number of samples through a hub to clients that read; print and return the memory in MB at each tenth of the way."""
    from gpulse.live.hub import Hub, wanted
    from gpulse.sampling.clock import ManualClock
    from gpulse.sampling.sampler import Sampler
    from gpulse.sources.simulated.source import SimulatedSource

    clock = ManualClock()
    sampler = Sampler(SimulatedSource(), wanted(), clock=clock).open()
    hub = Hub(None, 1.0)
    memory: list[float] = []

    async def drive() -> None:
        readers = [Reader() for _ in range(clients)]
        from gpulse.surfaces.web.answers import Streams

        streams = Streams(hub)
        scope = {"type": "http", "method": "GET", "headers": []}
        tasks = [asyncio.create_task(streams(scope, reader.receive, reader.send)) for reader in readers]
        for number in range(1, count + 1):
            hub.add(sampler.read())
            clock.sleep(1.0)
            await asyncio.sleep(0)
            if number % max(1, count // 10) == 0:
                memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6)
                print(f"{number} samples: {memory[-1]:.1f} MB, {streams.count} clients", flush=True)
        hub.close()
        await asyncio.gather(*tasks)
        assert all(reader.parts >= count for reader in readers), "a client that reads was left behind"

    asyncio.run(drive())
    sampler.close()
    return memory


class Reader:
    """A client in the same process, which takes whatever it is sent."""

    def __init__(self) -> None:
        self.parts = 0

    async def receive(self) -> dict[str, object]:
        """Never leave."""
        await asyncio.Event().wait()
        return {}

    async def send(self, message: object) -> None:
        """Take a part."""
        self.parts += 1


if __name__ == "__main__":
    sys.exit(main())
