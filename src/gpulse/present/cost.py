"""Texts about what work costs and delivers: money, carbon, FLOP/s, throughput, and model servers."""

from __future__ import annotations

from ..analysis.readings import activity
from ..model.catalog import Server
from ..units import duration_text
from .cells import energy_text, rate_text, seconds_text, severity
from .line import Line
from .text import clean, width
from .words import label, ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..analysis.energy import Cost
    from ..analysis.summary import Mfu, Summary
    from ..model.catalog import Gpu
    from ..model.serving import Tariff
    from ..model.snapshot import Snapshot
    from .theme import Theme

    Piece = tuple[str, str]

_SMALL = 0.1  # amounts below have three digits instead of two decimals


def cost_text(cost: Cost) -> str:
    """Return a cost on one line: cost 1.23 EUR (GPU time 1.20, energy 0.030), of that idle 0.40 · 12.3 g CO2e."""
    parts = []
    if cost.total is not None:
        both = cost.gpu_time is not None and cost.energy is not None
        split = f" (GPU time {money_text(cost.gpu_time)}, energy {money_text(cost.energy)})" if both else ""
        idle = "" if cost.idle is None else f", of that idle {money_text(cost.idle)}"
        parts.append(f"cost {money_text(cost.total, cost.currency)}{split}{idle}")
    if cost.carbon is not None:
        parts.append(carbon_text(cost.carbon))
    estimated = cost.estimated and (cost.energy is not None or cost.carbon is not None)
    return " · ".join(parts) + (" · energy estimated from power" if estimated and parts else "")


def money_text(amount: float | None, currency: str = "") -> str:
    """Return an amount: 1,234.50 EUR, 0.42, 0.0123; a dash if unknown."""
    if amount is None:
        return "–"
    number = f"{amount:,.2f}" if amount >= _SMALL or not amount else f"{amount:.3g}" if amount >= 1e-4 else "<0.0001"
    return f"{number} {clean(currency)}" if currency else number


def carbon_text(grams: float | None) -> str:
    """Return an amount of CO2e: 12.3 g CO2e, 4.56 kg CO2e; a dash if unknown."""
    if grams is None:
        return "–"
    return f"{grams / 1000:,.2f} kg CO2e" if grams >= 1000 else f"{grams:.3g} g CO2e"


def cost_heads(tariff: Tariff) -> tuple[str, ...]:
    """Return the titles of the columns of cost that the prices allow; idle GPU time stands apart."""
    unit = f" ({clean(tariff.currency)})" if tariff.currency else ""
    priced = tariff.price is not None or tariff.gpu_price is not None
    heads = (f"COST{unit}", f"IDLE COST{unit}") if priced else ()
    return heads if tariff.carbon is None else (*heads, "CO2e")


def cost_cells(cost: Cost | None, tariff: Tariff) -> tuple[str, ...]:
    """Return these columns for one cost; dashes without one."""
    total, idle, carbon = (None, None, None) if cost is None else (cost.total, cost.idle, cost.carbon)
    priced = tariff.price is not None or tariff.gpu_price is not None
    cells = (money_text(total), money_text(idle)) if priced else ()
    return cells if tariff.carbon is None else (*cells, carbon_text(carbon))


_MANY = 1e5  # items from which the price of a million is told, since that of one has too many zeros
_PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))


def flops_text(per_second: float) -> str:
    """Return a rate of floating-point operations: 412 TFLOP/s."""
    prefix, size = next(((name, size) for name, size in _PREFIXES if per_second >= size), ("", 1.0))
    return f"{rate_text(per_second / size)} {prefix}FLOP/s"


def mfu_text(mfu: Mfu) -> str:
    """Return a utilization with its rate: "MFU 41 % (406 TFLOP/s)", or the rate and why there is no utilization."""
    rate = "" if mfu.rate is None else flops_text(mfu.rate)
    if mfu.percent is None:
        return f"{rate}{', ' if rate else ''}no MFU: {mfu.reason}"
    return f"MFU {mfu.percent:.3g} % ({rate})"


def throughput_parts(summary: Summary) -> Iterator[str]:
    """Yield what a run processed per second, its model FLOPs utilization, and the energy of each item."""
    for name, rate, count in counted(summary):
        energy = summary.energy_per(count)
        each = "" if energy is None else f" ({energy_text(energy)} each)"
        yield f"{rate_text(rate)} {name}s/s{each}"
    if summary.mfu is not None:
        yield mfu_text(summary.mfu)


def counted(summary: Summary) -> Iterator[tuple[str, float, float]]:
    """Yield what the program counted beside steps: item or token, how many per second, and how many in all."""
    for name, rate, count in (
        ("item", summary.items_per_second, summary.items),
        ("token", summary.tokens_per_second, summary.tokens),
    ):
        if rate is not None:
            yield name, rate, count


def unit_costs(summary: Summary, cost: Cost) -> dict[str, str]:
    """Return what each item and each token cost, or a million of them where there were many, by name; empty without prices."""
    if cost.total is None:
        return {}
    found = {}
    for name, _, count in counted(summary):
        many = count >= _MANY
        amount = money_text(cost.total / count * (1e6 if many else 1.0), cost.currency)
        found[name] = f"{amount} per {f'million {name}s' if many else name}"
    return found


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
