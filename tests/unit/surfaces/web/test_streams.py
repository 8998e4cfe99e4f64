"""Streams: what a client is sent, when it is left behind, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

pytest.importorskip("starlette")

from gpulse.live import machine as streaming
from gpulse.live.hub import Hub
from gpulse.live.machine import LAG
from gpulse.surfaces.web.answers import MOST, Streams
from tests.unit.live.test_hub import events_of
from tests.unit.surfaces.web.asking import START, app_of, ask, hub_of, sample, scope_of


class Listener:
    """A client: reads all it is sent, unless it is told to stall, until it leaves."""

    def __init__(self, streams: Streams, method: str = "GET", address: str = "127.0.0.1", **headers: str) -> None:
        self.status = 0
        self.text = b""
        self.ended = False
        self.reads = asyncio.Event()
        self.reads.set()
        self._left = asyncio.Event()
        self._more = asyncio.Event()
        scope = scope_of("/api/stream", method, **headers) | {"client": (address, 50_000)}
        self.task = asyncio.create_task(streams(scope, self._receive, self._send))

    def leave(self) -> None:
        self._left.set()

    async def until(self, enough: Callable[[Listener], bool]) -> None:
        async def wait() -> None:
            while not enough(self):
                self._more.clear()
                await self._more.wait()

        await asyncio.wait_for(wait(), 20)

    def samples(self) -> list[int]:
        return [int(data["time"] - START) for _, kind, data in events_of(self.text) if kind == "sample"]

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message.get("body", b"")
            self.ended = not message.get("more_body")
        self._more.set()


def drive(scene: Callable[[Hub, Streams], Awaitable[None]], hub: Hub | None = None) -> None:
    """Play a scene in an event loop."""
    hub = hub or hub_of(3)

    async def play() -> None:
        await scene(hub, Streams(hub))

    asyncio.run(play())


def test_a_new_client_is_given_the_latest_at_once_and_then_what_comes() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams)
        await client.until(lambda client: client.samples() == [2])
        assert client.text.startswith(b"retry: 2000\n\n")
        hub.add(sample(3))
        hub.add(sample(4))
        await client.until(lambda client: client.samples() == [2, 3, 4])
        client.leave()
        await client.task
        assert streams.count == 0

    drive(scene)


def test_a_client_that_comes_before_the_first_sample_waits_for_it() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams)
        await client.until(lambda client: b"retry" in client.text)
        hub.add(sample(0))
        await client.until(lambda client: client.samples() == [0])
        client.leave()
        await client.task

    drive(scene, Hub(None, 1.0))


def test_a_client_that_comes_back_is_given_what_it_missed() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams, last_event_id=f"{hub.run}-40")
        await client.until(lambda client: len(client.samples()) == 110)
        assert client.samples() == list(range(40, 150))
        assert b"event: hole" not in client.text
        hub.add(sample(150))
        await client.until(lambda client: client.samples()[-1] == 150)
        client.leave()
        await client.task

    drive(scene, hub_of(150))


@pytest.mark.parametrize("last", ["{run}-1", "other-149", "nonsense"])
def test_one_that_comes_back_too_late_is_told_of_the_hole(last: str) -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams, last_event_id=last.replace("{run}", hub.run))
        await client.until(lambda client: bool(client.samples()))
        messages = events_of(client.text)
        assert messages[0][1] == "hole"
        assert isinstance(messages[0][2]["from"], float)
        assert client.samples() == [249]
        client.leave()
        await client.task

    drive(scene, hub_of(250))


def test_a_client_that_does_not_read_is_left_behind_and_harms_nobody() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        stalled, reading = Listener(streams), Listener(streams)
        await stalled.until(lambda client: client.samples() == [2])
        stalled.reads.clear()
        for number in range(3, 5 + LAG):
            hub.add(sample(number))
            await reading.until(lambda client, number=number: client.samples()[-1] == number)  # type: ignore[misc]
        assert not stalled.task.done()
        stalled.reads.set()
        await stalled.task
        assert stalled.ended
        assert stalled.samples() == [2, 3]  # what had been handed over when it stopped to read
        assert not reading.task.done()
        reading.leave()
        await reading.task

    drive(scene)


def test_a_client_that_is_only_slow_loses_nothing() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams)
        await client.until(lambda client: client.samples() == [2])
        client.reads.clear()
        for number in range(3, 3 + LAG):
            hub.add(sample(number))
        await asyncio.sleep(0)
        client.reads.set()
        await client.until(lambda client: client.samples() == list(range(2, 3 + LAG)))
        client.leave()
        await client.task

    drive(scene)


def test_streams_end_when_the_hub_does() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        clients = [Listener(streams) for _ in range(5)]
        for client in clients:
            await client.until(lambda client: client.samples() == [2])
        hub.close()
        await asyncio.wait_for(asyncio.gather(*(client.task for client in clients)), 20)
        assert all(client.ended for client in clients)

    drive(scene)


def test_somebody_who_hears_nothing_else_hears_that_we_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_KEEP_ALIVE", 0.01)

    async def scene(hub: Hub, streams: Streams) -> None:
        client = Listener(streams)
        await client.until(lambda client: client.text.count(b": still here\n\n") >= 2)
        client.leave()
        await client.task

    drive(scene)


def test_there_is_room_for_many_and_an_answer_for_one_too_many() -> None:
    async def scene(hub: Hub, streams: Streams) -> None:
        clients = [Listener(streams) for _ in range(MOST)]
        for client in clients:
            await client.until(lambda client: bool(client.text))
        late = Listener(streams)
        await late.task
        assert late.status == 503
        for client in clients:
            client.leave()
        await asyncio.gather(*(client.task for client in clients))
        again = Listener(streams)
        await again.until(lambda client: client.status == 200)
        again.leave()
        await again.task

    drive(scene)


def test_without_a_token_one_address_has_half_of_the_streams_and_loopback_all() -> None:
    async def play() -> None:
        streams = Streams(hub_of(3), 4, by_address=True)
        clients = [Listener(streams, address="10.0.0.7") for _ in range(2)]
        for client in clients:
            await client.until(lambda client: bool(client.text))
        refused = Listener(streams, address="10.0.0.7")
        await refused.task
        assert refused.status == 503
        assert b"one address" in refused.text
        clients += [Listener(streams, address=address) for address in ("10.0.0.8", "127.0.0.1")]
        for client in clients:
            await client.until(lambda client: client.status == 200)
            client.leave()
        await asyncio.gather(*(client.task for client in clients))

    asyncio.run(play())


def test_with_a_token_one_address_may_have_all_streams() -> None:
    async def play() -> None:
        streams = Streams(hub_of(3), 4)
        clients = [Listener(streams, address="10.0.0.7") for _ in range(4)]
        for client in clients:
            await client.until(lambda client: client.status == 200)
            client.leave()
        await asyncio.gather(*(client.task for client in clients))

    asyncio.run(play())


def test_head_is_answered_without_a_stream() -> None:
    answer = ask(app_of(), "/api/stream", "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
