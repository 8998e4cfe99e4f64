"""Metrics that belong together, by name: what screens show, what makes curves, what is known of users. No imports: any start is cheap."""

from __future__ import annotations

ACTIVITY = ("utilization", "sm_active", "tensor_active", "dram_active")
LINKS = ("pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
# What a screen shows of each GPU.
SCREEN = (
    *ACTIVITY,
    *("memory_used", "memory_total", "memory_percent", "memory_unattributed", "memory_unified"),
    *(
        "temperature",
        "temperature_limit",
        "power_draw",
        "power_limit",
        "clock_sm",
        "throttle_reasons",
        "ecc_uncorrected",
    ),
    *("pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max"),
    *("held_for", "held_until"),
)
# What is worth a curve over time.
CURVES = (*ACTIVITY, "memory_used", "power_draw", "temperature", "clock_sm", *LINKS)
HOST_CURVES = ("cpu_percent", "iowait", "memory_used", "disk_read", "disk_write", "net_rx", "net_tx")
# What the view of the host shows besides, read only while it is open.
HOST_VIEW = (
    *("context_switches", "interrupts", "processes_running", "processes_blocked"),
    *("memory_cached", "swap_in", "swap_out", "major_faults"),
    *("disk_names", "disk_reads", "disk_writes", "disk_busy"),
    *("port_states", "port_speeds", "port_errors"),
    *("top_pids", "top_users", "top_commands", "top_cpu", "top_memory", "top_roles"),
)
# What a monitor logs unless told otherwise: cheap on every GPU, and enough to tell what a run did.
LOGGED = (*CURVES, "sm_occupancy", "memory_utilization", "memory_percent", "memory_temperature", "energy")
# Activity that the hardware counts; reading it costs an NVIDIA GPU 1.4 ms, as much as ten of the others together.
COSTLY = frozenset(
    {
        "sm_active",
        "sm_occupancy",
        "tensor_active",
        "dram_active",
        "integer_active",
        "fp64_active",
        "fp32_active",
        "fp16_active",
    }
    | {"graphics_active", *LINKS}
)
# What a diagnosis needs besides, wherever it samples, so that the same minute gets the same verdict: of each GPU and each process.
EVIDENCE = ("utilization_trace",)
# What the lines of code at which a GPU waits need besides.
TIMED_POWER = ("power_trace", "power_trace_times")
# Values that the driver sampled by itself since they were last read. They appear once, in the sample that read them.
TRACES = frozenset({*EVIDENCE, *TIMED_POWER})
PROCESS_EVIDENCE = (
    *("pid", "name", "type", "parent", "container", "pod", "job", "running_time"),
    *("memory_used", "sm_utilization", "sm_time", "cpu_percent", "thread_state"),
    *("tree_cpu_percent", "tree_cpu_time", "children", "workers_running", "workers_blocked", "tree_read", "tree_write"),
)
# What is read of each process to say who uses a GPU.
USERS = ("pid", "name", "user", "memory_used", "type")
