"""Clients of a GPU in /proc: each counted once, rates from pairs, counts that go back held."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.sources.drm.clients import Clients, ClientUse, busiest, parse_client
from tests.unit.sources.intel.cards import client
from tests.unit.sources.trees import write_tree

SLOT = "0000:03:00.0"
NEW = b"""pos:\t0
drm-driver:\tamdgpu
drm-client-id:\t12
drm-pdev:\t0000:03:00.0
pasid:\t32771
drm-total-vram:\t9 MiB
drm-resident-vram:\t4 MiB
drm-memory-vram:\t5000 KiB
drm-shared-vram:\t0
drm-engine-gfx:\t123 ns
drm-engine-capacity-ccs:\t4
drm-total-cycles-rcs:\t99
drm-cycles-rcs:\t7
amd-requested-vram:\t1 KiB
"""
OLD = b"pdev:\t0000:0B:00.0\npasid:\t32770\nvram mem:\t6400 kB\ngtt mem:\t128 kB\ngfx0:\t12.4%\n"


def amd(
    pid: int, number: int, busy: int, client_id: int = 1, vram: str = "10 MiB", pdev: str = SLOT
) -> dict[str, str | bytes]:
    return client(
        pid,
        number,
        drm_driver="amdgpu",
        drm_pdev=pdev,
        drm_client_id=str(client_id),
        drm_engine_gfx=f"{busy} ns",
        drm_resident_vram=vram,
    )


def test_keys_are_taken_by_their_longest_prefix() -> None:
    found = parse_client(NEW)
    assert found is not None
    assert (found.driver, found.pdev, found.id) == ("amdgpu", "0000:03:00.0", "12")
    assert found.busy == {"gfx": 123}
    assert found.capacity == {"ccs": 4}
    assert (found.cycles, found.total_cycles) == ({"rcs": 7}, {"rcs": 99})
    assert found.held("vram") == 4 << 20
    assert found.held("gtt") is None


def test_the_words_of_old_kernels_are_known() -> None:
    found = parse_client(OLD)
    assert found is not None
    assert (found.pdev, found.held("vram"), found.held("vram", "gtt")) == ("0000:0b:00.0", 6400 << 10, 6528 << 10)


@pytest.mark.parametrize(
    "content", [b"", b"pos:\t0\nflags:\t02\n", b"drm-driver:\ti915\n", b"drm-client-id:\t1\n", b"\0" * 50]
)
def test_what_names_no_client_is_none(content: bytes) -> None:
    assert parse_client(content) is None


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_content_raises(content: bytes) -> None:
    parse_client(b"drm-driver: x\ndrm-client-id: 1\n" + content)


def walk(root: Path) -> tuple[Clients, list[float]]:
    now = [100.0]
    return Clients(str(root), lambda: now[0]), now


def uses(clients: Clients) -> list[ClientUse]:
    clients.expire()
    return clients.of_slot(SLOT)


def test_a_client_in_many_descriptors_and_processes_counts_once(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            **amd(1, 3, 5),
            **amd(50, 4, 5),
            **amd(50, 9, 5),
            **amd(40, 7, 5),
            **amd(60, 7, 5, 2),
            "proc/40/comm": "systemd-logind\n",
        },
    )
    clients, _ = walk(tmp_path)
    assert sorted((use.pid, use.client.id) for use in uses(clients)) == [(50, "1"), (60, "2")]


def test_a_client_stays_with_whom_it_was_seen(tmp_path: Path) -> None:
    write_tree(tmp_path, amd(50, 4, 5))
    clients, now = walk(tmp_path)
    assert [use.pid for use in uses(clients)] == [50]
    write_tree(tmp_path, amd(30, 4, 5))
    now[0] += 5
    assert [use.pid for use in uses(clients)] == [50]


def test_other_gpus_and_other_files_are_not_counted(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            **amd(50, 4, 5),
            **amd(51, 4, 5, 3, pdev="0000:43:00.0"),
            "proc/52/fd/1": "->/dev/null",
            "proc/52/fdinfo/1": NEW,
        },
    )
    clients, _ = walk(tmp_path)
    assert [use.pid for use in uses(clients)] == [50]


def test_shares_come_from_two_counts_and_backward_ones_are_held(tmp_path: Path) -> None:
    write_tree(tmp_path, amd(50, 4, 1_000_000_000))
    clients, now = walk(tmp_path)
    shares = []
    for step, busy in ((1.0, 1_250_000_000), (1.0, 1_100_000_000), (1.0, 1_500_000_000), (0.01, 9_000_000_000)):
        uses(clients)
        now[0] += step
        write_tree(tmp_path, amd(50, 4, busy))
        shares.append((uses(clients)[0].shares or {}).get("gfx"))
    assert shares == [25.0, 0.0, 25.0, 25.0]  # held, then counted from the maximum; the last is too close


def test_a_new_client_has_no_share_and_a_gone_one_is_forgotten(tmp_path: Path) -> None:
    write_tree(tmp_path, amd(50, 4, 1_000))
    clients, now = walk(tmp_path)
    uses(clients)
    for path in sorted((tmp_path / "proc").rglob("*"), reverse=True):
        path.unlink() if path.is_symlink() or path.is_file() else path.rmdir()
    now[0] += 1
    assert uses(clients) == []
    write_tree(tmp_path, amd(50, 4, 2_000))
    now[0] += 1
    assert [use.shares for use in uses(clients)] == [None]


def test_a_recorded_client_that_stands_still_has_no_share(tmp_path: Path) -> None:
    write_tree(tmp_path, amd(50, 4, 1_000))
    clients, now = walk(tmp_path)
    for _ in range(3):
        assert [use.shares for use in uses(clients)] == [None]
        now[0] += 1


def test_the_busiest_engine_counts_for_the_gpu() -> None:
    content = parse_client(NEW)
    assert content is not None
    assert busiest([]) is None
    assert busiest([ClientUse(1, content, None)]) is None
    assert busiest([ClientUse(1, content, {"gfx": 60.0, "dma": 50.0}), ClientUse(2, content, {"gfx": 20.0})]) == 80.0
    assert busiest([ClientUse(1, content, {"gfx": 60.0}), ClientUse(2, content, {"gfx": 70.0})]) == 100.0


def test_a_tree_with_fdinfo_alone_is_read_too(tmp_path: Path) -> None:
    write_tree(tmp_path, {"proc/77/fdinfo/9": NEW})
    clients, _ = walk(tmp_path)
    assert [use.pid for use in uses(clients)] == [77]
