"""The `gpulse serve` of another machine: it tells of the model servers on its GPUs, with rates and all."""

from __future__ import annotations

from ...model.catalog import SERVER_METRICS
from ..kind import MOST_MODELS, Figures, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Server

_LOOPBACK = ("127.", "[::1]", "localhost")


def read(body: bytes) -> list[Figures]:
    """Return the servers in an answer of /api/snapshot that run on that machine's GPUs.

    Those that it was told of are left out: two machines that name each other would repeat theirs forever.
    """
    import json

    from ...errors import RecordingError
    from ...model.codec import from_plain, time_text

    try:
        plain = json.loads(body)
        needed = {key: plain[key] for key in ("host", "serving", "schema") if key in plain}
        snapshot = from_plain(needed | {"time": time_text(0.0), "gpus": []})
    except (ValueError, TypeError, RecursionError, RecordingError):
        return []
    own = [server for server in snapshot.serving if server.gpus]
    return [_figures(server, snapshot.host.name or "") for server in own[:MOST_MODELS]]


def _figures(server: Server, host: str) -> Figures:
    endpoint = server.endpoint or ""
    if host and endpoint.startswith(_LOOPBACK):
        endpoint = f"{host}:{endpoint.rpartition(':')[2]}"
    figures = Figures(server.model or "", server.server or "", endpoint)
    moving = [key for key, metric in SERVER_METRICS.items() if metric.kind != "identity"]
    values = {key: server.get(key) for key in moving}
    figures.gauges = {key: value for key, value in values.items() if isinstance(value, (int, float))}
    if not figures.gauges:
        figures.gap = server.gaps.get("running")
    return figures


KIND = Kind("gpulse", path="/api/snapshot", ports=(9440,), read=read)
