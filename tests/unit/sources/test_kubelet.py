"""The kubelet's pod-resources API, against a real gRPC server that answers as the kubelet does, and against hostile ones."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.kubelet import _assignments, pod_resources
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.exporter.tenants import Tenants
from tests.unit.surfaces.exporter.pages import gpu, samples, values


def field(number: int, payload: bytes) -> bytes:
    """One field of a protobuf message: a text or a message."""
    size, encoded = len(payload), b""
    while True:
        size, low = size >> 7, size & 0x7F
        encoded += bytes([low | (0x80 if size else 0)])
        if not size:
            return bytes([number << 3 | 2]) + encoded + payload


def pod(namespace: str, name: str, container: str, *devices: str) -> bytes:
    ids = b"".join(field(2, device.encode()) for device in devices)
    held = field(1, container.encode()) + field(2, field(1, b"nvidia.com/gpu") + ids)
    return field(1, field(1, name.encode()) + field(2, namespace.encode()) + field(3, held))


@contextmanager
def kubelet(path: Path, answer: bytes) -> Iterator[None]:
    """A gRPC server on a socket that answers every List with these bytes."""
    grpc = pytest.importorskip("grpc")

    class Lister(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined]  # grpc has no types here
        def service(self, details: Any) -> Any:
            if details.method != "/v1.PodResourcesLister/List":
                return None
            return grpc.unary_unary_rpc_method_handler(lambda request, context: answer)

    server = grpc.server(ThreadPoolExecutor(2), handlers=(Lister(),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait(5)


def test_pods_are_found_by_the_device_they_were_given(tmp_path: Path) -> None:
    answer = pod("ml", "trainer-0", "main", "GPU-1") + pod("web", "serve", "vllm", "MIG-7", "GPU-2::3")
    path = tmp_path / "kubelet.sock"
    with kubelet(path, answer):
        found = pod_resources(str(path))
    assert found is not None
    told = {device: (one.namespace, one.pod, one.container) for device, one in found.items()}
    assert told == {
        "GPU-1": ("ml", "trainer-0", "main"),
        "MIG-7": ("web", "serve", "vllm"),
        "GPU-2": ("web", "serve", "vllm"),
    }


def test_a_long_answer_comes_whole(tmp_path: Path) -> None:
    answer = b"".join(pod("ns", f"pod-{at}", "c", f"GPU-{at}") for at in range(5000))
    path = tmp_path / "kubelet.sock"
    with kubelet(path, answer):
        found = pod_resources(str(path))
    assert found is not None
    assert len(found) == 5000
    assert found["GPU-4999"].pod == "pod-4999"


def test_the_labels_of_dcgm_name_the_pod(tmp_path: Path) -> None:
    from gpulse.model.snapshot import Snapshot

    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "trainer-0", "main", "GPU-1")):
        exporter = Exporter(tenants=Tenants(str(path)))
        exporter.add(Snapshot(1.0, (gpu(temperature=50),)))
    found = samples(exporter, dcgm=True)
    told = values(found, "DCGM_FI_DEV_GPU_TEMP", "namespace", "pod", "container")
    assert told == {("ml", "trainer-0", "main"): 50}


def test_no_kubelet_is_nobody(tmp_path: Path) -> None:
    assert pod_resources(str(tmp_path / "none.sock")) is None


@pytest.mark.parametrize(
    "words",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(9), b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x02"],
)
def test_a_server_that_speaks_something_else_is_nobody(tmp_path: Path, words: bytes) -> None:
    path = str(tmp_path / "other.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen(1)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(words)

        thread = threading.Thread(target=answer)
        thread.start()
        assert pod_resources(path) is None
        thread.join(10)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        list(_assignments(message))
    except (ValueError, IndexError):
        pass
