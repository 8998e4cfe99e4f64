"""The one-glance view: a line or a card for every GPU, and who uses it; here is what it reads.

May import: present, model, units. Never here: sampling, the terminal's state (that is watch.py's alone).
"""

from __future__ import annotations

from ...model import catalog
from ...model.select import Wanted

GLANCE = Wanted(catalog.GLANCE, catalog.USERS, ("name", "load", "memory_used", "memory_total"), serving=True)
STAYING = Wanted(gpu=("xid_last", "xids"))
PROCESSES = Wanted(process=catalog.PROCESS_METRICS)
# what `gpustat --json` has, without activity and all that takes long to read
GPUSTAT = Wanted(
    ("temperature", "fan_speed", "utilization", "encoder_utilization", "decoder_utilization", "power_draw", "power_limit",
     "memory_used", "memory_total"),
    ("user", "name", "command", "memory_used", "cpu_percent", "host_memory"),
    ("name",),
)  # fmt: skip
