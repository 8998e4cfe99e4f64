"""Python interface for training code: a background monitor, measurements of functions, and a quick status line."""
