"""Texts of evidence and advice of verdicts."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, HOST_METRICS, SERVER_METRICS
from ..units import duration_text, size_text
from .cells import THROTTLE, value_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.verdict import Evidence, Plain

# What a thread does, by its state.
THREADS = {
    "running": "runs", "disk": "waits for a disk", "lock": "waits for a lock or queue", "sleep": "sleeps",
    "network": "waits for a socket", "poll": "waits for events", "pipe": "waits for a pipe", "driver": "is in the driver",
    "waiting": "waits", "stopped": "is stopped",
}  # fmt: skip
# Numbers that the diagnosis derives: the words before the number, and its kind.
FIGURES: dict[str, tuple[str, str]] = {
    "busy": ("time with a kernel running", "percent"),
    "idle_share": ("time in pauses of 0.2 s or more", "percent"),
    "fill": ("SMs active while a kernel runs", "percent"),
    "thread_share": ("GPU waits for one thread", "percent"),
    "workers_share": ("GPU waits for workers", "percent"),
    "storage_share": ("GPU waits for storage", "percent"),
    "outside_share": ("GPU waits for something outside", "percent"),
    "network_share": ("GPU waits for the network", "percent"),
    "launch_share": ("launching and small kernels", "percent"),
    "copy_share": ("copies without computing", "percent"),
    **{f"thread_{state}": (f"samples in which the thread {does}", "percent") for state, does in THREADS.items()},
    "workers_blocked": ("workers that wait for a disk", "number"),
    "running_time": ("running for", "duration"),
    "cpu_main": ("CPU of the process", "cores"),
    "cpu_tree": ("CPU of process and children", "cores"),
    "cpu_per_worker": ("CPU per worker", "cores"),
    "workers": ("child processes", "count"),
    "host_cpu": ("all CPUs of the machine", "percent"),
    "tree_share": ("CPU of the program, of all cores", "percent"),
    "iowait_cores": ("CPUs waiting for disks", "cores"),
    "read_rate": ("read from storage", "rate"),
    "write_rate": ("written to storage in the pauses", "rate"),
    "link_share": ("share of the PCIe link", "percent"),
    "power_share": ("power, of the limit", "percent"),
    "clock_share": ("SM clock, of its maximum", "percent"),
    "throttled_share": ("time throttled", "percent"),
    "power_capped_share": ("time at the power cap", "percent"),
    "applications_clocks": ("time with clocks set by a user", "percent"),
    "gap_share": ("time lost in pauses", "percent"),
    "gap_seconds": ("length of a pause", "seconds"),
    "gap_count": ("pauses", "count"),
    "period": ("time from pause to pause", "seconds"),
    "memory_growth": ("memory growth", "rate"),
    "rising_steps": ("steps by which memory rose", "count"),
    "process_memory": ("memory of the process", "size"),
    "memory_rise": ("memory gained in its last seconds", "size"),
    "computing_processes": ("processes computing at once", "count"),
    "process_sm": ("SM share of a process", "percent"),
    "spinning_gpus": ("GPUs of the job that spin", "count"),
    "window_seconds": ("for", "seconds"),
    "peer_clock": ("SM clock of the other GPUs", "clock"),
    "peer_tensor": ("tensor cores of the other GPUs", "percent"),
    "peer_busy": ("time with a kernel running on the other GPUs", "percent"),
    "peers": ("other GPUs of the job", "count"),
    "running": ("running requests", "count"),
    "waiting": ("waiting requests", "count"),
    "idle_time": ("without a token for", "duration"),
    "first_token_p95": ("first token, p95", "seconds"),
    "generation_rate": ("generated tokens per second", "count"),
    "prompt_rate": ("prompt tokens per second", "count"),
    "preemption_rate": ("preemptions per second", "number"),
    "preempted_share": ("preemptions per 100 finished requests", "count"),
    "data_wait": ("time the program waited for data", "percent"),
    "state_asleep": ("time asleep", "duration"),
    "state_lost": ("time lost from the bus", "duration"),
    "state_timeout": ("time without an answer", "duration"),
}


def evidence_text(evidence: Evidence) -> str:
    """Return a number as text with the threshold it passed: "SM active 4 % (below 40 %)"."""
    name = figure_name(evidence.metric)
    text = f"{name[:1].upper()}{name[1:]} {figure_text(evidence.metric, evidence.value)}"
    limit = limit_text(evidence)
    return f"{text} ({limit})" if limit else text


def figure_name(metric: str) -> str:
    """Return the words for a number: the title of a catalog metric, or those of a figure of the diagnosis."""
    label = FIGURES.get(metric, ("", ""))[0]
    known = GPU_METRICS.get(metric) or HOST_METRICS.get(metric) or SERVER_METRICS.get(metric)
    return label or (known.title if known is not None else metric.replace("_", " "))


def limit_text(evidence: Evidence, above: str = "at least", below: str = "below") -> str:
    """Return the threshold that a number passed: "at least 80 %"; empty if there is none."""
    if evidence.threshold is None or evidence.side == "seen":
        return ""
    return f"{above if evidence.side == 'above' else below} {figure_text(evidence.metric, evidence.threshold)}"


def figure_text(metric: str, value: Plain) -> str:
    """Return a value of a catalog metric or of a figure of the diagnosis, with its unit."""
    if value is None:
        return "-"
    if metric == "throttle_reasons" and isinstance(value, tuple):
        return ", ".join(THROTTLE.get(str(word), str(word)) for word in value)
    if isinstance(value, tuple):
        return ", ".join(figure_text(metric, one) for one in value)
    if isinstance(value, str):
        return value
    kind = FIGURES.get(metric, ("", ""))[1]
    if kind:
        return _number(kind, value)
    known = GPU_METRICS.get(metric) or HOST_METRICS.get(metric) or SERVER_METRICS.get(metric)
    if known is None:
        return f"{value:g}"
    if known.unit.symbol == "B/s":
        return _number("rate", value)
    return value_text(known, value) if known.unit.symbol != "%" else _number("percent", value)


def _number(kind: str, value: float) -> str:
    if kind == "percent":
        return f"{value:.0f} %" if value >= 10 or value == int(value) else f"{value:.1f} %"
    if kind == "cores":
        return f"{value:.1f} cores"
    if kind == "rate":
        return f"{value / 1e9:.1f} GB/s" if value >= 1e9 else f"{value / 1e6:.0f} MB/s"
    if kind == "size":
        return size_text(value)
    if kind == "seconds":
        return f"{value:.1f} s" if value < 100 else duration_text(value)
    if kind == "duration":
        return duration_text(value) if value >= 1 else f"{value:.1f} s"
    if kind == "clock":
        return f"{value:.0f} MHz"
    return f"{value:.1f}" if kind == "number" else f"{value:.0f}"


ADVICE: dict[str, str] = {
    # feeding
    "loader_workers": "If it prepares data, do that in parallel: DataLoader(num_workers=N), N up to the number of free cores.",
    "more_workers": "Add loader workers (num_workers) as long as CPUs are free; set persistent_workers=True.",
    "tokenize_ahead": "Tokenize or decode once, ahead of training, and store the result (datasets.map, WebDataset).",
    "gpu_transforms": "Move decoding and augmentation to the GPU: torchvision v2 transforms on CUDA tensors, DALI, Kornia.",
    "precompute": "Store decoded, resized or tokenized samples so that each epoch does not repeat the work.",
    "fewer_threads": "Run less beside it: fewer loader workers and threads (OMP_NUM_THREADS), no other programs, a larger CPU quota.",
    "more_cores": "Give the job more CPU cores; vision training often needs 3 to 24 per GPU.",
    "local_copy": "Copy the dataset to a local NVMe disk, or to /dev/shm if it fits, before training.",
    "larger_shards": "Read large shards sequentially (WebDataset, tar, Parquet, MDS) instead of many small files.",
    "pin_memory": "Use pinned memory and asynchronous copies: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
    "smaller_copies": "Copy fewer bytes: send uint8 or bf16 and convert on the GPU.",
    "prefetch": "Copy the next batch on a second CUDA stream while the current one computes.",
    "keep_on_gpu": "Keep on the GPU what is used again: dataset, caches, optimizer state.",
    "fewer_downloads": "Copy fewer results to the host: reduce on the GPU, fetch metrics every N steps.",
    "async_copy": "Copy results with non_blocking=True into pinned buffers and read them a step later.",
    "cuda_graphs": "Launch many kernels at once: torch.compile(mode='reduce-overhead') or CUDA graphs; jax.jit around the whole step.",
    "fused_optimizer": "Use a fused optimizer (AdamW(fused=True)) and fused kernels.",
    "fewer_syncs": "Remove .item(), .cpu() and print of tensors from the loop: each waits for the GPU.",
    "larger_batch": "Use a larger batch (or less gradient accumulation): there is room on the chip.",
    "pack_sequences": "Pack short sequences together instead of padding them.",
    "several_processes": "Run several such jobs on this GPU with MPS, or use a MIG slice.",
    "profile_host": "See which lines keep the GPU waiting: gpulse why PID, or gpulse.Monitor in the program.",
    "async_checkpoint": "Write checkpoints in the background: torch.distributed.checkpoint.async_save, or a thread that saves a CPU copy.",
    "local_checkpoint": "Save to a local disk first and copy to shared storage afterwards.",
    "checkpoint_less": "Save less often, and only what is needed to resume.",
    "evaluate_less": "Evaluate less often, on fewer batches, or in another job.",
    "log_async": "Log from a background thread and every N steps.",
    "smaller_gpu": "Use a smaller GPU or a MIG slice for this service.",
    "watch_processes": "Watch it live with `gpulse why`, or record processes too: gpulse record -p.",
    "share_gpu": "Put other work on the same GPU (MPS), or scale to zero while idle.",
    "batch_requests": "Batch requests on the server so that each pass serves several.",
    # model servers
    "server_log": "Look at the server's log and at its health page; restart it if a worker has died.",
    "more_cache": "Make room for the cache: quantized weights or cache (--kv-cache-dtype fp8), a larger share of the memory, more GPUs.",
    "shorter_requests": "Limit the length of requests (--max-model-len) and of answers (max_tokens).",
    "more_replicas": "Add a replica of the server and spread the requests.",
    "fewer_running": "Let fewer requests run at once (vLLM: --max-num-seqs, SGLang: --max-running-requests).",
    "raise_running": "Raise the limit of running requests (vLLM: --max-num-seqs, --max-num-batched-tokens) as long as the cache has room.",
    "server_cpus": "Give the server more CPU cores: tokenizing and scheduling run on the CPU.",
    "server_processes": "Run several API processes (vLLM: --api-server-count) or tokenize in the client.",
    "speculative": "Use speculative decoding while the batch is small.",
    "prefix_cache": "Share prefixes: prefix caching on, and the common part of prompts first.",
    "chunked_prefill": "Mix prompts with decoding in chunks (vLLM: --enable-chunked-prefill, a smaller --max-num-batched-tokens).",
    "split_prefill": "Serve prefill and decode on different GPUs.",
    # device
    "fuse": "Fuse elementwise work: torch.compile, or fused kernels (fused layer norm, fused AdamW).",
    "attention": "Use FlashAttention or torch scaled_dot_product_attention.",
    "half_precision": "Use bf16 where fp32 is not needed: half the bytes; channels_last for convolutions.",
    "decode_batch": "For token generation: a larger batch, quantized weights or a quantized KV cache.",
    "tf32": "Allow TF32: torch.set_float32_matmul_precision('high').",
    "bf16": "Use mixed precision: torch.autocast('cuda', dtype=torch.bfloat16).",
    "tensor_shapes": "Keep matrix sizes multiples of 8 (16 for fp8) so that tensor cores apply.",
    "sort_indices": "Make access local: sort or group indices, lay data out in the order it is read.",
    "fuse_gathers": "Fuse lookups with what follows them; use fused embedding tables (FBGEMM, TorchRec).",
    "profile_kernel": "Profile a few steps: torch.profiler with the HTA, or nsys profile; ncu for a single kernel.",
    "check_tensor": "Without GPM counters tensor cores cannot be seen: check that bf16 or TF32 is on.",
    # memory
    "smaller_batch": "Reduce the batch size (first choice).",
    "accumulate": "Keep the effective batch with gradient accumulation.",
    "checkpointing": "Use activation checkpointing (torch.utils.checkpoint) and bf16.",
    "expandable_segments": "Against fragmentation: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    "other_tenants": "Other processes hold memory on this GPU: wait for it to be free, or choose another (`gpulse run`).",
    "detach_loss": "Do not keep graphs alive: accumulate loss.item() or loss.detach(), not loss.",
    "eval_no_grad": "Evaluate under torch.inference_mode() and do not collect outputs on the GPU.",
    "memory_snapshot": "Find the allocations: torch.cuda.memory._record_memory_history() and _dump_snapshot().",
    # ownership
    "move_job": "Move one of the jobs to another GPU (`gpulse pick` lists free ones).",
    "mps": "If they must share, start NVIDIA MPS: without it they take turns.",
    "mig": "Or split the GPU with MIG so that neither slows the other.",
    "run_lock": "Start jobs with `gpulse run`: it waits for a free GPU and claims it.",
    "close_notebook": "Shut the notebook kernel or the process down if it is not needed any more.",
    "release_memory": "Or free the memory between uses: del tensors, torch.cuda.empty_cache().",
    "idle_alert": "`gpulse serve` can alert when memory is held without work (rule `idle_allocation`).",
    "find_holders": "List who has the device open: sudo fuser -v /dev/nvidia*.",
    "zombie": "End left-over workers of a dead job; a process in state D waits for a dead mount.",
    "gpu_reset": "If no process uses it, reset the GPU (on NVIDIA: nvidia-smi --gpu-reset).",
    # limits
    "cooling": "Check fans, airflow and inlet temperature of the machine.",
    "lower_power_limit": "A lower power limit (on NVIDIA: nvidia-smi -pl WATTS) runs cooler and often costs little speed.",
    "power_cables": "Check power supply, cables and the chassis power budget.",
    "raise_power_limit": "Raise the limit to the default if power and cooling allow (on NVIDIA: nvidia-smi -pl WATTS).",
    "reset_clocks": "Release locked clocks (on NVIDIA: nvidia-smi -rgc and nvidia-smi -rac).",
    "persistence_mode": "Check the power profile and persistence mode of the machine.",
    "reseat": "Reseat the GPU; check riser, slot and cable.",
    "bios_slot": "Check BIOS bifurcation and that the slot has all lanes.",
    # several GPUs
    "accumulate_gradients": "Exchange less often: larger batch per GPU or gradient accumulation (no_sync).",
    "overlap": "Overlap exchange with the backward pass: DDP bucket_cap_mb, FSDP backward_prefetch.",
    "nccl_transport": "Check that NCCL uses NVLink: NCCL_DEBUG=INFO, `nvidia-smi topo -m`.",
    "fix_slow_gpu": "Find out what slows this GPU: temperature, power limit, locked clocks, PCIe link.",
    "balance_data": "Give every rank the same amount of data; check its loader and CPU affinity.",
    "drop_node": "Take the slow GPU out of the job until it is repaired.",
    "rank_stacks": "See where each rank is: gpulse stacks PID --children, with the PID of the launcher.",
    "nccl_debug": "Set TORCH_NCCL_TRACE_BUFFER_SIZE and a timeout: the NCCL flight recorder names the collective.",
    "check_peers": "Look for a rank that died or an XID on any GPU of the job.",
    # faults
    "gpu_lost": "The GPU has fallen off the bus: drain the node and reboot it; if it comes back, have the board checked.",
    "kernel_log": "The kernel log has the details: sudo dmesg | grep -i -e xid -e nvrm.",
    "xid": "Do what NVIDIA recommends for this XID.",
    "ecc": "Restart the application; reset the GPU so that bad rows are remapped; replace it if errors return.",
    "driver_hang": "Look for processes in state D and restart the driver or the machine.",
    # unknown
    "watch_longer": "Watch longer, while the job is in its normal loop: gpulse why --for 60s.",
    "synthetic_data": "Run once with synthetic data on the GPU: if it is faster, the input is the limit.",
    "check_device": "Check that model and data are on the GPU: next(model.parameters()).device.",
    "doctor": "`gpulse doctor` says which readings are missing and why.",
}


def advice_text(key: str) -> str:
    """Return an advice as text."""
    return ADVICE.get(key, key)
