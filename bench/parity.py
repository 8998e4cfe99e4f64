"""Is the number right? Every value of `gpulse --json` beside nvidia-smi's own, idle and under a known matrix product.

    python -m bench.parity            # needs an NVIDIA GPU; with PyTorch it makes its own load

Prints a Markdown table a phase and exits 1 when a value disagrees.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import IO

import gpulse

MIB = 1 << 20
# The load: bf16 products of square matrices; it prints how many it did in how many seconds.
LOAD = """
import sys, time, torch
n = 8192
x = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
done, start = 0, time.time()
while True:
    for _ in range(100):
        y = x @ x
    torch.cuda.synchronize()
    done += 100
    if time.time() - start >= 2:
        print(done * 2 * n**3 / (time.time() - start), flush=True)
        done, start = 0, time.time()
"""
FLOP_PER_CYCLE_AND_SM = 4096  # dense bf16 on Hopper
SMS = 132


def number(text: str | None) -> float | None:
    """Return the number a text of nvidia-smi begins with."""
    word = (text or "").split(" ")[0].rstrip("x").replace("P", "")
    try:
        return float(word)
    except ValueError:
        return None


def flag(text: str | None) -> bool | None:
    """Return nvidia-smi's words for a switch as one."""
    return {"Enabled": True, "Disabled": False, "Yes": True, "No": False}.get(text or "")


def text(found: str | None) -> str | None:
    """Return a text, or None where nvidia-smi has none."""
    return None if found in (None, "N/A", "[N/A]") else found


def mib(found: str | None) -> float | None:
    """Return a size in bytes."""
    value = number(found)
    return None if value is None else value * MIB


def compute_mode(found: str | None) -> str | None:
    """Return the mode in gpulse's word."""
    return {"Default": "default", "Exclusive_Process": "exclusive_process", "Prohibited": "prohibited"}.get(found or "")


# key: where nvidia-smi -q -x says it, how to read it, how far the two may be apart (they look at different moments)
FIELDS: dict[str, tuple[str, Callable[[str | None], object], float]] = {
    "uuid": ("uuid", text, 0),
    "name": ("product_name", text, 0),
    "architecture": ("product_architecture", text, 0),
    "serial": ("serial", text, 0),
    "vbios": ("vbios_version", text, 0),
    "pci_bus_id": ("pci/pci_bus_id", text, 0),
    "persistence_mode": ("persistence_mode", flag, 0),
    "display_active": ("display_active", flag, 0),
    "mig_mode": ("mig_mode/current_mig", flag, 0),
    "compute_mode": ("compute_mode", compute_mode, 0),
    "fan_speed": ("fan_speed", number, 2),
    "pstate": ("performance_state", number, 0),
    "memory_total": ("fb_memory_usage/total", mib, MIB),
    "memory_reserved": ("fb_memory_usage/reserved", mib, MIB),
    "memory_used": ("fb_memory_usage/used", mib, 2 * MIB),
    "memory_free": ("fb_memory_usage/free", mib, 2 * MIB),
    "bar1_total": ("bar1_memory_usage/total", mib, MIB),
    "bar1_used": ("bar1_memory_usage/used", mib, 2 * MIB),
    "utilization": ("utilization/gpu_util", number, 5),
    "memory_utilization": ("utilization/memory_util", number, 8),
    "encoder_utilization": ("utilization/encoder_util", number, 2),
    "decoder_utilization": ("utilization/decoder_util", number, 2),
    "jpeg_utilization": ("utilization/jpeg_util", number, 2),
    "ofa_utilization": ("utilization/ofa_util", number, 2),
    "temperature": ("temperature/gpu_temp", number, 3),
    "memory_temperature": ("temperature/memory_temp", number, 3),
    "power_draw": ("gpu_power_readings/average_power_draw", number, 40),
    "power_limit": ("gpu_power_readings/current_power_limit", number, 0.01),
    "power_default_limit": ("gpu_power_readings/default_power_limit", number, 0.01),
    "clock_graphics": ("clocks/graphics_clock", number, 180),
    "clock_sm": ("clocks/sm_clock", number, 180),
    "clock_memory": ("clocks/mem_clock", number, 0),
    "clock_video": ("clocks/video_clock", number, 180),
    "clock_sm_max": ("max_clocks/sm_clock", number, 0),
    "clock_memory_max": ("max_clocks/mem_clock", number, 0),
    "pcie_gen": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen", number, 0),
    "pcie_gen_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", number, 0),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/current_link_width", number, 0),
    "pcie_width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width", number, 0),
    "pcie_replays": ("pci/replay_counter", number, 0),
    "ecc_corrected": ("ecc_errors/volatile/dram_correctable", number, 0),
    "ecc_uncorrected": ("ecc_errors/volatile/dram_uncorrectable", number, 0),
    "remapped_rows": ("remapped_rows/remapped_row_corr", number, 0),
}


def gpulse_says() -> dict[str, object]:
    """Return the first GPU of `gpulse --json`."""
    out = subprocess.run([sys.executable, "-m", "gpulse", "--json"], capture_output=True, text=True, check=True).stdout
    gpu: dict[str, object] = json.loads(out)["gpus"][0]
    return gpu


def smi_says() -> ElementTree.Element:
    """Return the first GPU of `nvidia-smi -q -x`."""
    out = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True).stdout
    gpu = ElementTree.fromstring(out).find("gpu")
    assert gpu is not None
    return gpu


def agrees(mine: object, theirs: object, apart: float) -> bool:
    """Tell whether two values are the same, or near enough for two moments."""
    if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)) and not isinstance(mine, bool):
        return abs(mine - theirs) <= apart
    return mine == theirs


def compare(phase: str) -> int:
    """Print the table of a phase; return how many values disagree in both of two samples."""
    samples = [(gpulse_says(), smi_says()) for _ in range(2)]
    wrong = 0
    print(f"\n### {phase}\n\n| key | gpulse | nvidia-smi | |\n| --- | --- | --- | --- |")
    for key, (path, read, apart) in FIELDS.items():
        pairs = [(mine.get(key), read(theirs.findtext(path))) for mine, theirs in samples]
        fine = any(agrees(mine, theirs, apart) for mine, theirs in pairs)
        wrong += not fine
        mine, theirs = pairs[-1]
        reason = samples[-1][0].get("gaps", {})
        shown = mine if mine is not None else f"({reason.get(key)})" if isinstance(reason, dict) else None
        print(f"| {key} | {shown} | {theirs} | {'' if fine else '**differs**'} |")
    return wrong + compare_processes(*samples[-1])


def compare_processes(mine: dict[str, object], theirs: ElementTree.Element) -> int:
    """Print each process's memory as both tools say it; return how many disagree."""
    listed = mine["processes"]
    assert isinstance(listed, list)
    ours = {process["pid"]: process["memory_used"] for process in listed}
    wrong = 0
    for info in theirs.iter("process_info"):
        pid, used = int(info.findtext("pid") or 0), mib(info.findtext("used_memory"))
        fine = agrees(ours.get(pid), used, MIB)
        wrong += not fine
        print(f"| process {pid} memory | {ours.get(pid)} | {used} | {'' if fine else '**differs**'} |")
    return wrong


def activity(rates: IO[str]) -> None:
    """Print GPM's tensor share beside the share that the known arithmetic of the same seconds must have taken."""
    rates.readline()  # the rest of a window in which other tools ran
    keys = ("clock_sm", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "utilization")
    samples = []
    for snapshot in gpulse.stream(0.1, keys, gpus=[0]):
        samples.append([snapshot.gpus[0].get(key) for key in keys])
        if len(samples) == 20:
            break
    rate = float(rates.readline())
    means = [
        sum(value for value in column if isinstance(value, (int, float))) / len(samples)
        for column in zip(*samples, strict=True)
    ]
    expected = 100 * rate / (FLOP_PER_CYCLE_AND_SM * SMS * means[0] * 1e6)
    print(f"\nKnown work: {rate / 1e12:.0f} TFLOP/s at {means[0]:.0f} MHz is {expected:.1f} % of the tensor cores.\n")
    print(
        "| "
        + " | ".join(keys)
        + " |\n"
        + "| --- " * len(keys)
        + "|\n| "
        + " | ".join(f"{mean:.1f}" for mean in means)
        + " |"
    )


def main() -> int:
    """Compare idle, then under load where PyTorch is there."""
    wrong = compare("idle")
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    assert load.stdout is not None
    try:
        if load.stdout.readline().strip() != "ready":
            print("\nno load: PyTorch is not here")
            return int(wrong > 0)
        time.sleep(3)
        wrong += compare("under load: bf16 matrix products, 8192 x 8192")
        activity(load.stdout)
    finally:
        load.kill()
    print(f"\n{wrong} values differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
