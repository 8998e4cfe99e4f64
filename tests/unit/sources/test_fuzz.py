"""Any file of a tree missing, empty, refused, garbage, padded, huge or another kind: nothing is raised, and no number is made up."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.errors import SourceUnavailable
from gpulse.model.select import EVERYTHING
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import Source
from gpulse.sources.registry import make_source
from tests.unit.sources.amd.cards import kfd_node, radeon
from tests.unit.sources.amd.test_instinct import partitioned
from tests.unit.sources.intel.cards import arc, client
from tests.unit.sources.jetson.boards import ORIN
from tests.unit.sources.trees import KEYS, PROCESS_KEYS, SHARED, write_tree

MACHINES: dict[str, Callable[[Path], Path]] = {
    "amd": lambda root: write_tree(radeon(root), kfd_node(1, 7, 0x0300)),
    "instinct": partitioned,
    "intel": lambda root: write_tree(
        arc(root), client(80, 4, drm_driver="xe", drm_pdev="0000:09:00.0", drm_client_id="9", drm_cycles_rcs="5")
    ),
    "jetson": lambda root: write_tree(root, ORIN),
}
VENDOR = {"instinct": "amd"}
WRONG = st.one_of(
    st.sampled_from([b"", b"\n", b"\0" * 4096, b"n/a\n", b"-1\n", b"65535\n", b"18446744073709551615\n", b"9" * 8192, b"1_000\n", b"+5\n",
                     b"0x10\n", b"1.5\n", b"NaN\n", "٣\n".encode(), b"12\0\0\0junk", b"7\n8\n", b"*\n", b"0: *\n", b"S: 19Mhz *\n"]),
    st.binary(max_size=200),
)  # fmt: skip


def read_all(source: Source) -> list[dict[str, object]]:
    """Read every GPU twice, as the sampler does, and once by itself; return what reached the snapshot."""
    sampler = Sampler(source, EVERYTHING).open()
    try:
        snapshots = [sampler.read() for _ in range(2)]
        for snapshot in snapshots:
            assert not snapshot.problems, snapshot.problems
        for device in source.devices:
            device.read(KEYS, PROCESS_KEYS)
        return [dict(gpu.items()) for gpu in snapshots[-1].gpus]
    finally:
        sampler.close()


def tree(name: str, folder: Path) -> tuple[Path, str]:
    shutil.rmtree(folder, ignore_errors=True)
    return MACHINES[name](folder), VENDOR.get(name, name)


class Tree:
    """The files of a machine, some of which are changed for a while."""

    def __init__(self, root: Path, most: int, without: str = "") -> None:
        self._whole = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != without}
        self._some = st.lists(st.sampled_from(sorted(self._whole)), min_size=1, max_size=most)
        for path in self._whole:
            path.chmod(0o644)

    @contextmanager
    def changed(self, draw: Callable[..., Any]) -> Iterator[list[Path]]:
        """Give some files wrong contents; yield those files."""
        paths = draw(self._some)
        try:
            for path in paths:
                path.write_bytes(draw(WRONG))
            yield paths
        finally:
            for path in paths:
                path.write_bytes(self._whole[path])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, str, Tree]]:
    """Write the files of a machine once for all examples."""

    @cache
    def written(name: str) -> tuple[Path, str, Tree]:
        root, vendor = tree(name, tmp_path_factory.mktemp(name) / "tree")
        return root, vendor, Tree(root, 4, without="load")

    return written


@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_wrong_contents_never_raise(
    name: str, machine: Callable[[str], tuple[Path, str, Tree]], data: st.DataObject
) -> None:
    root, vendor, files = machine(name)
    with files.changed(data.draw) as changed:
        try:
            read_all(make_source(f"{vendor}:{root}"))
        except SourceUnavailable:  # only where nothing says whose card it is
            assert {"uevent", "vendor"} <= {path.name for path in changed}


@pytest.mark.parametrize("name", ["amd", "intel"])
def test_a_card_is_known_by_its_vendor_where_no_file_names_its_driver(name: str, tmp_path: Path) -> None:
    root, vendor = tree(name, tmp_path / "tree")
    for path in (*root.rglob("device/uevent"), *root.rglob("device/hwmon/*/name")):
        path.write_text("n/a\n")
    assert read_all(make_source(f"{vendor}:{root}"))


@pytest.mark.parametrize("name", MACHINES)
def test_any_file_may_be_missing_or_be_something_else(name: str, tmp_path: Path) -> None:
    root, vendor = tree(name, tmp_path / "tree")
    whole = read_all(make_source(f"{vendor}:{root}"))[0]
    files = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != "load"]
    for change in (lambda path: None, os.mkdir, os.mkfifo, lambda path: os.symlink(path, path)):
        for file in files:
            path = root / file
            before = path.read_bytes()
            path.unlink()
            change(path)
            found = read_all(make_source(f"{vendor}:{root}"))[0]
            assert not {key for key, value in found.items() if key not in whole and value is not None} - {
                "dram_active",
                "clock_video",
            }
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(before)


@pytest.mark.parametrize(
    "code", [errno.EBUSY, errno.EPERM, errno.EIO, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ETIMEDOUT]
)
@pytest.mark.parametrize("name", MACHINES)
def test_any_read_may_fail(name: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, vendor = tree(name, tmp_path / "tree")
    source = make_source(f"{vendor}:{root}")
    source.open()
    real_pread, real_read = os.pread, os.read
    refused = re.compile("busy|power1|temp|energy|freq|gpu_metrics|mem_info|pp_dpm|idle|used_memory|in1")

    def named(handle: int) -> str:
        return os.readlink(f"/proc/self/fd/{handle}").removeprefix(str(root))

    def fail(real: Callable[..., bytes]) -> Callable[..., bytes]:
        def read(handle: int, *rest: Any) -> bytes:
            if refused.search(named(handle)):
                raise OSError(code, os.strerror(code))
            return real(handle, *rest)

        return read

    monkeypatch.setattr(os, "pread", fail(real_pread))
    monkeypatch.setattr(os, "read", fail(real_read))
    for device in source.devices:
        sample = device.read(KEYS, PROCESS_KEYS)
        for key in ("power_draw", "temperature", "clock_sm"):
            assert key not in sample.values
            assert sample.gaps[key] in ("asleep", "failed", "lost", "unsupported", "pending"), key
    source.close()


@pytest.mark.parametrize("name", MACHINES)
def test_numbers_are_those_of_the_files(name: str, tmp_path: Path) -> None:
    """Every digit of a whole number read stands in some file, in the kernel's unit or in ours."""
    root, vendor = tree(name, tmp_path / "tree")
    for path in root.rglob("*"):
        if path.is_file() and path.read_bytes().strip().isdigit():
            path.write_bytes(b"9" * 5000)  # a number without end is none
    found = read_all(make_source(f"{vendor}:{root}"))[0]
    kept = {"temperature", "power_draw", "utilization", "fan_rpm", "fan_speed", "power_limit", "energy"} - (
        {*found} if name == "instinct" else set()
    )
    assert not kept & {key for key, value in found.items() if value is not None}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], tuple[Path, Tree]]:
    """Copy a recorded machine once for all examples."""

    @cache
    def copied(machine: Path) -> tuple[Path, Tree]:
        root = tmp_path_factory.mktemp(machine.name) / "tree"
        shutil.copytree(machine, root)
        return root, Tree(root, 8)

    return copied


@pytest.mark.skipif(not SHARED.exists(), reason="the recorded machines are not beside this checkout")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_recorded_machines_with_wrong_contents_never_raise(
    recorded: Callable[[Path], tuple[Path, Tree]], data: st.DataObject
) -> None:
    machine = data.draw(
        st.sampled_from(sorted(path for vendor in ("amd", "intel") for path in (SHARED / vendor).iterdir()))
    )
    root, files = recorded(machine)
    with files.changed(data.draw):
        read_all(make_source(f"{machine.parent.name}:{root}"))
