"""Export snapshots as series: Prometheus, DCGM's names and OpenTelemetry.

counters → families and dcgm → exporter (the page, rendered once per sample); otlp pushes the same data.
"""
