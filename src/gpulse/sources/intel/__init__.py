"""Intel GPUs of i915 and xe: sysfs, hwmon, a memory query to the driver, and the clients in /proc. No library, no root.

May import: sources.base, sources.drm, model. Never here: perf events, which need CAP_PERFMON; formatting.
"""
