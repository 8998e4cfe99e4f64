"""Ollama: it says only which models are loaded."""

from __future__ import annotations

from ..kind import MOST_MODELS, Figures, Kind


def read(body: bytes) -> list[Figures]:
    """Return the loaded models of an answer of /api/ps; nothing of one that is something else."""
    import json

    try:
        plain = json.loads(body)
    except (ValueError, RecursionError):
        return []
    models = plain.get("models") if isinstance(plain, dict) else None
    named = [
        model.get("name") or model.get("model")
        for model in (models[:MOST_MODELS] if isinstance(models, list) else ())
        if isinstance(model, dict)
    ]
    return [Figures(name) for name in named if isinstance(name, str)]


KIND = Kind("ollama", path="/api/ps", ports=(11434,), read=read)
