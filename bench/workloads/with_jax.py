"""The same kinds of bottleneck in JAX."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from .run import Run
from .text import pieces, sample_text, tokenize


def _trainer(run: Run, batch: int = 8192) -> Callable[[], None]:
    """Return one jitted training step of an 8-layer perceptron in bf16, compiled and warmed up."""
    width = run.size(8192, 32)
    keys = jax.random.split(jax.random.PRNGKey(0), 8)
    weights = [jax.random.normal(key, (width, width), jnp.bfloat16) * 0.01 for key in keys]
    x = jax.random.normal(keys[0], (run.size(batch, 4), width), jnp.bfloat16)

    def loss(weights: list[Any], x: Any) -> Any:
        for weight in weights:
            x = jax.nn.relu(x @ weight)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    @jax.jit  # type: ignore[untyped-decorator]
    def update(weights: list[Any], x: Any) -> list[Any]:
        return [weight - 1e-4 * slope for weight, slope in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    held = [weights]

    def step() -> None:
        held[0] = update(held[0], x)
        jax.block_until_ready(held[0])

    step()
    return step


def jax_train(run: Run) -> None:
    """Train a perceptron in bf16 with JAX, which takes three quarters of the memory at its start."""
    step = _trainer(run)
    for _ in run.steps():
        step()


def jax_tokenize(run: Run) -> None:
    """Train with JAX and tokenize each batch in the main thread."""
    text = sample_text()
    vocabulary = pieces(text)
    step = _trainer(run, batch=1024)
    for _ in run.steps():
        for _ in range(run.size(3, 1)):
            tokenize(text[: run.size(len(text), 200)], vocabulary)
        step()


def jax_transfer(run: Run) -> None:
    """Send 256 MiB of numpy data to the device in each step of JAX."""
    data: Any = numpy.ones(run.size(1 << 26, 64), dtype=numpy.float32)
    double = jax.jit(lambda x: (x * 2).sum())
    for _ in run.steps():
        double(jax.device_put(data)).block_until_ready()


def jax_dispatch(run: Run) -> None:
    """Run small JAX operations one by one, outside jit."""
    x = jnp.ones(1024)
    for _ in run.steps():
        for _ in range(100):
            x = x * 0.999 + 0.001
        x.block_until_ready()


def jax_idle(run: Run) -> None:
    """Hold what JAX preallocates and do nothing."""
    jnp.ones(1024).block_until_ready()
    for _ in run.steps():
        time.sleep(0.2)
