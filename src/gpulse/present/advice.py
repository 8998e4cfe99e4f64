"""Advice: what to change, in the words of the frameworks people use."""

from __future__ import annotations

ADVICE: dict[str, str] = {
    # feeding
    "loader_workers": "Prepare data in parallel: DataLoader(num_workers=8, persistent_workers=True, prefetch_factor=4).",
    "more_workers": "Add loader workers (num_workers) as long as CPUs are free; set persistent_workers=True.",
    "tokenize_ahead": "Tokenize or decode once, ahead of training, and store the result (datasets.map, WebDataset).",
    "gpu_transforms": "Move decoding and augmentation to the GPU: torchvision v2 transforms on CUDA tensors, DALI, Kornia.",
    "precompute": "Store decoded, resized or tokenized samples so that each epoch does not repeat the work.",
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
    "profile_host": "See what the thread does: py-spy top --pid PID, or torch.profiler.",
    "async_checkpoint": "Write checkpoints in the background: torch.distributed.checkpoint.async_save, or a thread that saves a CPU copy.",
    "local_checkpoint": "Save to a local disk first and copy to shared storage afterwards.",
    "checkpoint_less": "Save less often, and only what is needed to resume.",
    "evaluate_less": "Evaluate less often, on fewer batches, or in another job.",
    "log_async": "Log from a background thread and every N steps.",
    "smaller_gpu": "Use a smaller GPU or a MIG slice for this service.",
    "share_gpu": "Put other work on the same GPU (MPS), or scale to zero while idle.",
    "batch_requests": "Batch requests on the server so that each pass serves several.",
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
    "gpu_reset": "If no process uses it, reset the GPU: nvidia-smi --gpu-reset.",
    # limits
    "cooling": "Check fans, airflow and inlet temperature of the machine.",
    "lower_power_limit": "A lower power limit (nvidia-smi -pl) runs cooler and often costs little speed.",
    "power_cables": "Check power supply, cables and the chassis power budget.",
    "raise_power_limit": "Raise the limit to the default if power and cooling allow: nvidia-smi -pl WATTS.",
    "reset_clocks": "Release locked clocks: nvidia-smi -rgc and nvidia-smi -rac.",
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
    "py_spy": "See where each rank is: py-spy dump --pid PID.",
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

# What NVIDIA's XID catalog recommends first; the rest is "contact support" or needs the full workflow.
XIDS: dict[int, tuple[str, str]] = {
    8: ("GPU stopped processing", "restart the application; check for an endless kernel"),
    13: ("graphics engine exception", "check the application first (an illegal access); then memory and cooling"),
    31: ("GPU memory page fault", "check the application: an illegal address"),
    32: ("invalid push buffer", "check the PCIe link and the driver"),
    38: ("driver firmware error", "update the driver"),
    43: ("GPU stopped processing", "the application ended with an error; nothing to do for the GPU"),
    45: ("preemptive cleanup", "the application was ended; nothing to do for the GPU"),
    48: ("double-bit ECC error", "reset the GPU; run field diagnostics if it returns"),
    61: ("internal micro-controller breakpoint", "reset the GPU"),
    62: ("internal micro-controller halt", "reset the GPU"),
    63: ("memory row remapped or page retired", "nothing now; reset the GPU at the next maintenance"),
    64: ("row remapping failed", "reset the GPU; replace it if it returns"),
    69: ("graphics engine class error", "check the application and the driver"),
    74: ("NVLink error", "check NVLink; reset all GPUs of the fabric"),
    79: ("GPU has fallen off the bus", "reboot; check power, cooling and seating"),
    92: ("high rate of corrected ECC errors", "nothing now; watch it"),
    94: ("contained ECC error", "restart the application"),
    95: ("uncontained ECC error", "reset the GPU"),
    109: ("context switch timeout", "reset the GPU"),
    119: ("GSP RPC timeout", "reset the GPU; update the driver"),
    120: ("GSP error", "reset the GPU; update the driver"),
    140: ("unrecovered ECC error", "reset the GPU"),
    143: ("GPU initialization error", "reset the GPU"),
    145: ("NVLink error", "reset all GPUs of the fabric"),
    149: ("NVLink error", "reset all GPUs of the fabric"),
    154: ("recovery action changed", "do what `nvidia-smi -q` shows as GPU Recovery Action"),
}


def advice_text(key: str) -> str:
    """Return an advice in words."""
    return ADVICE.get(key, key)


def xid_text(code: float) -> str:
    """Return an XID with its meaning and NVIDIA's first action: "XID 79 (GPU has fallen off the bus): reboot; …"."""
    meaning = XIDS.get(int(code))
    if meaning is None:
        return f"XID {code:.0f}: see NVIDIA's XID catalog"
    return f"XID {code:.0f} ({meaning[0]}): {meaning[1]}"
