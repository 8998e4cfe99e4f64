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
    "workers_0": Workload("inputs", 12, ("host_bound", "input_bound_cpu"), "preprocessing in the training process"),
    "workers_2": Workload("inputs", 16, ("input_bound_cpu", "host_bound"), "two loader workers are too few; 14 cores are idle"),
    "workers_16": Workload("inputs", 18, ("input_bound_cpu",), "all cores are busy with transforms and cannot feed the GPU"),
    "workers_enough": Workload("inputs", 16, ("healthy", "host_bound"), "the loader keeps up; the main thread is the next limit"),
    "tokenize_main": Workload("inputs", 16, ("host_bound",), "tokenizing in the main thread"),
    "storage_bound": Workload("inputs", 20, ("input_bound_io",), "loader workers wait for the disk"),
    "h2d_pinned": Workload("transfers", 12, ("transfer_bound",), "host-to-device copies from pinned memory at the link's speed"),
    "h2d_pageable": Workload("transfers", 12, ("transfer_bound",), "host-to-device copies from pageable memory"),
    "d2h_steps": Workload("transfers", 12, ("transfer_bound",), "device-to-host copies in every step"),
    "decode_1": Workload("serving", 12, ("memory_bandwidth",), "decoding one sequence: weights are read for each token"),
    "decode_32": Workload("serving", 12, ("memory_bandwidth",), "decoding 32 sequences: weights and KV cache"),
    "serving_rare": Workload("serving", 24, ("underused", "waiting"), "a server that waits for requests"),
    "notebook": Workload("serving", 24, ("idle_allocation",), "memory held, nothing running"),
    "checkpoint": Workload("stalls", 30, ("stalls",), "training stops to write a checkpoint"),
    "evaluation": Workload("stalls", 24, ("stalls",), "training stops for metrics on the CPU"),
    "two_jobs": Workload("sharing", 16, ("contention",), "a heavy and a lighter process share the GPU"),
    "light": Workload("sharing", 12, ("healthy", "waiting"), "the lighter process alone: bursts with pauses"),
    "jax_train": Workload("with_jax", 12, ("healthy",), "compute-bound on tensor cores; the memory is preallocated"),
    "jax_tokenize": Workload("with_jax", 12, ("host_bound",), "tokenizing in the main thread"),
    "jax_transfer": Workload("with_jax", 12, ("transfer_bound",), "host-to-device copies in every step"),
    "jax_dispatch": Workload("with_jax", 12, ("launch_bound",), "operations dispatched one by one"),
    "jax_idle": Workload("with_jax", 12, ("idle_allocation",), "preallocated memory, nothing running"),
    "python_metric": Workload("everyday", 14, ("host_bound",), "a metric in plain Python after each step"),
    "print_each_step": Workload("everyday", 14, ("launch_bound", "host_bound"), "many values read back and formatted in each step of a small model"),
    "string_building": Workload("everyday", 14, ("host_bound",), "text is built and parsed in the training thread"),
    "loader_0": Workload("everyday", 14, ("host_bound",), "images are decoded in the training thread"),
    "loader_1": Workload("everyday", 14, ("input_bound_cpu",), "one loader worker is always behind"),
    "loader_4": Workload("everyday", 14, ("input_bound_cpu",), "four loader workers, each at 100 % of a core"),
    "loader_sleep_0": Workload("everyday", 14, ("waiting",), "samples wait for far storage in the training thread"),
    "loader_sleep_4": Workload("everyday", 14, ("waiting",), "four workers wait for far storage"),
    "thread_pool": Workload("everyday", 14, ("input_bound_cpu",), "threads of the program prepare batches too slowly"),
    "tokenize_collate": Workload("everyday", 14, ("host_bound",), "tokenizing in collate_fn without workers"),
    "far_storage": Workload("everyday", 14, ("waiting",), "each batch waits for far storage"),
    "slow_producer": Workload("everyday", 14, ("waiting",), "a queue that another thread fills too slowly"),
    "remote_batches": Workload("everyday", 14, ("waiting",), "batches come slowly over a socket"),
    "read_disk": Workload("everyday", 14, ("input_bound_io",), "each batch is read from disk past the page cache"),
    "save_torch": Workload("everyday", 20, ("stalls",), "training stops to write a checkpoint"),
    "save_pickle": Workload("everyday", 20, ("stalls",), "training stops while one core serializes the weights"),
    "validate_python": Workload("everyday", 26, ("stalls",), "training stops 1.8 s of every 6 s for metrics in Python"),
    "reinforcement": Workload("everyday", 14, ("host_bound", "launch_bound"), "a simulator in Python asks a small policy for each action"),
    "big_simulator": Workload("everyday", 14, ("host_bound",), "a simulator in Python between training steps"),
    "producer_process": Workload("everyday", 14, ("input_bound_cpu",), "one other process prepares batches at 100 % of a core"),
    "warm_up": Workload("everyday", 14, ("starting",), "a program that has not reached its steady work"),
    "load_weights": Workload("everyday", 14, ("loading", "transfer_bound", "starting"), "weights are copied to the GPU"),
    "slow_epoch_leak": Workload("everyday", 20, ("memory_leak",), "1 GiB is kept every 2 s of healthy training"),
    "growing_cache": Workload("everyday", 14, ("healthy",), "a cache that grows quickly and then not at all"),
    "accumulate": Workload("everyday", 14, ("healthy",), "healthy training that reads a value back now and then"),
    "attention_long": Workload("everyday", 14, ("healthy",), "attention on tensor cores"),
    "softmax_rows": Workload("everyday", 14, ("memory_bandwidth",), "elementwise and row-wise kernels over large tensors"),
    "small_mlp": Workload("everyday", 14, ("launch_bound",), "a small network with many small kernels"),
    "offload_pinned": Workload("everyday", 14, ("transfer_bound",), "weights are streamed from pinned memory"),
    "offload_pageable": Workload("everyday", 14, ("transfer_bound",), "weights are streamed from ordinary memory"),
    "results_to_host": Workload("everyday", 14, ("transfer_bound",), "large results are copied to the host after each step"),
    "api_server": Workload("everyday", 16, ("underused",), "a server with a request every 1.5 s"),
    "fp32_conv": Workload("everyday", 14, ("fp32_no_tensor",), "a convnet in fp32 without tensor cores"),
    "decode_small_eager": Workload("everyday", 14, ("launch_bound",), "token by token with a small model"),
    "cpu_beside": Workload("everyday", 14, ("starting", "host_bound"), "a model that stayed on the CPU"),
}
# fmt: on
