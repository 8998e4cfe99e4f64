"""The catalog: one line per metric. Surfaces, docs, series names and completions are derived from these lines."""

from __future__ import annotations

from types import MappingProxyType

from ..units import (
    BYTES,
    BYTES_PER_SECOND,
    CELSIUS,
    COUNT,
    JOULE,
    LATENCY,
    MEGAHERTZ,
    MONEY,
    PER_SECOND,
    PERCENT,
    RPM,
    SECOND,
    TOKENS_PER_JOULE,
    TOKENS_PER_SECOND,
    WATT,
)
from .metric import Flag, Number, Numbers, Reading, Text, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal, TypeAlias

    from .metric import Gap, Metric, Value

    State: TypeAlias = Literal["ok", "lost", "timeout", "asleep"]


DOWN = ("lost", "timeout")  # states in which a GPU has nothing to say; one that sleeps is well
_OF_FOUR = ("1g.6gb", "2g.12gb", "4g.24gb")  # the profiles of an A30, the only GPU with four slices


def memory_percent(values: Mapping[str, Value]) -> float | None:
    """Return used memory relative to the memory available to programs, in percent; None if either is unknown."""
    used, total, reserved = (_number(values.get(key)) for key in ("memory_used", "memory_total", "memory_reserved"))
    if used is None or total is None:
        return None
    usable = total - (reserved or 0)
    return round(min(100.0, 100.0 * used / usable), 1) if usable > 0 else None


def free_memory(gpu: Gpu) -> float | None:
    """Return the memory that programs can still have, in bytes; None if unknown."""
    if gpu.memory_free is not None or gpu.memory_total is None or gpu.memory_used is None:
        return gpu.memory_free
    return gpu.memory_total - gpu.memory_used - (gpu.memory_reserved or 0.0)


def memory_unattributed(used: Value | None, held: list[Value | None]) -> float | None:
    """Return used memory that no process accounts for; None if the memory of any process is unknown."""
    known = [amount for amount in map(_number, held) if amount is not None]
    total = _number(used)
    return None if total is None or len(known) < len(held) else max(0, total - sum(known))


def slice_share(facts: Mapping[str, Value] | None) -> float:
    """Return the part of a GPU that a MIG instance is, by its compute slices; 1 without one or if its profile is unknown.

    The name of an instance holds its profile: "MIG 1g.10gb" is one slice of seven (of four on an A30), "MIG 1c.3g.20gb" too.
    """
    if facts is None:
        return 1.0
    profile = str(facts.get("name", "")).rpartition("MIG ")[2]
    count = profile.partition("g")[0].partition("c")[0]
    whole = 4 if profile.partition("+")[0] in _OF_FOUR else 7
    return min(1.0, int(count) / whole) if count.isdecimal() and "g." in profile else 1.0


def _number(value: Value | None) -> float | None:
    return value if isinstance(value, (int, float)) else None


_CPU = 100 * 2**20  # percent of a million cores
_AGE = 1e11  # seconds; older than any process
# The time that one value covers.
PREVIOUS = "since the previous sample"
READ = "since it was last read, about every 5 s"
GPM = "since the previous sample, at least 0.1 s"
DRIVER = "the driver's last period: 1/6 s to 1 s"
SECOND_MEAN = "the last second"
MINUTE = "the last minute"
HALF_MINUTE = "the last 30 s"
LINK = "since the previous sample; without GPM about 1 ms"


# fmt: off
class Process(Reading):
    """A process that uses a GPU; one that uses several GPUs appears once under each."""

    __slots__ = ()

    pid = Number("PID", "Process id in the driver's PID namespace.", kind="identity", group="identity", smi=("pid",), presets="users diagnosis", high=2**32)
    name = Text("Name", "Short name of the program.", kind="identity", group="identity", smi=("process_name", "name"), presets="users diagnosis")
    command = Text("Command", "Full command line, with secrets masked.", kind="identity", group="identity")
    user = Text("User", "Owner of the process.", kind="identity", group="identity", presets="users")
    parent = Number("Parent", "Process id of the process that started it.", kind="identity", group="identity", short="PPID", presets="diagnosis", high=2**32)
    type = Text("Type", "How the process uses the GPU: C for compute, G for graphics, M for compute through MPS; several are joined by +.", kind="state", group="identity", presets="users diagnosis")
    container = Text("Container", "Short id of the container the process runs in.", kind="identity", group="owner", presets="diagnosis")
    pod = Text("Pod", "Kubernetes pod: its name if the environment contains it, otherwise its UID.", kind="identity", group="owner", presets="diagnosis")
    project = Text("Project", "Project of the process, from the environment variable GPULSE_PROJECT or those that GPULSE_PROJECT_VARIABLES names.", kind="identity", group="owner")
    job = Text("Job", "Batch job of the process, for example slurm:1234.", kind="identity", group="owner", presets="diagnosis")
    job_name = Text("Job name", "Name of the batch job: as Slurm tells it, else as the environment of the process.", kind="identity", group="owner", short="JOB NAME")
    account = Text("Account", "Slurm account that the batch job is charged to.", kind="identity", group="owner")
    partition = Text("Partition", "Slurm partition that the batch job runs in.", kind="identity", group="owner")
    memory_used = Number("GPU memory", "GPU memory held by the process.", unit=BYTES, group="memory", short="GPU MEM", smi=("used_gpu_memory", "used_memory"), high=2**60, presets="users diagnosis")
    sm_utilization = Number("SM share", "Share of time in which kernels of the process ran (AMD and Intel: of its graphics or compute engine).", unit=PERCENT, cost="slow", group="activity", short="SM", high=100, window=READ, presets="diagnosis")
    sm_time = Number("SM time", "Time in which kernels of the process ran since sampling began.", unit=SECOND, kind="counter", cost="slow", group="activity", short="SM TIME", presets="diagnosis", high=1e12)
    memory_utilization = Number("Memory share", "Share of time in which the process read or wrote GPU memory.", unit=PERCENT, cost="slow", group="activity", short="MEM-BW", high=100, window=READ)
    encoder_utilization = Number("Encoder share", "Share of the video encoders used by the process.", unit=PERCENT, cost="slow", group="activity", short="ENC", high=100, window=READ)
    decoder_utilization = Number("Decoder share", "Share of the video decoders used by the process.", unit=PERCENT, cost="slow", group="activity", short="DEC", high=100, window=READ)
    cpu_percent = Number("CPU", "CPU usage of the process; 100 is one core.", unit=PERCENT, group="host", short="CPU", window=PREVIOUS, presets="diagnosis", high=_CPU)
    tree_cpu_percent = Number("CPU of the tree", "CPU usage of the process and all its descendants; 100 is one core.", unit=PERCENT, cost="slow", group="host", short="TREE CPU", window=READ, presets="diagnosis", high=_CPU)
    cpu_time = Number("CPU time", "CPU time that the process has used since it started.", unit=SECOND, kind="counter", group="host", short="CPU TIME", high=1e12)
    tree_cpu_time = Number("CPU time of the tree", "CPU time that the process and all its descendants have used, ended ones included.", unit=SECOND, kind="counter", cost="slow", group="host", short="TREE CPU TIME", presets="diagnosis", high=1e12)
    children = Number("Children", "Number of descendant processes, for example data-loading workers.", unit=COUNT, cost="slow", group="host", presets="diagnosis", high=2**32)
    tree_memory = Number("Memory of the tree", "Sum of the resident host memory of the process and all its descendants; shared pages are counted several times.", unit=BYTES, cost="slow", group="host", short="TREE MEM", high=2**60)
    tree_read = Number("Read by the tree", "Data read from storage by the process and all its descendants; reads from the page cache do not count.", unit=BYTES_PER_SECOND, cost="slow", group="host", short="TREE READ", high=2**50, window=READ, presets="diagnosis")
    tree_write = Number("Written by the tree", "Data written to storage by the process and all its descendants.", unit=BYTES_PER_SECOND, cost="slow", group="host", short="TREE WRITE", high=2**50, window=READ, presets="diagnosis")
    thread_state = Text("Thread state", "What the main thread does: running, lock, sleep, disk, network, poll, pipe, driver, waiting (for something else) or stopped.", kind="state", group="host", short="STATE", presets="diagnosis")
    workers_running = Number("Workers running", "Number of descendant processes that run or wait for a CPU.", unit=COUNT, cost="slow", group="host", short="RUNNING", presets="diagnosis", high=2**32)
    workers_blocked = Number("Workers blocked", "Number of descendant processes that wait for storage.", unit=COUNT, cost="slow", group="host", short="BLOCKED", presets="diagnosis", high=2**32)
    host_memory = Number("Host memory", "Resident host memory of the process.", unit=BYTES, group="host", short="HOST MEM", high=2**60)
    running_time = Number("Running time", "Time since the process started.", unit=SECOND, group="host", short="TIME", presets="diagnosis", high=_AGE)

    def __repr__(self) -> str:
        from .codec import process_brief

        return process_brief(self)


class Server(Reading):
    """A model server, or one of several models of a server, with what it reports about itself and what its GPUs add to that."""

    __slots__ = ()

    server = Text("Server", "Kind of server: vllm, sglang, tgi, llama.cpp, ollama, triton, nim, or the name of a plug-in.", kind="identity", group="identity")
    model = Text("Model", "Name under which the model is served.", kind="identity", group="identity")
    endpoint = Text("Endpoint", "Address of the server; if another machine reports it, with the name of that machine.", kind="identity", group="identity")
    pid = Number("PID", "Process that listens there; missing for an endpoint on another machine.", kind="identity", group="identity", high=2**32)
    gpus = Words("GPUs", "UUIDs of the GPUs that the processes of the server hold.", kind="identity", group="identity")
    running = Number("Running requests", "Requests that are being computed.", unit=COUNT, group="queue", short="RUN", high=1e9)
    waiting = Number("Waiting requests", "Requests that wait for a place in the batch.", unit=COUNT, group="queue", short="WAIT", high=1e9)
    request_rate = Number("Request rate", "Finished requests per second.", unit=PER_SECOND, group="queue", short="REQ/s", high=1e9, window=PREVIOUS)
    error_rate = Number("Error rate", "Failed requests per second.", unit=PER_SECOND, group="queue", short="ERR/s", high=1e9, window=PREVIOUS)
    idle_time = Number("Time without progress", "Time since a token or a request was last counted: idle if no request is running or waiting, stuck if one is.", unit=SECOND, group="queue", short="IDLE", high=_AGE)
    prompt_rate = Number("Prompt tokens", "Prompt tokens processed per second.", unit=TOKENS_PER_SECOND, group="tokens", short="PROMPT", high=1e12, window=PREVIOUS)
    generation_rate = Number("Generated tokens", "Tokens generated per second.", unit=TOKENS_PER_SECOND, group="tokens", short="TOK/s", high=1e12, window=PREVIOUS)
    gpu_generation_rate = Number("Generated tokens per GPU", "Tokens generated per second, divided by the number of GPUs of the server.", unit=TOKENS_PER_SECOND, group="tokens", short="TOK/s/GPU", high=1e12, window=PREVIOUS)
    tokens_per_joule = Number("Tokens per joule", "Generated tokens divided by the energy of all GPUs of the server in the same time, other programs on them included.", unit=TOKENS_PER_JOULE, group="tokens", short="TOK/J", high=1e9, window=HALF_MINUTE)
    cost_per_million = Number("Cost per million tokens", "What a million generated tokens cost at the present rate: time and energy of all GPUs of the server at the prices in the settings; missing without prices.", unit=MONEY, group="tokens", short="COST/M", high=1e15, window=HALF_MINUTE)
    prompt_tokens = Number("Prompt tokens in total", "Prompt tokens processed since the server started.", unit=COUNT, kind="counter", group="tokens", short="PROMPT TOTAL", high=1e18)
    generation_tokens = Number("Generated tokens in total", "Tokens generated since the server started.", unit=COUNT, kind="counter", group="tokens", short="TOKENS TOTAL", high=1e18)
    kv_cache = Number("KV cache", "Share of the key-value cache in use.", unit=PERCENT, group="cache", short="KV", high=100, warn=90, critical=98)
    prefix_hits = Number("Prefix cache hits", "Share of prompt tokens that were found in the prefix cache.", unit=PERCENT, group="cache", short="PREFIX", high=100, window=MINUTE)
    preemption_rate = Number("Preemptions", "Requests per second whose cache was taken away, so that they are computed again.", unit=PER_SECOND, group="cache", short="PREEMPT", high=1e9, window=PREVIOUS)
    first_token_p50 = Number("First token, median", "Time from a request to its first token: half of all requests were faster.", unit=LATENCY, group="latency", short="TTFT p50", high=1e6, window=MINUTE)
    first_token_p95 = Number("First token, p95", "Time from a request to its first token: 95 % of all requests were faster.", unit=LATENCY, group="latency", short="TTFT p95", high=1e6, window=MINUTE)
    inter_token_p50 = Number("Between tokens, median", "Time between two tokens of a request: half of them were shorter.", unit=LATENCY, group="latency", short="ITL p50", high=1e6, window=MINUTE)
    inter_token_p95 = Number("Between tokens, p95", "Time between two tokens of a request: 95 % of them were shorter.", unit=LATENCY, group="latency", short="ITL p95", high=1e6, window=MINUTE)
    request_p50 = Number("Request, median", "Time from a request to the end of its answer: half of all requests were faster.", unit=LATENCY, group="latency", short="REQ p50", high=1e6, window=MINUTE)
    request_p95 = Number("Request, p95", "Time from a request to the end of its answer: 95 % of all requests were faster.", unit=LATENCY, group="latency", short="REQ p95", high=1e6, window=MINUTE)
    memory_weights = Number("Memory for weights", "Estimate: the size of the files of the model.", unit=BYTES, cost="slow", group="memory", short="WEIGHTS", high=2**60)
    memory_cache = Number("Memory for the cache", "Estimate: the tokens that the key-value cache has room for, times the size of one by the shape of the model.", unit=BYTES, cost="slow", group="memory", short="CACHE", high=2**60)
    memory_other = Number("Other memory", "Estimate: what the processes of the server hold besides weights and cache.", unit=BYTES, cost="slow", group="memory", short="OTHER", high=2**60)

    @property
    def key(self) -> str:
        """What tells it from every other server of a machine, as `vllm 127.0.0.1:8000 Qwen/Qwen3-32B`."""
        return f"{self.server} {self.endpoint} {self.model}"


class Host(Reading):
    """The host that the GPUs are in."""

    __slots__ = ()

    name = Text("Host", "Name of the machine.", kind="identity", group="identity")
    cpu_count = Number("CPUs", "Number of logical CPUs.", unit=COUNT, kind="identity", group="cpu", high=2**20)
    cpu_percent = Number("CPU", "Utilization of all CPUs together.", unit=PERCENT, group="cpu", high=100, window=PREVIOUS, presets="curves")
    cpu_per_core = Numbers("CPU per core", "Utilization of each CPU.", unit=PERCENT, group="cpu", high=100, window=PREVIOUS)
    iowait = Number("I/O wait", "Share of CPU time spent idle while waiting for disks.", unit=PERCENT, group="cpu", high=100, window=PREVIOUS, presets="curves")
    load = Numbers("Load", "Number of runnable processes, averaged over 1, 5 and 15 minutes.", group="cpu", high=2**32)
    memory_used = Number("Memory used", "Host memory that is not available to new programs.", unit=BYTES, group="memory", high=2**60, presets="curves", whole="memory_total")
    memory_total = Number("Memory total", "Total host memory.", unit=BYTES, group="memory", high=2**60)
    swap_used = Number("Swap used", "Swap space in use.", unit=BYTES, group="memory", high=2**60, whole="swap_total")
    swap_total = Number("Swap total", "Total swap space.", unit=BYTES, group="memory", high=2**60)
    disk_read = Number("Disk read", "Data read from all disks.", unit=BYTES_PER_SECOND, group="io", high=2**50, window=PREVIOUS, presets="curves")
    disk_write = Number("Disk write", "Data written to all disks.", unit=BYTES_PER_SECOND, group="io", high=2**50, window=PREVIOUS, presets="curves")
    net_rx = Number("Network in", "Data received on all interfaces except loopback.", unit=BYTES_PER_SECOND, group="io", high=2**50, window=PREVIOUS, presets="curves")
    net_tx = Number("Network out", "Data sent on all interfaces except loopback.", unit=BYTES_PER_SECOND, group="io", high=2**50, window=PREVIOUS, presets="curves")
    port_names = Words("Ports", "InfiniBand, RoCE and Ethernet ports, as mlx5_0/1 or eth0; the other lists of ports have this order.", kind="state", group="links")
    port_states = Words("Port states", "State of each port: active, down or another word of the kernel's.", kind="state", group="links", presets="view")
    port_speeds = Numbers("Port speeds", "Speed of each port in one direction; 0 for one that is down.", unit=BYTES_PER_SECOND, kind="state", group="links", presets="view", high=2**50)
    port_rx = Numbers("Port in", "Received on each port.", unit=BYTES_PER_SECOND, group="links", window=PREVIOUS, high=2**50)
    port_tx = Numbers("Port out", "Sent on each port.", unit=BYTES_PER_SECOND, group="links", window=PREVIOUS, high=2**50)
    port_downs = Numbers("Port link losses", "Times each port has lost its link since it was set up; 0 for one that does not count them.", unit=COUNT, kind="counter", group="links")
    port_errors = Numbers("Port errors", "Errors of each port since it came up: symbol, receive and link errors, or dropped and damaged packets.", unit=COUNT, kind="counter", group="links", presets="view")

    # details: read only when named, for instance while the view of the host is open
    context_switches = Number("Context switches", "Switches of a CPU from one thread to another.", unit=PER_SECOND, group="details", window=PREVIOUS, presets="view", high=1e12)
    interrupts = Number("Interrupts", "Interrupts handled by all CPUs.", unit=PER_SECOND, group="details", window=PREVIOUS, presets="view", high=1e12)
    processes_running = Number("Runnable threads", "Threads that run or wait for a CPU.", unit=COUNT, group="details", presets="view", high=2**32)
    processes_blocked = Number("Blocked threads", "Threads that wait for disks.", unit=COUNT, group="details", presets="view", high=2**32)
    memory_cached = Number("Page cache", "Host memory that holds file contents and is freed when programs need it.", unit=BYTES, group="details", high=2**60, presets="view")
    swap_in = Number("Swap in", "Memory read back from swap space; more than a little means that memory is too small.", unit=BYTES_PER_SECOND, group="details", high=2**50, window=PREVIOUS, presets="view")
    swap_out = Number("Swap out", "Memory written to swap space.", unit=BYTES_PER_SECOND, group="details", high=2**50, window=PREVIOUS, presets="view")
    major_faults = Number("Major page faults", "Memory accesses that had to wait for a disk.", unit=PER_SECOND, group="details", window=PREVIOUS, presets="view", high=1e12)
    disk_names = Words("Disks", "Whole disks, as nvme0n1; the other lists of disks have this order.", kind="state", group="details", presets="view")
    disk_reads = Numbers("Disk reads", "Read from each disk.", unit=BYTES_PER_SECOND, group="details", window=PREVIOUS, presets="view", high=2**50)
    disk_writes = Numbers("Disk writes", "Written to each disk.", unit=BYTES_PER_SECOND, group="details", window=PREVIOUS, presets="view", high=2**50)
    disk_busy = Numbers("Disk busy", "Share of time in which each disk had requests in flight.", unit=PERCENT, group="details", window=PREVIOUS, presets="view")
    top_pids = Numbers("Top processes", "Process ids of the processes that use most CPU or memory; the other lists of top processes have this order.", kind="state", group="details", presets="view", high=2**32)
    top_users = Words("Users of top processes", "Owner of each top process.", kind="state", group="details", presets="view")
    top_commands = Words("Commands of top processes", "Command line of each top process, with secrets masked.", kind="state", group="details", presets="view")
    top_cpu = Numbers("CPU of top processes", "CPU usage of each top process; 100 is one core.", unit=PERCENT, group="details", window="since it was last read, about every 2 s", presets="view", high=_CPU)
    top_memory = Numbers("Memory of top processes", "Resident host memory of each top process.", unit=BYTES, group="details", presets="view", high=2**60)
    top_roles = Words("Roles of top processes", "Whether each top process uses a GPU (gpu), descends from one that does (worker), or neither (other).", kind="state", group="details", presets="view")

    def __repr__(self) -> str:
        from .codec import host_brief

        return host_brief(self)


class Gpu(Reading):
    """One GPU, or one MIG instance of a GPU, at one point in time.

    `state` is ok, lost, timeout or asleep; `since` is the time (seconds since 1970) at which a state other than ok began.
    `processes` are those that use the GPU itself; processes in a MIG instance are listed under that instance.
    """

    __slots__ = ("instances", "processes", "since", "state")
    state: State
    since: float | None
    processes: tuple[Process, ...]
    instances: tuple[Gpu, ...]

    # identity
    index = Number("Index", "Position in the driver's order, which is not the CUDA ordinal.", kind="identity", group="identity", short="GPU", smi=("index",), high=2**16)
    uuid = Text("UUID", "Unique id that stays the same across reboots and renumbering.", kind="identity", group="identity", smi=("uuid", "gpu_uuid"))
    name = Text("Name", "Product name.", kind="identity", group="identity", smi=("name", "gpu_name"))
    vendor = Text("Vendor", "Vendor of the GPU: nvidia, amd or intel.", kind="identity", group="identity")
    architecture = Text("Architecture", "Generation of the chip, such as Hopper.", kind="identity", group="identity", short="ARCH")
    pci_bus_id = Text("PCI bus id", "Address on the PCI bus.", kind="identity", group="identity", short="BUS", smi=("pci.bus_id", "gpu_bus_id"))
    serial = Text("Serial number", "Serial number of the board; GPUs on one board share it.", kind="identity", group="identity", short="SERIAL", smi=("serial", "gpu_serial"))
    vbios = Text("VBIOS", "Firmware version of the board.", kind="identity", group="identity", smi=("vbios_version",))
    driver_version = Text("Driver", "Version of the kernel driver.", kind="identity", group="identity", smi=("driver_version",))
    gpu_instance = Number("GPU instance", "MIG GPU instance id.", kind="identity", group="identity", short="GI", high=2**16)
    ordinal = Number("Ordinal", "Number by which ROCm or Level Zero select it; CUDA's numbers depend on CUDA_DEVICE_ORDER.", kind="identity", group="identity", short="ORD", high=2**16)
    compute_instance = Number("Compute instance", "MIG compute instance id.", kind="identity", group="identity", short="CI", high=2**16)

    # utilization
    utilization = Number("Utilization", "Share of time in which at least one kernel or copy was running; does not tell how much of the chip was used.", unit=PERCENT, group="utilization", short="UTIL", smi=("utilization.gpu",), dcgm="DCGM_FI_DEV_GPU_UTIL", otel="hw.gpu.utilization", high=100, window=DRIVER, presets="summary glance curves training diagnosis")
    memory_utilization = Number("Memory utilization", "Share of time in which GPU memory was read or written.", unit=PERCENT, group="utilization", short="MEM-BW", smi=("utilization.memory",), dcgm="DCGM_FI_DEV_MEM_COPY_UTIL", high=100, window=DRIVER, presets="training diagnosis")
    encoder_utilization = Number("Encoder utilization", "Utilization of the video encoders.", unit=PERCENT, group="engines", short="ENC", smi=("utilization.encoder",), dcgm="DCGM_FI_DEV_ENC_UTIL", high=100, window=DRIVER, presets="diagnosis")
    decoder_utilization = Number("Decoder utilization", "Utilization of the video decoders.", unit=PERCENT, group="engines", short="DEC", smi=("utilization.decoder",), dcgm="DCGM_FI_DEV_DEC_UTIL", high=100, window=DRIVER, presets="diagnosis")
    jpeg_utilization = Number("JPEG utilization", "Utilization of the JPEG engines.", unit=PERCENT, group="engines", short="JPEG", smi=("utilization.jpeg",), high=100, window=DRIVER)
    ofa_utilization = Number("OFA utilization", "Utilization of the optical-flow engine.", unit=PERCENT, group="engines", short="OFA", smi=("utilization.ofa",), high=100, window=DRIVER)
    video_utilization = Number("Video utilization", "Busy share of the video engines that both encode and decode (AMD: VCN).", unit=PERCENT, group="engines", short="VIDEO", high=100, window=DRIVER)

    # activity of the chip (GPM: Hopper and later)
    sm_active = Number("SM active", "Share of time in which an SM had at least one resident warp, averaged over all SMs.", unit=PERCENT, group="activity", short="SM", dcgm="DCGM_FI_PROF_SM_ACTIVE", high=100, window=GPM, presets="summary glance curves training diagnosis")
    sm_occupancy = Number("SM occupancy", "Resident warps relative to the maximum an SM supports.", unit=PERCENT, group="activity", short="OCC", dcgm="DCGM_FI_PROF_SM_OCCUPANCY", high=100, window=GPM, presets="training diagnosis")
    tensor_active = Number("Tensor active", "Share of time in which the tensor cores were active.", unit=PERCENT, group="activity", short="TENSOR", dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", high=100, window=GPM, presets="glance curves training diagnosis")
    dram_active = Number("DRAM active", "Share of the memory bandwidth in use; about 80 is the maximum in practice.", unit=PERCENT, group="activity", short="DRAM", dcgm="DCGM_FI_PROF_DRAM_ACTIVE", high=100, window=GPM, presets="glance curves training diagnosis")
    fp64_active = Number("FP64 active", "Share of time in which the FP64 pipes were active.", unit=PERCENT, group="activity", short="FP64", dcgm="DCGM_FI_PROF_PIPE_FP64_ACTIVE", high=100, window=GPM, presets="diagnosis")
    fp32_active = Number("FP32 active", "Share of time in which the FP32 pipes were active.", unit=PERCENT, group="activity", short="FP32", dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE", high=100, window=GPM, presets="diagnosis")
    fp16_active = Number("FP16 active", "Share of time in which the FP16 pipes were active, without tensor cores.", unit=PERCENT, group="activity", short="FP16", dcgm="DCGM_FI_PROF_PIPE_FP16_ACTIVE", high=100, window=GPM, presets="diagnosis")
    integer_active = Number("Integer active", "Share of time in which the integer pipes were active.", unit=PERCENT, group="activity", short="INT", high=100, window=GPM, presets="diagnosis")
    graphics_active = Number("Graphics active", "Share of time in which the compute or graphics engine was busy.", unit=PERCENT, cost="slow", group="activity", short="GR", dcgm="DCGM_FI_PROF_GR_ENGINE_ACTIVE", high=100, window=GPM, presets="diagnosis")

    # memory
    memory_used = Number("Memory used", "Memory used by programs, without what the driver reserves for itself.", unit=BYTES, group="memory", short="USED", smi=("memory.used",), dcgm="DCGM_FI_DEV_FB_USED", otel="hw.gpu.memory.usage", high=2**60, presets="summary glance curves training diagnosis", whole="memory_total")
    memory_total = Number("Memory total", "Total memory of the GPU.", unit=BYTES, group="memory", short="TOTAL", smi=("memory.total",), dcgm="DCGM_FI_DEV_FB_TOTAL", otel="hw.gpu.memory.limit", high=2**60, presets="glance diagnosis")
    memory_free = Number("Memory free", "Memory available to programs.", unit=BYTES, group="memory", short="FREE", smi=("memory.free",), dcgm="DCGM_FI_DEV_FB_FREE", high=2**60, whole="memory_total")
    memory_reserved = Number("Memory reserved", "Memory reserved by the driver and the firmware.", unit=BYTES, group="memory", short="RESERVED", smi=("memory.reserved",), dcgm="DCGM_FI_DEV_FB_RESERVED", high=2**60, presets="diagnosis")
    memory_percent = Number("Memory", "Used memory relative to the memory available to programs.", unit=PERCENT, group="memory", short="MEM", warn=90, critical=97, high=100, presets="glance training")
    memory_unattributed = Number("Memory unattributed", "Used memory that no visible process accounts for: other containers, hidden users, exiting processes.", unit=BYTES, group="memory", short="UNATTR", high=2**60, presets="glance diagnosis")
    memory_unified = Flag("Unified memory", "CPU and GPU share one memory: the total is the machine's, and used is the sum over the GPU's processes.", kind="state", cost="static", group="memory", short="UNIFIED", presets="glance")
    bar1_used = Number("BAR1 used", "Used part of the window through which the CPU accesses GPU memory.", unit=BYTES, cost="slow", group="memory", short="BAR1", high=2**60, whole="bar1_total")
    bar1_total = Number("BAR1 total", "Size of the window through which the CPU accesses GPU memory.", unit=BYTES, cost="slow", group="memory", short="BAR1 TOTAL", high=2**60)

    # temperature and power
    temperature = Number("Temperature", "Temperature of the chip (AMD: edge, or junction if there is no edge sensor; Intel: package).", unit=CELSIUS, group="thermal", short="TEMP", smi=("temperature.gpu",), dcgm="DCGM_FI_DEV_GPU_TEMP", otel="hw.temperature", low=-50, high=200, warn=80, critical=90, presets="summary glance curves training diagnosis", limit="temperature_limit")
    hotspot_temperature = Number("Hotspot temperature", "Temperature of the hottest point of the chip (AMD: junction).", unit=CELSIUS, group="thermal", short="HOTSPOT", low=-50, high=200, warn=100, critical=110)
    memory_temperature = Number("Memory temperature", "Temperature of the memory.", unit=CELSIUS, group="thermal", short="MEM TEMP", smi=("temperature.memory",), dcgm="DCGM_FI_DEV_MEMORY_TEMP", low=-50, high=200, warn=90, critical=100, presets="training")
    temperature_limit = Number("Temperature limit", "Temperature at which the GPU is throttled.", unit=CELSIUS, cost="static", group="thermal", short="LIMIT", low=1, high=200, presets="glance diagnosis")
    fan_speed = Number("Fan speed", "Target speed of the fastest fan relative to its maximum; can exceed 100.", unit=PERCENT, group="thermal", short="FAN", smi=("fan.speed",), dcgm="DCGM_FI_DEV_FAN_SPEED", otel="hw.fan.speed_ratio", high=200)
    fan_rpm = Number("Fan speed in rpm", "Measured speed of the fastest fan.", unit=RPM, group="thermal", short="RPM", high=100_000)
    power_draw = Number("Power draw", "Power of the whole board.", unit=WATT, group="power", short="POWER", smi=("power.draw",), dcgm="DCGM_FI_DEV_POWER_USAGE", otel="hw.power", high=100_000, window=SECOND_MEAN, presets="summary glance curves training diagnosis", limit="power_limit")
    power_limit = Number("Power limit", "Power limit in effect: the lowest of all that apply.", unit=WATT, group="power", short="CAP", smi=("enforced.power.limit", "gpu.power.current_limit"), dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT", otel="hw.power_limit", high=100_000, presets="glance diagnosis")
    power_default_limit = Number("Power default limit", "Default power limit of the board.", unit=WATT, cost="static", group="power", short="DEFAULT", smi=("power.default_limit", "gpu.power.default_limit"), dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", high=100_000, presets="diagnosis")
    energy = Number("Energy", "Energy consumed since the driver was loaded.", unit=JOULE, kind="counter", cost="slow", group="power", short="ENERGY", dcgm="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", otel="hw.energy", high=1e15, presets="training")

    # clocks
    clock_sm = Number("SM clock", "Clock of the SMs (AMD: of the CUs; Intel: of the GT).", unit=MEGAHERTZ, group="clocks", short="SM MHz", smi=("clocks.current.sm", "clocks.sm"), dcgm="DCGM_FI_DEV_SM_CLOCK", high=20_000, presets="glance curves training diagnosis", whole="clock_sm_max")
    clock_memory = Number("Memory clock", "Clock of the memory.", unit=MEGAHERTZ, group="clocks", short="MEM MHz", smi=("clocks.current.memory", "clocks.mem"), dcgm="DCGM_FI_DEV_MEM_CLOCK", high=100_000, whole="clock_memory_max")
    clock_graphics = Number("Graphics clock", "Clock of the graphics engine.", unit=MEGAHERTZ, group="clocks", short="GR MHz", smi=("clocks.current.graphics", "clocks.gr"), high=20_000, whole="clock_sm_max")
    clock_video = Number("Video clock", "Clock of the video engines.", unit=MEGAHERTZ, group="clocks", short="VID MHz", smi=("clocks.current.video", "clocks.video"), dcgm="DCGM_FI_DEV_VIDEO_CLOCK", high=20_000)
    clock_sm_max = Number("SM clock maximum", "Maximum clock of the SMs.", unit=MEGAHERTZ, cost="static", group="clocks", short="SM MAX", smi=("clocks.max.sm",), dcgm="DCGM_FI_DEV_MAX_SM_CLOCK", high=20_000, presets="diagnosis")
    clock_memory_max = Number("Memory clock maximum", "Maximum clock of the memory.", unit=MEGAHERTZ, cost="static", group="clocks", short="MEM MAX", smi=("clocks.max.memory", "clocks.max.mem"), dcgm="DCGM_FI_DEV_MAX_MEM_CLOCK", high=100_000)
    pstate = Number("P-state", "Performance state, from 0 (fastest) to 15 (slowest).", kind="state", group="clocks", short="P", smi=("pstate",), dcgm="DCGM_FI_DEV_PSTATE", high=15)
    throttle_reasons = Words("Throttle reasons", "Reasons why clocks are below their maximum.", kind="state", group="clocks", short="THROTTLE", smi=("clocks_event_reasons.active", "clocks_throttle_reasons.active"), dcgm="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", presets="glance")

    # links
    pcie_rx = Number("PCIe in", "Data received by the GPU over PCIe; on NVIDIA GPUs without GPM a spot check, which misses bursts and is never added up.", unit=BYTES_PER_SECOND, group="links", short="PCIE RX", dcgm="DCGM_FI_PROF_PCIE_RX_BYTES", high=2**42, window=LINK, presets="curves training diagnosis")
    pcie_tx = Number("PCIe out", "Data sent by the GPU over PCIe; on NVIDIA GPUs without GPM a spot check, which misses bursts and is never added up.", unit=BYTES_PER_SECOND, group="links", short="PCIE TX", dcgm="DCGM_FI_PROF_PCIE_TX_BYTES", high=2**42, window=LINK, presets="curves training diagnosis")
    pcie_gen = Number("PCIe generation", "Current generation of the PCIe link; idle links use a lower one.", kind="state", cost="slow", group="links", short="GEN", smi=("pcie.link.gen.current", "pcie.link.gen.gpucurrent"), low=1, high=16, presets="glance diagnosis")
    pcie_width = Number("PCIe width", "Current number of PCIe lanes.", kind="state", cost="slow", group="links", short="WIDTH", smi=("pcie.link.width.current",), low=1, high=64, presets="glance diagnosis")
    pcie_gen_max = Number("PCIe generation maximum", "Highest generation supported by both GPU and slot.", kind="state", cost="static", group="links", short="GEN MAX", smi=("pcie.link.gen.max",), low=1, high=16, presets="glance diagnosis")
    pcie_width_max = Number("PCIe width maximum", "Number of lanes supported by both GPU and slot.", kind="state", cost="static", group="links", short="WIDTH MAX", smi=("pcie.link.width.max",), low=1, high=64, presets="glance diagnosis")
    pcie_replays = Number("PCIe replays", "Packets resent since the driver was loaded; a rising number indicates a bad link.", unit=COUNT, kind="counter", cost="slow", group="links", short="REPLAYS", dcgm="DCGM_FI_DEV_PCIE_REPLAY_COUNTER", high=2**63)
    nvlink_rx = Number("NVLink in", "Data received over all NVLinks.", unit=BYTES_PER_SECOND, group="links", short="NVLINK RX", dcgm="DCGM_FI_PROF_NVLINK_RX_BYTES", high=2**44, window=PREVIOUS, presets="curves training diagnosis")
    nvlink_tx = Number("NVLink out", "Data sent over all NVLinks.", unit=BYTES_PER_SECOND, group="links", short="NVLINK TX", dcgm="DCGM_FI_PROF_NVLINK_TX_BYTES", high=2**44, window=PREVIOUS, presets="curves training diagnosis")
    nvlink_links = Number("NVLinks", "NVLinks that are up.", unit=COUNT, kind="state", cost="slow", group="links", short="LINKS", high=64)
    nvlink_crc_errors = Number("NVLink CRC errors", "Packets with a wrong checksum on all NVLinks since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="links", short="NVLINK CRC", dcgm="DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", high=2**63)
    nvlink_replay_errors = Number("NVLink replay errors", "Packets sent again on all NVLinks since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="links", short="NVLINK REPLAY", dcgm="DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", high=2**63)
    nvlink_recovery_errors = Number("NVLink recovery errors", "Recoveries of all NVLinks since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="links", short="NVLINK RECOVERY", dcgm="DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", high=2**63)
    xgmi_rx = Number("XGMI in", "Data read over all XGMI links, which join AMD GPUs.", unit=BYTES_PER_SECOND, group="links", short="XGMI RX", high=2**44, window=PREVIOUS)
    xgmi_tx = Number("XGMI out", "Data written over all XGMI links, which join AMD GPUs.", unit=BYTES_PER_SECOND, group="links", short="XGMI TX", high=2**44, window=PREVIOUS)
    cpu_affinity = Text("CPU affinity", "CPUs that are nearest to the GPU, as 0-15,32-47.", kind="state", cost="static", group="links")
    numa_affinity = Number("NUMA affinity", "NUMA node of the CPUs that are nearest to the GPU.", kind="state", cost="static", group="links", high=2**16)
    own_numa_node = Number("GPU NUMA node", "NUMA node that the GPU's own memory is.", kind="state", cost="static", group="links", high=2**16)
    topology = Words("Topology", "Connection to each other GPU and network device, as GPU1:NV18 or mlx5_0:PXB.", kind="state", cost="static", group="links")

    # health and modes
    ecc_corrected = Number("ECC corrected", "Corrected memory errors since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="health", short="ECC CORR", smi=("ecc.errors.corrected.volatile.total",), dcgm="DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", high=2**63)
    ecc_uncorrected = Number("ECC uncorrected", "Uncorrected memory errors since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="health", short="ECC UNCORR", smi=("ecc.errors.uncorrected.volatile.total",), dcgm="DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", high=2**63, critical=1, presets="glance diagnosis")
    remapped_rows = Number("Remapped rows", "Memory rows permanently replaced by spare rows, for corrected and uncorrected errors together.", unit=COUNT, kind="counter", cost="slow", group="health", short="ROWS", high=2**32)
    xids = Numbers("New XIDs", "Codes of all XID errors that the driver reported since the previous sample.", kind="state", group="health", short="NEW XIDS", low=1, high=10_000)
    xid_last = Number("Last XID", "Last XID error code reported by the driver while gpulse was running.", kind="state", group="health", short="XID", dcgm="DCGM_FI_DEV_XID_ERRORS", low=1, high=10_000, presets="diagnosis")
    compute_mode = Text("Compute mode", "Which processes may create a context: default, exclusive_process or prohibited.", kind="state", cost="slow", group="modes", short="COMPUTE", smi=("compute_mode",))
    persistence_mode = Flag("Persistence mode", "The driver stays loaded while the GPU is not in use.", kind="state", cost="slow", group="modes", short="PERSIST", smi=("persistence_mode",))
    mig_mode = Flag("MIG mode", "The GPU is partitioned into MIG instances.", kind="state", cost="slow", group="modes", short="MIG", smi=("mig.mode.current",))
    partition_mode = Text("Partition mode", "Compute and memory partitioning of an AMD GPU, for example CPX/NPS4.", kind="state", cost="slow", group="modes", short="PARTITION")
    job = Text("Allocated to", "Slurm job that was given this GPU, whether it uses it or not, for example slurm:1234; empty if none was. Missing without Slurm.", kind="state", cost="slow", group="modes", short="JOB")
    job_user = Text("Allocated to user", "Owner of the Slurm job that was given this GPU; empty if none was. Missing without Slurm.", kind="state", cost="slow", group="modes", short="JOB USER")
    held_for = Text("Held for", "User who has claimed or reserved the GPU with gpulse; missing if no one has.", kind="state", cost="slow", group="modes", short="HELD FOR", presets="glance")
    held_until = Number("Held until", "End of the reservation, in seconds since 1970; missing without one.", kind="state", cost="slow", group="modes", short="HELD UNTIL", high=1e11, presets="glance")
    display_active = Flag("Display active", "The GPU drives a display.", kind="state", cost="slow", group="modes", short="DISPLAY", smi=("display_active",))

    # details: further fields of nvidia-smi
    system_gpus = Number("GPUs of the machine", "Number of GPUs that the driver has, including those not shown.", unit=COUNT, kind="state", cost="static", group="details", smi=("count",))
    compute_capability = Text("Compute capability", "CUDA compute capability, for example 9.0.", kind="state", cost="static", group="details", smi=("compute_cap",))
    pci_domain = Number("PCI domain", "Domain part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.domain",))
    pci_bus = Number("PCI bus", "Bus part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.bus",))
    pci_device = Number("PCI device", "Device part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.device",))
    pci_base_class = Number("PCI base class", "Base class code on the PCI bus.", kind="state", cost="static", group="details", smi=("pci.baseClass",))
    pci_sub_class = Number("PCI subclass", "Subclass code on the PCI bus.", kind="state", cost="static", group="details", smi=("pci.subClass",))
    pci_device_id = Number("PCI device id", "PCI device id (high 16 bits) and vendor id (low 16 bits).", kind="state", cost="static", group="details", smi=("pci.device_id",))
    pci_subsystem_id = Number("PCI subsystem id", "PCI subsystem device id (high 16 bits) and subsystem vendor id (low 16 bits).", kind="state", cost="static", group="details", smi=("pci.sub_device_id",))
    pcie_gen_gpu_max = Number("PCIe generation of the GPU", "Highest PCIe generation supported by the GPU itself.", kind="state", cost="static", group="details", smi=("pcie.link.gen.gpumax",), low=1, high=16)
    inforom_image = Text("InfoROM image", "Version of the whole infoROM.", kind="state", cost="static", group="details", smi=("inforom.img", "inforom.image"))
    inforom_oem = Text("InfoROM OEM object", "Version of the board vendor's part of the infoROM.", kind="state", cost="static", group="details", smi=("inforom.oem",))
    inforom_ecc = Text("InfoROM ECC object", "Version of the part of the infoROM that records memory errors.", kind="state", cost="static", group="details", smi=("inforom.ecc",))
    inforom_power = Text("InfoROM power object", "Version of the power management part of the infoROM.", kind="state", cost="static", group="details", smi=("inforom.pwr", "inforom.power"))
    inforom_valid = Flag("InfoROM valid", "The infoROM matches its checksum; the check takes 70 ms and runs once.", kind="state", cost="static", group="details", smi=("inforom.checksum_validation",))
    hostname = Text("GPU host name", "Host name the driver was given for this GPU.", kind="state", cost="static", group="details", smi=("hostname",))
    platform_chassis = Text("Chassis serial", "Serial number of the chassis that contains the GPU; empty if it has none.", kind="state", cost="static", group="details", smi=("platform.chassis_serial_number",))
    platform_slot = Number("Chassis slot", "Slot in the chassis, counting switches.", kind="state", cost="static", group="details", smi=("platform.slot_number",))
    platform_tray = Number("Compute tray", "Compute tray in the chassis, not counting switches.", kind="state", cost="static", group="details", smi=("platform.tray_index",))
    platform_host = Number("Platform host", "Index of the node within its slot.", kind="state", cost="static", group="details", smi=("platform.host_id",))
    platform_peer = Text("NVLink peer", "How GPUs are connected over NVLink: direct or switch.", kind="state", cost="static", group="details", smi=("platform.peer_type",))
    platform_module = Number("Platform module", "Id of the GPU within its node.", kind="state", cost="static", group="details", smi=("platform.module_id",))
    platform_guid = Text("Fabric GUID", "Fabric id of the GPU, in hex.", kind="state", cost="static", group="details", smi=("platform.gpu_fabric_guid",))
    fabric_state = Text("Fabric state", "Progress of the registration with the NVLink fabric: not_started, in_progress or completed.", kind="state", cost="slow", group="details", smi=("fabric.state",))
    fabric_status = Text("Fabric status", "Result of the registration with the NVLink fabric: success, or NVML's name of the error.", kind="state", cost="slow", group="details", smi=("fabric.status",))
    fabric_clique = Number("Fabric clique", "Clique of the NVLink fabric that the GPU belongs to.", kind="state", cost="slow", group="details", smi=("fabric.cliqueId",))
    fabric_cluster = Text("Fabric cluster", "UUID of the NVLink cluster that the GPU belongs to.", kind="state", cost="slow", group="details", smi=("fabric.clusterUuid",))
    fabric_health = Text("Fabric health", "Health of the NVLink fabric: healthy, unhealthy or limited_capacity.", kind="state", cost="slow", group="details", smi=("fabric.health.summary",))
    fabric_degraded = Flag("Fabric degraded", "The NVLink fabric has lost bandwidth.", kind="state", cost="slow", group="details", smi=("fabric.health.bandwidth",))
    fabric_route_recovery = Flag("Fabric route recovery", "A route of the NVLink fabric is being recovered.", kind="state", cost="slow", group="details", smi=("fabric.health.route_recovery_in_progress",))
    fabric_route_unhealthy = Flag("Fabric route unhealthy", "A route of the NVLink fabric is unhealthy.", kind="state", cost="slow", group="details", smi=("fabric.health.route_unhealthy",))
    fabric_access_timeout = Flag("Fabric access timeout", "The NVLink fabric is recovering from accesses that timed out.", kind="state", cost="slow", group="details", smi=("fabric.health.access_timeout_recovery",))
    fabric_misconfiguration = Text("Fabric misconfiguration", "Misconfiguration of the NVLink fabric, or none.", kind="state", cost="slow", group="details", smi=("fabric.health.incorrect_configuration",))
    fabric_partition = Flag("Fabric partition assigned", "The GPU belongs to a partition of the NVLink fabric.", kind="state", cost="slow", group="details", smi=("fabric.health.partition_assigned",))
    display_attached = Flag("Display attached", "A display is connected to the GPU.", kind="state", cost="slow", group="details", smi=("display_attached",))
    addressing_mode = Text("Addressing mode", "How the GPU accesses system memory: none, hmm or ats.", kind="state", cost="static", group="details", smi=("addressing_mode",))
    accounting_mode = Flag("Accounting mode", "The driver keeps statistics of each compute process.", kind="state", cost="slow", group="details", smi=("accounting.mode",))
    accounting_capacity = Number("Accounting capacity", "Maximum number of processes whose statistics the driver keeps.", unit=COUNT, kind="state", cost="static", group="details", smi=("accounting.buffer_size",))
    driver_model = Text("Driver model", "Driver model on Windows: wddm, tcc or mcdm.", kind="state", cost="slow", group="details", smi=("driver_model.current",))
    driver_model_pending = Text("Driver model pending", "Driver model on Windows after the next reboot.", kind="state", cost="slow", group="details", smi=("driver_model.pending",))
    operation_mode = Text("Operation mode", "Enabled parts of the GPU: all_on, compute or low_double_precision.", kind="state", cost="slow", group="details", smi=("gom.current", "gpu_operation_mode.current"))
    operation_mode_pending = Text("Operation mode pending", "Operation mode after the next reboot.", kind="state", cost="slow", group="details", smi=("gom.pending", "gpu_operation_mode.pending"))
    recovery_action = Text("Recovery action", "Action needed to recover the GPU: none, reset, reboot, drain_p2p, drain_and_reset, or a newer value.", kind="state", cost="slow", group="details", smi=("gpu_recovery_action",))
    mig_mode_pending = Flag("MIG mode pending", "The GPU will be partitioned into MIG instances after the next reset.", kind="state", cost="slow", group="details", smi=("mig.mode.pending",))
    gsp_mode = Flag("GSP firmware", "The GPU's system processor (GSP) runs the driver's firmware.", kind="state", cost="static", group="details", smi=("gsp.mode.current",))
    gsp_mode_default = Flag("GSP firmware by default", "GSP firmware is enabled by default.", kind="state", cost="static", group="details", smi=("gsp.mode.default",))
    c2c_mode = Flag("C2C mode", "CPU and GPU are connected chip to chip.", kind="state", cost="static", group="details", smi=("c2c.mode",))
    dram_encryption = Flag("DRAM encryption", "GPU memory is encrypted.", kind="state", cost="slow", group="details", smi=("dramEncryption.mode.current",))
    dram_encryption_pending = Flag("DRAM encryption pending", "GPU memory will be encrypted after the next reboot.", kind="state", cost="slow", group="details", smi=("dramEncryption.mode.pending",))
    throttle_reasons_supported = Words("Throttle reasons known", "Throttle reasons that this GPU can report.", kind="state", cost="static", group="details", smi=("clocks_event_reasons.supported", "clocks_throttle_reasons.supported"))
    throttle_time_power_cap = Number("Time at the power cap", "Time the GPU was throttled to stay below the power limit.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sw_power_cap",), high=2**40, presets="diagnosis")
    throttle_time_sync_boost = Number("Time in sync boost", "Time clocks were lowered to match other GPUs.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sync_boost",), high=2**40)
    throttle_time_thermal = Number("Thermal throttling time by software", "Time the driver throttled the GPU because of heat.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sw_thermal_slowdown",), high=2**40, presets="diagnosis")
    throttle_time_thermal_hardware = Number("Thermal throttling time by hardware", "Time the hardware throttled the GPU because of heat.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.hw_thermal_slowdown",), high=2**40)
    throttle_time_power_brake = Number("Time in power brake", "Time the GPU was throttled by an external power brake.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.hw_power_brake_slowdown",), high=2**40)
    throttle_time_board_limit = Number("Time at a board limit", "Time the GPU was throttled by a limit of the board other than power and heat.", unit=SECOND, kind="counter", cost="slow", group="details", high=2**40)
    throttle_time_reliability = Number("Time at the voltage limit", "Time clocks were held back by the highest voltage that is reliable.", unit=SECOND, kind="counter", cost="slow", group="details", high=2**40)
    clock_graphics_max = Number("Graphics clock maximum", "Maximum clock of the graphics engine.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.max.graphics", "clocks.max.gr"), high=20_000)
    clock_video_max = Number("Video clock maximum", "Maximum clock of the video engines.", unit=MEGAHERTZ, cost="static", group="details", high=20_000)
    clock_graphics_application = Number("Graphics clock for applications", "Application clock of the graphics engine.", unit=MEGAHERTZ, cost="slow", group="details", smi=("clocks.applications.graphics", "clocks.applications.gr"), high=20_000)
    clock_memory_application = Number("Memory clock for applications", "Application clock of the memory.", unit=MEGAHERTZ, cost="slow", group="details", smi=("clocks.applications.memory", "clocks.applications.mem"), high=100_000)
    clock_graphics_default = Number("Graphics clock default", "Default application clock of the graphics engine.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.default_applications.graphics", "clocks.default_applications.gr"), high=20_000)
    clock_memory_default = Number("Memory clock default", "Default application clock of the memory.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.default_applications.memory", "clocks.default_applications.mem"), high=100_000)
    temperature_margin = Number("Temperature margin", "Degrees left until the GPU is throttled.", unit=CELSIUS, cost="slow", group="details", smi=("temperature.gpu.tlimit",), low=-200, high=200)
    power_management = Flag("Power management", "The driver manages the power of the board.", kind="state", cost="slow", group="details", smi=("power.management",))
    power_draw_average = Number("Power draw average", "Mean power of the whole board.", unit=WATT, group="details", smi=("power.draw.average", "gpu.power.draw.average"), high=100_000, window=SECOND_MEAN)
    power_draw_instant = Number("Power draw instant", "Instantaneous power of the whole board.", unit=WATT, group="details", smi=("power.draw.instant", "gpu.power.draw.instant"), high=100_000)
    power_limit_requested = Number("Power limit requested", "Power limit set by software.", unit=WATT, cost="slow", group="details", smi=("power.limit", "gpu.power.requested_limit"), high=100_000)
    power_limit_min = Number("Power limit minimum", "Lowest power limit that can be set.", unit=WATT, cost="static", group="details", smi=("power.min_limit", "gpu.power.min_limit"), high=100_000)
    power_limit_max = Number("Power limit maximum", "Highest power limit that can be set.", unit=WATT, cost="static", group="details", smi=("power.max_limit", "gpu.power.max_limit"), high=100_000)
    memory_power_draw = Number("Memory power draw", "Mean power of the memory.", unit=WATT, group="details", high=100_000, window=SECOND_MEAN)
    module_power_draw_average = Number("Module power draw average", "Mean power of the whole module.", unit=WATT, group="details", smi=("module.power.draw.average",), high=100_000, window=SECOND_MEAN)
    module_power_draw_instant = Number("Module power draw instant", "Instantaneous power of the whole module.", unit=WATT, group="details", smi=("module.power.draw.instant",), high=100_000)
    module_power_limit = Number("Module power limit", "Power limit of the module in effect.", unit=WATT, cost="slow", group="details", smi=("module.enforced.power.limit", "module.power.current_limit"), high=100_000)
    module_power_limit_requested = Number("Module power limit requested", "Power limit of the module set by software.", unit=WATT, cost="slow", group="details", smi=("module.power.limit", "module.power.requested_limit"), high=100_000)
    module_power_limit_default = Number("Module power limit default", "Default power limit of the module.", unit=WATT, cost="static", group="details", smi=("module.power.default_limit",), high=100_000)
    module_power_limit_min = Number("Module power limit minimum", "Lowest power limit of the module that can be set.", unit=WATT, cost="static", group="details", smi=("module.power.min_limit",), high=100_000)
    module_power_limit_max = Number("Module power limit maximum", "Highest power limit of the module that can be set.", unit=WATT, cost="static", group="details", smi=("module.power.max_limit",), high=100_000)
    memory_protected_total = Number("Protected memory total", "Memory reserved for confidential computing.", unit=BYTES, group="details", smi=("protected_memory.total",), high=2**60)
    memory_protected_used = Number("Protected memory used", "Memory for confidential computing used by programs.", unit=BYTES, group="details", smi=("protected_memory.used",), high=2**60)
    memory_protected_free = Number("Protected memory free", "Memory for confidential computing available to programs.", unit=BYTES, group="details", smi=("protected_memory.free",), high=2**60)
    encoder_sessions = Number("Encoder sessions", "Number of video encoder sessions.", unit=COUNT, group="details", smi=("encoder.stats.sessionCount",))
    encoder_frame_rate = Number("Encoder frame rate", "Frames per second, averaged over all encoder sessions.", group="details", smi=("encoder.stats.averageFps",), window=DRIVER)
    encoder_latency = Number("Encoder latency", "Time to encode a frame, averaged over all encoder sessions.", unit=SECOND, group="details", smi=("encoder.stats.averageLatency",), window=DRIVER)
    ecc_mode = Flag("ECC mode", "Memory errors are detected and corrected.", kind="state", cost="slow", group="details", smi=("ecc.mode.current",))
    ecc_mode_pending = Flag("ECC mode pending", "Memory errors will be detected and corrected after the next reboot.", kind="state", cost="slow", group="details", smi=("ecc.mode.pending",))
    ecc_corrected_volatile_dram = Number("ECC corrected volatile device memory", "Corrected errors in the GPU's memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.dram", "ecc.errors.corrected.volatile.device_memory"), high=2**63)
    ecc_corrected_volatile_l1 = Number("ECC corrected volatile L1 cache", "Corrected errors in the L1 caches since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.l1_cache",), high=2**63)
    ecc_corrected_volatile_l2 = Number("ECC corrected volatile L2 cache", "Corrected errors in the L2 cache since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.l2_cache",), high=2**63)
    ecc_corrected_volatile_registers = Number("ECC corrected volatile registers", "Corrected errors in the register files since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.register_file",), high=2**63)
    ecc_corrected_volatile_texture = Number("ECC corrected volatile texture memory", "Corrected errors in the texture memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.texture_memory",), high=2**63)
    ecc_corrected_volatile_cbu = Number("ECC corrected volatile CBU", "Corrected errors in the convergence barrier units since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.cbu",), high=2**63)
    ecc_corrected_volatile_sram = Number("ECC corrected volatile SRAM", "Corrected errors in all on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.sram",), high=2**63)
    ecc_corrected_aggregate_dram = Number("ECC corrected aggregate device memory", "Corrected errors in the GPU's memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.dram", "ecc.errors.corrected.aggregate.device_memory"), high=2**63)
    ecc_corrected_aggregate_l1 = Number("ECC corrected aggregate L1 cache", "Corrected errors in the L1 caches over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.l1_cache",), high=2**63)
    ecc_corrected_aggregate_l2 = Number("ECC corrected aggregate L2 cache", "Corrected errors in the L2 cache over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.l2_cache",), high=2**63)
    ecc_corrected_aggregate_registers = Number("ECC corrected aggregate registers", "Corrected errors in the register files over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.register_file",), high=2**63)
    ecc_corrected_aggregate_texture = Number("ECC corrected aggregate texture memory", "Corrected errors in the texture memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.texture_memory",), high=2**63)
    ecc_corrected_aggregate_cbu = Number("ECC corrected aggregate CBU", "Corrected errors in the convergence barrier units over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.cbu",), high=2**63)
    ecc_corrected_aggregate_sram = Number("ECC corrected aggregate SRAM", "Corrected errors in all on-chip memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.sram",), high=2**63)
    ecc_corrected_aggregate = Number("ECC corrected aggregate", "Corrected errors over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.total",), high=2**63)
    ecc_uncorrected_volatile_dram = Number("ECC uncorrected volatile device memory", "Uncorrected errors in the GPU's memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.dram", "ecc.errors.uncorrected.volatile.device_memory"), high=2**63)
    ecc_uncorrected_volatile_l1 = Number("ECC uncorrected volatile L1 cache", "Uncorrected errors in the L1 caches since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.l1_cache",), high=2**63)
    ecc_uncorrected_volatile_l2 = Number("ECC uncorrected volatile L2 cache", "Uncorrected errors in the L2 cache since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.l2_cache",), high=2**63)
    ecc_uncorrected_volatile_registers = Number("ECC uncorrected volatile registers", "Uncorrected errors in the register files since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.register_file",), high=2**63)
    ecc_uncorrected_volatile_texture = Number("ECC uncorrected volatile texture memory", "Uncorrected errors in the texture memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.texture_memory",), high=2**63)
    ecc_uncorrected_volatile_cbu = Number("ECC uncorrected volatile CBU", "Uncorrected errors in the convergence barrier units since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.cbu",), high=2**63)
    ecc_uncorrected_volatile_sram = Number("ECC uncorrected volatile SRAM", "Uncorrected errors in all on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram",), high=2**63)
    ecc_uncorrected_aggregate_dram = Number("ECC uncorrected aggregate device memory", "Uncorrected errors in the GPU's memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.dram", "ecc.errors.uncorrected.aggregate.device_memory"), high=2**63)
    ecc_uncorrected_aggregate_l1 = Number("ECC uncorrected aggregate L1 cache", "Uncorrected errors in the L1 caches over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.l1_cache",), high=2**63)
    ecc_uncorrected_aggregate_l2 = Number("ECC uncorrected aggregate L2 cache", "Uncorrected errors in the L2 cache over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.l2_cache",), high=2**63)
    ecc_uncorrected_aggregate_registers = Number("ECC uncorrected aggregate registers", "Uncorrected errors in the register files over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.register_file",), high=2**63)
    ecc_uncorrected_aggregate_texture = Number("ECC uncorrected aggregate texture memory", "Uncorrected errors in the texture memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.texture_memory",), high=2**63)
    ecc_uncorrected_aggregate_cbu = Number("ECC uncorrected aggregate CBU", "Uncorrected errors in the convergence barrier units over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.cbu",), high=2**63)
    ecc_uncorrected_aggregate_sram = Number("ECC uncorrected aggregate SRAM", "Uncorrected errors in all on-chip memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram",), high=2**63)
    ecc_uncorrected_aggregate = Number("ECC uncorrected aggregate", "Uncorrected errors over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.total",), high=2**63)
    ecc_sram_parity_volatile = Number("SRAM parity errors volatile", "Unique parity errors of on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram.parity",), high=2**63)
    ecc_sram_secded_volatile = Number("SRAM double-bit errors volatile", "Unique double-bit errors of on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram.secded",), high=2**63)
    ecc_sram_parity_aggregate = Number("SRAM parity errors aggregate", "Unique parity errors of on-chip memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.parity",), high=2**63)
    ecc_sram_secded_aggregate = Number("SRAM double-bit errors aggregate", "Unique double-bit errors of on-chip memory over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.secded",), high=2**63)
    ecc_sram_l2 = Number("SRAM errors L2", "Unique errors of on-chip memory in the L2 cache over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.l2",), high=2**63)
    ecc_sram_sm = Number("SRAM errors SM", "Unique errors of on-chip memory in the SMs over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.sm",), high=2**63)
    ecc_sram_mcu = Number("SRAM errors MCU", "Unique errors of on-chip memory in the microcontrollers over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.mcu",), high=2**63)
    ecc_sram_pcie = Number("SRAM errors PCIe", "Unique errors of on-chip memory in the PCIe unit over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.pcie",), high=2**63)
    ecc_sram_other = Number("SRAM errors other", "Unique errors of on-chip memory in other units over the lifetime of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.other",), high=2**63)
    ecc_sram_exceeded = Flag("SRAM error threshold", "Errors of on-chip memory have exceeded the threshold for a board in service.", kind="state", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",))
    retired_pages_corrected = Number("Retired pages corrected", "Memory pages retired after many corrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("retired_pages.single_bit_ecc.count", "retired_pages.sbe"), high=2**63)
    retired_pages_uncorrected = Number("Retired pages uncorrected", "Memory pages retired after an uncorrected error.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("retired_pages.double_bit.count", "retired_pages.dbe"), high=2**63)
    retired_pages_pending = Flag("Retired pages pending", "Memory pages will be retired at the next reboot.", kind="state", cost="slow", group="details", smi=("retired_pages.pending",))
    remapped_rows_corrected = Number("Remapped rows corrected", "Memory rows replaced after corrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.correctable", "remapped_rows.sbe"), high=2**63)
    remapped_rows_uncorrected = Number("Remapped rows uncorrected", "Memory rows replaced after an uncorrected error.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.uncorrectable", "remapped_rows.dbe"), high=2**63)
    remapped_rows_corrected_inactive = Number("Remapped rows corrected inactive", "Inactive replacements of memory rows after corrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.correctable_inactive",), high=2**63)
    remapped_rows_uncorrected_inactive = Number("Remapped rows uncorrected inactive", "Inactive replacements of memory rows after uncorrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.uncorrectable_inactive",), high=2**63)
    remapped_rows_pending = Flag("Remapped rows pending", "Memory rows will be replaced at the next reset.", kind="state", cost="slow", group="details", smi=("remapped_rows.pending",))
    remapped_rows_failed = Flag("Remapped rows failed", "Replacing a memory row has failed.", kind="state", cost="slow", group="details", smi=("remapped_rows.failure",))
    remap_banks_max = Number("Banks with spare rows max", "Memory banks with all spare rows available.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.max",), high=2**32)
    remap_banks_high = Number("Banks with spare rows high", "Memory banks with most spare rows available.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.high",), high=2**32)
    remap_banks_partial = Number("Banks with spare rows partial", "Memory banks with some spare rows available.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.partial",), high=2**32)
    remap_banks_low = Number("Banks with spare rows low", "Memory banks with few spare rows available.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.low",), high=2**32)
    remap_banks_none = Number("Banks with spare rows none", "Memory banks without available spare rows.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.none",), high=2**32)
    clocks_supported = Words("Supported clocks", "Supported memory clocks in MHz, each with its graphics clocks, for example 3201:1980,1965.", kind="state", cost="static", group="details")
    brand = Text("Brand", "Product line of the board.", kind="state", cost="static", group="details")
    pdi = Text("PDI", "Per-device identifier that the chip carries for life, in hex.", kind="state", cost="static", group="details")
    minor_number = Number("Minor number", "N of the device file /dev/nvidiaN.", kind="state", cost="static", group="details")
    multi_gpu_board = Flag("Multi-GPU board", "The board carries more than one GPU.", kind="state", cost="static", group="details")
    board_id = Number("Board id", "Number that all GPUs of one board share.", kind="state", cost="static", group="details")
    board_part_number = Text("Board part number", "Part number of the board.", kind="state", cost="static", group="details")
    chip_part_number = Text("Chip part number", "Part number of the chip; only nvidia-smi knows it.", kind="state", cost="static", group="details")
    sparse_operation_mode = Flag("Sparse operation mode", "Whether clocks are set for sparse work; only nvidia-smi knows it.", kind="state", cost="slow", group="details")
    module_id = Number("Module id", "Place of the GPU on its baseboard.", kind="state", cost="static", group="details")
    gsp_version = Text("GSP firmware version", "Version of the firmware that runs on the GPU itself.", kind="state", cost="static", group="details")
    virtualization_mode = Text("Virtualization mode", "How the GPU reaches this machine: none, pass_through, vgpu, host_vgpu or host_vsga.", kind="state", cost="static", group="details")
    pcie_replay_rollovers = Number("PCIe replay rollovers", "How often the count of replayed PCIe packets wrapped.", unit=COUNT, kind="counter", cost="slow", group="details", high=2**63)
    fbc_sessions = Number("Capture sessions", "Sessions that capture the frame buffer.", unit=COUNT, cost="slow", group="details", high=2**32)
    fbc_frame_rate = Number("Capture frame rate", "Frames per second of all capture sessions, averaged.", cost="slow", group="details", high=2**32)
    fbc_latency = Number("Capture latency", "Time per captured frame.", unit=SECOND, cost="slow", group="details", high=2**32)
    repair_channel_pending = Flag("Channel repair pending", "A memory channel waits for a reset to be repaired.", kind="state", cost="slow", group="details")
    repair_tpc_pending = Flag("TPC repair pending", "A group of SMs waits for a reset to be repaired.", kind="state", cost="slow", group="details")
    memory_unrepairable = Flag("Unrepairable memory", "The memory has errors that cannot be repaired.", kind="state", cost="slow", group="details")
    egm = Flag("Extended GPU memory", "The GPU can use memory of the CPU as its own.", kind="state", cost="static", group="details")
    auto_boost = Flag("Auto boost", "Clocks are raised while there is power left.", kind="state", cost="slow", group="details")
    auto_boost_default = Flag("Auto boost default", "Auto boost after the last program that set it ended.", kind="state", cost="slow", group="details")
    clock_graphics_boost = Number("Graphics clock boost", "Highest graphics clock that customers may set.", unit=MEGAHERTZ, cost="static", group="details", high=20_000)
    temperature_margin_shutdown = Number("Shutdown margin", "Margin at which the GPU shuts down.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_margin_slowdown = Number("Slowdown margin", "Margin at which the GPU slows down.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_margin_memory = Number("Memory margin", "Lowest margin at which the memory may run.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_margin_gpu = Number("Operating margin", "Lowest margin at which the GPU may run.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_shutdown = Number("Shutdown temperature", "Temperature at which the GPU shuts down.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    memory_temperature_max = Number("Memory temperature maximum", "Highest temperature at which the memory may run.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_max = Number("Temperature maximum", "Highest temperature at which the GPU may run.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_target_min = Number("Target temperature minimum", "Lowest target temperature that can be set.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_target = Number("Target temperature", "Temperature that the GPU is kept at.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    temperature_target_max = Number("Target temperature maximum", "Highest target temperature that can be set.", unit=CELSIUS, cost="static", group="details", low=-200, high=200)
    utilization_trace = Numbers("Utilization trace", "Utilization in each 0.2 s since the trace was last read, newest last; the first one reaches back up to 14 s.", unit=PERCENT, cost="slow", group="details", short="UTIL TRACE", high=100, window="0.2 s each")
    power_trace = Numbers("Power trace", "Power in each 0.02 s since the trace was last read, newest last; one reaches back at most 2.4 s.", unit=WATT, group="details", short="POWER TRACE", high=100_000, window="0.02 s each")
    power_trace_times = Numbers("Power trace times", "When each value of the power trace was sampled, in seconds since 1970.", unit=SECOND, group="details", short="POWER TIMES", window="0.02 s each")
    power_samples = Numbers("Power samples", "Samples of the power that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=WATT, cost="slow", group="details")
    utilization_samples = Numbers("Utilization samples", "Samples of the utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    memory_utilization_samples = Numbers("Memory utilization samples", "Samples of the memory utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    encoder_samples = Numbers("Encoder samples", "Samples of the encoder utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    decoder_samples = Numbers("Decoder samples", "Samples of the decoder utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    jpeg_samples = Numbers("JPEG samples", "Samples of the JPEG utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    ofa_samples = Numbers("OFA samples", "Samples of the optical flow utilization that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=PERCENT, cost="slow", group="details")
    clock_sm_samples = Numbers("SM clock samples", "Samples of the SM clock that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=MEGAHERTZ, cost="slow", group="details")
    clock_memory_samples = Numbers("Memory clock samples", "Samples of the memory clock that the driver keeps: seconds covered, number, maximum, minimum, mean.", unit=MEGAHERTZ, cost="slow", group="details")
    retired_pages = Words("Retired pages", "Memory pages no longer used, as cause:address:time.", kind="state", cost="slow", group="details")
    accounting_apps = Words("Accounted processes", "Processes that accounting knows, as pid:utilization:memory utilization:most memory:milliseconds:running.", kind="state", cost="slow", group="details")
    mig_profiles = Words("MIG profiles", "Profiles of GPU instances, as id:name:free:total:MiB:p2p:SMs:copy:decoders:encoders:JPEG:OFA.", kind="state", cost="slow", group="details")
    p2p = Words("Peer access", "Peer-to-peer status to each other GPU for read, write, NVLink, atomics and PCIe, and the way over PCIe, as GPU1:OK,OK,OK,OK,OK,SYS.", kind="state", cost="static", group="details")
    nvlink_states = Numbers("NVLink states", "Whether each NVLink is up.", kind="state", cost="slow", group="details")
    nvlink_speeds = Numbers("NVLink speeds", "Speed of each NVLink in one direction; 0 for one that is down.", unit=BYTES_PER_SECOND, kind="state", cost="slow", group="details")
    nvlink_rx_links = Numbers("NVLink in per link", "Bytes received over each NVLink since the driver was loaded.", unit=BYTES, kind="counter", cost="slow", group="details")
    nvlink_tx_links = Numbers("NVLink out per link", "Bytes sent over each NVLink since the driver was loaded.", unit=BYTES, kind="counter", cost="slow", group="details")
    nvlink_crc_links = Numbers("NVLink CRC errors per link", "Packets with a wrong checksum on each NVLink since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details")
    nvlink_replay_links = Numbers("NVLink replay errors per link", "Packets sent again on each NVLink since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details")
    nvlink_recovery_links = Numbers("NVLink recovery errors per link", "Recoveries of the link on each NVLink since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details")
    nvlink_capabilities = Words("NVLink capabilities", "What each NVLink can do, as six digits: P2P, system memory, P2P atomics, system atomics, SLI, link supported.", kind="state", cost="static", group="details")
    nvlink_remotes = Words("NVLink remotes", "PCI bus id at the other end of each NVLink.", kind="state", cost="static", group="details")
    mig_multiprocessors = Number("Multiprocessors", "SMs of a MIG instance.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)
    mig_copy_engines = Number("Copy engines", "Copy engines that a MIG instance can use.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)
    mig_encoders = Number("Encoders", "Video encoders that a MIG instance can use.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)
    mig_decoders = Number("Decoders", "Video decoders that a MIG instance can use.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)
    mig_jpegs = Number("JPEG engines", "JPEG engines that a MIG instance can use.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)
    mig_ofas = Number("Optical flow engines", "Optical flow engines that a MIG instance can use.", unit=COUNT, kind="state", cost="static", group="details", high=2**16)

    # fmt: on
    def __init__(
        self,
        values: Mapping[str, Value],
        gaps: Mapping[str, Gap] = MappingProxyType({}),
        *,
        state: State = "ok",
        since: float | None = None,
        processes: tuple[Process, ...] = (),
        instances: tuple[Gpu, ...] = (),
    ) -> None:
        super().__init__(values, gaps)
        assign = object.__setattr__
        assign(self, "state", state)
        assign(self, "since", since)
        assign(self, "processes", processes)
        assign(self, "instances", instances)

    def replace(self, **changes: Any) -> Gpu:
        """Return a copy with some values changed, or its gaps, state, since, processes or instances; None removes a value."""
        parts = {name: changes.pop(name, getattr(self, name)) for name in ("gaps", *Gpu.__slots__)}
        return Gpu({key: value for key, value in {**self._values, **changes}.items() if value is not None}, **parts)

    def __repr__(self) -> str:
        from .codec import gpu_brief

        return gpu_brief(self)

    def all_processes(self) -> Iterator[Process]:
        """Yield the processes of this GPU and of its MIG instances."""
        yield from self.processes
        for instance in self.instances:
            yield from instance.processes


def metrics_of(reading: type[Reading]) -> dict[str, Metric]:
    """Return the metrics of a class by key, in order of declaration."""
    return {metric.key: metric for metric in reading.metrics()}


GPU_METRICS = metrics_of(Gpu)
PROCESS_METRICS = metrics_of(Process)
HOST_METRICS = metrics_of(Host)
SERVER_METRICS = metrics_of(Server)


# --- presets: metrics that belong together. A metric is in a preset by a word on its line, so that a new one reaches every surface
# it belongs to by its line alone.

# The order of groups in charts and lists of curves; within a group, that of the catalog.
_GROUPS = (
    "utilization", "activity", "engines", "memory", "power", "thermal", "clocks", "links", "health", "modes", "details",
)  # fmt: skip


def _presets(metrics: Mapping[str, Metric]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each preset."""
    found: dict[str, list[str]] = {}
    for key, metric in metrics.items():
        for word in metric.presets.split():
            found.setdefault(word, []).append(key)
    return {word: tuple(keys) for word, keys in found.items()}


def _by_group(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(keys, key=lambda key: _GROUPS.index(GPU_METRICS[key].group)))


_GPU, _PROCESS, _HOST = _presets(GPU_METRICS), _presets(PROCESS_METRICS), _presets(HOST_METRICS)
SUMMARY = _by_group(_GPU["summary"])  # what tells most about a GPU, where there is room for little
GLANCE = _GPU["glance"]  # what a screen shows of each GPU
CURVES = _by_group(_GPU["curves"])  # what is worth a curve over time
TRAINING = _GPU["training"]  # what a monitor logs by default: cheap on every GPU, and enough to tell what a run did
DIAGNOSIS = _GPU["diagnosis"]  # what rules of the diagnosis can read over a window
HOST_CURVES = _HOST["curves"]
HOST_VIEW = _HOST["view"]  # what the view of the host shows besides, read only while it is open
PROCESS_EVIDENCE = _PROCESS["diagnosis"]
USERS = _PROCESS["users"]  # what is read of each process to say who uses a GPU
OWNERS = ("user", "job", "container", "pod")  # whose a process can be
PCIE_LINK = ("pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max")
LINK_TRAFFIC = ("pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
PIPES = ("tensor_active", "fp32_active", "fp64_active", "fp16_active")
# NVML's bit of each throttle reason that has a word.
THROTTLE_BITS = {
    "gpu_idle": 0x001, "applications_clocks_setting": 0x002, "sw_power_cap": 0x004, "hw_slowdown": 0x008, "sync_boost": 0x010,
    "sw_thermal_slowdown": 0x020, "hw_thermal_slowdown": 0x040, "hw_power_brake_slowdown": 0x080, "display_clock_setting": 0x100,
}  # fmt: skip
# Activity that the hardware counts; reading it costs an NVIDIA GPU 1.4 ms, as much as ten of the others together.
COSTLY = frozenset(key for key, metric in GPU_METRICS.items() if metric.group == "activity") | {*LINK_TRAFFIC}
# What a diagnosis needs besides, wherever it samples, so that the same minute gets the same verdict.
EVIDENCE = ("utilization_trace",)
# What the lines of code at which a GPU waits need besides.
TIMED_POWER = ("power_trace", "power_trace_times")
# Values that the driver sampled by itself since they were last read. They appear once, in the sample that read them.
TRACES = frozenset({*EVIDENCE, *TIMED_POWER})
