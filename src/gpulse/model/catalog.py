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
    parent = Number("Parent", "Process id of the process that started it.", kind="identity", group="identity", short="PPID")
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
    tree_memory = Number("Memory of the tree", "Resident host memory of the process and all its descendants, added up; pages they share count in each.", unit=BYTES, cost="slow", group="host", short="TREE MEM", high=2**60)
    tree_read = Number("Read by the tree", "Read from storage by the process with all its descendants; what the page cache holds is not read again.", unit=BYTES_PER_SECOND, cost="slow", group="host", short="TREE READ", high=2**50)
    tree_write = Number("Written by the tree", "Written to storage by the process with all its descendants.", unit=BYTES_PER_SECOND, cost="slow", group="host", short="TREE WRITE", high=2**50)
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
    xid_last = Number("Last XID", "Last error code the driver reported while gpulse watched.", kind="state", group="health", short="XID", dcgm="DCGM_FI_DEV_XID_ERRORS", low=1, high=10_000)
    compute_mode = Text("Compute mode", "Who may open a context: default, exclusive_process or prohibited.", kind="state", cost="slow", group="modes", short="COMPUTE", smi=("compute_mode",))
    persistence_mode = Flag("Persistence mode", "The driver stays loaded while nobody uses the GPU.", kind="state", cost="slow", group="modes", short="PERSIST", smi=("persistence_mode",))
    mig_mode = Flag("MIG mode", "The GPU is divided into instances.", kind="state", cost="slow", group="modes", short="MIG", smi=("mig.mode.current",))
    display_active = Flag("Display active", "A display is driven by this GPU.", kind="state", cost="slow", group="modes", short="DISPLAY", smi=("display_active",))

    # details: what nvidia-smi can also say
    compute_capability = Text("Compute capability", "CUDA compute capability, as 9.0.", kind="state", cost="static", group="details", smi=("compute_cap",))
    pci_domain = Number("PCI domain", "Domain part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.domain",))
    pci_bus = Number("PCI bus", "Bus part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.bus",))
    pci_device = Number("PCI device", "Device part of the PCI address.", kind="state", cost="static", group="details", smi=("pci.device",))
    pci_base_class = Number("PCI base class", "Base class code on the PCI bus.", kind="state", cost="static", group="details", smi=("pci.baseClass",))
    pci_sub_class = Number("PCI subclass", "Subclass code on the PCI bus.", kind="state", cost="static", group="details", smi=("pci.subClass",))
    pci_device_id = Number("PCI device id", "Device id above, vendor id below.", kind="state", cost="static", group="details", smi=("pci.device_id",))
    pci_subsystem_id = Number("PCI subsystem id", "Subsystem device id above, subsystem vendor id below.", kind="state", cost="static", group="details", smi=("pci.sub_device_id",))
    pcie_gen_gpu_max = Number("PCIe generation of the GPU", "Generation the GPU alone could run at.", kind="state", cost="static", group="details", smi=("pcie.link.gen.gpumax",), low=1, high=16)
    inforom_image = Text("InfoROM image", "Version of the whole infoROM.", kind="state", cost="static", group="details", smi=("inforom.img", "inforom.image"))
    inforom_oem = Text("InfoROM OEM object", "Version of the board maker's part of the infoROM.", kind="state", cost="static", group="details", smi=("inforom.oem",))
    inforom_ecc = Text("InfoROM ECC object", "Version of the part of the infoROM that records memory errors.", kind="state", cost="static", group="details", smi=("inforom.ecc",))
    inforom_power = Text("InfoROM power object", "Version of the power management part of the infoROM.", kind="state", cost="static", group="details", smi=("inforom.pwr", "inforom.power"))
    inforom_valid = Flag("InfoROM valid", "The infoROM agrees with its checksum; the check takes 70 ms and is made once.", kind="state", cost="static", group="details", smi=("inforom.checksum_validation",))
    hostname = Text("GPU host name", "Host name the driver was given for this GPU.", kind="state", cost="static", group="details", smi=("hostname",))
    platform_chassis = Text("Chassis serial", "Serial number of the chassis that holds the GPU; empty where it has none.", kind="state", cost="static", group="details", smi=("platform.chassis_serial_number",))
    platform_slot = Number("Chassis slot", "Slot in the chassis, switches counted.", kind="state", cost="static", group="details", smi=("platform.slot_number",))
    platform_tray = Number("Compute tray", "Compute tray in the chassis, switches not counted.", kind="state", cost="static", group="details", smi=("platform.tray_index",))
    platform_host = Number("Platform host", "Index of the node within its slot.", kind="state", cost="static", group="details", smi=("platform.host_id",))
    platform_peer = Text("NVLink peer", "How GPUs meet over NVLink: direct or switch.", kind="state", cost="static", group="details", smi=("platform.peer_type",))
    platform_module = Number("Platform module", "Id of the GPU within its node.", kind="state", cost="static", group="details", smi=("platform.module_id",))
    platform_guid = Text("Fabric GUID", "Fabric id of the GPU, in hex.", kind="state", cost="static", group="details", smi=("platform.gpu_fabric_guid",))
    fabric_state = Text("Fabric state", "How far registration with the NVLink fabric has come: not_started, in_progress or completed.", kind="state", cost="slow", group="details", smi=("fabric.state",))
    fabric_status = Text("Fabric status", "What registration with the NVLink fabric ended in: success, or NVML's word for the failure.", kind="state", cost="slow", group="details", smi=("fabric.status",))
    fabric_clique = Number("Fabric clique", "Clique of the NVLink fabric it belongs to.", kind="state", cost="slow", group="details", smi=("fabric.cliqueId",))
    fabric_cluster = Text("Fabric cluster", "UUID of the NVLink cluster it belongs to.", kind="state", cost="slow", group="details", smi=("fabric.clusterUuid",))
    fabric_health = Text("Fabric health", "The NVLink fabric in one word: healthy, unhealthy or limited_capacity.", kind="state", cost="slow", group="details", smi=("fabric.health.summary",))
    fabric_degraded = Flag("Fabric degraded", "The NVLink fabric has lost bandwidth.", kind="state", cost="slow", group="details", smi=("fabric.health.bandwidth",))
    fabric_route_recovery = Flag("Fabric route recovery", "A route of the NVLink fabric is being recovered.", kind="state", cost="slow", group="details", smi=("fabric.health.route_recovery_in_progress",))
    fabric_route_unhealthy = Flag("Fabric route unhealthy", "A route of the NVLink fabric is unhealthy.", kind="state", cost="slow", group="details", smi=("fabric.health.route_unhealthy",))
    fabric_access_timeout = Flag("Fabric access timeout", "The NVLink fabric recovers from accesses that timed out.", kind="state", cost="slow", group="details", smi=("fabric.health.access_timeout_recovery",))
    fabric_misconfiguration = Text("Fabric misconfiguration", "What is configured wrongly in the NVLink fabric, or none.", kind="state", cost="slow", group="details", smi=("fabric.health.incorrect_configuration",))
    fabric_partition = Flag("Fabric partition assigned", "The GPU belongs to a partition of the NVLink fabric.", kind="state", cost="slow", group="details", smi=("fabric.health.partition_assigned",))
    display_attached = Flag("Display attached", "A display is plugged into one of its connectors.", kind="state", cost="slow", group="details", smi=("display_attached",))
    addressing_mode = Text("Addressing mode", "How it reaches system memory: none, hmm or ats.", kind="state", cost="static", group="details", smi=("addressing_mode",))
    accounting_mode = Flag("Accounting mode", "The driver keeps statistics of each compute process.", kind="state", cost="slow", group="details", smi=("accounting.mode",))
    accounting_capacity = Number("Accounting capacity", "Processes whose statistics the driver keeps at most.", unit=COUNT, kind="state", cost="static", group="details", smi=("accounting.buffer_size",))
    driver_model = Text("Driver model", "Driver model on Windows: wddm, tcc or mcdm.", kind="state", cost="slow", group="details", smi=("driver_model.current",))
    driver_model_pending = Text("Driver model pending", "Driver model on Windows after the next reboot.", kind="state", cost="slow", group="details", smi=("driver_model.pending",))
    operation_mode = Text("Operation mode", "Which parts of the GPU are on: all_on, compute or low_double_precision.", kind="state", cost="slow", group="details", smi=("gom.current", "gpu_operation_mode.current"))
    operation_mode_pending = Text("Operation mode pending", "Operation mode after the next reboot.", kind="state", cost="slow", group="details", smi=("gom.pending", "gpu_operation_mode.pending"))
    recovery_action = Text("Recovery action", "What brings a GPU in a bad state back: none, reset, reboot, drain_p2p, drain_and_reset or a newer word.", kind="state", cost="slow", group="details", smi=("gpu_recovery_action",))
    mig_mode_pending = Flag("MIG mode pending", "The GPU will be divided into instances after the next reset.", kind="state", cost="slow", group="details", smi=("mig.mode.pending",))
    gsp_mode = Flag("GSP firmware", "The GPU's own processor runs the driver's firmware.", kind="state", cost="static", group="details", smi=("gsp.mode.current",))
    gsp_mode_default = Flag("GSP firmware by default", "GSP firmware is on unless told otherwise.", kind="state", cost="static", group="details", smi=("gsp.mode.default",))
    c2c_mode = Flag("C2C mode", "CPU and GPU are joined chip to chip.", kind="state", cost="static", group="details", smi=("c2c.mode",))
    dram_encryption = Flag("DRAM encryption", "GPU memory is encrypted.", kind="state", cost="slow", group="details", smi=("dramEncryption.mode.current",))
    dram_encryption_pending = Flag("DRAM encryption pending", "GPU memory will be encrypted after the next reboot.", kind="state", cost="slow", group="details", smi=("dramEncryption.mode.pending",))
    throttle_reasons_supported = Words("Throttle reasons known", "Throttle reasons this GPU can tell, in words.", kind="state", cost="static", group="details", smi=("clocks_event_reasons.supported", "clocks_throttle_reasons.supported"))
    throttle_time_power_cap = Number("Time at the power cap", "Time its clocks were lowered to stay under the power limit.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sw_power_cap",), high=2**40)
    throttle_time_sync_boost = Number("Time in sync boost", "Time its clocks were lowered to match other GPUs.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sync_boost",), high=2**40)
    throttle_time_thermal = Number("Time slowed by software heat", "Time the driver lowered its clocks because of heat.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.sw_thermal_slowdown",), high=2**40)
    throttle_time_thermal_hardware = Number("Time slowed by hardware heat", "Time the hardware lowered its clocks because of heat.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.hw_thermal_slowdown",), high=2**40)
    throttle_time_power_brake = Number("Time in power brake", "Time an external power brake lowered its clocks.", unit=SECOND, kind="counter", cost="slow", group="details", smi=("clocks_event_reasons_counters.hw_power_brake_slowdown",), high=2**40)
    clock_graphics_max = Number("Graphics clock maximum", "Highest clock of the graphics engine.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.max.graphics", "clocks.max.gr"), high=20_000)
    clock_video_max = Number("Video clock maximum", "Highest clock of the video engines.", unit=MEGAHERTZ, cost="static", group="details", high=20_000)
    clock_graphics_application = Number("Graphics clock for applications", "Clock of the graphics engine that applications are given.", unit=MEGAHERTZ, cost="slow", group="details", smi=("clocks.applications.graphics", "clocks.applications.gr"), high=20_000)
    clock_memory_application = Number("Memory clock for applications", "Clock of the memory that applications are given.", unit=MEGAHERTZ, cost="slow", group="details", smi=("clocks.applications.memory", "clocks.applications.mem"), high=100_000)
    clock_graphics_default = Number("Graphics clock default", "Clock of the graphics engine that applications are given unless told otherwise.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.default_applications.graphics", "clocks.default_applications.gr"), high=20_000)
    clock_memory_default = Number("Memory clock default", "Clock of the memory that applications are given unless told otherwise.", unit=MEGAHERTZ, cost="static", group="details", smi=("clocks.default_applications.memory", "clocks.default_applications.mem"), high=100_000)
    temperature_margin = Number("Temperature margin", "Degrees left until the chip slows itself down.", unit=CELSIUS, cost="slow", group="details", smi=("temperature.gpu.tlimit",), low=-200, high=200)
    power_management = Flag("Power management", "The driver manages the power of the board.", kind="state", cost="slow", group="details", smi=("power.management",))
    power_draw_average = Number("Power draw average", "Power of the whole board, averaged over the last second.", unit=WATT, group="details", smi=("power.draw.average", "gpu.power.draw.average"), high=100_000)
    power_draw_instant = Number("Power draw instant", "Power of the whole board at this moment.", unit=WATT, group="details", smi=("power.draw.instant", "gpu.power.draw.instant"), high=100_000)
    power_limit_requested = Number("Power limit requested", "Limit set by software.", unit=WATT, cost="slow", group="details", smi=("gpu.power.requested_limit",), high=100_000)
    power_limit_min = Number("Power limit minimum", "Lowest limit that can be set.", unit=WATT, cost="static", group="details", smi=("power.min_limit", "gpu.power.min_limit"), high=100_000)
    power_limit_max = Number("Power limit maximum", "Highest limit that can be set.", unit=WATT, cost="static", group="details", smi=("power.max_limit", "gpu.power.max_limit"), high=100_000)
    memory_power_draw = Number("Memory power draw", "Power of the memory, averaged over the last second.", unit=WATT, group="details", high=100_000)
    module_power_draw_average = Number("Module power draw average", "Power of the whole module, averaged over the last second.", unit=WATT, group="details", smi=("module.power.draw.average",), high=100_000)
    module_power_draw_instant = Number("Module power draw instant", "Power of the whole module at this moment.", unit=WATT, group="details", smi=("module.power.draw.instant",), high=100_000)
    module_power_limit = Number("Module power limit", "Limit of the module in force.", unit=WATT, cost="slow", group="details", smi=("module.enforced.power.limit", "module.power.current_limit"), high=100_000)
    module_power_limit_requested = Number("Module power limit requested", "Limit of the module set by software.", unit=WATT, cost="slow", group="details", smi=("module.power.limit", "module.power.requested_limit"), high=100_000)
    module_power_limit_default = Number("Module power limit default", "Limit the module was shipped with.", unit=WATT, cost="static", group="details", smi=("module.power.default_limit",), high=100_000)
    module_power_limit_min = Number("Module power limit minimum", "Lowest limit of the module that can be set.", unit=WATT, cost="static", group="details", smi=("module.power.min_limit",), high=100_000)
    module_power_limit_max = Number("Module power limit maximum", "Highest limit of the module that can be set.", unit=WATT, cost="static", group="details", smi=("module.power.max_limit",), high=100_000)
    memory_protected_total = Number("Protected memory total", "Memory set aside for confidential computing.", unit=BYTES, group="details", smi=("protected_memory.total",), high=2**60)
    memory_protected_used = Number("Protected memory used", "Memory for confidential computing that programs hold.", unit=BYTES, group="details", smi=("protected_memory.used",), high=2**60)
    memory_protected_free = Number("Protected memory free", "Memory for confidential computing that a program can still get.", unit=BYTES, group="details", smi=("protected_memory.free",), high=2**60)
    encoder_sessions = Number("Encoder sessions", "Sessions of the video encoders.", unit=COUNT, group="details", smi=("encoder.stats.sessionCount",))
    encoder_frame_rate = Number("Encoder frame rate", "Frames a second, averaged over all encoder sessions.", group="details", smi=("encoder.stats.averageFps",))
    encoder_latency = Number("Encoder latency", "Time to encode a frame, averaged over all encoder sessions.", unit=SECOND, group="details", smi=("encoder.stats.averageLatency",))
    ecc_mode = Flag("ECC mode", "Memory errors are found and corrected.", kind="state", cost="slow", group="details", smi=("ecc.mode.current",))
    ecc_mode_pending = Flag("ECC mode pending", "Memory errors will be found and corrected after the next reboot.", kind="state", cost="slow", group="details", smi=("ecc.mode.pending",))
    ecc_corrected_volatile_dram = Number("ECC corrected volatile device memory", "Errors corrected in the GPU's memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.dram", "ecc.errors.corrected.volatile.device_memory"), high=2**63)
    ecc_corrected_volatile_l1 = Number("ECC corrected volatile L1 cache", "Errors corrected in the L1 caches since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.l1_cache",), high=2**63)
    ecc_corrected_volatile_l2 = Number("ECC corrected volatile L2 cache", "Errors corrected in the L2 cache since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.l2_cache",), high=2**63)
    ecc_corrected_volatile_registers = Number("ECC corrected volatile registers", "Errors corrected in the register files since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.register_file",), high=2**63)
    ecc_corrected_volatile_texture = Number("ECC corrected volatile texture memory", "Errors corrected in the texture memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.texture_memory",), high=2**63)
    ecc_corrected_volatile_cbu = Number("ECC corrected volatile CBU", "Errors corrected in the convergence barrier units since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.cbu",), high=2**63)
    ecc_corrected_volatile_sram = Number("ECC corrected volatile SRAM", "Errors corrected in all on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.volatile.sram",), high=2**63)
    ecc_corrected_aggregate_dram = Number("ECC corrected aggregate device memory", "Errors corrected in the GPU's memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.dram", "ecc.errors.corrected.aggregate.device_memory"), high=2**63)
    ecc_corrected_aggregate_l1 = Number("ECC corrected aggregate L1 cache", "Errors corrected in the L1 caches over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.l1_cache",), high=2**63)
    ecc_corrected_aggregate_l2 = Number("ECC corrected aggregate L2 cache", "Errors corrected in the L2 cache over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.l2_cache",), high=2**63)
    ecc_corrected_aggregate_registers = Number("ECC corrected aggregate registers", "Errors corrected in the register files over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.register_file",), high=2**63)
    ecc_corrected_aggregate_texture = Number("ECC corrected aggregate texture memory", "Errors corrected in the texture memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.texture_memory",), high=2**63)
    ecc_corrected_aggregate_cbu = Number("ECC corrected aggregate CBU", "Errors corrected in the convergence barrier units over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.cbu",), high=2**63)
    ecc_corrected_aggregate_sram = Number("ECC corrected aggregate SRAM", "Errors corrected in all on-chip memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.sram",), high=2**63)
    ecc_corrected_aggregate = Number("ECC corrected aggregate", "Errors corrected over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.corrected.aggregate.total",), high=2**63)
    ecc_uncorrected_volatile_dram = Number("ECC uncorrected volatile device memory", "Errors that could not be corrected in the GPU's memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.dram", "ecc.errors.uncorrected.volatile.device_memory"), high=2**63)
    ecc_uncorrected_volatile_l1 = Number("ECC uncorrected volatile L1 cache", "Errors that could not be corrected in the L1 caches since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.l1_cache",), high=2**63)
    ecc_uncorrected_volatile_l2 = Number("ECC uncorrected volatile L2 cache", "Errors that could not be corrected in the L2 cache since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.l2_cache",), high=2**63)
    ecc_uncorrected_volatile_registers = Number("ECC uncorrected volatile registers", "Errors that could not be corrected in the register files since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.register_file",), high=2**63)
    ecc_uncorrected_volatile_texture = Number("ECC uncorrected volatile texture memory", "Errors that could not be corrected in the texture memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.texture_memory",), high=2**63)
    ecc_uncorrected_volatile_cbu = Number("ECC uncorrected volatile CBU", "Errors that could not be corrected in the convergence barrier units since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.cbu",), high=2**63)
    ecc_uncorrected_volatile_sram = Number("ECC uncorrected volatile SRAM", "Errors that could not be corrected in all on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram",), high=2**63)
    ecc_uncorrected_aggregate_dram = Number("ECC uncorrected aggregate device memory", "Errors that could not be corrected in the GPU's memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.dram", "ecc.errors.uncorrected.aggregate.device_memory"), high=2**63)
    ecc_uncorrected_aggregate_l1 = Number("ECC uncorrected aggregate L1 cache", "Errors that could not be corrected in the L1 caches over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.l1_cache",), high=2**63)
    ecc_uncorrected_aggregate_l2 = Number("ECC uncorrected aggregate L2 cache", "Errors that could not be corrected in the L2 cache over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.l2_cache",), high=2**63)
    ecc_uncorrected_aggregate_registers = Number("ECC uncorrected aggregate registers", "Errors that could not be corrected in the register files over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.register_file",), high=2**63)
    ecc_uncorrected_aggregate_texture = Number("ECC uncorrected aggregate texture memory", "Errors that could not be corrected in the texture memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.texture_memory",), high=2**63)
    ecc_uncorrected_aggregate_cbu = Number("ECC uncorrected aggregate CBU", "Errors that could not be corrected in the convergence barrier units over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.cbu",), high=2**63)
    ecc_uncorrected_aggregate_sram = Number("ECC uncorrected aggregate SRAM", "Errors that could not be corrected in all on-chip memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram",), high=2**63)
    ecc_uncorrected_aggregate = Number("ECC uncorrected aggregate", "Errors that could not be corrected over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.total",), high=2**63)
    ecc_sram_parity_volatile = Number("SRAM parity errors volatile", "Distinct parity errors of on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram.parity",), high=2**63)
    ecc_sram_secded_volatile = Number("SRAM double-bit errors volatile", "Distinct double-bit errors of on-chip memory since the driver was loaded.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.volatile.sram.secded",), high=2**63)
    ecc_sram_parity_aggregate = Number("SRAM parity errors aggregate", "Distinct parity errors of on-chip memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.parity",), high=2**63)
    ecc_sram_secded_aggregate = Number("SRAM double-bit errors aggregate", "Distinct double-bit errors of on-chip memory over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.secded",), high=2**63)
    ecc_sram_l2 = Number("SRAM errors L2", "Distinct errors of on-chip memory in the L2 cache over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.l2",), high=2**63)
    ecc_sram_sm = Number("SRAM errors SM", "Distinct errors of on-chip memory in the SMs over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.sm",), high=2**63)
    ecc_sram_mcu = Number("SRAM errors MCU", "Distinct errors of on-chip memory in the microcontrollers over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.mcu",), high=2**63)
    ecc_sram_pcie = Number("SRAM errors PCIe", "Distinct errors of on-chip memory in the PCIe unit over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.pcie",), high=2**63)
    ecc_sram_other = Number("SRAM errors elsewhere", "Distinct errors of on-chip memory in other units over the life of the board.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.other",), high=2**63)
    ecc_sram_exceeded = Flag("SRAM error threshold", "On-chip memory has had more errors than a board in service should.", kind="state", cost="slow", group="details", smi=("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",))
    retired_pages_corrected = Number("Retired pages corrected", "Memory pages no longer used after many corrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("retired_pages.single_bit_ecc.count", "retired_pages.sbe"), high=2**63)
    retired_pages_uncorrected = Number("Retired pages uncorrected", "Memory pages no longer used after an error that could not be corrected.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("retired_pages.double_bit.count", "retired_pages.dbe"), high=2**63)
    retired_pages_pending = Flag("Retired pages pending", "Memory pages wait for a reboot to be retired.", kind="state", cost="slow", group="details", smi=("retired_pages.pending",))
    remapped_rows_corrected = Number("Remapped rows corrected", "Memory rows replaced after corrected errors.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.correctable", "remapped_rows.sbe"), high=2**63)
    remapped_rows_uncorrected = Number("Remapped rows uncorrected", "Memory rows replaced after an error that could not be corrected.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.uncorrectable", "remapped_rows.dbe"), high=2**63)
    remapped_rows_corrected_inactive = Number("Remapped rows corrected inactive", "Replacements of memory rows after corrected errors that are not in force.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.correctable_inactive",), high=2**63)
    remapped_rows_uncorrected_inactive = Number("Remapped rows uncorrected inactive", "Replacements of memory rows after uncorrected errors that are not in force.", unit=COUNT, kind="counter", cost="slow", group="details", smi=("remapped_rows.uncorrectable_inactive",), high=2**63)
    remapped_rows_pending = Flag("Remapped rows pending", "Memory rows wait for a reset to be replaced.", kind="state", cost="slow", group="details", smi=("remapped_rows.pending",))
    remapped_rows_failed = Flag("Remapped rows failed", "A memory row could once not be replaced.", kind="state", cost="slow", group="details", smi=("remapped_rows.failure",))
    remap_banks_max = Number("Banks with spare rows max", "Memory banks that have all of their spare rows left.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.max",), high=2**32)
    remap_banks_high = Number("Banks with spare rows high", "Memory banks that have most of their spare rows left.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.high",), high=2**32)
    remap_banks_partial = Number("Banks with spare rows partial", "Memory banks that have some of their spare rows left.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.partial",), high=2**32)
    remap_banks_low = Number("Banks with spare rows low", "Memory banks that have few of their spare rows left.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.low",), high=2**32)
    remap_banks_none = Number("Banks with spare rows none", "Memory banks that have none of their spare rows left.", unit=COUNT, cost="slow", group="details", smi=("remapped_rows.histogram.none",), high=2**32)
    clocks_supported = Words("Supported clocks", "Memory clocks in MHz, each with the graphics clocks it can run with, as 3201:1980,1965.", kind="state", cost="static", group="details")

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
