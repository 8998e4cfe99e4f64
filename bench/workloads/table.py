"""Every workload: where it is, how long it runs, what an expert would say of it, and which verdicts are right."""

from __future__ import annotations

from typing import NamedTuple


class Workload(NamedTuple):
    """One row. `verdicts`: the first is the best answer, the others are acceptable."""

    module: str
    seconds: float
    verdicts: tuple[str, ...]
    expert: str


# fmt: off
WORKLOADS = {
    "train_bf16": Workload("training", 12, ("healthy",), "compute-bound on tensor cores: healthy training"),
    "train_fp32": Workload("training", 12, ("fp32_no_tensor",), "compute-bound without tensor cores: use bf16 or TF32"),
    "conv_large": Workload("training", 12, ("healthy", "memory_bandwidth"), "busy convnet; batch norm and ReLU are limited by memory bandwidth"),
    "conv_batch2": Workload("training", 12, ("launch_bound", "small_batch"), "batch too small: the CPU launches kernels more slowly than they run"),
    "conv_batch2_graph": Workload("training", 12, ("small_batch",), "no launch cost, but kernels that fill a fraction of the SMs: batch too small"),
    "matmul_tf32": Workload("training", 12, ("healthy",), "compute-bound on tensor cores"),
    "matmul_fp64": Workload("training", 12, ("healthy",), "compute-bound in double precision, as it should be"),
    "tiny_eager": Workload("training", 12, ("launch_bound",), "kernels of microseconds, launched from Python"),
    "tiny_graph": Workload("training", 12, ("small_batch", "launch_bound"), "tiny kernels back to back: the GPU is busy with nothing; larger work per kernel"),
    "item_sync": Workload("training", 12, ("launch_bound",), "small kernels, and a wait for the GPU after each value read back"),
    "optimizer_step": Workload("memory", 12, ("memory_bandwidth",), "elementwise kernels: memory-bandwidth-bound"),
    "gather_words": Workload("memory", 12, ("memory_latency", "memory_bandwidth"), "random access: SMs wait for memory"),
    "embedding_bag": Workload("memory", 12, ("memory_latency", "memory_bandwidth", "unknown"), "random rows of an embedding table; on Hopper limited by integer address arithmetic"),
    "memory_full": Workload("memory", 16, ("memory_pressure",), "healthy compute, but 97 % of the memory is taken"),
    "slow_leak": Workload("memory", 24, ("memory_leak",), "healthy compute while memory grows steadily"),
    "out_of_memory": Workload("memory", 25, ("out_of_memory",), "the batch grew until CUDA was out of memory"),
    "workers_0": Workload("inputs", 12, ("input_bound_single_core", "input_bound_cpu"), "preprocessing in the training process"),
    "workers_2": Workload("inputs", 16, ("input_bound_cpu", "input_bound_single_core"), "two loader workers are too few; 14 cores are idle"),
    "workers_16": Workload("inputs", 18, ("input_bound_cpu",), "all cores are busy with transforms and cannot feed the GPU"),
    "workers_enough": Workload("inputs", 16, ("healthy", "input_bound_single_core"), "the loader keeps up; the main thread is the next limit"),
    "tokenize_main": Workload("inputs", 16, ("input_bound_single_core",), "tokenizing in the main thread"),
    "storage_bound": Workload("inputs", 20, ("input_bound_io",), "loader workers wait for the disk"),
    "h2d_pinned": Workload("transfers", 12, ("transfer_bound",), "host-to-device copies from pinned memory at the link's speed"),
    "h2d_pageable": Workload("transfers", 12, ("transfer_bound",), "host-to-device copies from pageable memory"),
    "d2h_steps": Workload("transfers", 12, ("transfer_bound",), "device-to-host copies in every step"),
    "decode_1": Workload("serving", 12, ("memory_bandwidth",), "decoding one sequence: weights are read for each token"),
    "decode_32": Workload("serving", 12, ("memory_bandwidth",), "decoding 32 sequences: weights and KV cache"),
    "serving_rare": Workload("serving", 24, ("underused",), "a server that waits for requests"),
    "notebook": Workload("serving", 24, ("idle_allocation",), "memory held, nothing running"),
    "checkpoint": Workload("stalls", 30, ("stalls",), "training stops to write a checkpoint"),
    "evaluation": Workload("stalls", 24, ("stalls",), "training stops for metrics on the CPU"),
    "two_jobs": Workload("sharing", 16, ("contention",), "a heavy and a lighter process share the GPU"),
    "light": Workload("sharing", 12, ("healthy", "underused"), "the lighter process alone: bursts with pauses"),
    "jax_train": Workload("with_jax", 12, ("healthy",), "compute-bound on tensor cores; the memory is preallocated"),
    "jax_tokenize": Workload("with_jax", 12, ("input_bound_single_core",), "tokenizing in the main thread"),
    "jax_transfer": Workload("with_jax", 12, ("transfer_bound",), "host-to-device copies in every step"),
    "jax_dispatch": Workload("with_jax", 12, ("launch_bound",), "operations dispatched one by one"),
    "jax_idle": Workload("with_jax", 12, ("idle_allocation",), "preallocated memory, nothing running"),
}
# fmt: on
