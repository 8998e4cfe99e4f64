"""A crowd of idle connections keeps nobody out, and the log stays short."""

from __future__ import annotations

import pytest

from gpulse.surfaces.web.running import Crowd, Places


class Client:
    """A connection."""

    def __init__(self, idle: bool = True) -> None:
        self.idle = idle
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


def test_at_the_limit_of_a_peer_its_oldest_idle_connection_makes_room() -> None:
    said: list[str] = []
    crowd = Crowd(4, said.append)
    stream, first, second = Client(idle=False), Client(), Client()
    assert crowd.enter(stream, "a")
    assert crowd.enter(first, "a")
    assert crowd.enter(Client(), "a")
    assert crowd.enter(second, "a")
    assert (stream.dropped, first.dropped, second.dropped) == (False, True, False)
    assert len(said) == 1


def test_at_the_limit_of_all_the_peer_with_the_most_connections_makes_room() -> None:
    crowd = Crowd(4, lambda _: None)
    many, one, other = [Client(), Client()], Client(), Client()
    assert all(crowd.enter(client, "many") for client in many)
    assert crowd.enter(one, "b")
    assert crowd.enter(other, "c")
    assert crowd.enter(Client(), "d")
    assert [client.dropped for client in many] == [True, False]
    assert not one.dropped


def test_a_connection_is_refused_if_all_others_are_busy() -> None:
    crowd = Crowd(2, lambda _: None)
    busy = Client(idle=False)
    assert crowd.enter(busy, "a")
    assert not crowd.enter(Client(), "a")
    crowd.leave(busy, "a")
    crowd.leave(busy, "a")
    assert crowd.enter(Client(), "a")


def test_a_thousand_closed_connections_are_one_line() -> None:
    said: list[str] = []
    crowd = Crowd(10, said.append)
    assert all(crowd.enter(Client(), "a") for _ in range(1000))
    assert len(said) == 1


def test_it_is_told_when_half_of_many_connections_have_gone() -> None:
    told: list[int] = []
    crowd = Crowd(400, lambda _: None, lambda: told.append(1))
    clients = [Client(idle=False) for _ in range(200)]
    assert all(crowd.enter(client, "proxy") for client in clients)
    for client in clients[:99]:
        crowd.leave(client, "proxy")
    assert told == []
    for client in clients[99:140]:
        crowd.leave(client, "proxy")
    assert told == [1]
    few = Crowd(400, lambda _: None, lambda: told.append(2))
    assert few.enter(clients[0], "a")
    few.leave(clients[0], "a")
    assert told == [1]


@pytest.mark.parametrize("descriptors", [40, 130, 192, 768, 3072])
def test_streams_leave_places_for_short_requests_also_to_one_proxy(descriptors: int) -> None:
    places = Places(descriptors)
    crowd = Crowd(places.connections, lambda _: None)
    assert 1 <= places.streams <= places.connections // 2
    assert all(crowd.enter(Client(idle=False), "proxy") for _ in range(places.streams))
    if places.connections > 3:
        assert crowd.enter(Client(), "proxy")
    assert crowd.enter(Client(), "elsewhere")
