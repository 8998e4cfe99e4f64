"""The report: one run, or two side by side, as a page that needs nothing else, as Markdown or as JSON.

recorded_samples (what is read) → account (adds up) → run (a value) → pages and comparison (what is said, in the blocks of document)
→ html, terminal and Markdown; writing chooses the form and the file.
"""
