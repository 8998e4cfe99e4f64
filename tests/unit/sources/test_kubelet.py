"""The kubelet's pod-resources API, against a real gRPC server that answers as the kubelet does, and against hostile ones."""

from __future__ import annotations

import socket
import subprocess
import sys
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
from gpulse.sources import kubelet as kubelet_module
from gpulse.sources.kubelet import Assignment, PodsUnavailable, _assignments, examine, pod_resources
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
    assert told(found) == {
        "GPU-1": [("ml", "trainer-0", "main")],
        "MIG-7": [("web", "serve", "vllm")],
        "GPU-2": [("web", "serve", "vllm")],
    }


def test_a_gpu_that_is_shared_in_turns_has_all_its_pods(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "a", "main", "GPU-1::0", "GPU-1::1") + pod("ml", "b", "main", "GPU-1::2")):
        found = pod_resources(str(path))
    assert told(found) == {"GPU-1": [("ml", "a", "main"), ("ml", "b", "main")]}


def test_claimed_devices_have_the_names_of_their_driver_and_of_the_runtime(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, claim("ml", "trainer-0", "main", "gpu-3", "k8s.gpu.nvidia.com/claim=GPU-9")):
        found = pod_resources(str(path))
    assert told(found) == {
        "gpu.nvidia.com/gpu-3": [("ml", "trainer-0", "main")],
        "GPU-9": [("ml", "trainer-0", "main")],
    }


def test_a_long_answer_comes_whole(tmp_path: Path) -> None:
    answer = b"".join(pod("ns", f"pod-{at}", "c", f"GPU-{at}") for at in range(5000))
    path = tmp_path / "kubelet.sock"
    with kubelet(path, answer):
        found = pod_resources(str(path))
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


def test_no_kubelet_is_nobody_and_loads_no_grpc(tmp_path: Path) -> None:
    path = str(tmp_path / "none.sock")
    assert pod_resources(path) == {}
    assert examine(path) == []
    code = f"from gpulse.sources.kubelet import examine; import sys; sys.exit(bool(examine({path!r})) or 'grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_without_grpc_the_pods_are_missing_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubelet.sock"
    path.touch()
    monkeypatch.setitem(sys.modules, "grpc", None)  # importing it fails
    exporter = Exporter(owners=Owners(asked(path)))
    exporter.add(Snapshot(1.0, (gpu(temperature=50),)))
    gaps = values(samples(exporter), "gpulse_gaps_total", "metric", "reason")
    assert gaps["pod", "unsupported"] == 1
    (check,) = examine(str(path))
    assert (check.level, check.about) == ("warn", "pods")
    assert "grpcio is not installed" in check.found
    assert "extra `kubernetes`" in check.remedy


def test_the_doctor_counts_the_devices(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "a", "main", "GPU-1", "GPU-2")):
        (check,) = examine(str(path))
    assert (check.level, check.found) == ("ok", "the kubelet names the pods of 2 devices.")


def test_what_the_kubelet_said_is_kept_and_its_silence_counted(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "trainer-0", "main", "GPU-1")):
        tenants = asked(path)
    assert tenants.gap == ""
    path.touch()  # nobody listens there any more
    tenants._next = 0.0
    tenants.refresh()
    tenants.join(30)
    assert tenants.gap == "failed"
    assert [one.pod for one in tenants.assigned(gpu(temperature=50))] == ["trainer-0"]


@contextmanager
def listener(path: str, words: bytes | None) -> Iterator[None]:
    """A server that is no kubelet: it answers the first client with these bytes and hangs up, or never answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen(8)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(words or b"")

        thread = threading.Thread(target=answer)
        if words is not None:
            thread.start()
        yield
        if words is not None:
            thread.join(60)


@pytest.mark.parametrize(
    "words",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(9), b"\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x02"],
)
def test_a_server_that_speaks_something_else_is_no_kubelet(tmp_path: Path, words: bytes) -> None:
    path = str(tmp_path / "other.sock")
    with listener(path, words), pytest.raises(PodsUnavailable, match="does not answer") as error:
        pod_resources(path)
    assert error.value.gap in ("failed", "timeout")


def test_a_kubelet_that_never_answers_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_module, "_PATIENCE", 0.1)
    path = str(tmp_path / "silent.sock")
    with listener(path, None), pytest.raises(PodsUnavailable, match="DEADLINE_EXCEEDED") as error:
        pod_resources(path)
    assert error.value.gap == "timeout"


def test_a_method_that_the_kubelet_lacks_and_an_answer_that_is_too_long_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubelet.sock"
    with kubelet(path, pod("ml", "a", "main", "GPU-1")):
        with monkeypatch.context() as patched:
            patched.setattr(kubelet_module, "_LARGEST", 8)
            with pytest.raises(PodsUnavailable, match="RESOURCE_EXHAUSTED"):
                pod_resources(str(path))
        monkeypatch.setattr(kubelet_module, "_METHOD", "/v1.PodResourcesLister/Other")
        with pytest.raises(PodsUnavailable, match="UNIMPLEMENTED"):
            pod_resources(str(path))


def test_an_answer_that_is_cut_off_is_refused_and_not_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    whole = pod("ml", "a", "main", "GPU-1")
    for length in range(1, len(whole)):
        with pytest.raises(ValueError, match="it ends within"):
            list(_assignments(whole[:length]))
    with kubelet(path, whole[:-1]), pytest.raises(PodsUnavailable, match="cannot be read") as error:
        pod_resources(str(path))
    assert error.value.gap == "failed"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        list(_assignments(message))
    except ValueError:
        pass
