"""Speed and memory of manymetrics against its peers, as ratios measured in one run: `python -m benchmarks --help`."""
