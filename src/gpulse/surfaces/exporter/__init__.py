"""Export snapshots as series: Prometheus, DCGM's names and OpenTelemetry.

families (with the counters behind them) and dcgm (other exporters' names) → exporter (the page, rendered once per sample); otlp
(the same data as messages) → otlp_push (the queue and its thread).
"""
