"""The report: one run, or two side by side, as a page that needs nothing else, as Markdown or as JSON.

moments (what is read) → account (adding up) → run (a value) → pages and comparison (what is said) → html, markdown, plain.
"""
