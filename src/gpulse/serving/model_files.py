"""How much memory the weights of a model take, and a token of its cache, by the files that a server has loaded: an estimate."""

from __future__ import annotations

import os

from ..sources.files import names, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .discovery import FoundServer

_WEIGHTS = (".safetensors", ".gguf")
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


class ModelFiles:
    """The files of one model: `weights` in bytes, and `token` bytes of the cache per token; None where they do not say."""

    __slots__ = ("token", "weights")

    def __init__(self, weights: float | None, token: float | None) -> None:
        self.weights = weights
        self.token = token

    def add_to(self, gauges: dict[str, float]) -> None:
        """Add the memory of weights and cache to the figures of a server, which may state the tokens its cache has room for."""
        if self.weights is not None:
            gauges["memory_weights"] = self.weights
        if self.token is not None and "capacity" in gauges:
            gauges["memory_cache"] = gauges["capacity"] * self.token


def model_files(server: FoundServer, root: str = "") -> ModelFiles | None:
    """Return the files of the model that a server of this user was started with; None if they are not found."""
    model = server.path
    if not model:
        return None
    for folder in _folders(model, _environ(server.pid, root), _working_folder(server.pid, root)):
        if os.path.isfile(folder):
            return ModelFiles(os.path.getsize(folder), None)
        sizes = [_size(os.path.join(folder, name)) for name in names(folder) if name.endswith(_WEIGHTS)]
        if sizes:
            return ModelFiles(float(sum(sizes)), _token_bytes(os.path.join(folder, "config.json"), server.command))
    return None


def _folders(model: str, environ: dict[str, str], working: str) -> list[str]:
    """Return where the model may be: a path, or the cache of Hugging Face's hub."""
    if model.startswith(("/", ".", "~")) or model.endswith(".gguf"):
        return [os.path.join(working, os.path.expanduser(model))]
    home = environ.get("HF_HOME") or os.path.join(environ.get("HOME", ""), ".cache/huggingface")
    hub = environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    snapshots = os.path.join(hub, f"models--{model.replace('/', '--')}", "snapshots")
    return [os.path.join(working, model), *(os.path.join(snapshots, name) for name in names(snapshots))]


def _token_bytes(path: str, command: str) -> float | None:
    """Return the bytes that one token takes in the cache: keys and values of all layers."""
    import json

    try:
        config: Any = json.loads(read_bytes(path, 1 << 20) or b"")
        config = config.get("text_config", config)
        layers = int(config["num_hidden_layers"])
        if "kv_lora_rank" in config:  # latent attention keeps one vector instead of keys and values
            width = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
        else:
            heads = int(config["num_attention_heads"])
            size = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
            width = 2 * int(config.get("num_key_value_heads") or heads) * size
        kept = command.partition("--kv-cache-dtype")[2].lstrip(" =").partition(" ")[0]
        kind = kept if kept in _BYTES else str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
        return float(layers * width * _BYTES.get(kind, 2))
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError):
        return None


def _environ(pid: int, root: str) -> dict[str, str]:
    content = (read_bytes(f"{root}/proc/{pid}/environ", 1 << 18) or b"").decode("utf-8", "replace")
    return dict(entry.partition("=")[::2] for entry in content.split("\0") if entry)


def _working_folder(pid: int, root: str) -> str:
    try:
        return os.readlink(f"{root}/proc/{pid}/cwd")
    except OSError:
        return "/"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
