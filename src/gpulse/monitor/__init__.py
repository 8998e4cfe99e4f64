"""The face for training code: a monitor in the background, measurements of functions, and a quick sample."""
