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

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.sources.containers import Assignment, _assignments, pod_resources
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.exporter.families import Owners
from gpulse.surfaces.exporter.tenants import Tenants
from tests.unit.surfaces.exporter.pages import WHO, gpu, samples, values


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


def claim(namespace: str, name: str, container: str, device: str, runtime: str) -> bytes:
    """A pod whose container was given a device by dynamic resource allocation; the other fields are those of a real kubelet."""
    resource = field(1, field(1, runtime.encode())) + field(2, b"gpu.nvidia.com") + field(3, b"node-1")
    claimed = field(2, b"a-claim") + field(3, namespace.encode()) + field(4, resource + field(4, device.encode()))
    held = field(1, container.encode()) + b"\x18\x02" + field(5, claimed)  # it has a CPU of its own, too
    return field(1, field(1, name.encode()) + field(2, namespace.encode()) + field(3, held))


def told(found: dict[str, list[Assignment]]) -> dict[str, list[tuple[str, str, str]]]:
    return {device: [(one.namespace, one.pod, one.container) for one in owners] for device, owners in found.items()}


def asked(path: Path) -> Tenants:
    """The pods of a kubelet that has been asked."""
    tenants = Tenants(str(path))
    tenants.refresh()
    tenants.join(30)
    return tenants


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
    assert told(found) == {
        "GPU-1": [("ml", "trainer-0", "main")],
        "MIG-7": [("web", "serve", "vllm")],
        "GPU-2": [("web", "serve", "vllm")],
    }


def test_a_gpu_that_is_shared_in_turns_has_all_its_pods(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "a", "main", "GPU-1::0", "GPU-1::1") + pod("ml", "b", "main", "GPU-1::2")):
        found = pod_resources(str(path))
    assert found is not None
    assert told(found) == {"GPU-1": [("ml", "a", "main"), ("ml", "b", "main")]}


def test_claimed_devices_have_the_names_of_their_driver_and_of_the_runtime(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, claim("ml", "trainer-0", "main", "gpu-3", "k8s.gpu.nvidia.com/claim=GPU-9")):
        found = pod_resources(str(path))
    assert found is not None
    assert told(found) == {
        "gpu.nvidia.com/gpu-3": [("ml", "trainer-0", "main")],
        "GPU-9": [("ml", "trainer-0", "main")],
    }


def test_a_long_answer_comes_whole(tmp_path: Path) -> None:
    answer = b"".join(pod("ns", f"pod-{at}", "c", f"GPU-{at}") for at in range(5000))
    path = tmp_path / "kubelet.sock"
    with kubelet(path, answer):
        found = pod_resources(str(path))
    assert found is not None
    assert len(found) == 5000
    assert found["GPU-4999"][0].pod == "pod-4999"


def test_the_labels_name_the_pod(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "trainer-0", "main", "GPU-1")):
        exporter = Exporter(owners=Owners(asked(path)))
    exporter.add(Snapshot(1.0, (gpu(temperature=50),)))
    found = samples(exporter, dcgm=True)
    labelled = values(found, "DCGM_FI_DEV_GPU_TEMP", "namespace", "pod", "container")
    assert labelled == {("ml", "trainer-0", "main"): 50}
    # a GPU that is held without a process has an owner all the same
    assert values(found, "gpulse_gpu_job_info", "namespace", "pod", "container_name") == {
        ("ml", "trainer-0", "main"): 1
    }


def test_a_claimed_gpu_is_known_by_its_minor_number_and_processes_by_their_pod(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    claims = claim("ml", "a", "main", "gpu-3", "x/y=z") + claim("web", "b", "vllm", "gpu-3", "x/y=z")
    with kubelet(path, claims):
        tenants = asked(path)
        assert tenants.wanted.gpu == {"minor_number"}
    processes = (
        Process({"pid": 1, "pod": "b", "user": "grace", "memory_used": 5}),
        Process({"pid": 2, "memory_used": 9}),
    )
    exporter = Exporter(owners=Owners(tenants))
    exporter.add(Snapshot(1.0, (Gpu({**WHO, "vendor": "nvidia", "minor_number": 3}, processes=processes),)))
    found = samples(exporter, processes=True)
    labels = ("user", "namespace", "pod", "container_name")
    assert values(found, "gpulse_gpu_job_info", *labels) == {("grace", "web", "b", "vllm"): 1}
    held = values(found, "gpulse_process_memory_bytes", "pid", *labels)
    assert held == {("1", "grace", "web", "b", "vllm"): 5, ("2", "", "", "", ""): 9}


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
        thread.join(60)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        list(_assignments(message))
    except (ValueError, IndexError):
        pass
