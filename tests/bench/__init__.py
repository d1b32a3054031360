"""Measure what tests must not: times and sizes, as ratios within one run. `make bench` runs it all."""
