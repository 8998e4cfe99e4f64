"""Other machines: read over ssh, from their `gpulse serve`, or from Prometheus.

May import sampling and below, and settings. Never here: a screen, a decision about what a value means.
"""
