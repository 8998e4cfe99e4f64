"""What colors and marks on the screen mean."""

from __future__ import annotations

# How it looks with and without Unicode, its style, and the meaning.
LEGEND = (
    ("██", "##", "busy", "activity: utilization, SM, tensor, DRAM, engines"),
    ("██", "##", "memory", "memory"),
    ("██", "##", "chart3", "power, temperature, clocks"),
    ("██", "##", "chart4", "PCIe and NVLink traffic"),
    ("██", "##", "warn", "near a limit, or a problem that slows work down"),
    ("██", "##", "critical", "failed, throttled by heat, or at a limit"),
    ("!", "!", "critical", "a line of GPUs without room for words: select it and press Enter"),
    ("-", "-", "calm", "no value: not supported or not readable"),
    ("…", "~", "calm", "value still being measured, or text cut off"),
    ("↑3 ↓5", "^3 v5", "warn", "more above and below: scroll with keys or the wheel"),
)
