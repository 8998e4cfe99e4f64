"""Side-by-side measurements: gpulse and its peers on the same machine in the same run, as ratios."""
