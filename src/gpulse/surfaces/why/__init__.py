"""What `gpulse why` shows: progress while it watches, then one verdict per GPU.

May import: present and below. Never here: rules, thresholds, words of verdicts.
"""
