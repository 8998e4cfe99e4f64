"""Model servers as text: one line that says what a server does, in the same order everywhere."""

from __future__ import annotations

from ..analysis.readings import activity
from ..model.catalog import Server
from ..units import duration_text
from .cells import severity
from .cost import money_text
from .line import Line
from .quantities import rate_text, seconds_text
from .text import clean, width
from .words import label, ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.catalog import Gpu
    from ..model.snapshot import Snapshot
    from .theme import Theme

    Piece = tuple[str, str]

_TELLING = 0.01  # errors per second from which they are worth a word


def model_name(server: Server) -> str:
    """Return what a model is called, short: Qwen/Qwen3-32B is Qwen3-32B; the kind of server where it has no name."""
    return clean((server.model or server.server or "model server").rstrip("/").rpartition("/")[2])


def serving_pieces(server: Server) -> list[Piece]:
    """Return what a server does as texts with styles, the most important first: tokens, queue, cache, latency, efficiency."""
    does = activity(server)
    named = [(model_name(server), "title")]
    if does == "silent":
        return [*named, (f"{server.server or 'the server'} does not answer", "critical")]
    pieces = [*named]
    if does == "stuck":
        pieces.append((f"stuck: no token for {duration_text(server.idle_time or 0.0)}", "critical"))
    elif does == "idle":
        pieces.append((f"no traffic for {duration_text(server.idle_time or 0.0)}", "label"))
    elif server.generation_rate is not None:
        pieces.append((f"{rate_text(server.generation_rate)} tok/s", "calm"))
    if does != "idle" and server.running is not None:
        pieces.append((queue_text(server), "warn" if server.waiting else "calm"))
    elif does != "idle" and server.waiting is not None:
        pieces.append((f"{server.waiting:.0f} waiting", "warn" if server.waiting else "calm"))
    if server.kv_cache is not None:
        pieces.append((f"KV {server.kv_cache:.0f} %", severity(Server.kv_cache, server) or "calm"))
    if server.first_token_p95 is not None:
        pieces.append((f"first token p95 {seconds_text(server.first_token_p95)}", "calm"))
    if does == "serving" and server.tokens_per_joule is not None:
        pieces.append((f"{server.tokens_per_joule:.3g} tok/J", "calm"))
    if does == "serving" and server.cost_per_million is not None:
        pieces.append((f"{money_text(server.cost_per_million)} per M tok", "calm"))
    if server.error_rate and server.error_rate >= _TELLING:
        pieces.append((f"{rate_text(server.error_rate)} errors/s", "critical" if server.error_rate >= 1 else "warn"))
    if len(pieces) == 1 and server.server and server.model:
        pieces.append((f"loaded by {server.server}", "label"))
    return pieces


def queue_text(server: Server) -> str:
    """Return how many requests run and wait."""
    waiting = "" if server.waiting is None else f", {server.waiting:.0f} waiting"
    return f"{server.running or 0:.0f} running{waiting}"


def serving_text(server: Server) -> str:
    """Return what a server does, as one line of plain text."""
    return " · ".join(text for text, _ in serving_pieces(server))


def place_text(server: Server, gpus: Sequence[Gpu]) -> str:
    """Return the numbers of the GPUs of a server, or its address if it has none here."""
    return ranges(labels_of(server, gpus)) or clean(server.endpoint or "")


def labels_of(server: Server, gpus: Sequence[Gpu]) -> list[str]:
    """Return the numbers of the GPUs that a server or a part of it runs on."""
    own = set(server.gpus or ())
    return [label(gpu) for gpu in gpus if any(part.uuid in own for part in (gpu, *gpu.instances))]


def server_lines(snapshot: Snapshot, theme: Theme, columns: int) -> list[Line]:
    """Return a line for each server, led by the numbers of its GPUs; what does not fit is left out, the least important first."""
    places = [place_text(server, snapshot.gpus) for server in snapshot.serving]
    widest = max(map(width, places), default=0)
    dot = theme.glyph(" · ", " | ")
    lines: list[Line] = []
    for server, place in zip(snapshot.serving, places, strict=True):
        line = Line().add(place, "accent", widest).add(" ")
        for at, (text, style) in enumerate(serving_pieces(server)):
            if at and line.width + len(dot) + width(text) > columns:
                break
            line.add(dot if at else "", "label").add(text, style)
        lines.append(line)
    return lines
