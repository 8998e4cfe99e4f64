"""Prometheus, DCGM's names and OpenTelemetry: snapshots as series that other programs collect.

counters (what grows) → families and dcgm (what is said) → exporter (the page, made once a sample); otlp pushes the same.
"""
