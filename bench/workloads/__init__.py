"""Programs with a known bottleneck, to record telemetry of and to hold diagnoses against: `python -m bench.workloads`."""
