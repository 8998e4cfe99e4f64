"""Whose container a process is in: container, Kubernetes pod and batch job from its cgroup and environment, and the kubelet.

The kubelet's pod-resources API says which pod was given which device, asked over its Unix socket. One unary gRPC call without arguments
needs little of HTTP/2: a preface, a HEADERS and a DATA frame out, DATA frames in. Written out here it costs 100 lines; the grpc package
would cost 6 MB and 100 ms at start.
"""

from __future__ import annotations

import os
import re

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator


_CONTAINER = re.compile(r"(?:^|[/:._-])([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
_LXC = re.compile(r"/lxc(?:\.payload)?[./]([^/\n]+)")
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_SLURM = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)
_JOB_VARIABLES = (("SLURM_JOB_ID", "slurm"), ("PBS_JOBID", "pbs"), ("LSB_JOBID", "lsf"), ("RAY_JOB_ID", "ray"))

_SLURM_NAMES = (("job_name", "SLURM_JOB_NAME"), ("account", "SLURM_JOB_ACCOUNT"), ("partition", "SLURM_JOB_PARTITION"))


_PROJECT = "GPULSE_PROJECT"
_LONGEST = 100  # characters of a project


def project_of(environ: dict[str, str], variables: str = "") -> dict[str, str]:
    """Return `project` from the first variable that is set: GPULSE_PROJECT, or one of those named, separated by commas."""
    named = (word.strip() for word in (_PROJECT, *variables.split(",")))
    found = next((text for word in named if word and (text := environ.get(word, "").strip())), "")
    return {"project": found[:_LONGEST]} if found else {}


def owner_of(cgroup: str, environ: dict[str, str]) -> dict[str, str]:
    """Return `container`, `pod`, `job` and the names of a Slurm job as far as they can be determined; both texts are untrusted."""
    owner: dict[str, str] = {}
    if found := _CONTAINER.search(cgroup):
        owner["container"] = found[1][:12]
    elif found := _LXC.search(cgroup):
        owner["container"] = found[1]
    if found := _POD.search(cgroup):
        host = environ.get("HOSTNAME", "") if "KUBERNETES_SERVICE_HOST" in environ else ""
        owner["pod"] = environ.get("POD_NAME") or host or found[1].replace("_", "-")
    if found := _SLURM.search(cgroup):
        owner["job"] = f"slurm:{found[1]}"
    else:
        for variable, system in _JOB_VARIABLES:
            if environ.get(variable):
                owner["job"] = f"{system}:{environ[variable]}"
                break
        else:
            if environ.get("JOB_ID") and any(name.startswith("SGE_") for name in environ):  # any program may set JOB_ID
                owner["job"] = f"sge:{environ['JOB_ID']}"
    if owner.get("job", "").startswith("slurm:"):
        owner |= {key: environ[variable] for key, variable in _SLURM_NAMES if environ.get(variable)}
    return owner


SOCKET = os.environ.get("GPULSE_POD_RESOURCES", "/var/lib/kubelet/pod-resources/kubelet.sock")
_METHOD = b"/v1.PodResourcesLister/List"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_ROOM = 1 << 24  # bytes the kubelet may send at once; a node with hundreds of pods answers some hundred KB
_PATIENCE = 1.0


class Assignment(Value):
    """Who was given a device: namespace, pod and container."""

    namespace: str
    pod: str
    container: str


def pod_resources(path: str = SOCKET) -> dict[str, list[Assignment]] | None:
    """Return who was given which device, by the device's id; None where no kubelet answers within a second.

    Devices of device plugins have the id that the plugin gave them, usually a UUID. Those that were claimed (dynamic resource allocation)
    have the id DRIVER/DEVICE, for instance gpu.nvidia.com/gpu-0, and the names by which the container runtime knows them.
    """
    if not os.path.exists(path):
        return None
    import socket  # not for the container of a process

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(path)
            found: dict[str, list[Assignment]] = {}
            for device, owner in _assignments(_call(connection)):
                found.setdefault(device, []).append(owner)
            return found
    except (OSError, ValueError, IndexError):
        return None


def _call(connection: socket.socket) -> bytes:
    """Make the call and return the message of its answer."""
    fields = (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", _METHOD), (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"),
    )  # fmt: skip
    window = b"\x00\x04" + _ROOM.to_bytes(4, "big")
    connection.sendall(
        _PREFACE
        + _frame(_SETTINGS, 0, 0, window)
        + _frame(_WINDOW, 0, 0, _ROOM.to_bytes(4, "big"))
        + _frame(_HEADERS, _END_HEADERS, 1, b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields))
        + _frame(_DATA, _END_STREAM, 1, bytes(5))
    )
    body = b""
    while True:
        kind, flags, stream, payload = _read_frame(connection)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            connection.sendall(_frame(_PING, _ACK, 0, payload))
        elif kind in (_RESET, _GOAWAY):
            raise ValueError("the kubelet ended the call")
        elif kind == _DATA and stream == 1:
            body += payload
        if stream == 1 and flags & _END_STREAM:
            break
    size = int.from_bytes(body[1:5], "big")
    if len(body) < 5 or body[0] or len(body) < 5 + size:
        raise ValueError("no whole message")
    return body[5 : 5 + size]


def _text(word: bytes) -> bytes:
    return bytes([len(word)]) + word  # shorter than 127 bytes, so that the length is one byte


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _read_frame(connection: socket.socket) -> tuple[int, int, int, bytes]:
    head = _receive(connection, 9)
    size = int.from_bytes(head[:3], "big")
    return head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, _receive(connection, size)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ValueError("the connection ended")
        data += more
    return data


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
    """Walk the texts and messages of one field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == 2:
            size, at = _varint(message, at)
            if key >> 3 == number:
                yield message[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number that is too long")
