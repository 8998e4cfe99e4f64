"""Which Kubernetes pod was given which device, as the kubelet's pod-resources API says over its Unix socket.

The call is made with grpcio, which the extra `kubernetes` installs: importing it takes about 100 ms, so it is loaded only where there is
a kubelet. Of the answer only a few texts are needed; walking its fields takes 30 lines and saves the protobuf package.
"""

from __future__ import annotations

import os

from ..errors import GpulseError
from ..model.snapshot import Check
from ..plugins import extra_command
from ..units import count_text
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET = os.environ.get("GPULSE_POD_RESOURCES", "/var/lib/kubelet/pod-resources/kubelet.sock")
_METHOD = "/v1.PodResourcesLister/List"
_LARGEST = 1 << 24  # bytes of an answer; a node with hundreds of pods answers some hundred KB
_PATIENCE = 1.0  # seconds


class Assignment(Value):
    """Who was given a device: namespace, pod and container."""

    namespace: str
    pod: str
    container: str


class PodsUnavailable(GpulseError):
    """A kubelet is here, but its pods cannot be read; `gap` is the reason as in the gaps of a sample."""

    def __init__(self, message: str, gap: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.gap = gap


def pod_resources(path: str = SOCKET) -> dict[str, list[Assignment]]:
    """Return who was given which device, by the device's id; nothing without a kubelet.

    Devices of device plugins have the id that the plugin gave them, usually a UUID. Those that were claimed (dynamic resource allocation)
    have the id DRIVER/DEVICE, for instance gpu.nvidia.com/gpu-0, and the names by which the container runtime knows them.
    Raise PodsUnavailable without grpcio, and if the kubelet does not answer within a second.
    """
    if not os.path.exists(path):
        return {}
    found: dict[str, list[Assignment]] = {}
    try:
        for device, owner in _assignments(_call(path)):
            found.setdefault(device, []).append(owner)
    except ValueError as error:
        raise PodsUnavailable(f"The answer of the kubelet cannot be read: {error}.", "failed") from None
    return found


def examine(path: str = SOCKET) -> list[Check]:
    """Return whether the pods of this node can be read; nothing without a kubelet."""
    if not os.path.exists(path):
        return []
    try:
        found = pod_resources(path)
    except PodsUnavailable as error:
        return [Check("warn", "pods", error.message, error.remedy)]
    return [Check("ok", "pods", f"the kubelet names the pods of {count_text(len(found), 'device')}.")]


def _call(path: str) -> bytes:
    """Make the call and return the message of its answer."""
    try:
        import grpc
    except ImportError:
        raise PodsUnavailable(
            "Pods cannot be read from the kubelet: grpcio is not installed.",
            "unsupported",
            f"Run {extra_command('kubernetes')} (the extra `kubernetes`).",
        ) from None
    options = (("grpc.max_receive_message_length", _LARGEST), ("grpc.enable_http_proxy", 0))
    with grpc.insecure_channel(f"unix:{path}", options) as channel:
        ask = channel.unary_unary(_METHOD)  # without serializers: bytes out, bytes in
        try:
            answer: bytes = ask(b"", timeout=_PATIENCE)
        except grpc.RpcError as error:
            code = error.code().name
            gap = "timeout" if code == "DEADLINE_EXCEEDED" else "failed"
            raise PodsUnavailable(f"The kubelet does not answer: {code}.", gap) from None
    return answer


def _assignments(message: bytes) -> Iterator[tuple[str, Assignment]]:
    """Walk pods, their containers and the devices of each; a device shared by time slicing has its replica left out."""
    for pod in _parts(message, 1):
        name, namespace = _word(pod, 1), _word(pod, 2)
        for container in _parts(pod, 3):
            owner = Assignment(namespace, name, _word(container, 1))
            ids = [_text_of(device) for devices in _parts(container, 2) for device in _parts(devices, 2)]
            claimed = [name for claim in _parts(container, 5) for device in _parts(claim, 4) for name in _names(device)]
            for device in dict.fromkeys((*(one.partition("::")[0] for one in ids), *claimed)):
                yield device, owner


def _names(claimed: bytes) -> Iterator[str]:
    """Yield the names of a claimed device: driver and device, and what follows the kind in a CDI name (vendor/class=name)."""
    driver, device = _word(claimed, 2), _word(claimed, 4)
    if driver and device:
        yield f"{driver}/{device}"
    yield from (name for part in _parts(claimed, 1) if (name := _word(part, 1).partition("=")[2]))


def _text_of(part: bytes) -> str:
    return part.decode("utf-8", "replace")


def _word(message: bytes, number: int) -> str:
    return next(map(_text_of, _parts(message, number)), "")


def _parts(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the texts and messages of one field of a protobuf message; raise ValueError where it is none."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind, size = key & 7, 0
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"unknown wire type {kind}")
        if at + size > len(message):
            raise ValueError("it ends within a field")
        if kind == 2 and key >> 3 == number:
            yield message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ValueError("it ends within a number")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")
