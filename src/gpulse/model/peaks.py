"""Peaks: the dense floating-point rate of each GPU model by data type, from the vendors' own documents.

Never a rate with sparsity, which no ordinary training reaches: where a document gives only that, half of it is listed.
"""

from __future__ import annotations

import re

# Documents, by the short name that the table uses.
SOURCES = {
    "h100": "https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306",
    "h200": "https://nvdam.widen.net/s/nb5zzzsjdf/hpc-datasheet-sc23-h200-datasheet-3002446",
    "gh200": "https://resources.nvidia.com/en-us-grace-cpu/grace-hopper-superchip",
    "blackwell": "https://resources.nvidia.com/en-us-blackwell-architecture/datasheet",
    "a100": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
    "a30": "https://www.nvidia.com/content/dam/en-zz/Solutions/data-center/products/a30-gpu/pdf/a30-datasheet.pdf",
    "a40": "https://images.nvidia.com/content/Solutions/data-center/a40/nvidia-a40-datasheet.pdf",
    "a10": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/a10-datasheet.pdf",
    "l40s": "https://resources.nvidia.com/en-us-l40s/l40s-datasheet-28413",
    "l40": "https://www.nvidia.com/content/dam/en-zz/Solutions/design-visualization/support-guide/NVIDIA-L40-Datasheet-January-2023.pdf",
    "l4": "https://resources.nvidia.com/en-us-data-center-overview/l4-gpu-datasheet",
    "v100": "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf",
    "t4": "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf",
    "ga102": "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf",
    "ada": "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    "rtx-blackwell": "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf",
    "mi300x": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf",
    "mi325x": "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/instinct-mi325x-datasheet.pdf",
    "mi210": "https://www.amd.com/content/dam/amd/en/documents/instinct-business-docs/white-papers/amd-cdna2-white-paper.pdf",
}
DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8")
_ALIASES = {
    "fp64": "float64", "double": "float64", "fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16",
    "bf16": "bfloat16", "fp8": "float8", "float8_e4m3fn": "float8", "float8_e5m2": "float8", "float8_e4m3fnuz": "float8",
    "float8_e5m2fnuz": "float8", "tensorfloat32": "tf32",
}  # fmt: skip

# The driver's name of the model, as a pattern; TFLOPS in the order of DTYPES, accumulated in float32 where that matters (float16
# of GeForce cards), by tensor or matrix cores where they have the type; None: not stated, or not there. The source.
_TABLE: tuple[tuple[str, tuple[float | None, ...], str], ...] = (
    (r"H100 NVL", (60, 60, 417.5, 835.5, 835.5, 1670.5), "h100"),
    (r"H100 PCIe", (51, 51, 378, 756, 756, 1513), "h100"),
    (r"H100( 80GB HBM3| SXM5.*|-SXM.*)?", (67, 67, 494.5, 989.5, 989.5, 1979), "h100"),
    (r"H200 NVL", (60, 60, 417.5, 835.5, 835.5, 1670.5), "h200"),
    (r"H200( SXM.*|-SXM.*)?", (67, 67, 494.5, 989.5, 989.5, 1979), "h200"),
    (r"GH200 .*", (67, 67, 494.5, 989.5, 989.5, 1979), "gh200"),
    (r"B200", (37, 75, 1125, 2250, 2250, 4500), "blackwell"),
    (r"GB200", (40, 80, 1250, 2500, 2500, 5000), "blackwell"),
    (r"A100[ -].*", (19.5, 19.5, 156, 312, 312, None), "a100"),
    (r"A30", (10.3, 10.3, 82, 165, 165, None), "a30"),
    (r"A40", (None, 37.4, 74.8, 149.7, 149.7, None), "a40"),
    (r"A10", (None, 31.2, 62.5, 125, 125, None), "a10"),
    (r"L40S", (None, 91.6, 183, 362.05, 362.05, 733), "l40s"),
    (r"L40", (None, 90.5, 90.5, 181.05, 181.05, 362), "l40"),
    (r"L4", (None, 30.3, 60, 121, 121, 242.5), "l4"),
    (r"V100S-PCIE-32GB", (8.2, 16.4, None, 130, None, None), "v100"),
    (r"V100-SXM.*", (7.8, 15.7, None, 125, None, None), "v100"),
    (r"V100-PCIE-.*", (7, 14, None, 112, None, None), "v100"),
    (r"T4", (None, 8.1, None, 65, None, None), "t4"),
    (r"RTX A6000", (None, 38.7, 77.4, 154.8, 154.8, None), "ga102"),
    (r"GeForce RTX 3090 Ti", (None, 40, 40, 80, 80, None), "ada"),
    (r"GeForce RTX 3090", (None, 35.6, 35.6, 71, 71, None), "ga102"),
    (r"GeForce RTX 3080", (None, 29.8, 29.8, 59.5, 59.5, None), "ga102"),
    (r"GeForce RTX 3070", (None, 20.3, 20.3, 40.6, 40.6, None), "ga102"),
    (r"GeForce RTX 4090", (None, 82.6, 82.6, 165.2, 165.2, 330.3), "ada"),
    (r"GeForce RTX 4080", (None, 48.7, 48.7, 97.5, 97.5, 194.9), "ada"),
    (r"GeForce RTX 5090", (None, 104.8, 104.8, 209.5, 209.5, 419), "rtx-blackwell"),
    (r"GeForce RTX 5080", (None, 56.3, 56.3, 112.6, 112.6, 225.1), "rtx-blackwell"),
    (r"Instinct MI300X.*", (163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9), "mi300x"),
    (r"Instinct MI325X.*", (163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9), "mi325x"),
    (r"Instinct MI210", (45.3, 45.3, None, 181, 181, None), "mi210"),
)  # fmt: skip
_MAKER = re.compile(r"^(NVIDIA|Tesla|AMD)\s+")


def dtype_named(dtype: object) -> str | None:
    """Return the table's name of a data type (torch.bfloat16, "bf16", "float16"); None if it has none."""
    name = str(dtype).lower().rpartition(".")[2].replace("-", "_")
    name = _ALIASES.get(name, name)
    return name if name in DTYPES else None


def peak(model: str, dtype: str) -> float | None:
    """Return the dense peak of a GPU model in floating-point operations per second; None if the model or its rate is not known."""
    name = "" if " MIG" in model else model.strip()  # a part of a GPU has a part of its peak
    while (shorter := _MAKER.sub("", name)) != name:
        name = shorter
    for pattern, rates, _ in _TABLE:
        if re.fullmatch(pattern, name, re.IGNORECASE):
            rate = rates[DTYPES.index(dtype)]
            return None if rate is None else rate * 1e12
    return None


def peak_rows() -> list[tuple[str, tuple[float | None, ...], str]]:
    """Return the table for the documentation: pattern of the model, TFLOPS by type, address of the source."""
    return [(pattern, rates, SOURCES[source]) for pattern, rates, source in _TABLE]
