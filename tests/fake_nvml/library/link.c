/* PCIe and NVLink. */
#include <stdio.h>
#include <string.h>

#include "fake.h"

UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.gen")
UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.gen.max")
UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gen.gpu_max")
UINT(nvmlDeviceGetPcieLinkMaxSpeed, "pcie.speed.max")
UINT(nvmlDeviceGetPcieSpeed, "pcie.speed")
UINT(nvmlDeviceGetPcieReplayCounter, "pcie.replay")
static const char *const directions[] = {"pcie.tx", "pcie.rx"}; /* KB/s */
CHOICE(nvmlDeviceGetPcieThroughput, directions)

static nvmlReturn_t pci(const Gpu *gpu, PciInfo *out) {
    const Value *bus = table_find(&gpu->table, "pci.bus_id");
    if (!bus) return NOT_SUPPORTED;
    if (bus->kind == ERROR) return bus->code;
    *out = (PciInfo){0};
    unsigned function = 0;
    sscanf(bus->text, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function);
    snprintf(out->bus_id, sizeof out->bus_id, "%s", bus->text);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xFFFF, out->bus & 0xFF, out->device & 0xFF);
    out->device_id = read_or(gpu, "pci.device_id", 0x233010DE);
    out->subsystem_id = read_or(gpu, "pci.subsystem_id", 0x16C110DE);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, PciInfo *out) {
    ENTER(nvmlDeviceGetPciInfo_v3, handle);
    return out ? pci(gpu, out) : INVALID_ARGUMENT;
}

#define SHORT_PCI(function)                                                        \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, PciInfoV2 *out) {            \
        ENTER(function, handle);                                                   \
        PciInfo full;                                                              \
        nvmlReturn_t status = out ? pci(gpu, &full) : INVALID_ARGUMENT;            \
        if (status) return status;                                                 \
        *out = (PciInfoV2){"", full.domain, full.bus, full.device, full.device_id, full.subsystem_id, {0}}; \
        memcpy(out->bus_id, full.bus_id_legacy, sizeof out->bus_id);               \
        return SUCCESS; }
SHORT_PCI(nvmlDeviceGetPciInfo)
SHORT_PCI(nvmlDeviceGetPciInfo_v2)

EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, PciInfoExt *out) {
    ENTER(nvmlDeviceGetPciInfoExt, handle);
    PciInfo full;
    nvmlReturn_t status = out ? pci(gpu, &full) : INVALID_ARGUMENT;
    if (status) return status;
    *out = (PciInfoExt){out->version, full.domain, full.bus, full.device, full.device_id, full.subsystem_id, 3, 2, ""};
    memcpy(out->bus_id, full.bus_id, sizeof out->bus_id);
    return SUCCESS;
}

/* fabric.state: 0 there is none, 3 registration is complete. Version 2 of the record has no summary. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, FabricInfo *out) {
    ENTER(nvmlDeviceGetGpuFabricInfoV, handle);
    unsigned state = 0;
    if (!out) return INVALID_ARGUMENT;
    bool third = out->version == VERSION_OF(FabricInfo, 3) && !read_or(gpu, "fabric.old", 0);
    if (!third && out->version != (offsetof(FabricInfo, summary) | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t status = read_u32(gpu, "fabric.state", &state);
    if (status) return status;
    out->state = (uint8_t)state;
    out->status = read_or(gpu, "fabric.status", 0);
    out->clique = read_or(gpu, "fabric.clique", 0);
    out->health = read_or(gpu, "fabric.health", 0);
    memset(out->cluster, (int)read_or(gpu, "fabric.cluster", 0), sizeof out->cluster);
    if (third) out->summary = (uint8_t)read_or(gpu, "fabric.summary", 0);
    return SUCCESS;
}

/* One link's answer: nvlink.<what>.<link> if given, else nvlink.<what>; no links at all is NOT_SUPPORTED. */
static nvmlReturn_t on_link(const Gpu *gpu, unsigned link, const char *what, uint64_t *out) {
    char key[64];
    unsigned links = read_or(gpu, "nvlink.links", 0);
    if (!out || link >= 18) return INVALID_ARGUMENT;
    if (link >= links) return NOT_SUPPORTED;
    snprintf(key, sizeof key, "nvlink.%s.%u", what, link);
    if (!table_find(&gpu->table, key)) snprintf(key, sizeof key, "nvlink.%s", what);
    return read_u64(gpu, key, out);
}

#define LINK(function, what)                                                            \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned link, unsigned *out) {   \
        ENTER(function, handle);                                                        \
        uint64_t wide = 0;                                                                \
        nvmlReturn_t status = out ? on_link(gpu, link, what, &wide) : INVALID_ARGUMENT; \
        if (!status) *out = (unsigned)wide;                                             \
        return status; }
LINK(nvmlDeviceGetNvLinkState, "state")
LINK(nvmlDeviceGetNvLinkVersion, "version")
LINK(nvmlDeviceGetNvLinkRemoteDeviceType, "remote")

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t handle, unsigned link, unsigned counter, uint64_t *out) {
    ENTER(nvmlDeviceGetNvLinkErrorCounter, handle);
    return counter < 5 ? on_link(gpu, link, "errors", out) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle, unsigned link, unsigned capability, unsigned *out) {
    ENTER(nvmlDeviceGetNvLinkCapability, handle);
    uint64_t state;
    nvmlReturn_t status = out && capability < 6 ? on_link(gpu, link, "state", &state) : INVALID_ARGUMENT;
    if (!status) *out = (unsigned)state;
    return status;
}

#define REMOTE_PCI(function, type, id, size)                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned link, type *out) {        \
        ENTER(function, handle);                                                         \
        uint64_t remote;                                                                 \
        nvmlReturn_t status = out ? on_link(gpu, link, "remote", &remote) : INVALID_ARGUMENT; \
        if (status) return status;                                                       \
        *out = (type){.bus = 0x80 + link / 4, .device_id = 0x22A310DE};                  \
        snprintf(out->id, size, "00000000:%02X:00.0", (0x80 + link / 4) & 0xFF);         \
        return SUCCESS; }
REMOTE_PCI(nvmlDeviceGetNvLinkRemotePciInfo_v2, PciInfo, bus_id, 32)

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t handle, nvmlDevice_t other, unsigned kind, unsigned *out) {
    ENTER(nvmlDeviceGetP2PStatus, handle);
    if (!out || !other) return INVALID_ARGUMENT;
    (void)kind;
    *out = read_or(gpu, "p2p", read_or(gpu, "nvlink.links", 0) ? 0 : 1);
    return SUCCESS;
}

SILENT(nvmlDeviceGetNvLinkUtilizationCounter, NOT_SUPPORTED)
SILENT(nvmlDeviceGetNvLinkUtilizationControl, NOT_SUPPORTED)
