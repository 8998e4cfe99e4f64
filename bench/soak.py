"""Hours of `gpulse serve` on the scripted driver with clients that come and go: memory, descriptors and threads, once a minute.

python -m bench.soak                       # two hours, 50 clients, 8 GPUs, 24 processes
python -m bench.soak --minutes 60 --file build/soak.tsv

Each client stays for a time between nothing and a minute: a stream that reads, a stream that reads nothing, a browser's
questions over one connection, a scrape, or a connection that is reset in the middle of its request.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from tempfile import TemporaryDirectory

from bench.machine import machine
from tests.e2e.serving import Serving, plain_environment

PAGES = (
    "/",
    "/api/snapshot",
    "/api/processes",
    "/api/events",
    "/api/history?metrics=utilization,power_draw",
    "/metrics",
    "/readyz",
)
_RESET = struct.pack("ii", 1, 0)
_WORDS = ("minute", "rss_mb", "descriptors", "threads", "cpu_s", "healthz_ms", "samples", "connections", "failed")


def main() -> int:
    """Print one line per minute and the spread at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--file", type=Path, default=Path("build/soak.tsv"))
    chosen = parser.parse_args()
    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place, machine("dgx-h100x8", 8, 24) as scripted:
        folder = Path(place)
        driver = {key: text for key, text in scripted.items() if key.startswith(("FAKE_NVML_", "LD_LIBRARY_PATH"))}
        env = plain_environment(folder, **driver)
        with Serving(folder, environ=env, source="") as server, chosen.file.open("w") as file:
            crowd = Crowd(server, chosen.clients)
            asyncio.run(crowd.stay(chosen.minutes, lambda line: print(line, file=file, flush=True)))
            print(f"{crowd.spread()}; exit {server.end()}; stderr {len(server.err)} bytes", flush=True)
            print("\n".join(f"{count} x {text}" for text, count in crowd.failures.most_common(10)))
    return 0


class Crowd:
    """Clients of one server, and what the server needs meanwhile."""

    def __init__(self, server: Serving, clients: int) -> None:
        self._server = server
        self._clients = clients
        self._random = random.Random(16)
        self._done: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._rows: list[tuple[float, ...]] = []

    async def stay(self, minutes: float, write: Callable[[str], None]) -> None:
        """Come and go for a time, and write a line each minute."""
        write("\t".join(_WORDS))
        tasks = [asyncio.create_task(self._client()) for _ in range(self._clients)]
        start = time.monotonic()
        for minute in range(int(minutes) + 1):
            await asyncio.sleep(max(0.0, start + 60 * minute - time.monotonic()))
            self._rows.append((minute, *await self._figures()))
            write("\t".join(f"{value:.10g}" for value in self._rows[-1]))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=5)  # before Python 3.12, wait_for may swallow the first cancellation

    def spread(self) -> str:
        """Return the least and the most of each figure after the first tenth of the time, and what the clients did."""
        later = self._rows[len(self._rows) // 10 :]
        spans = [
            f"{word} {min(row[at] for row in later):g} to {max(row[at] for row in later):g}"
            for at, word in enumerate(_WORDS)
            if word in ("rss_mb", "descriptors", "threads", "healthz_ms")
        ]
        did = ", ".join(f"{count} {word}" for word, count in self._done.most_common())
        return f"{len(self._rows) - 1} minutes; {', '.join(spans)}; clients: {did}"

    async def _figures(self) -> tuple[float, ...]:
        pid = self._server.pid
        asked = time.perf_counter()
        with suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._ask("/healthz"), 30)
        took = 1000 * (time.perf_counter() - asked)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        counts = len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))
        connections = sum(self._done.values()) - self._done["samples"] - self._done["failed"]
        memory = round(self._server.memory(), 2)
        return memory, *counts, cpu, round(took, 1), self._done["samples"], connections, self._done["failed"]

    async def _client(self) -> None:
        kinds = (self._stream, self._sleeper, self._browser, self._scrape, self._reset)
        while True:
            kind = self._random.choices(kinds, (5, 1, 4, 2, 1))[0]
            try:
                await kind()
                self._done[kind.__name__.strip("_")] += 1
            except (OSError, EOFError, asyncio.TimeoutError) as error:
                self._done["failed"] += 1
                self.failures[repr(error)[:60]] += 1
            await asyncio.sleep(self._random.uniform(0, 5))

    async def _open(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port, limit=1 << 22)
        self._write(writer, path)
        return reader, writer

    def _write(self, writer: asyncio.StreamWriter, path: str) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._server.token}\r\n\r\n"
        writer.write(head.encode())

    async def _ask(self, path: str) -> None:
        reader, writer = await self._open(path)
        try:
            await _answer(reader)
        finally:
            writer.close()

    async def _stream(self) -> None:
        """Read the stream for up to a minute."""
        reader, writer = await self._open("/api/stream")
        end = time.monotonic() + self._random.uniform(1, 60)
        try:
            while time.monotonic() < end:
                line = await asyncio.wait_for(reader.readline(), 30)
                if not line:
                    raise EOFError
                self._done["samples"] += line.startswith(b"event: sample")
        finally:
            writer.close()

    async def _sleeper(self) -> None:
        """Ask for the stream and read nothing."""
        _, writer = await self._open("/api/stream")
        try:
            await asyncio.sleep(self._random.uniform(1, 60))
        finally:
            writer.close()

    async def _browser(self) -> None:
        """Ask several questions over one connection."""
        reader, writer = await self._open(self._random.choice(PAGES))
        try:
            for _ in range(self._random.randint(1, 20)):
                await asyncio.wait_for(_answer(reader), 30)
                await asyncio.sleep(self._random.uniform(0, 2))
                self._write(writer, self._random.choice(PAGES))
            await asyncio.wait_for(_answer(reader), 30)
        finally:
            writer.close()

    async def _scrape(self) -> None:
        await asyncio.wait_for(self._ask("/metrics"), 30)

    async def _reset(self) -> None:
        """Leave with a reset in the middle of a request."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        writer.write(b"GET /api/snapshot HTTP/1.1\r\nHost: loc")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> None:
    """Read one whole answer; raise EOFError when it is not 200 or the server closes before its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise EOFError(head.decode("latin-1"))
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        await reader.readexactly(int(fields[b"content-length"]))
    elif fields.get(b"transfer-encoding") == b"chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(size + 2)
        await reader.readexactly(2)


if __name__ == "__main__":
    sys.exit(main())
