"""Diagnosis: what limits each GPU over a window of samples, with the numbers as evidence.

`judge.diagnose` judges any samples at once, `running.LiveDiagnosis` the last minute again and again. `window` holds the samples in columns,
`workload` finds the time worth judging, `load` works out the figures of it, and each file of `rules` knows one verdict.
"""
