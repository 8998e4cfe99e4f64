"""Servers of models are told from other programs by whole words of their command lines."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import Process
from gpulse.model.serving import preallocates, serves


@pytest.mark.parametrize(
    ("name", "command", "server", "pool"),
    [
        ("python3", "python -m vllm.entrypoints.openai.api_server --model m", True, True),
        ("VLLM::EngineCore", "", True, True),
        ("python3", "python -m sglang.launch_server", True, True),
        ("tritonserver", "/opt/tritonserver/bin/tritonserver", True, True),
        ("trtllm-serve", "trtllm-serve /models/m", True, True),
        ("text-generation-server", "", True, True),
        ("tensorflow_model_server", "", True, True),
        ("ollama", "ollama runner", True, False),
        ("llama-server", "", True, False),
        ("python3", "uvicorn app:app", True, False),
        ("ray::ServeReplica:m", "", True, False),
        ("python3", "python train_jax.py", False, True),
        ("python3", "python observe.py", False, False),
        ("python3", "python train_triton.py", False, False),
        ("python3", "python train.py --data /home/steve/ajax", False, False),
    ],
)
def test_a_server_is_known_by_its_words(name: str, command: str, server: bool, pool: bool) -> None:
    process = Process({"pid": 1, "name": name, "command": command})
    assert (serves(process), preallocates(process)) == (server, pool)


def test_no_process_is_no_server() -> None:
    assert not serves(None)
    assert not preallocates(Process({"pid": 1}))
