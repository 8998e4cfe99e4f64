"""The catalog: every metric gpulse knows, one line each; surfaces, docs and names elsewhere are derived from these lines."""

from __future__ import annotations

from types import MappingProxyType

from ..units import BYTES, BYTES_PER_SECOND, CELSIUS, COUNT, JOULE, MEGAHERTZ, PERCENT, SECOND, WATT
from .metric import Flag, Number, Numbers, Reading, Text, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal, TypeAlias

    from .metric import Gap, Metric, Value

    State: TypeAlias = Literal["ok", "lost", "timeout", "asleep"]


# fmt: off
class Process(Reading):
    """A process that uses a GPU; one that uses several GPUs appears once under each."""

    __slots__ = ()

    pid = Number("PID", "Process id in the driver's own PID namespace.", kind="identity", group="identity", smi=("pid",))
    name = Text("Name", "Short name of the program.", kind="identity", group="identity", smi=("process_name", "name"))
    command = Text("Command", "Full command line, secrets masked.", kind="identity", group="identity")
    user = Text("User", "Owner of the process.", kind="identity", group="identity")
    type = Text("Type", "How it uses the GPU: C compute, G graphics, M through MPS, joined by + when several.", kind="state", group="identity")
    container = Text("Container", "Short id of the container it runs in.", kind="identity", group="owner")
    pod = Text("Pod", "Kubernetes pod: its name where the environment tells, else its UID.", kind="identity", group="owner")
    job = Text("Job", "Batch job it belongs to, as slurm:1234.", kind="identity", group="owner")
    memory_used = Number("GPU memory", "GPU memory held by the process.", unit=BYTES, group="memory", short="GPU MEM", smi=("used_gpu_memory", "used_memory"), high=2**60)
    sm_utilization = Number("SM share", "Share of the last seconds in which its kernels ran.", unit=PERCENT, cost="slow", group="activity", short="SM", high=100)
    memory_utilization = Number("Memory share", "Share of the last seconds in which it moved GPU memory.", unit=PERCENT, cost="slow", group="activity", short="MEM-BW", high=100)
    encoder_utilization = Number("Encoder share", "Its share of the video encoders.", unit=PERCENT, cost="slow", group="activity", short="ENC", high=100)
    decoder_utilization = Number("Decoder share", "Its share of the video decoders.", unit=PERCENT, cost="slow", group="activity", short="DEC", high=100)
    cpu_percent = Number("CPU", "CPU time of the process; 100 is one core.", unit=PERCENT, group="host", short="CPU")
    tree_cpu_percent = Number("CPU of the tree", "CPU time of the process with all its descendants; 100 is one core.", unit=PERCENT, cost="slow", group="host", short="TREE CPU")
    children = Number("Children", "How many descendants it has, data-loading workers for instance.", unit=COUNT, cost="slow", group="host")
    host_memory = Number("Host memory", "Resident memory of the process on the host.", unit=BYTES, group="host", short="HOST MEM", high=2**60)
    running_time = Number("Running time", "Seconds since the process started.", unit=SECOND, group="host", short="TIME")


class Host(Reading):
    """The machine around the GPUs."""

    __slots__ = ()

    name = Text("Host", "Name of the machine.", kind="identity", group="identity")
    cpu_count = Number("CPUs", "Logical processors of the machine.", unit=COUNT, kind="identity", group="cpu")
    cpu_percent = Number("CPU", "Busy share of all processors together.", unit=PERCENT, group="cpu", high=100)
    cpu_per_core = Numbers("CPU per core", "Busy share of each processor.", unit=PERCENT, group="cpu", high=100)
    iowait = Number("I/O wait", "Share of processor time spent idle while waiting for disks.", unit=PERCENT, group="cpu", high=100)
    load = Numbers("Load", "Runnable processes, averaged over 1, 5 and 15 minutes.", group="cpu")
    memory_used = Number("Memory used", "Host memory that is not available to new programs.", unit=BYTES, group="memory", high=2**60)
    memory_total = Number("Memory total", "Host memory.", unit=BYTES, group="memory", high=2**60)
    swap_used = Number("Swap used", "Swap space in use.", unit=BYTES, group="memory", high=2**60)
    swap_total = Number("Swap total", "Swap space.", unit=BYTES, group="memory", high=2**60)
    disk_read = Number("Disk read", "Read from all disks.", unit=BYTES_PER_SECOND, group="io", high=2**50)
    disk_write = Number("Disk write", "Written to all disks.", unit=BYTES_PER_SECOND, group="io", high=2**50)
    net_rx = Number("Network in", "Received on all interfaces but loopback.", unit=BYTES_PER_SECOND, group="io", high=2**50)
    net_tx = Number("Network out", "Sent on all interfaces but loopback.", unit=BYTES_PER_SECOND, group="io", high=2**50)


class Gpu(Reading):
    """One GPU, or one MIG instance of a GPU, at one moment.

    `state` is ok, lost, timeout or asleep; `since` is the time (seconds since 1970) at which a state other than ok began.
    `processes` are those whose memory is counted here; the ones in a MIG instance stand under that instance.
    """

    __slots__ = ("instances", "processes", "since", "state")
    state: State
    since: float | None
    processes: tuple[Process, ...]
    instances: tuple[Gpu, ...]

    # identity
    index = Number("Index", "Position in the driver's own order; not the CUDA ordinal.", kind="identity", group="identity", short="GPU", smi=("index",))
    uuid = Text("UUID", "The one name that survives reboots and reordering.", kind="identity", group="identity", smi=("uuid", "gpu_uuid"))
    name = Text("Name", "Product name.", kind="identity", group="identity", smi=("name", "gpu_name"))
    vendor = Text("Vendor", "Who made it: nvidia, amd or intel.", kind="identity", group="identity")
    architecture = Text("Architecture", "Generation of the chip, such as Hopper.", kind="identity", group="identity", short="ARCH")
    pci_bus_id = Text("PCI bus id", "Where it sits on the PCI bus.", kind="identity", group="identity", short="BUS", smi=("pci.bus_id", "gpu_bus_id"))
    serial = Text("Serial number", "Printed on the board; boards with several GPUs share it.", kind="identity", group="identity", short="SERIAL", smi=("serial", "gpu_serial"))
    vbios = Text("VBIOS", "Firmware version of the board.", kind="identity", group="identity", smi=("vbios_version",))
    driver_version = Text("Driver", "Version of the kernel driver.", kind="identity", group="identity", smi=("driver_version",))
    gpu_instance = Number("GPU instance", "MIG GPU instance id.", kind="identity", group="identity", short="GI")
    compute_instance = Number("Compute instance", "MIG compute instance id.", kind="identity", group="identity", short="CI")

    # utilisation
    utilization = Number("Utilization", "Share of the last second in which at least one kernel or copy ran; says nothing about how much of the chip worked.", unit=PERCENT, group="utilization", short="UTIL", smi=("utilization.gpu",), dcgm="DCGM_FI_DEV_GPU_UTIL", otel="hw.gpu.utilization", high=100)
    memory_utilization = Number("Memory utilization", "Share of the last second in which GPU memory was read or written.", unit=PERCENT, group="utilization", short="MEM-BW", smi=("utilization.memory",), dcgm="DCGM_FI_DEV_MEM_COPY_UTIL", high=100)
    encoder_utilization = Number("Encoder utilization", "Busy share of the video encoders.", unit=PERCENT, group="engines", short="ENC", smi=("utilization.encoder",), dcgm="DCGM_FI_DEV_ENC_UTIL", high=100)
    decoder_utilization = Number("Decoder utilization", "Busy share of the video decoders.", unit=PERCENT, group="engines", short="DEC", smi=("utilization.decoder",), dcgm="DCGM_FI_DEV_DEC_UTIL", high=100)
    jpeg_utilization = Number("JPEG utilization", "Busy share of the JPEG engines.", unit=PERCENT, group="engines", short="JPEG", smi=("utilization.jpeg",), high=100)
    ofa_utilization = Number("OFA utilization", "Busy share of the optical-flow engine.", unit=PERCENT, group="engines", short="OFA", smi=("utilization.ofa",), high=100)

    # what the chip really does (GPM: Hopper and later)
    sm_active = Number("SM active", "Share of time, averaged over all SMs, in which a warp was resident.", unit=PERCENT, group="activity", short="SM", dcgm="DCGM_FI_PROF_SM_ACTIVE", high=100)
    sm_occupancy = Number("SM occupancy", "Resident warps against the most an SM can hold.", unit=PERCENT, group="activity", short="OCC", dcgm="DCGM_FI_PROF_SM_OCCUPANCY", high=100)
    tensor_active = Number("Tensor active", "Share of time in which tensor cores worked.", unit=PERCENT, group="activity", short="TENSOR", dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", high=100)
    dram_active = Number("DRAM active", "Used share of the memory bandwidth; about 80 is the practical most.", unit=PERCENT, group="activity", short="DRAM", dcgm="DCGM_FI_PROF_DRAM_ACTIVE", high=100)
    fp64_active = Number("FP64 active", "Share of time in which the FP64 pipes worked.", unit=PERCENT, group="activity", short="FP64", dcgm="DCGM_FI_PROF_PIPE_FP64_ACTIVE", high=100)
    fp32_active = Number("FP32 active", "Share of time in which the FP32 pipes worked.", unit=PERCENT, group="activity", short="FP32", dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE", high=100)
    fp16_active = Number("FP16 active", "Share of time in which the FP16 pipes worked, tensor cores apart.", unit=PERCENT, group="activity", short="FP16", dcgm="DCGM_FI_PROF_PIPE_FP16_ACTIVE", high=100)
    integer_active = Number("Integer active", "Share of time in which the integer pipes worked.", unit=PERCENT, group="activity", short="INT", high=100)
    graphics_active = Number("Graphics active", "Share of time in which the compute or graphics engine was busy.", unit=PERCENT, cost="slow", group="activity", short="GR", dcgm="DCGM_FI_PROF_GR_ENGINE_ACTIVE", high=100)

    # memory
    memory_used = Number("Memory used", "Memory held by programs; what the driver reserves for itself is apart.", unit=BYTES, group="memory", short="USED", smi=("memory.used",), dcgm="DCGM_FI_DEV_FB_USED", otel="hw.gpu.memory.usage", high=2**60)
    memory_total = Number("Memory total", "Memory of the GPU.", unit=BYTES, group="memory", short="TOTAL", smi=("memory.total",), dcgm="DCGM_FI_DEV_FB_TOTAL", otel="hw.gpu.memory.limit", high=2**60)
    memory_free = Number("Memory free", "Memory that a program can still get.", unit=BYTES, group="memory", short="FREE", smi=("memory.free",), dcgm="DCGM_FI_DEV_FB_FREE", high=2**60)
    memory_reserved = Number("Memory reserved", "Memory the driver and the firmware keep for themselves.", unit=BYTES, group="memory", short="RESERVED", smi=("memory.reserved",), dcgm="DCGM_FI_DEV_FB_RESERVED", high=2**60)
    memory_percent = Number("Memory", "Used memory against what programs can have.", unit=PERCENT, group="memory", short="MEM", warn=90, critical=97, high=100)
    memory_unattributed = Number("Memory unattributed", "Used memory that no visible process accounts for: other containers, hidden users, dying processes.", unit=BYTES, group="memory", short="UNATTR", high=2**60)
    memory_unified = Flag("Unified memory", "CPU and GPU share one memory: total is the machine's, used is the sum of the GPU's processes.", kind="state", cost="static", group="memory", short="UNIFIED")
    bar1_used = Number("BAR1 used", "Used part of the window through which the CPU reaches GPU memory.", unit=BYTES, cost="slow", group="memory", short="BAR1", high=2**60)
    bar1_total = Number("BAR1 total", "Size of the window through which the CPU reaches GPU memory.", unit=BYTES, cost="slow", group="memory", short="BAR1 TOTAL", high=2**60)

    # heat and power
    temperature = Number("Temperature", "Temperature of the chip.", unit=CELSIUS, group="thermal", short="TEMP", smi=("temperature.gpu",), dcgm="DCGM_FI_DEV_GPU_TEMP", otel="hw.temperature", low=-50, high=200, warn=80, critical=90)
    memory_temperature = Number("Memory temperature", "Temperature of the memory.", unit=CELSIUS, group="thermal", short="MEM TEMP", smi=("temperature.memory",), dcgm="DCGM_FI_DEV_MEMORY_TEMP", low=-50, high=200, warn=90, critical=100)
    temperature_limit = Number("Temperature limit", "Temperature at which the chip slows itself down.", unit=CELSIUS, cost="static", group="thermal", short="LIMIT", low=1, high=200)
    fan_speed = Number("Fan speed", "Intended speed of the fastest fan against its maximum; can pass 100.", unit=PERCENT, group="thermal", short="FAN", smi=("fan.speed",), dcgm="DCGM_FI_DEV_FAN_SPEED", otel="hw.fan.speed_ratio", high=200)
    power_draw = Number("Power draw", "Power of the whole board; averaged over one second on most cards since Ampere.", unit=WATT, group="power", short="POWER", smi=("power.draw",), dcgm="DCGM_FI_DEV_POWER_USAGE", otel="hw.power", high=100_000)
    power_limit = Number("Power limit", "Limit in force: the lowest of all that apply.", unit=WATT, group="power", short="CAP", smi=("enforced.power.limit", "power.limit"), dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT", otel="hw.power_limit", high=100_000)
    power_default_limit = Number("Power default limit", "Limit the board was shipped with.", unit=WATT, cost="static", group="power", short="DEFAULT", smi=("power.default_limit",), dcgm="DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", high=100_000)
    energy = Number("Energy", "Energy used since the driver was loaded.", unit=JOULE, kind="counter", cost="slow", group="power", short="ENERGY", dcgm="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", otel="hw.energy", high=1e15)

    # clocks
    clock_sm = Number("SM clock", "Clock of the SMs.", unit=MEGAHERTZ, group="clocks", short="SM MHz", smi=("clocks.current.sm", "clocks.sm"), dcgm="DCGM_FI_DEV_SM_CLOCK", high=20_000)
    clock_memory = Number("Memory clock", "Clock of the memory.", unit=MEGAHERTZ, group="clocks", short="MEM MHz", smi=("clocks.current.memory", "clocks.mem"), dcgm="DCGM_FI_DEV_MEM_CLOCK", high=100_000)
    clock_graphics = Number("Graphics clock", "Clock of the graphics engine.", unit=MEGAHERTZ, group="clocks", short="GR MHz", smi=("clocks.current.graphics", "clocks.gr"), high=20_000)
    clock_video = Number("Video clock", "Clock of the video engines.", unit=MEGAHERTZ, group="clocks", short="VID MHz", smi=("clocks.current.video", "clocks.video"), dcgm="DCGM_FI_DEV_VIDEO_CLOCK", high=20_000)
    clock_sm_max = Number("SM clock maximum", "Highest clock of the SMs.", unit=MEGAHERTZ, cost="static", group="clocks", short="SM MAX", smi=("clocks.max.sm",), dcgm="DCGM_FI_DEV_MAX_SM_CLOCK", high=20_000)
    clock_memory_max = Number("Memory clock maximum", "Highest clock of the memory.", unit=MEGAHERTZ, cost="static", group="clocks", short="MEM MAX", smi=("clocks.max.memory", "clocks.max.mem"), dcgm="DCGM_FI_DEV_MAX_MEM_CLOCK", high=100_000)
    pstate = Number("P-state", "Performance state: 0 is the fastest, 15 the slowest.", kind="state", group="clocks", short="P", smi=("pstate",), dcgm="DCGM_FI_DEV_PSTATE", high=15)
    throttle_reasons = Words("Throttle reasons", "Why the clocks are below their maximum, in words.", kind="state", group="clocks", short="THROTTLE", smi=("clocks_event_reasons.active", "clocks_throttle_reasons.active"), dcgm="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")

    # links
    pcie_rx = Number("PCIe in", "Data from the host to the GPU.", unit=BYTES_PER_SECOND, group="links", short="PCIE RX", dcgm="DCGM_FI_PROF_PCIE_RX_BYTES", high=2**42)
    pcie_tx = Number("PCIe out", "Data from the GPU to the host.", unit=BYTES_PER_SECOND, group="links", short="PCIE TX", dcgm="DCGM_FI_PROF_PCIE_TX_BYTES", high=2**42)
    pcie_gen = Number("PCIe generation", "Generation the link runs at now; idle links step down.", kind="state", cost="slow", group="links", short="GEN", smi=("pcie.link.gen.current", "pcie.link.gen.gpucurrent"), low=1, high=16)
    pcie_width = Number("PCIe width", "Lanes the link runs on now.", kind="state", cost="slow", group="links", short="WIDTH", smi=("pcie.link.width.current",), low=1, high=64)
    pcie_gen_max = Number("PCIe generation maximum", "Generation that GPU and slot could run at.", kind="state", cost="static", group="links", short="GEN MAX", smi=("pcie.link.gen.max",), low=1, high=16)
    pcie_width_max = Number("PCIe width maximum", "Lanes that GPU and slot could run on.", kind="state", cost="static", group="links", short="WIDTH MAX", smi=("pcie.link.width.max",), low=1, high=64)
    pcie_replays = Number("PCIe replays", "Packets sent again since the driver was loaded; growth means a bad link.", unit=COUNT, kind="counter", cost="slow", group="links", short="REPLAYS", dcgm="DCGM_FI_DEV_PCIE_REPLAY_COUNTER", high=2**63)
    nvlink_rx = Number("NVLink in", "Data received over all NVLinks.", unit=BYTES_PER_SECOND, group="links", short="NVLINK RX", dcgm="DCGM_FI_PROF_NVLINK_RX_BYTES", high=2**44)
    nvlink_tx = Number("NVLink out", "Data sent over all NVLinks.", unit=BYTES_PER_SECOND, group="links", short="NVLINK TX", dcgm="DCGM_FI_PROF_NVLINK_TX_BYTES", high=2**44)

    # health and modes
    ecc_corrected = Number("ECC corrected", "Memory errors corrected since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="health", short="ECC CORR", smi=("ecc.errors.corrected.volatile.total",), dcgm="DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", high=2**63)
    ecc_uncorrected = Number("ECC uncorrected", "Memory errors that could not be corrected since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="health", short="ECC UNCORR", smi=("ecc.errors.uncorrected.volatile.total",), dcgm="DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", high=2**63, critical=1)
    remapped_rows = Number("Remapped rows", "Memory rows replaced by spare ones, for good.", unit=COUNT, kind="counter", cost="slow", group="health", short="ROWS", dcgm="DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", high=2**32)
    xid_last = Number("Last XID", "Last error code the driver reported while gpulse watched.", kind="state", group="health", short="XID", dcgm="DCGM_FI_DEV_XID_ERRORS", high=10_000)
    compute_mode = Text("Compute mode", "Who may open a context: default, exclusive_process or prohibited.", kind="state", cost="slow", group="modes", short="COMPUTE", smi=("compute_mode",))
    persistence_mode = Flag("Persistence mode", "The driver stays loaded while nobody uses the GPU.", kind="state", cost="slow", group="modes", short="PERSIST", smi=("persistence_mode",))
    mig_mode = Flag("MIG mode", "The GPU is divided into instances.", kind="state", cost="slow", group="modes", short="MIG", smi=("mig.mode.current",))
    display_active = Flag("Display active", "A display is driven by this GPU.", kind="state", cost="slow", group="modes", short="DISPLAY", smi=("display_active",))

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

    def replace(self, **values: Value | None) -> Gpu:
        """Return a copy with some values changed; None takes a value out."""
        merged = {key: value for key, value in {**self._values, **values}.items() if value is not None}
        return Gpu(merged, self.gaps, state=self.state, since=self.since, processes=self.processes, instances=self.instances)

    def all_processes(self) -> Iterator[Process]:
        """Walk the processes of this GPU and of its MIG instances."""
        yield from self.processes
        for instance in self.instances:
            yield from instance.processes


def metrics_of(reading: type[Reading]) -> dict[str, Metric]:
    """Return the metrics of a class by key, in order of declaration."""
    return {metric.key: metric for metric in reading.metrics()}


GPU_METRICS = metrics_of(Gpu)
PROCESS_METRICS = metrics_of(Process)
HOST_METRICS = metrics_of(Host)
