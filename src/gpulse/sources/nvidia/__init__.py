"""NVIDIA GPUs through NVML: the library, its structures, one reader line a metric, and the source itself.

May import: sources.base, .files, .host, and below. Never here: threads, rates, words for people beyond causes of failure.
"""
